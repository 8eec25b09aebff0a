"""What loops run over and assignments unpack: parts of arrays, ranges, tuples, tables, and `enumerate`, `zip` and
`reversed` of them.

In: a LibCST expression in a scope. Out: a `Sequence`, which knows how many items it has and what each is; None for
anything else. An item is a number, a part of an array, or a tuple of items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Protocol

import libcst as cst

from py2cu import ir
from py2cu.frontend.bodies.lists.uses import refuses_exchange
from py2cu.frontend.bodies.parts import is_part, read_part
from py2cu.frontend.bodies.scope import Scope
from py2cu.frontend.bodies.tables import Read, as_array, find_row, problem_of
from py2cu.frontend.bodies.tuples.items import Item, as_item, as_value, lengths
from py2cu.frontend.bodies.tuples.values import open_tuple, select_number
from py2cu.frontend.bodies.views import ZERO, View, is_fixed, minus, plus, smaller
from py2cu.frontend.names.constants import Constants, Real
from py2cu.frontend.names.syntax import name_nodes
from py2cu.frontend.rewrites.targets import rewrite_names
from py2cu.source import Span

ONE: Final = ir.Constant(1, type=ir.PY_INT)


class Sequence(Protocol):
    """Items in order. `rounds` is how many, or a number below one where there are none."""

    @property
    def rounds(self) -> ir.Expr: ...

    def item(self, at: ir.Expr) -> Item:
        """The item at an index from zero to `rounds`."""


@dataclass(frozen=True, slots=True)
class Elements:
    """The elements of a part of an array, or the parts under its first axis."""

    view: View
    span: Span  # of the expression that Python evaluates for each

    @property
    def rounds(self) -> ir.Expr:
        return self.view.extent(0)

    def item(self, at: ir.Expr) -> Item:
        if self.view.rank > 1:
            return self.view.at((at,))
        return ir.Load(self.view.array, self.view.indices((at,)), self.span)


@dataclass(frozen=True, slots=True)
class Range:
    start: ir.Expr
    stop: ir.Expr
    step: int

    @property
    def rounds(self) -> ir.Expr:
        start, stop = (self.start, self.stop) if self.step > 0 else (self.stop, self.start)
        distance = minus(stop, start)
        if abs(self.step) == 1:
            return distance
        if isinstance(distance, ir.Constant):
            return ir.Constant(-(-int(distance.value) // abs(self.step)), distance.span, ir.PY_INT)
        step = ir.Constant(abs(self.step), distance.span, ir.PY_INT)
        return ir.Binary("//", plus(distance, minus(step, ONE)), step, distance.span)

    def item(self, at: ir.Expr) -> Item:
        if self.step == 1:
            return plus(self.start, at)
        if self.step == -1:
            return minus(self.start, at)
        step = ir.Constant(self.step, at.span, ir.PY_INT)
        return plus(self.start, ir.Binary("*", at, step, at.span))


@dataclass(frozen=True, slots=True)
class Display:
    """A tuple or a list of run-time values that the kernel's text writes out."""

    items: tuple[Item, ...]
    span: Span

    @property
    def rounds(self) -> ir.Expr:
        return ir.Constant(len(self.items), self.span, ir.PY_INT)

    def item(self, at: ir.Expr) -> Item:
        if isinstance(at, ir.Constant):
            return self.items[int(at.value)]
        return self._select(self.items, at)

    def _select(self, items: tuple[Item, ...], at: ir.Expr) -> Item:
        """The number that `at` selects; of tuples, one by one."""
        if isinstance(items[0], tuple):
            rows = [item for item in items if isinstance(item, tuple)]
            return tuple(self._select(column, at) for column in zip(*rows, strict=True))
        numbers = tuple(item for item in items if not isinstance(item, tuple | View))
        return select_number(numbers, at, self.span)

    @property
    def is_uniform(self) -> bool:
        """True where a run-time index can choose: numbers, or tuples of equal form."""
        return (
            bool(self.items) and len({lengths(item) for item in self.items}) == 1 and lengths(self.items[0]) is not None
        )


@dataclass(frozen=True, slots=True)
class Table:
    """A tuple of constants. `place` puts it into constant memory, where a run-time index takes an item."""

    values: Constants
    span: Span
    place: Callable[[], str]

    @property
    def rounds(self) -> ir.Expr:
        return ir.Constant(len(self.values), self.span, ir.PY_INT)

    def item(self, at: ir.Expr) -> Item:
        if isinstance(at, ir.Constant):
            return constants(self.values[int(at.value)], self.span)
        return self._loads(self.place(), self.values[0], (at,))

    def _loads(self, array: str, item: Constants | Real, indices: tuple[ir.Expr, ...]) -> Item:
        if not isinstance(item, tuple):
            return ir.Load(array, indices, self.span)
        places = (ir.Constant(place, self.span, ir.PY_INT) for place in range(len(item)))
        return tuple(self._loads(array, part, (*indices, place)) for part, place in zip(item, places, strict=True))


