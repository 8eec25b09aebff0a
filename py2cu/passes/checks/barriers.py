"""Refuses divergent barriers: barriers of a block or of the grid that not all its threads reach. In CUDA they are
undefined behaviour, up to a deadlock.

    if threadIdx.x < 16:
        syncthreads()              P501: the condition varies by thread
    if blockIdx.x < 16:
        syncgrid()                 P501: the condition varies by thread or block

Divergent values are `threadIdx` and element indices, values computed from them, values loaded at divergent indices or
from arrays that the kernel writes, and values assigned under divergent control flow. Within the grid, `blockIdx`, votes
of a block and shared memory are divergent too. A thread that has returned, or has left a loop, reaches no later
barrier.

A value that all threads of a block load from one element of shared memory counts as uniform, although threads write
there: a write during such a read is a race, and the simulator reports races.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeGuard

from py2cu.analysis.call_graph import functions_with
from py2cu.analysis.effects import BLOCK_VOTES, GRID_BARRIER
from py2cu.builtins import ROWS, Rule
from py2cu.builtins.threads import LANE_HELPER
from py2cu.diagnostics import Related, Reporter
from py2cu.ir.abi.parameters import Role
from py2cu.ir.expressions import ArrayName, Atomic, BoolOp, Call, DeviceCall, Expr, LaunchIndex, Load, Select
from py2cu.ir.kernels import Kernel, Space
from py2cu.ir.statements import Assign, Block, Break, Continue, For, If, Return, Stmt, Store, Sync, While
from py2cu.ir.types import Name
from py2cu.ir.visit import all_expressions, children, expressions, statements
from py2cu.source import Span

# What lanes answer differently, and the helper that a lane's number is once it is lowered.
_LANE_CALLS: Final = {
    LANE_HELPER, *(name for name, row in ROWS.items() if row.rule in (Rule.SHUFFLE, Rule.VOTE, Rule.MATCH, Rule.REDUCE))
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class SyncScope:
    """Threads that wait for each other: at which barrier, in which calls, and what each has of its own."""

    barrier: str
    votes: frozenset[str]
    differ: str  # how a message says that they do
    objects: frozenset[str]

    def has_barrier(self, function: Kernel) -> bool:
        """True where these threads wait for each other; those of a warp do not count."""
        body = function.body
        return any(map(self.is_barrier, statements(body))) or any(map(self.is_vote, all_expressions(body)))

    def is_barrier(self, stmt: Stmt) -> TypeGuard[Sync]:
        return isinstance(stmt, Sync) and stmt.function == self.barrier

    def is_vote(self, node: Expr) -> TypeGuard[Call]:
        return isinstance(node, Call) and node.function in self.votes


_BLOCK: Final = SyncScope("syncthreads", BLOCK_VOTES, "varies by thread", frozenset(["threadIdx"]))
_GRID: Final = SyncScope(GRID_BARRIER, frozenset(), "varies by thread or block", frozenset(["threadIdx", "blockIdx"]))


def check_barriers(kernel: Kernel, reporter: Reporter) -> Kernel:
    """Report barriers under conditions that vary among those who wait; the kernel is unchanged."""
    for team in (_BLOCK, _GRID):
        _check_barriers_of(team, kernel, reporter)
    return kernel


def _check_barriers_of(team: SyncScope, kernel: Kernel, reporter: Reporter) -> None:
    waiting = functions_with(kernel, team.has_barrier)
    if not (waiting or team.has_barrier(kernel)):
        return
    varying = _find_varying(team, kernel)
    for each in (kernel, *kernel.functions):
        local = reporter.within(each.origin)
        _Threads(team, each, varying[each.key], varying, waiting, local).block(each.body, None)


# --- what varies ------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class DivergenceState:
    """The names of one function that threads of a team may disagree about, arrays included, and whether its result is
    one; the arrays that it writes, by itself or in others that it calls; whether the team meets in it.
    """

    team: SyncScope
    function: Kernel
    names: set[str]
    written: set[str]
    waits: bool
    result: bool = False

    @property
    def size(self) -> int:
        return len(self.names) + len(self.written) + self.result

    @property
    def acts(self) -> bool:
        """True where a call writes what callers see: one of a thread's own cannot stand for those of all."""
        return not self.written.isdisjoint(p.name for p in self.function.arrays)

    def of(self, expr: Expr, functions: Mapping[str, DivergenceState]) -> bool:
        """True where threads of the team may disagree about `expr`."""
        match expr:
            case Atomic():
                return True
            case LaunchIndex(object=name) if name in self.team.objects:
                return True
            case Name(id=name) | Load(array=name) | ArrayName(id=name) if name in self.names:
                return True
            case DeviceCall(function=key) if functions[key].result or functions[key].waits:
                return functions[key].result
            case DeviceCall(function=key) if functions[key].acts:
                return True
            case Call(function=function) if function in BLOCK_VOTES:
                return self.team is _GRID
            case Call(function=function) if function in _LANE_CALLS:
                return True
            case _:
                return any(self.of(child, functions) for child in children(expr))


