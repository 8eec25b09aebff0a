"""Computes the grid of a CUDA launch without an explicit grid: the number of blocks that cover the threads on each
axis.

A `dim3` holds 32 bits: a launch with more blocks fails, rather than running a smaller grid.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from py2cu import ir
from py2cu.dtypes import DType
from py2cu.ir.visit import names_in, walk
from py2cu.targets.cxx.extents import extent_text
from py2cu.targets.cxx.factors import Factors, addends, product

_MEMORY: Final = 2**39  # bytes: more than a GPU has
_DIM3: Final = 2**32


def grid_texts(kernel: ir.Kernel, elements: str) -> tuple[tuple[str, ...], bool]:
    """The number of blocks in x, y and z as C++ text, and whether a text calls `covering_blocks`, which checks it.

    `elements`: how many elements each thread has on the x axis, as text; empty for one.
    """
    texts, checks = [], False
    for axis, extent, block in zip("xyz", kernel.size or (), kernel.block, strict=False):
        text, threads = extent_text(extent, kernel), f"block.{axis}"
        if axis == "x" and elements:
            threads = f"(block.{axis} * {elements})"
        if _fits_dim3(kernel, extent, block):  # rule: grid-fits-dim3
            texts.append(f"({text} + {threads.strip('()')} - 1) / {threads}")
        else:
            texts.append(f"covering_blocks({text}, {threads.strip('()')})")
            checks = True
    return tuple(texts), checks


def empty_tests(kernel: ir.Kernel) -> tuple[str, ...]:
    """The conditions under which a launch has no threads, x last: `n == 0`, or `n - m <= 0` for a difference."""
    tests = []
    for extent in map(_without_factors, reversed(kernel.size or ())):
        if isinstance(extent, ir.Constant) and extent.value > 0:
            continue
        is_difference = any(isinstance(node, ir.Binary) and node.op == "-" for node in walk(extent))
        tests.append(f"{extent_text(extent, kernel)} {'<=' if is_difference else '=='} 0")
    return tuple(tests)


def _without_factors(extent: ir.DimExpr) -> ir.DimExpr:
    """`extent` without constant factors, which do not decide whether it is 0: `rows` of `32 * rows`."""
    match extent:
        case ir.Binary(op="*", left=left, right=ir.Constant(value=factor)) if factor > 0:
            return _without_factors(left)
        case ir.Binary(op="*", left=ir.Constant(value=factor), right=right) if factor > 0:
            return _without_factors(right)
        case ir.Binary(op="*", left=left, right=right):
            left = _without_factors(left)
            return right if isinstance(left, ir.Constant) else replace(extent, left=left)
        case _:
            return extent


def _fits_dim3(kernel: ir.Kernel, extent: ir.Expr, block: ir.Expr) -> bool:
    """True if a `dim3` holds the number of blocks: more of them would need arrays larger than any GPU's memory."""
    sums = addends(extent)
    if sums is None:
        return False
    # If every addend of the extent is at most `most_threads`, their sum fits.
    most_threads = _DIM3 * _least_block(kernel, block) // len(sums)
    return all(
        most_threads * _bytes_each(kernel, threads) >= _MEMORY * threads.constant
        if threads.names
        else threads.constant <= most_threads
        for threads in sums
    )


def _least_block(kernel: ir.Kernel, block: ir.Expr) -> int:
    """The least number of threads that a block may have on an axis."""
    match block:
        case ir.Constant(value=int(value)):
            return value
        case ir.Name(id=name) if name in kernel.constexprs:
            return max(1, min(kernel.constexprs[name].values, default=1))
        case _:
            return 1


def _bytes_each(kernel: ir.Kernel, threads: Factors) -> int:
    """The least bytes of all arrays for each product of the names in `threads`; 0 if the arrays may be empty."""
    types = [p.type for p in kernel.arrays if isinstance(p.type, ir.ArrayType) and not p.may_be_none]
    sizes = [(size, type_.dtype) for type_ in types if (size := product(type_.dims)) and threads.names <= size.names]
    launched = {name for extent in kernel.size or () for name in names_in(extent)}  # not 0 in a launch that has threads
    if all(set(size.names - threads.names) - launched for size, _ in sizes):
        return 0  # all these arrays may be empty
    return sum(int(size.constant) * _least_bytes(dtype) for size, dtype in sizes)


def _least_bytes(dtype: DType) -> int:
    """The size of an element; of a type variable, the least that it may have."""
    return 1 if dtype.variable is not None else max(dtype.bits // 8, 1)
