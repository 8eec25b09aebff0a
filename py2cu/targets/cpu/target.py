"""Describes a kernel for the CPU templates: a plain function, called for each element, thread or block; blocks run in
parallel.

Python integers are `int64_t` throughout, so no kernel is instantiated twice.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial, reduce
from itertools import chain
from typing import Final

from py2cu import ir
from py2cu.analysis.call_graph import assertions, launch_objects_by_function
from py2cu.analysis.effects import contains_yield, is_grid_barrier, syncs_grid
from py2cu.analysis.launches import launch_program
from py2cu.builtins.launch import LANE_HELPER
from py2cu.builtins.memory import CACHE_HINTS, row_access
from py2cu.dtypes import C64, C128
from py2cu.ir.abi.launch import LaunchProgram
from py2cu.ir.abi.parameters import IndexParameter
from py2cu.ir.names import underscored_name
from py2cu.ir.visit import statements
from py2cu.targets.cpu.emit_blocks import BlockEmitter
from py2cu.targets.cpu.helpers import HELPERS, helpers_of_threads
from py2cu.targets.cpu.intrinsics import INTRINSICS
from py2cu.targets.cxx.dialect import Dialect
from py2cu.targets.cxx.extents import extent_text, launch_constants
from py2cu.targets.cxx.factors import Factors, factors
from py2cu.targets.cxx.functions import in_order, spell_functions
from py2cu.targets.cxx.includes import headers_of_types
from py2cu.targets.cxx.instances import types_of, view_of
from py2cu.targets.cxx.launcher.bounds import headers_of_bounds, overflows
from py2cu.targets.cxx.launcher.values import headers_of_values, value_arguments, value_texts
from py2cu.targets.cxx.lines import doc_lines
from py2cu.targets.cxx.parameters import headers_of_arguments, kernel_arguments, launch_arguments
from py2cu.targets.cxx.shared_memory import bytes_text
from py2cu.targets.cxx.statements import Emitter
from py2cu.targets.cxx.views import (
    IndexLoop,
    KernelView,
    helpers_of,
    tables_of,
)

DIALECT: Final = Dialect(
    widths=dict.fromkeys(ir.Width, "int64_t"),
    launch_type="int64_t",
    functions={
        **{name: f"std::{name}" for name in ("abs", "min", "max", "isnan", "isinf", "isfinite", "signbit", "printf")},
        **{f"__{name}f": f"{name}f" for name in ("exp", "log", "sin", "cos", "pow")},
        **INTRINSICS,
    },
    overloads="std::",
    headers={"printf": "cstdio", "min": "algorithm", "max": "algorithm", "fence": "atomic"},
    launch_struct="Dim3",
    fence="std::atomic_thread_fence(std::memory_order_seq_cst)",
    grid_barrier="grid_barrier.wait()",
    unroll="#pragma GCC unroll",
    unrolls_wholly=False,
    atomics_are_helpers=True,
    throws=True,
    types={
        "__half": "c10::Half",
        "__nv_bfloat16": "c10::BFloat16",
        C64.c: "std::complex<float>",
        C128.c: "std::complex<double>",
    },
)


def view(kernel: ir.Kernel) -> KernelView:
    """`kernel` for the CPU templates."""
    functions, callees = spell_functions(kernel, DIALECT)
    runs_whole_blocks = any(
        isinstance(stmt, ir.EachThread) or is_grid_barrier(stmt) for stmt in statements(kernel.body)
    )
    speller = BlockEmitter(kernel, DIALECT, callees) if runs_whole_blocks else Emitter(kernel, DIALECT, callees)
    body = tuple(speller.body())
    tables, table_headers = tables_of(kernel, DIALECT)
    kernel_args = (*kernel_arguments(kernel, DIALECT), *value_arguments(kernel, DIALECT))
    launch_args = launch_arguments(kernel, DIALECT)
    types = speller.types.union(argument.base for argument in kernel_args)
    return KernelView(
        name=kernel.symbol,
        op=kernel.symbol,
        doc=doc_lines(kernel.doc),
        is_index=bool(kernel.indices),
        is_template=False,
        helpers=_helpers(kernel),
        functions=functions,
        constants=(*speller.declarations, *launch_constants(kernel), *chain(*(f.constants for f in functions))),
        tables=tables,
        kernel_arguments=kernel_args,
        launch_arguments=launch_args,
        computed=value_texts(kernel, DIALECT),
        takes_strides=bool(kernel.strides),
        optional=tuple((kernel.c_name(p.name), kernel.flag(p.name)) for p in kernel.optional_arrays),
        indices=tuple(_loop(kernel, speller, index) for index in kernel.indices),
        launch=_used_launch_objects(kernel, runs_whole_blocks),
        threads=tuple(extent_text(extent, kernel) for extent in kernel.size or ()),
        block=tuple(extent_text(extent, kernel) for extent in kernel.block),
        fits="",
        body=body,
        shared_bytes=bytes_text(kernel, DIALECT),
        runs_whole_blocks=runs_whole_blocks,
        has_block_instance=runs_whole_blocks and _has_block_instance(kernel),
        syncs_grid=syncs_grid(kernel),
        sizes=_sizes(kernel),
        overflows=overflows(kernel),
        asserts=bool(assertions(kernel)),
        fails_with_values=any(stmt.values for stmt in assertions(kernel)),
        headers=headers_of_types(types).union(
            speller.headers, table_headers, *(function.headers for function in functions)
        ),
        bound_headers=headers_of_bounds(kernel, with_fits=False) | headers_of_values(kernel),
        launch_headers=headers_of_arguments(launch_args),
        waits_anywhere=contains_yield(kernel.body)
        or any(
            isinstance(stmt, ir.EachThread) and stmt.turns is ir.ThreadOrder.WAITING for stmt in statements(kernel.body)
        ),
    )


def program(kernel: ir.Kernel, views: tuple[KernelView, ...]) -> LaunchProgram:
    """How calls launch an instance of a kernel, whose text is in one of `views`: by its launcher."""
    own = view_of(kernel, views, DIALECT)
    made = launch_program(kernel, own.name, types_of(kernel, DIALECT), has_index_type=False, is_whole=True)
    return replace(made, has_block_instance=own.has_block_instance)


def _has_block_instance(kernel: ir.Kernel) -> bool:
    """Whether calls without a launch of their own have an instance, where loops over threads have a known length.

    With short rows of threads it takes half the time to compile and to run. A block of one row has none: compilers do
    not split loops of known length, and the steps of a reduction, `if t < half`, need that.
    """
    is_row = all(isinstance(extent, ir.Constant) and extent.value == 1 for extent in kernel.block[1:])
    return kernel.size is not None and not kernel.has_open_block and not is_row  # rule: block-of-kernel


def _sizes(kernel: ir.Kernel) -> tuple[str, ...]:
    """The number of threads and the sizes of the arrays, of which the greatest decides whether a launch is large.

    A size that is no greater than another one is left out.
    """
    shapes = [array.type.dims for array in kernel.arrays if isinstance(array.type, ir.ArrayType)]
    threads: tuple[str, ...] = ("blocks * block.x * block.y * block.z",)
    if kernel.indices:
        shapes.insert(0, kernel.size or ())
        threads = ()
    products = [reduce(partial(ir.Binary, "*"), shape) for shape in dict.fromkeys(shapes) if shape]
    sizes: list[tuple[ir.Expr, Factors | None]] = []
    for product in products:
        bound = factors(product)
        if bound is None or not any(other is not None and bound.is_below(other) for _, other in sizes):
            sizes = [
                (each, other) for each, other in sizes if bound is None or other is None or not other.is_below(bound)
            ]
            sizes.append((product, bound))
    return (*threads, *dict.fromkeys(extent_text(product, kernel) for product, _ in sizes))


def _helpers(kernel: ir.Kernel) -> tuple[str, ...]:
    """The helpers that the text calls: common ones, and the CPU's for atomics and collectives."""
    others = {*HELPERS, LANE_HELPER, *map(row_access, CACHE_HINTS)}  # replaced below, or left out
    common = (name for name in helpers_of(kernel) if name not in others)
    return (*common, *helpers_of_threads(kernel))


def _loop(kernel: ir.Kernel, speller: Emitter, index: IndexParameter) -> IndexLoop:
    name = speller.name(index.name)
    taken = {argument.name for argument in launch_arguments(kernel, speller.dialect)}
    taken |= {kernel.c_name(constexpr) for constexpr in kernel.constexprs}
    end = underscored_name(f"{name}_end", taken)
    return IndexLoop(name, extent_text(index.extent, kernel), end, index.axis, _is_product(index.extent))


def _is_product(extent: ir.Expr) -> bool:
    """True for names and numbers multiplied from left to right, which need no brackets after `<`."""
    match extent:
        case ir.Binary(op="*", left=left, right=ir.Constant() | ir.Name()):
            return _is_product(left)
        case _:
            return isinstance(extent, ir.Constant | ir.Name)


def _used_launch_objects(kernel: ir.Kernel, runs_whole_blocks: bool) -> tuple[str, ...]:
    """The launch objects that the kernel takes; a kernel that runs whole blocks iterates over `threadIdx` itself."""
    used = launch_objects_by_function(kernel)[""]  # rule: launch-used
    if runs_whole_blocks:
        used = used - {"threadIdx"} | {"blockDim"}
    return in_order(used)
