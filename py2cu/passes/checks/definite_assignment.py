"""Refuses a name that may be read before it is assigned, and shows a path that does not assign it.

if c: t = 1
out[i] = t      # P204: on the path where c is false, t is unbound
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import assert_never

from py2cu import ir
from py2cu.diagnostics import Related, Reporter
from py2cu.ir.operators import OPERATORS, Family
from py2cu.ir.visit import expressions, statements, walk
from py2cu.source import Span

Assigned = frozenset[str] | None  # the names surely assigned here; None where this place is never reached


def check_definite_assignment(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """Report reads of locals that are not assigned on every path; the kernel is unchanged."""
    first: dict[str, Span] = {}
    for stmt in statements(kernel.body):
        match stmt:
            case ir.Assign():
                first.setdefault(stmt.name, stmt.span)
            case ir.For():
                first.setdefault(stmt.var, stmt.span)
            case ir.Alloc():
                first.setdefault(stmt.array, stmt.span)
    annotated = {annotation.name: annotation.span for annotation in kernel.annotated}
    bound = frozenset([*(p.name for p in kernel.parameters), *(i.name for i in kernel.indices)])
    deleted = {stmt.name for stmt in statements(kernel.body) if isinstance(stmt, ir.Delete)}
    flow = _Flow(frozenset((first.keys() | annotated.keys()) - bound | deleted), reporter)
    flow.gaps = {name: Related(f"`{name}` is annotated here, not assigned", span) for name, span in annotated.items()}
    flow.gaps |= {name: Related(f"`{name}` is first assigned here", span) for name, span in first.items()}
    flow.block(kernel.body, bound & deleted)
    return kernel


@dataclass(slots=True)
class _Loop:
    """The jumps out of a loop's body, each with the names bound there."""

    breaks: list[tuple[Assigned, Span]] = field(default_factory=list)
    continues: list[tuple[Assigned, Span]] = field(default_factory=list)