def constant_range(start: ir.Expr, stop: ir.Expr, step: ir.Expr) -> range | None:
    """The numbers from `start` to `stop`, if all three are constants."""
    match start, stop, step:
        case ir.Constant(value=int(first)), ir.Constant(value=int(end)), ir.Constant(value=int(by)) if by != 0:
            return range(first, end, by)
        case _:
            return None


def constants(value: Constants | Real, span: Span) -> Item:
    """A constant, or a tuple of them, as an item."""
    return tuple(constants(item, span) for item in value) if isinstance(value, tuple) else ir.Constant(value, span)


@dataclass(frozen=True, slots=True)
class Zip:
    parts: tuple[Sequence, ...]

    @property
    def rounds(self) -> ir.Expr:
        first, *others = [part.rounds for part in self.parts]
        for other in others:
            first = smaller(first, other)
        return first

    def item(self, at: ir.Expr) -> Item:
        return tuple(part.item(at) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Enumerate:
    part: Sequence
    start: ir.Expr

    @property
    def rounds(self) -> ir.Expr:
        return self.part.rounds

    def item(self, at: ir.Expr) -> Item:
        return plus(self.start, at), self.part.item(at)


@dataclass(frozen=True, slots=True)
class Reversed:
    part: Sequence

    @property
    def rounds(self) -> ir.Expr:
        return self.part.rounds

    def item(self, at: ir.Expr) -> Item:
        return self.part.item(minus(minus(self.part.rounds, ONE), at))


@dataclass(frozen=True, slots=True)
class Mapped:
    """`elt for target in part`: an expression, read for each item."""

    reader: SequenceReader
    elt: cst.BaseExpression
    target: cst.BaseExpression
    part: Sequence

    @property
    def rounds(self) -> ir.Expr:
        return self.part.rounds

    def item(self, at: ir.Expr) -> Item:
        with self.reader.bound(self.target, self.part.item(at)):
            return self.reader.read_item(self.elt)


@dataclass(frozen=True, slots=True)
class SequenceReader:
    """Reads sequences in one scope.

    `span` is what Python evaluates for each item: all of what a loop runs over. `assigned` are the names that change
    while the sequence is used: what depends on them is computed before the statement.
    """

    scope: Scope
    read: Read
    span: Span
    assigned: frozenset[str] = frozenset()

    def read_sequence(self, node: cst.BaseExpression) -> Sequence | None:
        """The sequence that `node` is; None, and no diagnostic, for anything else."""
        match node:
            case _ if is_part(node, self.scope):
                part = read_part(node, self.scope, self.read)
                if part is None or refuses_exchange(part, node, self.assigned, self.scope):
                    return None
                return Elements(part.kept(self.assigned, self.scope.save), self.span)
            case _ if (table := find_row(node, self.scope)) is not None:
                return self._table(table, node.value if isinstance(node, cst.Name) else "")
            case cst.Tuple(elements=elements) | cst.List(elements=elements) if elements and not any(
                isinstance(element, cst.StarredElement) for element in elements
            ):
                values = self._constants(node)
                if values is not None:
                    return self._table(values, "")
                items = self._items([element.value for element in elements])
                return None if items is None else Display(items, self.span)
            case cst.GeneratorExp(elt=elt, for_in=head) | cst.ListComp(elt=elt, for_in=head) if not (
                head.ifs or head.inner_for_in
            ):
                inner = self.read_sequence(head.iter)
                return None if inner is None else Mapped(self, elt, head.target, inner)
            case cst.Name() | cst.Subscript() if self.scope.form_of(node) is not None:
                return self._tuple(node)
            case cst.Call(func=func) if not self.scope.is_local(func) and self.scope.functions.named(func) is not None:
                return self._tuple(node)
            case cst.IfExp():
                return self._tuple(node)
            case cst.Call(func=func, args=args) if not any(arg.star for arg in args):
                places = [arg.value for arg in args if arg.keyword is None]
                named = {arg.keyword.value: arg.value for arg in args if arg.keyword is not None}
                return self._call(self.scope.environment.qualify(func), places, named)
            case _:
                return None

    def read_row(self, node: cst.BaseExpression) -> Item | None:
        """`T[k]`, a row of a tuple of constants at a run-time index; None for anything else."""
        match node:
            case cst.Subscript(
                value=cst.Name() as table, slice=[cst.SubscriptElement(slice=cst.Index(value=index, star=None))]
            ) if find_row(table, self.scope) is not None and find_row(node, self.scope) is None:
                sequence = self.read_sequence(table)
                return None if sequence is None else sequence.item(self._kept(self.read(index)))
            case _:
                return None

    def _tuple(self, node: cst.BaseExpression) -> Sequence | None:
        """The items of a tuple that is computed or kept in a local; None after a diagnostic."""
        match self._item(node):
            case tuple() as items:
                return Display(items, self.span)
            case None:
                return None
            case _:
                self.scope.error("P312", "this is one number, not a tuple", node, "loop over a tuple, or a `range`")
                return None

    def read_item(self, node: cst.BaseExpression) -> Item:
        """A number, or the items of a tuple."""
        return as_item(open_tuple(self.read(node), node, self.scope))

    @contextmanager
    def bound(self, target: cst.BaseExpression, item: Item) -> Iterator[None]:
        """The variables of a comprehension, while an expression with them is read."""
        bound, views = self.scope.bound, self.scope.views.views
        outer = dict(bound), dict(views)
        self._bind(target, item)
        yield
        bound.clear()
        bound.update(outer[0])
        views.clear()
        views.update(outer[1])

    def _bind(self, target: cst.BaseExpression, item: Item) -> None:
        match target, item:
            case cst.Name(value=name), View():
                self.scope.bound.pop(name, None)
                self.scope.views.views[name] = item
            case cst.Name(value=name), _ if (value := as_value(item, self.span)) is not None:
                self.scope.views.views.pop(name, None)
                self.scope.bound[name] = value
            case cst.Tuple(elements=elements), tuple() if len(elements) == len(item):
                for element, part in zip(elements, item, strict=True):
                    self._bind(element.value, part)
            case _:
                what = "the variables of a comprehension take one number, row or tuple each"
                count = len(item) if isinstance(item, tuple) else 1
                self.scope.error("P104", what, target, rewrite_names(list(name_nodes(target)), count))
                self.scope.bound.update({name.value: ZERO for name in name_nodes(target)})

    def _table(self, table: Constants, name: str) -> Sequence:
        """A tuple of constants; one that cannot be indexed at run time has items that the text writes out."""
        if problem_of(table) is not None:
            return Display(tuple(constants(value, self.span) for value in table), self.span)

        def place() -> str:
            array = as_array(name or self.scope.fresh("table"), table, self.span)
            return self.scope.array_decls.setdefault(array.name, array).name

        return Table(table, self.span, place)

    def _constants(self, node: cst.BaseExpression) -> Constants | None:
        """The numbers that a display such as `((0, 1), (1, 0))` writes out; None where one is no constant."""
        match node:
            case cst.Tuple(elements=elements) | cst.List(elements=elements):
                values = [self._constant(element.value) for element in elements]
                known = tuple(value for value in values if value is not None)
                return known if len(known) == len(values) else None
            case _:
                return None

    def _constant(self, node: cst.BaseExpression) -> Constants | Real | None:
        if isinstance(node, cst.Tuple | cst.List):
            return self._constants(node)
        value = None if self.scope.is_local(node) else self.scope.environment.constant(node)
        return value if isinstance(value, bool | int | float) else None

    def _items(self, nodes: list[cst.BaseExpression]) -> tuple[Item, ...] | None:
        """The items of a display; None after a diagnostic."""
        items = [self._item(node) for node in nodes]
        known = tuple(item for item in items if item is not None)
        return known if len(known) == len(items) else None

    def _item(self, node: cst.BaseExpression) -> Item | None:
        match node:
            case _ if is_part(node, self.scope):
                part = read_part(node, self.scope, self.read)
                return None if part is None else part.kept(self.assigned, self.scope.save)
            case cst.Tuple(elements=elements) | cst.List(elements=elements):
                return self._items([element.value for element in elements])
            case cst.Name(value=name) if name in self.assigned and self.scope.form_of(node) is not None:
                return as_item(open_tuple(self.scope.save(self.read(node)), node, self.scope))
            case _:
                return self._kept_item(self.read_item(node))

    def _kept_item(self, item: Item) -> Item:
        if isinstance(item, tuple):
            return tuple(map(self._kept_item, item))
        return item if isinstance(item, View | ir.TupleItem) else self._kept(item)

    def _kept(self, value: ir.Expr) -> ir.Expr:
        """`value`, in a local unless it stays the same while the sequence is used."""
        return value if is_fixed(value, self.assigned) else self.scope.save(value)

    def _call(
        self, function: str | None, places: list[cst.BaseExpression], named: dict[str, cst.BaseExpression]
    ) -> Sequence | None:
        match function, places:
            case "builtins.range", _ if 1 <= len(places) <= 3 and not named:
                return self._range(places)
            case "builtins.enumerate", [part, *start] if len(start) + len(named) <= 1 and named.keys() <= {"start"}:
                inner = self.read_sequence(part)
                first = start[0] if start else named.get("start")
                at = ZERO if first is None else self._kept(self.read(first))
                return None if inner is None else Enumerate(inner, at)
            case "builtins.zip", [_, *_] if not named:
                parts = [self.read_sequence(part) for part in places]
                known = tuple(part for part in parts if part is not None)
                return Zip(known) if len(known) == len(parts) else None
            case "builtins.reversed", [part] if not named:
                inner = self.read_sequence(part)
                return None if inner is None else Reversed(inner)
            case _:
                return None

    def _range(self, places: list[cst.BaseExpression]) -> Sequence | None:
        values = [self._kept(self.read(place)) for place in places]
        start, stop = (ZERO, values[0]) if len(values) == 1 else (values[0], values[1])
        step = self.scope.environment.constant(places[2]) if len(values) == 3 else 1
        return Range(start, stop, step) if isinstance(step, int) and step != 0 else None
