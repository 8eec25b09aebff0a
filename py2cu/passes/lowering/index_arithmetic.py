"""Computes the indices of an index kernel from the launch, and adds its guard: the kernel becomes a block kernel.

def add(i: Index["n"], …)    →    i = blockIdx.x * index_t(blockDim.x) + threadIdx.x
                                  if i >= n: return

More than three indices come from one flat index over x, with a division for each but one:

def add(a: Index["n"], b: Index["m"], c: Index["k"], d: Index["l"], …)    →    d = flat % l
                                                                               rest = flat / l
                                                                               c = rest % k
                                                                               rest /= k
                                                                               b = rest % m
                                                                               a = rest / m
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import replace

from py2cu import ir
from py2cu.analysis.effects import has_barrier
from py2cu.diagnostics import Reporter
from py2cu.ir.abi.parameters import Guard, IndexParameter
from py2cu.ir.names import free_name, names_in_scope
from py2cu.ir.operators import OPERATORS
from py2cu.ir.rewrite import rebuild, rebuild_block, with_fields
from py2cu.ir.visit import walk
from py2cu.passes.guards.early_return import guard_statement


def add_index_arithmetic(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel with its indices as statements, and the guard behind them."""
    if not kernel.indices:
        return kernel
    packed = {stmt.index for stmt in kernel.body if isinstance(stmt, ir.EachPack)}  # it counts by itself
    lead: ir.Block = tuple(_index_assignment(index) for index in kernel.indices if index.name not in packed)
    guards = tuple(guard for guard in kernel.guards if guard.index not in packed)
    if guards and not has_barrier(kernel):  # rule: guard-at-barrier
        lead += rebuild_block((guard_statement(guards),), as_index)
    return with_fields(kernel, body=lead + kernel.body)


def as_index(expr: ir.Expr) -> ir.Expr:
    """Indices and extents are `index_t`; they are not negative, so C divides them as Python does."""
    if isinstance(expr, ir.Binary | ir.Constant | ir.Name):
        expr = replace(expr, type=ir.INDEX)
    return replace(expr, op=OPERATORS[expr.op].c) if isinstance(expr, ir.Binary) else expr


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


def flatten_indices(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """The kernel with one index, and its own indices as locals; unchanged if the launch has an axis for each."""
    if not kernel.has_flat_launch or kernel.size is None:
        return kernel
    taken = names_in_scope(kernel)
    flat = free_name("flat", taken)
    rest = free_name("rest", taken | {flat})
    slowest, *others = kernel.indices  # rule: flat-index-order
    body: list[ir.Stmt] = [*_return_if_negative(kernel.indices)]
    left = ir.Name(flat, type=ir.INDEX)
    for place, index in enumerate(reversed(others)):
        extent = rebuild(index.extent, as_index)
        quotient = ir.Binary("/", left, extent, index.span, ir.INDEX)
        about = f"The {len(kernel.indices)} indices from the flat one: / and % by one extent compile to one division."
        trivia = ir.Trivia(above=(about,)) if place == 0 else ir.BARE
        body.append(ir.Assign(index.name, ir.Binary("%", left, extent, index.span, ir.INDEX), index.span, trivia))
        is_last, is_update = place == len(others) - 1, 0 < place < len(others) - 1
        body.append(ir.Assign(slowest.name if is_last else rest, quotient, index.span, augmented=is_update))
        left = ir.Name(rest, type=ir.INDEX)
    (size,) = kernel.size
    return with_fields(
        kernel,
        indices=(IndexParameter(flat, size, "x", slowest.span),),
        flat_indices=kernel.indices,
        guards=(Guard(flat, size, "x"),),
        locals=(*((index.name, ir.INDEX) for index in kernel.indices), (rest, ir.INDEX), *kernel.locals),
        body=(*body, *kernel.body),
    )


def _return_if_negative(indices: tuple[IndexParameter, ...]) -> Iterator[ir.Stmt]:
    """An early return where extents are negative, whose product may pass the guard; differences may be."""
    differences = [rebuild(index.extent, as_index) for index in indices if _is_difference(index.extent)]
    tests: list[ir.Expr] = [ir.Compare("<", extent, ir.Constant(0, type=ir.INDEX)) for extent in differences]
    if len(tests) > 1:  # rule: flat-index-tests
        yield ir.If(functools.reduce(lambda a, b: ir.BoolOp("or", a, b, type=ir.PY_BOOL), tests), (ir.Return(),))


def _is_difference(extent: ir.DimExpr) -> bool:
    return any(isinstance(node, ir.Binary) and node.op == "-" for node in walk(extent))
