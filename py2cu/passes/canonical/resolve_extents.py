"""Replaces `x.shape[0]` by the dimension that the annotation of `x` names there.

out[i] = x.shape[0]     # x: Float32[Tensor, "h w"]
out[i] = h
"""

from __future__ import annotations

from dataclasses import replace

from py2cu import ir
from py2cu.diagnostics import Reporter
from py2cu.ir.rewrite import rebuild_block, with_fields
from py2cu.ir.visit import all_expressions


def resolve_extents(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """Replace every `Extent` by its dimension's expression, placed where the extent stood."""
    if not any(isinstance(expr, ir.Extent) for expr in all_expressions(kernel.body)):
        return kernel

    def resolve(expr: ir.Expr) -> ir.Expr:
        if isinstance(expr, ir.Extent):
            return replace(kernel.array_type(expr.array).dims[expr.axis], span=expr.span)
        return expr

    return with_fields(kernel, body=rebuild_block(kernel.body, resolve))
