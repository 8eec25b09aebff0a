"""What computations do beside giving a value: barriers, collectives and fences, by which threads affect each other, and
footprints, by which `commute` decides whether two computations may change places.
"""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Final

from py2cu import ir
from py2cu.analysis.call_graph import callees, functions_with
from py2cu.builtins import ROWS, Rule, ThreadScope
from py2cu.builtins.launch import LANE_CALLS
from py2cu.builtins.registry import Effects
from py2cu.ir.visit import all_expressions, assigned_names, cached_by_block, statements, walk
from py2cu.source import Span

YIELD: Final = "yield_now"
"""The yield of a spinning thread on the CPU, inserted by `insert_yields`."""
_SYNCS: Final = {row.name: row.effects for row in ROWS.values() if row.rule is Rule.SYNC}
_NONE: Final = Effects()


def effects_of(node: ir.Stmt | ir.Expr) -> Effects:
    """What the row of a barrier, a fence or a call says; no effects for other nodes."""
    match node:
        case ir.Sync(function=function):
            return _SYNCS.get(function, _NONE)
        case ir.Call(function=function) if function in ROWS:
            return ROWS[function].effects
        case _:
            return _NONE


def is_grid_barrier(stmt: ir.Stmt) -> bool:
    """True for a statement at which the threads of the grid wait for each other."""
    return effects_of(stmt).together is ThreadScope.GRID


def is_block_vote(expr: ir.Expr) -> bool:
    """True for a call that is a barrier of the block, too; all its threads get the same result."""
    return isinstance(expr, ir.Call) and effects_of(expr).together is ThreadScope.BLOCK


def syncs_grid(kernel: ir.Kernel) -> bool:
    """True where the blocks of a kernel wait for each other, in its device functions too."""
    return any(is_grid_barrier(stmt) for each in (kernel, *kernel.functions) for stmt in statements(each.body))


def is_wait(node: ir.Stmt | ir.Expr) -> bool:
    """True for a barrier or a collective call that synchronises its threads."""
    return effects_of(node).waits


def is_collective(expr: ir.Expr) -> bool:
    """True for a call whose result depends on other threads."""
    return isinstance(expr, ir.Call) and effects_of(expr).together is not None


def is_active_mask(expr: ir.Expr) -> bool:
    """True for a call that finds which lanes are active, and waits for none."""
    return is_collective(expr) and not is_wait(expr)


def contains_yield(block: ir.Block) -> bool:
    """True where `block` yields to other threads."""
    return any(isinstance(stmt, ir.Sync) and stmt.function == YIELD for stmt in statements(block))


def has_collective(block: ir.Block) -> bool:
    """True where `block` has a barrier or a collective call at which threads wait, of the block or of a warp."""
    return next(_collectives(block), None) is not None


@cached_by_block
def _collectives(block: ir.Block) -> Iterator[ir.Stmt | ir.Expr]:
    yield from (stmt for stmt in statements(block) if isinstance(stmt, ir.Sync) and is_wait(stmt))
    yield from (node for node in all_expressions(block) if isinstance(node, ir.Call) and is_wait(node))


def waiting_functions(kernel: ir.Kernel) -> frozenset[str]:
    """The keys of the device functions with a barrier or collective call, directly or through callees."""
    return functions_with(kernel, lambda function: has_collective(function.body))


def has_barrier(kernel: ir.Kernel) -> bool:
    """True for a kernel with a barrier or collective call, device functions included: no thread may return early."""
    return any(has_collective(each.body) for each in (kernel, *kernel.functions))


def synchronises(kernel: ir.Kernel) -> bool:
    """True for a kernel whose threads synchronise: by barriers, collectives, fences or atomics."""
    bodies = [each.body for each in (kernel, *kernel.functions)]
    calls = (expr for body in bodies for expr in all_expressions(body))
    syncs = any(isinstance(stmt, ir.Sync) for body in bodies for stmt in statements(body))  # rule: meeting-sync
    return syncs or any(isinstance(expr, ir.Atomic) or is_collective(expr) for expr in calls)  # rule: meeting-atomic


def observes_launch(kernel: ir.Kernel) -> Span | None:
    """Where a thread can tell its block, its lane or another thread, other than by an argument; None if it cannot."""
    for each in (kernel, *kernel.functions):  # rule: launch-of-helpers
        shared = (decl for decl in each.array_decls if decl.space is ir.Space.SHARED)
        nodes = chain(shared, statements(each.body), all_expressions(each.body))
        found = next((node.span for node in nodes if _observes_launch(node)), None)
        if found is not None:
            return found
    return None


def _observes_launch(node: ir.ArrayDecl | ir.Stmt | ir.Expr) -> bool:
    match node:
        case ir.ArrayDecl() | ir.Sync() | ir.LaunchIndex():
            return True
        case ir.Call(function=function):
            return function in LANE_CALLS or is_collective(node)
        case _:
            return False


