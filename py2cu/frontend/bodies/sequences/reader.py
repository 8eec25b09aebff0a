"""What loops run over and assignments unpack: parts of arrays, ranges, tuples, tables, and `enumerate`, `zip` and
`reversed` of them.

In: a LibCST expression in a scope. Out: a `Sequence`, which knows how many items it has and what each is; None for
anything else. An item is a number, a part of an array, or a tuple of items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

import libcst as cst

from py2cu import ir
from py2cu.builtins.memory import STCS
from py2cu.frontend.bodies.lists.uses import refuses_exchange
from py2cu.frontend.bodies.parts import cache_hint, is_part, read_part, read_row_of_view
from py2cu.frontend.bodies.scope import Scope
from py2cu.frontend.bodies.sequences.comprehensions import Mapped, is_of_arrays
from py2cu.frontend.bodies.sequences.kinds import (
    Display,
    Elements,
    Enumerate,
    Reversed,
    Sequence,
    Table,
    Zip,
    constants,
)
from py2cu.frontend.bodies.sequences.ranges import Range, as_index
from py2cu.frontend.bodies.sequences.unpacking import dimension, known_rounds
from py2cu.frontend.bodies.tables import Read, as_array, problem_of, read_table
from py2cu.frontend.bodies.tuples.items import Item, as_item
from py2cu.frontend.bodies.tuples.values import open_tuple
from py2cu.frontend.bodies.views import ZERO, View, is_fixed, larger
from py2cu.frontend.names.constants import Constants, Real
from py2cu.source import Span

ITERABLES: Final = "`range(…)`, arrays, tuples, and `enumerate`, `zip`, `reversed` of them"


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
    whole_rows: bool = False  # rows of views are tuples, each of which is loaded at once

    def read_iterable(self, node: cst.BaseExpression, who: str, hint: str = "write a loop") -> Sequence | None:
        """The sequence that `node` is; None after a diagnostic, which says what `who` runs over."""
        before = len(self.scope.reporter.diagnostics)
        sequence = self.read_sequence(node)
        is_reported = len(self.scope.reporter.diagnostics) > before
        if sequence is None and not is_reported and not self.scope.reports_ambiguous(node):
            self.scope.error("P104", f"{who} runs over {ITERABLES}", node, hint)
        return sequence

    def read_sequence(self, node: cst.BaseExpression) -> Sequence | None:
        """The sequence that `node` is; None, and no diagnostic, for anything else."""
        row = None if self.whole_rows else read_row_of_view(node, self.scope, self.read)
        match node:
            case _ if row is not None and row.hint != STCS:
                return Elements(row.kept(self.assigned, self.scope.save), self.span)
            case cst.Subscript(value=cst.Name(value=name)) if self.scope.is_row_view(name):
                return self._tuple(node)
            case _ if is_part(node, self.scope):
                part = read_part(node, self.scope, self.read)
                if part is None or refuses_exchange(part, node, self.assigned, self.scope):
                    return None
                return Elements(part.kept(self.assigned, self.scope.save), self.span)
            case cst.Name(value=name) if name in self.scope.ranges and name not in self.scope.bindings:
                return self.scope.ranges[name]
            case cst.Name(value=name) if name in self.scope.views.ended and name not in self.scope.bindings:
                self.read(node)  # reports it
                return None
            case _ if (table := read_table(node, self.scope)) is not None:
                return self._table(table, node.value if isinstance(node, cst.Name) else "")
            case cst.Tuple(elements=elements) if _has_star(elements):
                return self._tuple(node)
            case cst.Tuple(elements=elements) | cst.List(elements=elements) if elements and not _has_star(elements):
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
            case cst.Call(func=func) if not self.scope.is_local(func) and (
                self.scope.functions.named(func) is not None
                or self.scope.environment.qualify(func) == "builtins.tuple"
                or cache_hint(node, self.scope)
            ):
                return self._tuple(node)
            case cst.IfExp():
                return self._tuple(node)
            case cst.Call(args=args) if (
                numbers := self.read_range(node, lambda bound, _: as_index(self._kept(bound)))
            ) is not None:
                return numbers if len(args) < 3 else self._with_step(numbers, args[2].value)
            case cst.Call(func=func, args=args) if not any(arg.star for arg in args):
                places = [arg.value for arg in args if arg.keyword is None]
                named = {arg.keyword.value: arg.value for arg in args if arg.keyword is not None}
                return self._call(node, self.scope.environment.qualify(func), places, named)
            case _:
                return None

    def read_range(self, node: cst.BaseExpression, keep: Callable[[ir.Expr, str], ir.Expr]) -> Range | None:
        """The numbers of a call of `range`, each argument as `keep` makes it of its value and name, or of a variable
        that is a range; None for anything else.
        """
        match node:
            case cst.Name(value=name) if name not in self.scope.bindings:
                return self.scope.ranges.get(name)
            case cst.Call(func=func, args=args) if (
                self.scope.environment.qualify(func) == "builtins.range"
                and 1 <= len(args) <= 3
                and not any(arg.keyword or arg.star for arg in args)
            ):
                names = ("stop",) if len(args) == 1 else ("start", "stop", "step")
                values = [keep(self.read(arg.value), name) for arg, name in zip(args, names, strict=False)]
                span = self.scope.span_of(node)
                start, stop = (ir.Constant(0, span), values[0]) if len(values) == 1 else (values[0], values[1])
                return Range(start, stop, values[2] if len(values) == 3 else ir.Constant(1, span))
            case _:
                return None

    def _with_step(self, numbers: Range, node: cst.BaseExpression) -> Range | None:
        """The numbers with their step, computed if it is a constant; None, after a diagnostic, for a step of zero."""
        step = None if self.scope.is_local(node) else self.scope.environment.constant(node)
        if not isinstance(step, int):
            return numbers
        if step == 0:
            hint = "use a positive or a negative step"
            self.scope.error("P104", "the step of `range` must not be zero", node, hint)
            return None
        return replace(numbers, step=ir.Constant(int(step), self.scope.span_of(node), ir.PY_INT))

    def read_row(self, node: cst.BaseExpression) -> Item | None:
        """`T[k]`, a row of a tuple of constants at a run-time index; None for anything else."""
        match node:
            case cst.Subscript(
                value=cst.Name() as table, slice=[cst.SubscriptElement(slice=cst.Index(value=index, star=None))]
            ) if read_table(table, self.scope) is not None and read_table(node, self.scope) is None:
                sequence = self.read_sequence(table)
                return None if sequence is None else sequence.item(self._kept(self.read(index)))
            case _:
                return None

    def _tuple(self, node: cst.BaseExpression) -> Sequence | None:
        """The items of a tuple that is computed or kept in a local; None after a diagnostic."""
        before = len(self.scope.reporter.diagnostics)
        match self._item(node):
            case tuple() as items:
                return Display(items, self.span)
            case None:
                return None
            case _:
                if len(self.scope.reporter.diagnostics) == before:
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
            case cst.Tuple(elements=elements) | cst.List(elements=elements) if not _has_star(elements):
                return self._items([element.value for element in elements])
            case cst.Name(value=name) if name in self.assigned and self.scope.form_of(node) is not None:
                return as_item(open_tuple(self.scope.save(self.read(node)), node, self.scope))
            case _:
                return self._kept_item(self.read_item(node))

    def _kept_item(self, item: Item) -> Item:
        if isinstance(item, tuple):
            return tuple(map(self._kept_item, item))
        is_item = isinstance(item, ir.TupleItem) and isinstance(item.value, ir.Name)
        return item if is_item or isinstance(item, View) else self._kept(item)

    def _kept(self, value: ir.Expr) -> ir.Expr:
        """`value`, in a local unless it stays the same while the sequence is used."""
        return value if is_fixed(value, self.assigned) else self.scope.save(value)

    def _call(
        self,
        node: cst.Call,
        function: str | None,
        places: list[cst.BaseExpression],
        named: dict[str, cst.BaseExpression],
    ) -> Sequence | None:
        match function, places:
            case "builtins.enumerate", [part, *start] if len(start) + len(named) <= 1 and named.keys() <= {"start"}:
                inner = self.read_sequence(part)
                first = start[0] if start else named.get("start")
                at = ZERO if first is None else self._kept(self.read(first))
                return None if inner is None else Enumerate(inner, at)
            case "builtins.zip", [_, *_] if named.keys() <= {"strict"}:
                parts = [self.read_sequence(part) for part in places]
                known = tuple(part for part in parts if part is not None)
                is_strict = "strict" in named and self._is_strict(named["strict"])
                if len(known) < len(parts) or (is_strict and not self._agree(known, node)):
                    return None
                return Zip(known, is_strict)  # rule: zip-strict
            case "builtins.reversed", [part] if not named:
                inner = self.read_sequence(part)
                return None if inner is None else Reversed(inner)
            case _:
                return None

    def _is_strict(self, node: cst.BaseExpression) -> bool:
        """The value of `strict=`, which must be a constant."""
        value = None if self.scope.is_local(node) else self.scope.environment.constant(node)
        if not isinstance(value, bool | int):
            self.scope.error("P104", "`strict` of `zip` is a constant in a kernel", node, "`strict=True`")
        return bool(value)

    def _agree(self, parts: tuple[Sequence, ...], node: cst.Call) -> bool:
        """True for sequences of one length, which the kernel asserts where the text leaves it open."""
        first, *others = [self._length(part) for part in parts]
        for other in others:
            match first, other:
                case ir.Constant(value=int(one)), ir.Constant(value=int(two)) if one != two:
                    what = f"`zip` is strict, and takes {one} and {two} items"
                    self.scope.error("P104", what, node, "pass as many items in each, or leave `strict` out")
                    return False
                case _ if first != other:  # rule: zip-lengths
                    is_equal = ir.Compare("==", first, other, self.span)
                    check = ir.Assert(is_equal, ("`zip` is strict: the lengths agree",), "", self.span)
                    self.scope.hoist((check,), self.span)
        return True

    def _length(self, sequence: Sequence) -> ir.Expr:
        """The number of items, which may be below zero in `rounds` of a range that has none."""
        known = known_rounds(sequence, self.scope)
        if known is not None:
            return ir.Constant(max(known, 0), self.span, ir.PY_INT)
        is_cut = isinstance(sequence, Elements) and sequence.view.start is not None  # see `View.extent`
        if is_cut or is_of_arrays(sequence, self.scope):
            return dimension(sequence.rounds, self.scope)
        return larger(sequence.rounds, ZERO)


def _has_star(elements: Iterable[cst.BaseElement]) -> bool:
    return any(isinstance(element, cst.StarredElement) for element in elements)
