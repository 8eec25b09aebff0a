"""Computes the indices of an index kernel from the launch, and adds its guard: the kernel becomes a block kernel.

def add(i: Index["n"], …)    →    i = blockIdx.x * index_t(blockDim.x) + threadIdx.x
                                  if i >= n: return
"""

from __future__ import annotations

from dataclasses import replace

from py2cu import ir
from py2cu.analysis.effects import has_barrier
from py2cu.ir.abi.parameters import IndexParameter
from py2cu.ir.rewrite import rebuild_block, with_fields
from py2cu.passes.guards.early_return import guard_statement


def add_index_arithmetic(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel with its indices as statements, and the guard behind them."""
    if not kernel.indices:
        return kernel
    lead: ir.Block = tuple(_index_assignment(index) for index in kernel.indices)
    if kernel.guards and not has_barrier(kernel):
        lead += rebuild_block((guard_statement(kernel.guards),), _as_c)
    return with_fields(kernel, body=lead + kernel.body)


def _as_c(expr: ir.Expr) -> ir.Expr:
    """Indices and extents are `index_t`; they are not negative, so C divides them as Python does."""
    if isinstance(expr, ir.Binary | ir.Constant | ir.Name):
        expr = replace(expr, type=ir.INDEX)
    return replace(expr, op="/") if isinstance(expr, ir.Binary) and expr.op == "//" else expr


def without_indices(kernel: ir.Kernel) -> ir.Kernel:
    """An index kernel as a block kernel, before its locals are declared."""
    if not kernel.indices:
        return kernel
    guarded = add_index_arithmetic(kernel)
    body = tuple(replace(stmt, declares=None) if isinstance(stmt, ir.Assign) else stmt for stmt in guarded.body)
    indices = tuple((index.name, ir.INDEX) for index in kernel.indices)
    extents = tuple(index.extent for index in kernel.indices)
    return replace(guarded, body=body, indices=(), former_index_extents=extents, locals=indices + kernel.locals)


def _index_assignment(index: IndexParameter) -> ir.Assign:
    def launch(name: str) -> ir.Expr:
        return ir.LaunchIndex(name, index.axis, index.span, ir.INT)

    block = ir.Convert(launch("blockDim"), ir.INDEX, index.span)
    product = ir.Binary("*", launch("blockIdx"), block, index.span, ir.INDEX)
    value = ir.Binary("+", product, launch("threadIdx"), index.span, ir.INDEX)
    return ir.Assign(index.name, value, index.span, declares=ir.INDEX)
