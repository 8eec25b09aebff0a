"""`tuple(…)` of a sequence of constant length.

tuple(v * s for v in a)               →    (a[0] * s, a[1] * s, a[2] * s)
tuple(a[k] * b[j] for k in range(2)   →    (a[0] * b[0], a[0] * b[1], a[1] * b[0], a[1] * b[1])
      for j in range(2))

In: a call of `tuple` in a scope. Out: an `ir.Tuple`; a constant after a diagnostic.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import libcst as cst

from py2cu import ir
from py2cu.frontend.bodies.hoisting import Operand
from py2cu.frontend.bodies.scope import Scope
from py2cu.frontend.bodies.sequences.comprehensions import binding, clauses
from py2cu.frontend.bodies.sequences.reader import SequenceReader
from py2cu.frontend.bodies.sequences.unpacking import known_rounds
from py2cu.frontend.bodies.tables import MAX_NUMBERS, Read
from py2cu.frontend.bodies.tuples.items import Item, as_value
from py2cu.frontend.bodies.tuples.values import open_tuple
from py2cu.frontend.names.syntax import source_text

TUPLE: Final = "builtins.tuple"


def read_tuple(node: cst.Call, scope: Scope, read: Read) -> ir.Expr:
    """The tuple that a call of `tuple` makes."""
    span, errors = scope.span_of(node), len(scope.reporter.diagnostics)
    match node.args:
        case [cst.Arg(value=value, keyword=None, star="")]:
            reader = ItemReader(scope, read)
            reader.read_all(value)
        case _:
            scope.error("P105", "`tuple` takes one sequence in a kernel", node, "write its items in brackets")
            return ir.Constant(0, span)
    if not reader.items:
        if len(scope.reporter.diagnostics) == errors:
            scope.error("P103", "an empty tuple is not supported in a kernel", node, "leave it out")
        return ir.Constant(0, span)
    return ir.Tuple(tuple(reader.items), span)


@dataclass(slots=True)
class ItemReader:
    """Reads items in order; those before an item that needs statements go into locals."""

    scope: Scope
    read: Read
    who: str = "a generator"  # that takes the items
    hint: str = "write a loop"
    operands: list[Operand] = field(default_factory=list)
    at: int = 0  # of the first operand

    def __post_init__(self) -> None:
        self.at = len(self.scope.hoisted.operands)

    @property
    def items(self) -> list[ir.Expr]:
        return [operand.value for operand in self.operands]

    def read_all(self, node: cst.BaseExpression) -> None:
        """The items of what the call takes: of a generator, or of another sequence."""
        if (generator := clauses(node)) is not None:
            elt, head = generator
            self._read_loop(head, elt)
            return
        for item in self._rounds(node):
            value = as_value(item, self.scope.span_of(node))
            if value is None:
                text = source_text(node)
                what, hint = "an item of a tuple is a number or a tuple", f"`tuple(v for row in {text} for v in row)`"
                self.scope.error("P103", what, node, hint)
                return
            self._append(value)

    def _read_loop(self, head: cst.CompFor, elt: cst.BaseExpression) -> None:
        """A loop of a generator, written out; the items of the loops in it, or of its expression."""
        for test in head.ifs:
            hint = "keep all items, and choose the value of each: `v if v > 0 else 0.0`"
            self.scope.error("P104", "with an `if`, the length of this tuple is not constant", test, hint)
            return
        for item in self._rounds(head.iter):
            with binding(head.target, item, self.scope):
                if head.inner_for_in is not None:
                    self._read_loop(head.inner_for_in, elt)
                else:
                    self._append(open_tuple(self.read(elt), elt, self.scope))

    def _rounds(self, node: cst.BaseExpression) -> Iterator[Item]:
        """The items of a sequence, whose number must be constant; none after a diagnostic."""
        span = self.scope.span_of(node)
        sequence = SequenceReader(self.scope, self.read, span, whole_rows=True).read_iterable(node, self.who, self.hint)
        if sequence is None:
            return
        count = known_rounds(sequence, self.scope)
        if count is None:
            hint = "write the length into the annotation or into the `range`, or use a loop"
            self.scope.error("P408", "the length of a tuple is constant, and this is known at run time", node, hint)
        elif len(self.operands) + count > MAX_NUMBERS:
            what = f"a tuple of {len(self.operands) + count} numbers is no value: at most {MAX_NUMBERS} fit locals"
            self.scope.error("P408", what, node, "make a list: `[… for … in …]`")
        else:
            for at in range(count):
                yield sequence.item(ir.Constant(at, span, ir.PY_INT))

    def _append(self, value: ir.Expr) -> None:
        self.operands.append(self.scope.hoisted.hold(value, self.at + len(self.operands)))
