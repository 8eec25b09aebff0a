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

from py2cu import ir
from py2cu.analysis.call_graph import functions_with
from py2cu.analysis.effects import effects_of, is_block_vote, is_collective
from py2cu.builtins import ThreadScope
from py2cu.builtins.launch import LANE_CALLS
from py2cu.diagnostics import Related, Reporter
from py2cu.ir.abi.parameters import Role
from py2cu.ir.visit import all_expressions, children, expressions, statements
from py2cu.source import Span


@dataclass(frozen=True, slots=True)
class SyncScope:
    """The scope of a barrier: the threads that wait, and the launch objects that differ between them."""

    threads: ThreadScope
    differ: str  # how messages describe a divergent value
    objects: frozenset[str]

    def has_barrier(self, function: ir.Kernel) -> bool:
        """True for a function with a barrier of this scope."""
        body = function.body
        return any(map(self.is_barrier, statements(body))) or any(map(self.is_vote, all_expressions(body)))

    def is_barrier(self, stmt: ir.Stmt) -> TypeGuard[ir.Sync]:
        return isinstance(stmt, ir.Sync) and effects_of(stmt).together is self.threads

    def is_vote(self, node: ir.Expr) -> TypeGuard[ir.Call]:
        return isinstance(node, ir.Call) and effects_of(node).together is self.threads


_BLOCK: Final = SyncScope(ThreadScope.BLOCK, "varies by thread", frozenset(["threadIdx"]))
# rule: grid-barrier-varies
_GRID: Final = SyncScope(ThreadScope.GRID, "varies by thread or block", frozenset(["threadIdx", "blockIdx"]))