@dataclass(slots=True)
class _Flow:
    """Tracks the bound names through a kernel; `gaps` holds the last path on which each name is unbound."""

    locals: frozenset[str]
    reporter: Reporter
    gaps: dict[str, Related] = field(default_factory=dict)
    loops: list[_Loop] = field(default_factory=list)

    def block(self, block: ir.Block, bound: frozenset[str]) -> Assigned:
        """The names bound after `block`. Statements after a jump are checked with the names bound before it."""
        is_reached = True
        for stmt in block:
            after = self.statement(stmt, bound)
            is_reached &= after is not None
            bound = bound if after is None else after
        return bound if is_reached else None

    def statement(self, stmt: ir.Stmt, bound: frozenset[str]) -> Assigned:
        """The names bound after `stmt`, given those bound before."""
        for expr in expressions(stmt):
            for node in walk(expr):
                match node:
                    case ir.Name(id=name) | ir.ArrayName(id=name) | ir.Load(array=name) | ir.Atomic(array=name):
                        self.check_read(name, node.span, bound)
        match stmt:
            case ir.Assign(name=name) | ir.Alloc(array=name):
                return bound | {name}
            case ir.Store(array=name):
                self.check_read(name, stmt.span, bound)
                return bound
            case ir.If(body=body, orelse=orelse):
                where_true, where_false = self.block(body, bound), self.block(orelse, bound)
                joined = self.join(where_true, where_false, "where this is false", stmt.span)
                return self.join(where_false, joined, "where this is true", stmt.span)
            case ir.For(var=var, body=body, orelse=orelse):
                loop, end = self.loop(body, bound | {var})
                idle = None if runs(stmt) else bound
                where = ("where this loop runs no round", stmt.span)
                finished = self.join(end, idle, *where)
                return self.leave(loop, end, self.after(loop, orelse, finished, bound), *where)
            case ir.While(test=test, body=body, orelse=orelse):
                loop, end = self.loop(body, bound)
                where = ("where this is false at once", stmt.span)
                finished = None if isinstance(test, ir.Constant) and test.value else self.join(end, bound, *where)
                return self.leave(loop, end, self.after(loop, orelse, finished, bound), *where)
            case ir.Break():
                self.loops[-1].breaks.append((bound, stmt.span))
                return None
            case ir.Continue():
                self.loops[-1].continues.append((bound, stmt.span))
                return None
            case ir.Return():
                return None
            case ir.Delete(name=name):
                self.check_read(name, stmt.span, bound)
                self.gaps[name] = Related(f"`{name}` is deleted here", stmt.span)
                return bound - {name}
            case (
                ir.EachPack()
                | ir.EachThread()
                | ir.DeclareLocal()
                | ir.StructuredBinding()
                | ir.ExprStmt()
                | ir.Sync()
                | ir.Print()
                | ir.Assert()
                | ir.Comment()
            ):
                return bound
            case _:
                assert_never(stmt)

    def after(self, loop: _Loop, orelse: ir.Block, finished: Assigned, bound: frozenset[str]) -> Assigned:
        """The names bound after the `else` of a loop; an `else` that never runs may read what is bound at a `break`."""
        at_break = bound.union(*(broken for broken, _ in loop.breaks if broken is not None))
        after = self.block(orelse, at_break if finished is None else finished)
        return None if finished is None else after

    def loop(self, body: ir.Block, bound: frozenset[str]) -> tuple[_Loop, Assigned]:
        """The jumps out of a loop's body, and the names bound at the end of an iteration.

        A name that the body deletes is unbound at its start: an earlier iteration may have deleted it.
        """
        for stmt in statements(body):
            if isinstance(stmt, ir.Delete) and stmt.name in bound:
                self.gaps[stmt.name] = Related(f"`{stmt.name}` is deleted here, in an earlier round", stmt.span)
                bound -= {stmt.name}
        self.loops.append(_Loop())
        end = self.block(body, bound)
        loop = self.loops.pop()
        for skipped, span in loop.continues:
            end = self.join(end, skipped, "where this `continue` goes on", span)
        return loop, end

    def leave(self, loop: _Loop, end: Assigned, finished: Assigned, idle: str, place: Span) -> Assigned:
        """The names bound after a loop, joined over its regular exit and its `break`s.

        `finished` holds the names bound at the regular exit, `end` those at the end of an iteration. `end` is None if
        every iteration jumps away, so that only a loop without iterations reaches the regular exit.
        """
        for broken, span in loop.breaks:
            both = self.join(finished, broken, "where this `break` leaves the loop", span)
            if end is None:
                self.join(broken, finished, idle, place)
            elif broken is not None:
                self.join(broken - end, finished, "where the loop ends without this `break`", span)
            finished = both
        return finished

    def join(self, path: Assigned, other: Assigned, where: str, span: Span) -> Assigned:
        """The names bound on both paths; names bound only on `path` are unbound on `other`, described by `where`."""
        if path is None or other is None:
            return other if path is None else path
        for name in path - other:
            self.gaps[name] = Related(f"`{name}` is not assigned {where}", span)
        return path & other

    def check_read(self, name: str, span: Span, bound: frozenset[str]) -> None:
        if name in self.locals and name not in bound:
            self.reporter.error(
                "P204", f"`{name}` may be read here before it is assigned", span,
                f"assign `{name}` on every path that leads here", (self.gaps[name],),
            )  # fmt: skip


def runs(loop: ir.For) -> bool:
    """True where the loop's constant bounds make it run at least once."""
    start, stop, step = map(_integer, (loop.start, loop.stop, loop.step))
    if start is None or stop is None or not step:
        return False
    return start < stop if step > 0 else start > stop


def _integer(bound: ir.Expr) -> int | None:
    """The value of a bound that consists of integer constants."""
    match bound:
        case ir.Constant(value=value) if isinstance(value, int):
            return value
        case ir.Binary(op=op, left=left, right=right) if OPERATORS[op].family is Family.RING:
            a, b = _integer(left), _integer(right)
            return None if a is None or b is None else int(OPERATORS[op].compute(a, b))
        case _:
            return None
