"""Refuses spin loops without an atomic operation: a GPU may load the element once, and C++ assumes that loops end.

while flag[0] == 0: pass                    # P503
while atomic.add(flag, 0, 0) == 0: pass     # loads in every round

A loop that stores, prints, waits, or holds a `break` or `return` is not a spin loop.
"""

from __future__ import annotations

from typing import Final, TypeGuard

from py2cu import ir
from py2cu.analysis.effects import is_collective
from py2cu.diagnostics import Reporter
from py2cu.ir.visit import all_expressions, assigned_names, blocks, names_in, statements, walk

# Statements without side effects.
_COMPUTING: Final = ir.Assign | ir.Continue | ir.Delete | ir.For | ir.If | ir.Comment | ir.Alloc | ir.While


def check_endless_loops(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """Report `while` loops that would go on for ever; the kernel is unchanged."""
    for stmt in statements(kernel.body):
        if _is_endless(stmt):
            reporter.error(
                "P503", "this loop never ends once it is entered: nothing in it changes its condition", stmt.test.span,
                "to wait for another thread, test an atomic operation: `while atomic.add(flag, 0, 0) == 0`",
            )  # fmt: skip
    return kernel


def _is_endless(stmt: ir.Stmt) -> TypeGuard[ir.While]:
    """True for a loop without side effects that assigns no name of its test."""
    if not isinstance(stmt, ir.While) or (isinstance(stmt.test, ir.Constant) and not stmt.test.value):
        return False
    nodes = [*walk(stmt.test), *all_expressions(stmt.body)]
    has_effects = any(isinstance(node, ir.Atomic | ir.DeviceCall) or is_collective(node) for node in nodes)
    changes = not set(names_in(stmt.test)).isdisjoint(assigned_names(stmt.body))
    return _only_computes(stmt.body) and not has_effects and not changes


def _only_computes(block: ir.Block, *, in_inner_loop: bool = False) -> bool:
    """True if `block` has no side effects and does not leave the loop.

    `in_inner_loop`: `block` belongs to an inner loop, which it may leave.
    """
    return all(
        (isinstance(stmt, _COMPUTING) or (in_inner_loop and isinstance(stmt, ir.Break)))
        and all(
            _only_computes(inner, in_inner_loop=in_inner_loop or isinstance(stmt, ir.For | ir.While))
            for inner in blocks(stmt)
        )
        for stmt in block
    )
