"""Refuses a name that may be read before it is assigned.

if c: t = 1
out[i] = t      # P204: on the path where c is false, t is unbound
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import assert_never

from py2cu.diagnostics import Reporter
from py2cu.ir.extents import Constant, Name
from py2cu.ir.statements import (
    Assign,
    Block,
    Break,
    Continue,
    Declare,
    For,
    If,
    Kernel,
    Remark,
    Return,
    Stmt,
    Store,
    While,
)
from py2cu.ir.visit import expressions, statements, walk

Bound = frozenset[str] | None  # the names surely assigned here; None where this place is never reached


def check_assigned(kernel: Kernel, reporter: Reporter) -> Kernel:
    """Report reads of locals that are not assigned on every path; the kernel is unchanged."""
    assigned = {stmt.name for stmt in statements(kernel.body) if isinstance(stmt, Assign)}
    assigned |= {stmt.var for stmt in statements(kernel.body) if isinstance(stmt, For)}
    given = {p.name for p in kernel.parameters} | {i.name for i in kernel.indices}
    _Flow(frozenset(assigned - given), reporter).block(kernel.body, frozenset())
    return kernel


@dataclass(slots=True)
class _Flow:
    locals: frozenset[str]
    reporter: Reporter
    breaks: list[Bound] = field(default_factory=list)

    def block(self, block: Block, bound: frozenset[str]) -> Bound:
        """The names bound after `block`. What stands behind a jump is judged by what was bound before the jump."""
        is_reached = True
        for stmt in block:
            after = self.statement(stmt, bound)
            is_reached &= after is not None
            bound = bound if after is None else after
        return bound if is_reached else None

    def statement(self, stmt: Stmt, bound: frozenset[str]) -> Bound:
        """The names bound after `stmt`, given those bound before."""
        self.check_reads(stmt, bound)
        match stmt:
            case Assign(name=name):
                return bound | {name}
            case If(body=body, orelse=orelse):
                return meet(self.block(body, bound), self.block(orelse, bound))
            case For(var=var, body=body):
                after = self.loop(body, bound | {var})
                return after if runs(stmt) and after is not None else bound
            case While(test=test, body=body):
                endless = isinstance(test, Constant) and bool(test.value)
                outer, self.breaks = self.breaks, []
                self.block(body, bound)
                exits = self.breaks if endless else [bound, *self.breaks]
                self.breaks = outer
                return meet(*exits) if exits else None
            case Break():
                self.breaks.append(bound)
                return None
            case Continue() | Return():
                return None
            case Store() | Declare() | Remark():
                return bound
            case _:
                assert_never(stmt)

    def loop(self, body: Block, bound: frozenset[str]) -> Bound:
        outer, self.breaks = self.breaks, []
        after = meet(self.block(body, bound), *self.breaks)
        self.breaks = outer
        return after

    def check_reads(self, stmt: Stmt, bound: frozenset[str]) -> None:
        for expr in expressions(stmt):
            for node in walk(expr):
                if isinstance(node, Name) and node.id in self.locals and node.id not in bound:
                    self.reporter.error(
                        "P204", f"`{node.id}` may be read here before it is assigned", node.span,
                        f"assign `{node.id}` on every path that leads here",
                    )  # fmt: skip


def meet(*paths: Bound) -> Bound:
    """What holds where paths join."""
    live = [path for path in paths if path is not None]
    return frozenset.intersection(*live) if live else None


def runs(loop: For) -> bool:
    """True where the loop's constant bounds make it run at least once."""
    match loop:
        case For(start=Constant(value=start), stop=Constant(value=stop), step=Constant(value=step)):
            return start < stop if step > 0 else start > stop
        case _:
            return False
