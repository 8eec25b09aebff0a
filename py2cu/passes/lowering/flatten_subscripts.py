"""Flattens subscripts of array arguments into one index: the last index of a contiguous array runs fastest.
Arrays that the kernel declares keep their subscripts where C++ knows their extents.

x[2, i]     # 3 n       →    x[2 * n + i]
m[r, k - 1] # h w       →    m[r * w + k - 1]
x[-1]       # n         →    x[n - 1]
x[i, 1, 1]  # n 2 2     →    x[i * 4 + 3]
acc[-1, k]  # 4 4       →    acc[3, k]
v[k - 1]    # a list    →    v[list_index(k - 1, 4)], where k may be 0

A strided array adds up the distances on its axes.

x[r, c]           →    x[r * x_stride_0 + c * x_stride_1]

An element of a view in rows becomes an element of the viewed array; a whole row stays a row of the view.

x4[i, 3]       # n // 4 4    →    x[i * 4 + 3]
x4[r, j, 3]    # h w // 4 4  →    x[r * w + j * 4 + 3]

The arithmetic is as wide as the array needs. The launcher compares every array's size with 2³¹, so `index_t` holds
every index of an array whose extents only the launch determines.

x[blockIdx.x, k]  # rows 1024  →  x[index_t(blockIdx.x) * 1024 + k]
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from functools import cached_property
from itertools import chain

from py2cu import ir
from py2cu.analysis.account import elided_in
from py2cu.analysis.ranges import INT_MAX, Ranges
from py2cu.builtins.memory import row_access
from py2cu.diagnostics import Reporter
from py2cu.dtypes import Kind
from py2cu.ir.intervals import SymbolicBound, times
from py2cu.ir.rewrite import rebuild_block, rebuild_statements, with_fields
from py2cu.ir.visit import accesses, all_expressions, statements
from py2cu.passes.lowering.integer_widths import typed_extent, widen_operands
from py2cu.passes.lowering.split_tuples import row_struct


def flatten_subscripts(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """The kernel with one index per access."""
    arithmetic = _IndexArithmetic(kernel)

    @functools.cache
    def extents(array: str) -> tuple[ir.Expr, ...]:
        return tuple(typed_extent(kernel, dim, lambda: arithmetic.ranges) for dim in kernel.array_type(array).dims)

    def flat(access: ir.Load | ir.Atomic | ir.Store) -> tuple[str, tuple[ir.Expr, ...]]:
        array, indices, dims = access.array, access.indices, extents(access.array)
        if kernel.is_list(array):
            return array, tuple(map(arithmetic.in_list, indices, dims))
        if kernel.keeps_subscripts(array):
            return array, tuple(map(arithmetic.from_start, indices, dims))
        if kernel.vector_width(array) and len(indices) < len(dims):
            return array, (arithmetic.flat_index(indices, dims[:-1]),)
        if strides := kernel.strides_of(array):  # rule: strides-named
            return array, (arithmetic.offset(indices, dims, strides),)
        if kernel.vector_width(array):  # rule: row-of-array
            base, row = kernel.base_array(array), arithmetic.flat_index(indices[-2:], dims[-2:])
            return base, (arithmetic.flat_index((*indices[:-2], row), extents(base)),)
        return array, (arithmetic.flat_index(indices, dims),)

    def flatten(expr: ir.Expr) -> ir.Expr:
        if isinstance(expr, ir.Load | ir.Atomic):
            array, indices = flat(expr)
            return with_fields(expr, array=array, indices=indices)
        return expr

    def flatten_store(stmt: ir.Stmt) -> ir.Block:
        if isinstance(stmt, ir.Store):
            array, indices = flat(stmt)
            return (with_fields(stmt, array=array, indices=indices),)
        return (stmt,)

    body = rebuild_block(kernel.body, flatten, flatten_store)
    return _with_rows(with_fields(kernel, body=body))


def _with_rows(kernel: ir.Kernel) -> ir.Kernel:
    """A flattened kernel without views whose rows nothing accesses and lengths of rows that nothing reads, and with the
    structs of accessed rows.
    """
    if not kernel.vector_widths and not kernel.row_lengths:
        return kernel
    own = (decl.type.dims for decl in kernel.array_decls if decl.space is not ir.Space.GLOBAL)
    constants = (node.named for node in chain(all_expressions(kernel.body), *own) if isinstance(node, ir.Constant))
    reads = Counter(named.name for named in constants if named is not None and named.array)
    unread = {name for name, _ in kernel.row_lengths if reads[name] == 1}  # by its assignment
    idle = tuple(stmt for stmt in statements(kernel.body) if isinstance(stmt, ir.Assign) and stmt.name in unread)
    accessed = {node.array for node in accesses(kernel.body)}
    hints = sorted({node.hint for node in accesses(kernel.body) if kernel.vector_width(node.array)} - {""})

    def prune(stmt: ir.Stmt) -> ir.Block:
        match stmt:
            case ir.Alloc(array=view) if kernel.vector_width(view) and view not in accessed:  # rule: row-accessed
                return (ir.Comment(stmt.span, stmt.trivia),)
            case ir.Assign() if stmt in idle:  # rule: row-length-read
                return (ir.Comment(stmt.span, stmt.trivia),)
            case _:
                return (stmt,)

    body = rebuild_statements(kernel.body, prune)
    rows = sorted({kernel.vector_width(name) for name in accessed} - {0})
    helpers = (*kernel.helpers, *map(row_struct, rows), *map(row_access, hints))
    return with_fields(kernel, body=body, helpers=helpers, elided=kernel.elided + elided_in(idle, ir.Elision.UNREAD))


class _IndexArithmetic:
    """Sums and products of indices and extents, in the type that holds every index of the array."""

    def __init__(self, kernel: ir.Kernel) -> None:
        self._kernel = kernel

    @cached_property
    def ranges(self) -> Ranges:
        """Computed only for kernels that multiply narrow indices or extents by constants."""
        return Ranges(self._kernel)

    def flat_index(self, indices: tuple[ir.Expr, ...], dims: tuple[ir.Expr, ...]) -> ir.Expr:
        """Horner's scheme over the extents: `(i * h + r) * w + c`; 0 in an array of no dimensions."""
        if not indices:
            return ir.Constant(0, type=ir.INT)
        most = self._width_of_size(dims)
        flat = self.from_start(indices[0], dims[0])
        for index, dim in zip(indices[1:], dims[1:], strict=True):
            flat = self._widened(add(self._scaled(flat, dim, most), self.from_start(index, dim)), most)
        return flat

    def _scaled(self, flat: ir.Expr, dim: ir.Expr, most: ir.Width) -> ir.Expr:
        """`flat * dim`, with the product of constants; no part is greater than the index, which `most` holds."""
        if isinstance(dim, ir.Constant) and dim.named is None and isinstance(flat.type, ir.PythonType):
            match flat:
                case ir.Binary(op="*", left=inner, right=ir.Constant(named=None) as factor):  # rule: index-factor
                    return self._widened(multiply(inner, multiply(factor, dim)), most)
                case ir.Binary(
                    op="+",
                    left=ir.Binary(op="*", right=ir.Constant(named=None)) as product,
                    right=ir.Constant(named=None) as addend,
                ) if addend.value >= 0:  # rule: index-addend
                    return self._widened(add(self._scaled(product, dim, most), multiply(addend, dim)), most)
        return self._widened(multiply(flat, dim), most)

    def offset(self, indices: tuple[ir.Expr, ...], dims: tuple[ir.Expr, ...], strides: tuple[ir.Name, ...]) -> ir.Expr:
        """The sum over the axes of index times stride."""
        most = self._width_of_offset(dims, strides)
        flat: ir.Expr = ir.Constant(0, type=ir.INT)
        for index, dim, stride in zip(indices, dims, strides, strict=True):
            typed = typed_extent(self._kernel, stride, lambda: self.ranges)
            distance = self._widened(multiply(self.from_start(index, dim), typed), most)
            flat = self._widened(add(flat, distance), most)
        return flat

    def from_start(self, index: ir.Expr, dim: ir.Expr) -> ir.Expr:
        """`index` counted from the start: a negative constant counts from the end, and 0 stays 0 in turns of `dim`."""
        match index:
            case ir.Binary(op="%", left=ir.Constant(value=0) as zero, right=extent) if (
                extent == dim
            ):  # rule: index-zero
                return zero  # an extent of 0 leaves no element to load
        if isinstance(index, ir.Constant) and index.value < 0:
            return add(dim, index)  # rule: negative-index
        return index

    def in_list(self, index: ir.Expr, dim: ir.Expr) -> ir.Expr:
        """`index` counted from the start of a list, where a negative number of any kind counts from the end."""
        if isinstance(index, ir.Constant) or self.ranges.of(index).low >= 0:
            return self.from_start(index, dim)
        return ir.Call("list_index", (index, dim), index.span, index.type)

    def _width_of_size(self, dims: tuple[ir.Expr, ...]) -> ir.Width:
        """The type that holds every index of an array.

        If an extent is known only at the launch, the launcher decides. It does not check constants that callers pass
        to a device function.
        """
        known = math.prod(dim.value for dim in dims if isinstance(dim, ir.Constant))
        if self._kernel.key:
            known = max(known, self._constant_size(dims))  # rule: width-constant-size
        if known - 1 > INT_MAX:  # rule: width-of-constant
            return ir.Width.LONG
        return ir.Width.INT if all(isinstance(dim, ir.Constant) for dim in dims) else ir.Width.INDEX

    def _width_of_offset(self, dims: tuple[ir.Expr, ...], strides: tuple[ir.Name, ...]) -> ir.Width:
        """The type that holds every offset: the launcher decides, but for constants that callers pass to a function."""
        if not self._kernel.key:
            return ir.Width.INDEX
        pairs = zip(dims, strides, strict=True)
        farthest = (times(self.ranges.of(dim).bound, self.ranges.of(stride).bound) for dim, stride in pairs)
        known = sum(bound.get((), 0) for bound in farthest if bound is not None)
        return ir.Width.LONG if known - 1 > INT_MAX else ir.Width.INDEX

    def _constant_size(self, dims: tuple[ir.Expr, ...]) -> int:
        """The greatest size that callers give the array by constants; 0 without one."""
        size: SymbolicBound | None = {(): 1}
        for dim in dims:
            size = times(size, self.ranges.of(dim).bound)
        return size.get((), 0) if size is not None else 0

    def _widened(self, expr: ir.Expr, most: ir.Width) -> ir.Expr:
        """`expr` in the width `most`, unless its own width holds all its values."""
        match expr:
            case ir.Binary(type=ir.PythonType(width=width)) if width < most:
                if width is ir.Width.INT and self.ranges.of(expr).high <= INT_MAX:  # rule: width-of-index
                    return expr
                return widen_operands(with_fields(expr, type=ir.PythonType(Kind.INT, most)))  # rule: width-widened
            case _:
                return expr


