"""Statements that an expression needs before the statement that it stands in: the loops of `sum(… for …)`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from py2cu import ir


@dataclass(slots=True)
class Hoisted:
    """The statements so far, in the order of evaluation. `barrier` says why an expression may need none here, and
    `acted` is True behind a call that writes, prints or asserts.
    """

    statements: list[ir.Stmt] = field(default_factory=list)
    barrier: str = ""
    acted: bool = False

    def take(self) -> ir.Block:
        """Remove and return the statements to insert before the one that was just read."""
        taken, self.statements, self.acted = tuple(self.statements), [], False
        return taken

    @contextmanager
    def conditional(self, barrier: str) -> Iterator[None]:
        """Refuse hoisting inside an operand that Python evaluates conditionally."""
        outer, self.barrier = self.barrier, self.barrier or barrier
        yield
        self.barrier = outer

    @contextmanager
    def inner(self) -> Iterator[None]:
        """Collect the statements of a loop's body separately: call `take` before the context ends."""
        outer, barrier, self.statements, self.barrier = self.statements, self.barrier, [], ""
        yield
        self.statements, self.barrier = outer, barrier