def find_varying(kernel: Kernel) -> tuple[frozenset[str], Callable[[Expr], bool]]:
    """The names that threads of a block may disagree about, and whether they may about an expression."""
    varying = _find_varying(_BLOCK, kernel)
    return frozenset(varying[""].names), lambda expr: varying[""].of(expr, varying)


def _find_varying(team: SyncScope, kernel: Kernel) -> dict[str, DivergenceState]:
    """What varies in a kernel, whose key is empty, and in its functions: again until nothing more does."""
    callers = {"": kernel, **{function.key: function for function in kernel.functions}}
    waiting = functions_with(kernel, team.has_barrier)
    varying = {
        key: DivergenceState(team, caller, _own(team, caller), _written(caller), key in waiting)
        for key, caller in callers.items()
    }
    varying[""].names |= {index.name for index in kernel.indices}
    varying[""].names |= {p.name for p in kernel.arrays if p.role is not Role.INPUT}
    while True:
        before = sum(found.size for found in varying.values())
        varying[""].names |= varying[""].written & {p.name for p in kernel.arrays}
        for key, caller in callers.items():
            _spread(caller, varying[key], varying)
        if before == sum(found.size for found in varying.values()):
            return varying


def _own(team: SyncScope, caller: Kernel) -> set[str]:
    """Arrays of the function's own that each thread has another one of, or each block where the team is the grid."""
    apart = {Space.LOCAL} if team is _BLOCK else {Space.LOCAL, Space.SHARED}
    return {buffer.name for buffer in caller.array_decls if buffer.space in apart}


def _written(caller: Kernel) -> set[str]:
    """Arrays that the function itself writes to."""
    updated = {node.array for node in all_expressions(caller.body) if isinstance(node, Atomic)}
    stored = {stmt.array for stmt in statements(caller.body) if isinstance(stmt, Store)}
    return {caller.base_array(array) for array in updated | stored}


def _spread(caller: Kernel, own: DivergenceState, varying: Mapping[str, DivergenceState]) -> None:
    """Enter what varies because other things do: in the function, its views and the functions that it calls."""
    _Threads(own.team, caller, own, varying, frozenset(), None).block(caller.body, None)
    own.names |= {buffer.name for buffer in caller.array_decls if buffer.base in own.names and not buffer.is_dynamic}
    for call in (node for node in all_expressions(caller.body) if isinstance(node, DeviceCall)):
        inside = varying[call.function]
        for parameter, arg in zip(inside.function.parameters, call.args, strict=True):
            if own.of(arg, varying):
                inside.names.add(parameter.name)
            if isinstance(arg, ArrayName) and parameter.name in inside.written:
                own.written.add(caller.base_array(arg.id))


# --- where threads part -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DivergencePoint:
    """What keeps some threads from what follows: how a message says it, where it is, and what to write instead."""

    message: str
    place: Related
    hint: str
    leaves: type[Return] | type[Break] | type[Continue] | None = None  # how they left, if they did


_MOVE: Final = "move the barrier out: the `if` around the accesses, the barrier behind it"
_GUARD: Final = "guard the accesses instead, `if i < n: out[i] = …`, and let all threads reach the barrier"
_LEAVES: Final = {
    Return: ("is not reached by threads that have returned", "these return", _GUARD),
    Break: ("is not reached by threads that have left the loop", "these leave it", "let all threads run all rounds"),
    Continue: ("is not reached by threads that skip the rest of the round", "these skip it", _MOVE),
}


