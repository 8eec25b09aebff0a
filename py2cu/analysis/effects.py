"""How the threads of a kernel affect each other: barriers, collectives and fences, device functions included."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from py2cu import ir
from py2cu.analysis.call_graph import functions_with
from py2cu.ir.visit import all_expressions, cached_by_block, statements

GRID_BARRIER: Final = "syncgrid"
"""The barrier of the grid: all blocks have to be resident at once."""
BARRIERS: Final = frozenset(["syncthreads", GRID_BARRIER])
"""Barriers that all threads of a block have to reach; no thread may return early."""
BLOCK_VOTES: Final = frozenset(f"py2cu.syncthreads_{how}" for how in ("count", "and", "or"))
"""Calls that are barriers of the block, too; all threads get the same result."""
_SHUFFLES: Final = ("shfl", "shfl_up", "shfl_down", "shfl_xor")
_VOTES: Final = ("ballot", "any", "all", "match_any")
_REDUCTIONS: Final = tuple(f"reduce_{op}" for op in ("add", "min", "max", "and", "or", "xor"))
WARP_CALLS: Final = frozenset(f"py2cu.{name}_sync" for name in (*_SHUFFLES, *_VOTES, *_REDUCTIONS))
"""Collective calls of a warp: the lanes of its mask execute them together."""
YIELD: Final = "yield_now"
"""The yield of a spinning thread on the CPU, inserted by `insert_yields`."""
ACTIVE_MASK: Final = "py2cu.activemask"
"""The mask of the active lanes; no lane waits for it."""
_WAITING_CALLS: Final = BLOCK_VOTES | WARP_CALLS


def is_barrier(stmt: ir.Stmt) -> bool:
    """True for a statement at which the threads of a block wait for each other."""
    return isinstance(stmt, ir.Sync) and stmt.function in BARRIERS


def is_grid_barrier(stmt: ir.Stmt) -> bool:
    """True for a statement at which the threads of the grid wait for each other."""
    return isinstance(stmt, ir.Sync) and stmt.function == GRID_BARRIER


def syncs_grid(kernel: ir.Kernel) -> bool:
    """True where the blocks of a kernel wait for each other, in its device functions too."""
    return any(is_grid_barrier(stmt) for each in (kernel, *kernel.functions) for stmt in statements(each.body))


def is_waiting_call(expr: ir.Expr) -> bool:
    """True for a collective call that synchronises its threads."""
    return isinstance(expr, ir.Call) and expr.function in _WAITING_CALLS


def is_collective(expr: ir.Expr) -> bool:
    """True for a call whose result depends on other threads."""
    return is_waiting_call(expr) or (isinstance(expr, ir.Call) and expr.function == ACTIVE_MASK)


def contains_yield(block: ir.Block) -> bool:
    """True where `block` yields to other threads."""
    return any(isinstance(stmt, ir.Sync) and stmt.function == YIELD for stmt in statements(block))


def has_collective(block: ir.Block) -> bool:
    """True where `block` has a barrier or a collective call, of the block or of a warp."""
    return next(_collectives(block), None) is not None


@cached_by_block
def _collectives(block: ir.Block) -> Iterator[ir.Stmt | ir.Expr]:
    syncs = (stmt for stmt in statements(block) if isinstance(stmt, ir.Sync))
    yield from (stmt for stmt in syncs if stmt.function in BARRIERS or stmt.function == "syncwarp")
    yield from filter(is_waiting_call, all_expressions(block))


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
    syncs = any(isinstance(stmt, ir.Sync) for body in bodies for stmt in statements(body))
    return syncs or any(isinstance(expr, ir.Atomic) or is_collective(expr) for expr in calls)


def is_block_cooperative(kernel: ir.Kernel) -> bool:
    """True for a kernel with shared memory or barriers: its threads cannot run one by one."""
    each = (kernel, *kernel.functions)
    shares = any(buffer.space is ir.Space.SHARED for caller in each for buffer in caller.array_decls)
    return shares or has_barrier(kernel)