def _wider(left: ir.Expr, right: ir.Expr) -> ir.PythonType:
    """The width of an operation on two indices."""
    widths = [side.type.width for side in (left, right) if isinstance(side.type, ir.PythonType)]
    return ir.PythonType(Kind.INT, max((w for w in widths if w is not ir.Width.ANY), default=ir.Width.INDEX))


def add(left: ir.Expr, right: ir.Expr) -> ir.Expr:
    match left, right:
        case ir.Constant(value=a), ir.Constant(value=b):
            return ir.Constant(a + b, right.span, ir.INT)
        case ir.Constant(value=0), _:
            return right
        case _, ir.Constant(value=0):
            return left
        case ir.Binary(op="+", left=inner, right=ir.Constant(value=a)), ir.Constant(value=b):
            return add(inner, ir.Constant(a + b, right.span, ir.INT))
        case _, ir.Constant(value=b) if b < 0:
            subtracted = ir.Constant(-b, right.span, ir.INT, named=right.named)
            return ir.Binary("-", left, subtracted, right.span, _wider(left, right))
        case _:
            return ir.Binary("+", left, right, right.span, _wider(left, right))


def multiply(left: ir.Expr, right: ir.Expr) -> ir.Expr:
    match left, right:
        case ir.Constant(value=a), ir.Constant(value=b):
            return ir.Constant(a * b, left.span, ir.INT)
        case (ir.Constant(value=0), _) | (_, ir.Constant(value=0)):
            return ir.Constant(0, left.span, ir.INT)
        case ir.Constant(value=1), _:
            return right
        case _, ir.Constant(value=1):
            return left
        case _:
            return ir.Binary("*", left, right, left.span, _wider(left, right))