def check_barriers(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """Report barriers under divergent control flow; the kernel is unchanged."""
    for scope in (_BLOCK, _GRID):  # rule: grid-barrier
        _check_barriers_of(scope, kernel, reporter)
    return kernel


def _check_barriers_of(scope: SyncScope, kernel: ir.Kernel, reporter: Reporter) -> None:
    waiting = functions_with(kernel, scope.has_barrier)
    if not (waiting or scope.has_barrier(kernel)):
        return
    varying = _find_varying(scope, kernel)
    for each in (kernel, *kernel.functions):
        local = reporter.within(each.origin)
        _Threads(scope, each, varying[each.key], varying, waiting, local).block(each.body, None)


# --- divergent values -------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class DivergenceState:
    """The divergent names of one function, arrays included; whether its result diverges; the arrays that it writes, by
    itself or through calls; whether it has a barrier of the scope.
    """

    scope: SyncScope
    function: ir.Kernel
    names: set[str]
    written: set[str]
    waits: bool
    result: bool = False

    @property
    def size(self) -> int:
        return len(self.names) + len(self.written) + self.result

    @property
    def writes_parameters(self) -> bool:
        """True for a function that writes to its parameters: one thread's call cannot stand for the calls of all."""
        return not self.written.isdisjoint(p.name for p in self.function.arrays)

    def of(self, expr: ir.Expr, functions: Mapping[str, DivergenceState]) -> bool:
        """True where the value of `expr` may differ between threads of the scope."""
        match expr:
            case ir.Atomic():
                return True
            case ir.LaunchIndex(object=name) if name in self.scope.objects:
                return True
            case ir.Name(id=name) | ir.Load(array=name) | ir.ArrayName(id=name) if name in self.names:
                return True
            case ir.DeviceCall(function=key) if functions[key].result or functions[key].waits:  # rule: shared-of-result
                return functions[key].result
            case ir.DeviceCall(function=key) if functions[key].writes_parameters:  # rule: shared-call-acts
                return True
            case ir.Call() if is_block_vote(expr):
                return self.scope is _GRID  # rule: grid-barrier-scope
            case ir.Call(function=function) if function in LANE_CALLS or is_collective(expr):  # rule: reduction-lanes
                return True
            case _:
                return any(self.of(child, functions) for child in children(expr))


def find_varying(kernel: ir.Kernel) -> tuple[frozenset[str], Callable[[ir.Expr], bool]]:
    """The divergent names within a block, and a test for divergent expressions."""
    varying = _find_varying(_BLOCK, kernel)
    return frozenset(varying[""].names), lambda expr: varying[""].of(expr, varying)


def _find_varying(scope: SyncScope, kernel: ir.Kernel) -> dict[str, DivergenceState]:
    """The divergence of a kernel, whose key is empty, and of its functions: iterated to a fixpoint."""
    callers = {"": kernel, **{function.key: function for function in kernel.functions}}
    waiting = functions_with(kernel, scope.has_barrier)
    varying = {
        key: DivergenceState(scope, caller, _private_arrays(scope, caller), _written(caller), key in waiting)
        for key, caller in callers.items()
    }
    varying[""].names |= {index.name for index in kernel.indices}
    varying[""].names |= {p.name for p in kernel.arrays if p.role is not Role.INPUT}
    while True:
        before = sum(state.size for state in varying.values())
        varying[""].names |= varying[""].written & {p.name for p in kernel.arrays}  # rule: shared-written
        for key, caller in callers.items():
            _spread(caller, varying[key], varying)
        if before == sum(state.size for state in varying.values()):
            return varying


def _private_arrays(scope: SyncScope, caller: ir.Kernel) -> set[str]:
    """The declared arrays that every thread has a copy of, or every block within the scope of the grid."""
    spaces = {ir.Space.LOCAL} if scope is _BLOCK else {ir.Space.LOCAL, ir.Space.SHARED}  # rule: shared-agreed
    return {decl.name for decl in caller.array_decls if decl.space in spaces}


def _written(caller: ir.Kernel) -> set[str]:
    """The arrays that the function writes directly."""
    updated = {node.array for node in all_expressions(caller.body) if isinstance(node, ir.Atomic)}
    stored = {stmt.array for stmt in statements(caller.body) if isinstance(stmt, ir.Store)}
    return {caller.base_array(array) for array in updated | stored}


def _spread(caller: ir.Kernel, state: DivergenceState, varying: Mapping[str, DivergenceState]) -> None:
    """Propagate divergence within the function, to its views, and to the functions that it calls."""
    _Threads(state.scope, caller, state, varying, frozenset(), None).block(caller.body, None)
    state.names |= {decl.name for decl in caller.array_decls if decl.base in state.names and not decl.is_dynamic}
    for call in (node for node in all_expressions(caller.body) if isinstance(node, ir.DeviceCall)):
        inside = varying[call.function]
        for parameter, arg in zip(inside.function.parameters, call.args, strict=True):
            if state.of(arg, varying):  # rule: barrier-argument
                inside.names.add(parameter.name)
            if isinstance(arg, ir.ArrayName) and parameter.name in inside.written:
                state.written.add(caller.base_array(arg.id))


# --- divergent control flow -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DivergencePoint:
    """The control flow that keeps some threads from the following statements: message, place and hint."""

    message: str
    place: Related
    hint: str
    leaves: type[ir.Return] | type[ir.Break] | type[ir.Continue] | None = None  # the exit, where threads left


_MOVE: Final = "keep only the accesses in the `if`, and move the barrier after it"
_GUARD: Final = "guard the accesses instead, `if i < n: out[i] = …`, and let all threads reach the barrier"
_LEAVES: Final = {
    ir.Return: ("is not reached by threads that have returned", "some threads return here", _GUARD),
    ir.Break: (
        "is not reached by threads that have left the loop",
        "some threads leave it here",
        "let all threads run all rounds",
    ),
    ir.Continue: ("is not reached by threads that skip the rest of the round", "some threads skip it here", _MOVE),
}


@dataclass(frozen=True, slots=True)
class _Threads:
    """Follows control flow through one function; records divergent values in `state`, and reports to `reporter`."""

    scope: SyncScope
    caller: ir.Kernel
    state: DivergenceState
    functions: Mapping[str, DivergenceState]
    waiting: frozenset[str]
    reporter: Reporter | None

    def block(self, block: ir.Block, divergence: DivergencePoint | None) -> tuple[DivergencePoint, ...]:
        """The exits by which some threads leave `block`; `divergence` is the divergent branch around it, if any."""
        left: tuple[DivergencePoint, ...] = ()
        for stmt in block:
            leaving = self.statement(stmt, divergence)
            left += leaving
            divergence = divergence or next(iter(leaving), None)
        return left

    def statement(self, stmt: ir.Stmt, divergence: DivergencePoint | None) -> tuple[DivergencePoint, ...]:
        self.check(stmt, divergence)
        match stmt:
            case ir.Assign(name=name, value=value):
                if divergence or self.state.of(value, self.functions):
                    self.state.names.add(name)
            case ir.If(test=test, body=body, orelse=orelse):
                inner = divergence or self.condition(test)  # rule: barrier-divergence
                return (*self.block(body, inner), *self.block(orelse, inner))
            case ir.For(var=var, start=start, stop=stop, step=step):
                around = next(filter(None, map(self.condition, (start, stop, step))), None)
                if self.state.of(start, self.functions) or divergence or around:
                    self.state.names.add(var)
                return self.loop(stmt, divergence or around, divergence)
            case ir.While(test=test):
                return self.loop(stmt, divergence or self.condition(test), divergence)
            case ir.Return(value=value):
                if value is not None and (divergence or self.state.of(value, self.functions)):
                    self.state.result = True
                return self.leaving(stmt, divergence)
            case ir.Break() | ir.Continue():
                return self.leaving(stmt, divergence)
        return ()

    def loop(
        self, loop: ir.For | ir.While, inside: DivergencePoint | None, outside: DivergencePoint | None
    ) -> tuple[DivergencePoint, ...]:
        """A loop, with the divergence inside and outside it: threads that leave early are missing in later rounds."""
        silent = _Threads(self.scope, self.caller, self.state, self.functions, self.waiting, None)
        early = next((each for each in silent.block(loop.body, inside) if each.leaves is not ir.Continue), None)
        if early and isinstance(loop, ir.For):
            self.state.names.add(loop.var)
        left = self.block(loop.body, inside or early)  # rule: barrier-early-exit
        after = self.block(loop.orelse, outside or early)
        return (*(each for each in left if each.leaves is ir.Return), *after)

    def leaving(
        self, stmt: ir.Return | ir.Break | ir.Continue, divergence: DivergencePoint | None
    ) -> tuple[DivergencePoint, ...]:
        """The exit at `stmt`, if only some threads reach it."""
        if divergence is None:
            return ()
        message, what, hint = _LEAVES[type(stmt)]
        return (DivergencePoint(message, Related(what, stmt.span), hint, type(stmt)),)

    def condition(self, test: ir.Expr) -> DivergencePoint | None:
        """The divergence that a branch on `test` causes, if `test` diverges."""
        if not self.state.of(test, self.functions):
            return None
        differ = self.scope.differ
        return DivergencePoint(f"is under a condition that {differ}", Related(f"this {differ}", test.span), _MOVE)

    def check(self, stmt: ir.Stmt, divergence: DivergencePoint | None) -> None:
        """Report a barrier in `stmt` that not all threads reach."""
        if self.reporter is None:
            return
        if divergence is not None and self.scope.is_barrier(stmt):
            self.report(f"`{stmt.function}()`", stmt.span, divergence)
        for expr in expressions(stmt):
            self.check_expression(expr, divergence)

    def report(self, what: str, span: Span, divergence: DivergencePoint) -> None:
        if self.reporter is not None:
            self.reporter.error("P501", f"{what} {divergence.message}", span, divergence.hint, (divergence.place,))

    def check_expression(self, expr: ir.Expr, divergence: DivergencePoint | None) -> None:
        """Report a barrier in an expression, parts of which `and`, `or` and conditionals may skip."""
        match expr:
            case ir.BoolOp(left=left, right=right):
                self.check_expression(left, divergence)
                self.check_expression(right, divergence or self.condition(left))  # rule: barrier-right-operand
            case ir.Select(test=test, then=then, orelse=orelse):
                self.check_expression(test, divergence)
                for branch in (then, orelse):
                    self.check_expression(branch, divergence or self.condition(test))
            case _:
                for child in children(expr):
                    self.check_expression(child, divergence)
        if divergence is not None and self.scope.is_vote(expr):
            self.report(f"`{expr.function.removeprefix('py2cu.')}(…)`", expr.span, divergence)
        if divergence is not None and isinstance(expr, ir.DeviceCall) and expr.function in self.waiting:
            self.report(f"the barrier in `{self.functions[expr.function].function.name}`", expr.span, divergence)