@dataclass(frozen=True, slots=True)
class _Threads:
    """Follows the threads of a team through one function, and enters into `own` what varies; it reports if it can."""

    team: SyncScope
    caller: Kernel
    own: DivergenceState
    functions: Mapping[str, DivergenceState]
    waiting: frozenset[str]
    reporter: Reporter | None

    def block(self, block: Block, parted: DivergencePoint | None) -> tuple[DivergencePoint, ...]:
        """Who leaves `block` while others stay; `parted` is what parts the threads before it, if anything does."""
        left: tuple[DivergencePoint, ...] = ()
        for stmt in block:
            found = self.statement(stmt, parted)
            left += found
            parted = parted or next(iter(found), None)
        return left

    def statement(self, stmt: Stmt, parted: DivergencePoint | None) -> tuple[DivergencePoint, ...]:
        self.check(stmt, parted)
        match stmt:
            case Assign(name=name, value=value):
                if parted or self.own.of(value, self.functions):
                    self.own.names.add(name)
            case If(test=test, body=body, orelse=orelse):
                inner = parted or self.condition(test)
                return (*self.block(body, inner), *self.block(orelse, inner))
            case For(var=var, start=start, stop=stop, step=step):
                around = next(filter(None, map(self.condition, (start, stop, step))), None)
                if self.own.of(start, self.functions) or parted or around:
                    self.own.names.add(var)
                return self.loop(stmt, parted or around, parted)
            case While(test=test):
                return self.loop(stmt, parted or self.condition(test), parted)
            case Return(value=value):
                if value is not None and (parted or self.own.of(value, self.functions)):
                    self.own.result = True
                return self.leaving(stmt, parted)
            case Break() | Continue():
                return self.leaving(stmt, parted)
        return ()

    def loop(
        self, loop: For | While, inside: DivergencePoint | None, outside: DivergencePoint | None
    ) -> tuple[DivergencePoint, ...]:
        """A loop, with what parts the threads inside and outside it: who leaves it is missing in later rounds."""
        silent = _Threads(self.team, self.caller, self.own, self.functions, self.waiting, None)
        early = next((each for each in silent.block(loop.body, inside) if each.leaves is not Continue), None)
        if early and isinstance(loop, For):
            self.own.names.add(loop.var)
        left = self.block(loop.body, inside or early)
        after = self.block(loop.orelse, outside or early)
        return (*(each for each in left if each.leaves is Return), *after)

    def leaving(self, stmt: Return | Break | Continue, parted: DivergencePoint | None) -> tuple[DivergencePoint, ...]:
        """The threads that leave at `stmt`, if others do not."""
        if parted is None:
            return ()
        message, what, hint = _LEAVES[type(stmt)]
        return (DivergencePoint(message, Related(what, stmt.span), hint, type(stmt)),)

    def condition(self, test: Expr) -> DivergencePoint | None:
        """What `test` does to the threads, where they may disagree about it."""
        if not self.own.of(test, self.functions):
            return None
        differ = self.team.differ
        return DivergencePoint(f"is under a condition that {differ}", Related(f"this {differ}", test.span), _MOVE)

    def check(self, stmt: Stmt, parted: DivergencePoint | None) -> None:
        """Report a barrier in `stmt` that not all threads reach."""
        if self.reporter is None:
            return
        if parted is not None and self.team.is_barrier(stmt):
            self.report(f"`{stmt.function}()`", stmt.span, parted)
        for expr in expressions(stmt):
            self.check_expression(expr, parted)

    def report(self, what: str, span: Span, parted: DivergencePoint) -> None:
        if self.reporter is not None:
            self.reporter.error("P501", f"{what} {parted.message}", span, parted.hint, (parted.place,))

    def check_expression(self, expr: Expr, parted: DivergencePoint | None) -> None:
        """The same of what an expression waits for, which `and`, `or` and `if` may leave out."""
        match expr:
            case BoolOp(left=left, right=right):
                self.check_expression(left, parted)
                self.check_expression(right, parted or self.condition(left))
            case Select(test=test, then=then, orelse=orelse):
                self.check_expression(test, parted)
                for branch in (then, orelse):
                    self.check_expression(branch, parted or self.condition(test))
            case _:
                for child in children(expr):
                    self.check_expression(child, parted)
        if parted is not None and self.team.is_vote(expr):
            self.report(f"`{expr.function.removeprefix('py2cu.')}(…)`", expr.span, parted)
        if parted is not None and isinstance(expr, DeviceCall) and expr.function in self.waiting:
            self.report(f"the barrier in `{self.functions[expr.function].function.name}`", expr.span, parted)
