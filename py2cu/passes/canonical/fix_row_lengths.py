"""Replaces the length of 16-byte rows by its number in each instance, which keeps the name of the local.

W = 16 // x.itemsize                           W = 4
x4 = x.view(-1, W)      # c // W, W      →     # c // 4, 4      where x: float32
for k in range(W): …                           for k in range(4): …
"""

from __future__ import annotations

from dataclasses import replace

from py2cu import ir
from py2cu.diagnostics import Reporter
from py2cu.ir.extents import folded
from py2cu.ir.rewrite import rebuild_block, with_fields
from py2cu.ir.substitution import substitute


def fix_row_lengths(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """The kernel with a number for each row length."""
    if not kernel.row_lengths:
        return kernel
    lengths: dict[str, ir.Expr] = {}
    for name, array in kernel.row_lengths:
        dtype = kernel.array_type(array).dtype
        number = ir.ROW_BYTES // dtype.itemsize
        named = ir.NamedConstant(name, number, ir.constant_extent(number), 0, array, dtype)
        lengths[name] = ir.Constant(number, type=ir.PY_INT, named=named)

    def numbered(expr: ir.Expr) -> ir.Expr:
        return replace(lengths[expr.id], span=expr.span) if isinstance(expr, ir.Name) and expr.id in lengths else expr

    def extent(dim: ir.DimExpr) -> ir.DimExpr:
        fixed = substitute(dim, lengths)
        if isinstance(fixed, ir.Binary) and fixed is not dim:
            fixed = folded(fixed.op, fixed.left, fixed.right, fixed.span)
        return ir.as_extent(fixed)

    decls = (replace(d, type=replace(d.type, dims=tuple(map(extent, d.type.dims)))) for d in kernel.array_decls)
    return with_fields(kernel, body=rebuild_block(kernel.body, numbered), array_decls=tuple(decls))
