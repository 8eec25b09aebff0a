"""Describes a kernel for the CUDA templates: a `__global__` function, its launcher and its declaration; neither uses
torch.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import Final

from py2cu import ir
from py2cu.analysis.effects import syncs_grid
from py2cu.analysis.launches import launch_program
from py2cu.analysis.signatures import arrays_of_row_pointers
from py2cu.dtypes import C64, C128
from py2cu.ir.abi.launch import LaunchProgram
from py2cu.passes.lowering.index_arithmetic import add_index_arithmetic
from py2cu.targets.cuda.emit_packs import PackEmitter
from py2cu.targets.cuda.grids import empty_tests, grid_texts
from py2cu.targets.cuda.helpers import HELPERS_OF_CUDA
from py2cu.targets.cuda.packed_launches import pack_program, packs_of
from py2cu.targets.cxx.dialect import Dialect
from py2cu.targets.cxx.extents import extent_text, launch_constants
from py2cu.targets.cxx.functions import spell_functions
from py2cu.targets.cxx.includes import headers_of_types
from py2cu.targets.cxx.instances import types_of, view_of
from py2cu.targets.cxx.launcher.bounds import fits, headers_of_bounds, overflows
from py2cu.targets.cxx.launcher.values import headers_of_values, value_arguments, value_texts
from py2cu.targets.cxx.lines import doc_lines
from py2cu.targets.cxx.parameters import headers_of_arguments, kernel_arguments, launch_arguments
from py2cu.targets.cxx.shared_memory import bytes_text, limit_condition
from py2cu.targets.cxx.statements import Emitter
from py2cu.targets.cxx.views import (
    KernelView,
    helpers_of,
    tables_of,
)

DIALECT: Final = Dialect(
    widths={ir.Width.INT: "int", ir.Width.INDEX: "index_t", ir.Width.LONG: "int64_t", ir.Width.ANY: "int64_t"},
    launch_type="unsigned",
    has_intrinsics=True,
    headers={"printf": "cstdio", "assert": "cassert", "grid_barrier": "cooperative_groups.h"},
    types={C64.c: "complex<float>", C128.c: "complex<double>"},  # short names: the text has `using cuda::std::complex`
)


# A kernel whose threads have packs of elements has indices of 64 bits: they cost it nothing.
_WIDE: Final = replace(DIALECT, widths={**DIALECT.widths, ir.Width.INDEX: "int64_t"})


def view(kernel: ir.Kernel) -> KernelView:
    """`kernel` for the CUDA templates."""
    packs = packs_of(kernel)
    kernel = add_index_arithmetic(kernel)
    functions, callees = spell_functions(kernel, DIALECT)
    speller = PackEmitter(kernel, _WIDE, callees) if packs else Emitter(kernel, DIALECT, callees)
    kernel_args = (*kernel_arguments(kernel, speller.dialect), *value_arguments(kernel, speller.dialect))
    body = tuple(speller.block(kernel.body))
    types = speller.types.union(argument.base for argument in kernel_args)
    is_template = DIALECT.widths[ir.Width.INDEX] in types
    tables, table_headers = tables_of(kernel, DIALECT)
    launch_args = launch_arguments(kernel, DIALECT)
    grid, checks_grid = grid_texts(kernel, packs.elements if packs else "")
    return KernelView(
        name=kernel.symbol,
        op=kernel.symbol,
        doc=doc_lines(kernel.doc),
        is_index=bool(kernel.indices),
        is_template=is_template,
        helpers=tuple(name for name in helpers_of(kernel) if name in HELPERS_OF_CUDA),
        functions=functions,
        constants=(*speller.declarations, *launch_constants(kernel), *chain(*(f.constants for f in functions))),
        tables=tables,
        kernel_arguments=kernel_args,
        launch_arguments=launch_args,
        computed=value_texts(kernel, DIALECT),
        takes_strides=bool(kernel.strides),
        in_rows=tuple(map(kernel.c_name, arrays_of_row_pointers(kernel))),
        optional=tuple((kernel.c_name(p.name), kernel.flag(p.name)) for p in kernel.optional_arrays),
        indices=(),
        launch=(),
        threads=tuple(extent_text(extent, kernel) for extent in kernel.size or ()),
        block=tuple(extent_text(extent, kernel) for extent in kernel.block),
        fits=fits(kernel) if is_template else "",
        body=body,
        launch_bounds=kernel.launch_bounds,
        has_open_block=kernel.has_open_block,
        shared_bytes=bytes_text(kernel, DIALECT),
        shared_limit_condition=limit_condition(kernel),
        syncs_grid=syncs_grid(kernel),
        packs=packs,
        grid=grid,
        checks_grid=checks_grid,
        empty_tests=empty_tests(kernel),
        overflows=overflows(kernel),
        headers=headers_of_types(types).union(
            speller.headers, table_headers, *(function.headers for function in functions)
        ),
        bound_headers=headers_of_bounds(kernel, with_fits=is_template) | headers_of_values(kernel),
        launch_headers=headers_of_arguments(launch_args),
    )


def program(kernel: ir.Kernel, views: tuple[KernelView, ...]) -> LaunchProgram:
    """How calls launch an instance of a kernel, whose text is in one of `views`."""
    own, types = view_of(kernel, views, DIALECT), types_of(kernel, DIALECT)
    is_template = own.is_template
    made = launch_program(add_index_arithmetic(kernel), own.name, types, has_index_type=is_template, is_whole=False)
    return replace(made, headers=tuple(sorted(headers_of_types(types))), packs=pack_program(kernel))