def is_block_cooperative(kernel: ir.Kernel) -> bool:
    """True for a kernel with shared memory or barriers: its threads cannot run one by one."""
    each = (kernel, *kernel.functions)
    shares = any(decl.space is ir.Space.SHARED for caller in each for decl in caller.array_decls)
    return shares or has_barrier(kernel)


# --- order of evaluation ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Footprint:
    """What a computation reads and writes, locals and arrays apart, and what else it does that can be observed.

    `reports`: it prints or asserts. `waits`: other threads run before it ends, and may write any array. A fence
    counts as a wait. `meets`: it has a collective, of the block or of a warp.
    """

    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()
    loads: frozenset[str] = frozenset()
    stores: frozenset[str] = frozenset()
    reports: bool = False
    waits: bool = False
    meets: bool = False

    @property
    def has_effects(self) -> bool:
        """True where the computation writes or reports."""
        return bool(self.stores or self.writes) or self.reports

    @property
    def acts(self) -> bool:
        """True where it matters how often the computation runs."""
        return self.has_effects or self.waits or self.meets

    def __or__(self, other: Footprint) -> Footprint:
        return Footprint(*map(operator.or_, _parts(self), _parts(other)))

    def disturbs(self, other: Footprint) -> bool:
        """True where `other` may differ if it runs behind this computation instead of before it."""
        if self.waits and (other.waits or other.loads or other.stores):
            return True
        if self.reports and (other.reports or other.waits or other.stores):
            return True
        return bool(self.stores & (other.loads | other.stores) or self.writes & (other.reads | other.writes))


def commute(one: Footprint, other: Footprint) -> bool:
    """True where nothing can tell in which order the two computations ran."""
    return not (one.disturbs(other) or other.disturbs(one))


_parts: Final = operator.attrgetter(*Footprint.__match_args__)
_ANY: Final = frozenset("*")
_EVERYTHING: Final = Footprint(loads=_ANY, stores=_ANY, reports=True, waits=True)


def footprint(
    block: ir.Block,
    values: Iterable[ir.Expr],
    functions: Mapping[str, ir.Kernel],
    base: Callable[[str], str] = lambda _: "",
) -> Footprint:
    """The footprint of statements, with the blocks in them, and of expressions.

    `base` names the array that a view is part of; by default all arrays are one, as they may be in a call. A function
    that is not among `functions`, since the front end has not read it to its end, may do anything with the arrays that
    it is passed.
    """
    parts = [*all_expressions(block), *walk(*values)]
    found = _own_footprint(block, parts, base)
    for call in (part for part in parts if isinstance(part, ir.DeviceCall)):
        inside = footprint_of_function(call.function, functions)
        arrays = frozenset(base(arg.id) for arg in call.args if isinstance(arg, ir.ArrayName))
        found |= replace(
            inside, loads=arrays if inside.loads else frozenset(), stores=arrays if inside.stores else frozenset()
        )
    return found


def footprint_of_function(key: str, functions: Mapping[str, ir.Kernel]) -> Footprint:
    """The footprint of a device function and of all that it calls: `*` stands for the arrays that a call passes."""
    found, waiting, seen = Footprint(), [key], {key}
    while waiting:
        function = functions.get(waiting.pop())
        if function is None:
            return _EVERYTHING
        own = _own_footprint(function.body, [*all_expressions(function.body)], function.base_array)
        declared = {array.name for array in function.array_decls}
        found |= Footprint(
            loads=_ANY if own.loads - declared else frozenset(),
            stores=_ANY if own.stores - declared else frozenset(),  # rule: own-arrays
            reports=own.reports,
            waits=own.waits,
            meets=own.meets,
        )
        further = set(callees(function.body)) - seen
        seen |= further
        waiting += further
    return found


def _own_footprint(block: ir.Block, parts: Sequence[ir.Expr], base: Callable[[str], str]) -> Footprint:
    """The footprint without those of calls; `parts` are all expressions, in `block` and beside it."""
    of: defaultdict[type, list[Any]] = defaultdict(list)  # by class
    for each in (*statements(block), *parts):
        of[each.__class__].append(each)
    return Footprint(
        reads=frozenset(name.id for name in of[ir.Name]),
        writes=frozenset(assigned_names(block)),
        loads=frozenset(base(access.array) for access in of[ir.Load] + of[ir.Atomic]),
        stores=frozenset(base(access.array) for access in of[ir.Store] + of[ir.Atomic]),  # rule: atomic-touches
        reports=bool(of[ir.Print] or of[ir.Assert]),
        waits=bool(of[ir.Sync]) or any(map(is_block_vote, of[ir.Call])),
        meets=any(map(is_collective, of[ir.Call])),  # rule: footprint-meets
    )
