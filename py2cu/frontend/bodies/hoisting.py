"""Statements that an expression needs before the statement that it stands in: the loops of `sum(… for …)`, and the
assignments of `:=`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from py2cu import ir
from py2cu.ir.visit import walk


@dataclass(slots=True)
class Reads:
    """What a statement has read so far: what it hoists now runs before that. Python reads in the same order."""

    names: set[str] = field(default_factory=set)
    has_elements: bool = False
    has_calls: bool = False

    def conflict(self, name: str, value: ir.Expr) -> str | None:
        """Why `name = value` cannot run before what was read; None if nothing can observe it."""
        acts = any(isinstance(node, ir.DeviceCall | ir.Atomic) for node in walk(value))
        if name in self.names:
            return f"`{name}` is read before `:=` changes it"
        if self.has_calls or (acts and self.has_elements):
            return "a call and `:=` stand in one expression"
        return None


@dataclass(slots=True)
class Hoisted:
    """The statements so far, in the order of evaluation. `barrier` says why an expression may need none here, and
    `acted` is True behind a call that writes, prints or asserts.
    """

    statements: list[ir.Stmt] = field(default_factory=list)
    barrier: str = ""
    acted: bool = False
    reads: Reads = field(default_factory=Reads)

    def take(self) -> ir.Block:
        """Remove and return the statements to insert before the one that was just read."""
        taken, self.statements, self.acted, self.reads = tuple(self.statements), [], False, Reads()
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
        outer, barrier, reads = self.statements, self.barrier, self.reads
        self.statements, self.barrier, self.reads = [], "", Reads()
        yield
        self.statements, self.barrier, self.reads = outer, barrier, reads
