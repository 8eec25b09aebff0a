"""How the threads of a kernel affect each other: barriers, collectives and fences, device functions included."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from py2cu import ir
from py2cu.analysis.call_graph import functions_with
from py2cu.builtins import ROWS, Rule, Scope
from py2cu.builtins.registry import Effects
from py2cu.ir.visit import all_expressions, cached_by_block, statements

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
    return effects_of(stmt).together is Scope.GRID


def is_block_vote(expr: ir.Expr) -> bool:
    """True for a call that is a barrier of the block, too; all its threads get the same result."""
    return isinstance(expr, ir.Call) and effects_of(expr).together is Scope.BLOCK


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
    """True where `block` has a barrier or a collective call, of the block or of a warp."""
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
    syncs = any(isinstance(stmt, ir.Sync) for body in bodies for stmt in statements(body))
    return syncs or any(isinstance(expr, ir.Atomic) or is_collective(expr) for expr in calls)


def is_block_cooperative(kernel: ir.Kernel) -> bool:
    """True for a kernel with shared memory or barriers: its threads cannot run one by one."""
    each = (kernel, *kernel.functions)
    shares = any(buffer.space is ir.Space.SHARED for caller in each for buffer in caller.array_decls)
    return shares or has_barrier(kernel)
