"""What loops run over and assignments unpack: parts of arrays, ranges, tuples, tables, and `enumerate`, `zip` and
`reversed` of them.

In: a LibCST expression in a scope. Out: a `Sequence`, which knows how many items it has and what each is; None for
anything else. An item is a number, a part of an array, or a tuple of items.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import libcst as cst

from py2cu import ir
from py2cu.frontend.bodies.lists.uses import refuses_exchange
from py2cu.frontend.bodies.parts import is_part, read_part
from py2cu.frontend.bodies.scope import Scope
from py2cu.frontend.bodies.sequences.comprehensions import Mapped
from py2cu.frontend.bodies.sequences.kinds import (
    Display,
    Elements,
    Enumerate,
    Range,
    Reversed,
    Sequence,
    Table,
    Zip,
    constants,
)
from py2cu.frontend.bodies.tables import Read, as_array, find_row, problem_of
from py2cu.frontend.bodies.tuples.items import Item, as_item
from py2cu.frontend.bodies.tuples.values import open_tuple
from py2cu.frontend.bodies.views import ZERO, View, is_fixed
from py2cu.frontend.names.constants import Constants, Real
from py2cu.source import Span


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
                return None if inner is None else Mapped(self.scope, self.read, elt, head.target, inner)
            case cst.Name() | cst.Subscript() if self.scope.form_of(node) is not None:
                return self._tuple(node)
            case cst.Call(func=func) if not self.scope.is_local(func) and self.scope.functions.named(func) is not None:
                return self._tuple(node)
            case cst.IfExp():
                return self._tuple(node)
            case cst.Call() if (numbers := self.read_range(node, self._kept)) is not None:
                return numbers
            case cst.Call(func=func, args=args) if not any(arg.star for arg in args):
                places = [arg.value for arg in args if arg.keyword is None]
                named = {arg.keyword.value: arg.value for arg in args if arg.keyword is not None}
                return self._call(self.scope.environment.qualify(func), places, named)
            case _:
                return None

    def read_range(self, node: cst.BaseExpression, keep: Callable[[ir.Expr], ir.Expr]) -> Range | None:
        """The numbers of a call of `range`, whose arguments `keep` takes; None for anything else."""
        match node:
            case cst.Call(func=func, args=args) if (
                self.scope.environment.qualify(func) == "builtins.range"
                and 1 <= len(args) <= 3
                and not any(arg.keyword or arg.star for arg in args)
            ):
                values = [keep(self.read(arg.value)) for arg in args]
                span = self.scope.span_of(node)
                start, stop = (ir.Constant(0, span), values[0]) if len(values) == 1 else (values[0], values[1])
                return Range(start, stop, values[2] if len(values) == 3 else ir.Constant(1, span))
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
