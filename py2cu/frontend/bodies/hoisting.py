"""Statements that an expression needs before the statement that it stands in: the loops of `sum(… for …)`, and the
assignments of `:=`. They run before everything that stays in the statement.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from py2cu import ir
from py2cu.ir.visit import all_expressions


@dataclass(slots=True)
class Operand:
    """A value that was read and stays in the statement; where `is_held`, its reader takes a local in its place."""

    value: ir.Expr
    is_held: bool = False


@dataclass(slots=True)
class Hoisted:
    """The statements so far, in the order of evaluation.

    `operands` were read before what is read next, in Python's order. `barrier` says why an expression may need no
    statement here, and `condition` why it may need none that has effects.
    """

    statements: list[ir.Stmt] = field(default_factory=list)
    operands: list[Operand] = field(default_factory=list)
    barrier: str = ""
    condition: str = ""

    def take(self) -> ir.Block:
        """Remove and return the statements to insert before the one that was just read."""
        taken, self.statements, self.operands = tuple(self.statements), [], []
        return taken

    @contextmanager
    def conditional(self, why: str, *, only_effects: bool = False) -> Iterator[None]:
        """Refuse hoisting, or only that of statements with effects, in an operand that Python may not evaluate."""
        outer = self.barrier, self.condition
        self.condition = self.condition or why
        self.barrier = self.barrier or ("" if only_effects else why)
        yield
        self.barrier, self.condition = outer

    @contextmanager
    def inner(self) -> Iterator[None]:
        """Collect the statements of a loop's body separately: call `take` before the context ends."""
        outer = self.statements, self.operands, self.barrier, self.condition
        self.statements, self.operands, self.barrier, self.condition = [], [], "", ""
        yield
        self.statements, self.operands, self.barrier, self.condition = outer

    def hold(self, value: ir.Expr, at: int) -> Operand:
        """`value`, the operand at `at`, for a reader that takes what became of it once later operands are read."""
        self.operands[at:] = [Operand(value, is_held=True)]
        return self.operands[at]

    def before(self, block: ir.Block) -> list[Operand]:
        """The operands, the latest first, that Python computes before `block`; those that are part of it move there."""
        spans = {part.span for part in all_expressions(block)}
        for operand in self.operands:
            if operand.value.span in spans and not operand.is_held:
                operand.value = ir.Constant(0, operand.value.span)
        return [operand for operand in reversed(self.operands) if not isinstance(operand.value, ir.Constant)]
