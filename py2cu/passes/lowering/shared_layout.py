"""Lays out dynamic shared arrays in the one allocation of a launch: the widest elements first, so that all are aligned.

flags = shared(n, np.uint8)                    reserve sums
sums = shared((m, 4), np.float64)       →      reserve flags at sums + m * 4
"""

from __future__ import annotations

import itertools
from dataclasses import replace

from py2cu import ir
from py2cu.analysis.launches import elements_of
from py2cu.diagnostics import Reporter
from py2cu.ir.rewrite import rebuild_statements, with_fields
from py2cu.ir.visit import statements


def lay_out_shared_memory(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """The kernel with its dynamic arrays one after another, all reserved at the place of the first."""
    # rule: shared-aligned
    dynamic = sorted((b for b in kernel.array_decls if b.is_dynamic), key=lambda decl: -decl.type.dtype.bits)
    if len(dynamic) < 2:
        return kernel
    placed = {b.name: replace(b, base=before.name) for before, b in itertools.pairwise(dynamic)}
    # rule: shared-apart
    starts = {dynamic[0].name: None} | {b.name: elements_of(before) for before, b in itertools.pairwise(dynamic)}
    allocations = {stmt.array: stmt for stmt in statements(kernel.body) if isinstance(stmt, ir.Alloc)}
    # rule: comment-of-alloc
    waiting = [replace(allocations[name], start=start) for name, start in starts.items()]  # each keeps its comments

    def move(stmt: ir.Stmt) -> ir.Block:
        if not isinstance(stmt, ir.Alloc) or stmt.array not in starts:
            return (stmt,)
        here, waiting[:] = tuple(waiting), []
        return here

    body = rebuild_statements(kernel.body, move)
    decls = tuple(placed.get(decl.name, decl) for decl in kernel.array_decls)
    return with_fields(kernel, body=body, array_decls=decls)
