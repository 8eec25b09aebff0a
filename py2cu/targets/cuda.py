"""The CUDA target: `__global__` kernels, a launcher for each, their declarations. No torch, no header of ours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Set
from typing import Final

from py2cu.dtypes import C64, C128
from py2cu.ir.kernel import Bound, Kernel
from py2cu.ir.types import Width
from py2cu.ir.waiting import syncs_grid
from py2cu.passes.add_index_arithmetic import add_index_arithmetic
from py2cu.targets.arguments import kernel_arguments, launch_arguments
from py2cu.targets.device_functions import spell_functions
from py2cu.targets.shared_memory import asks, bytes_text
from py2cu.targets.spell_expressions import Dialect
from py2cu.targets.spell_statements import Speller, doc_lines
from py2cu.targets.view import (
    KernelView,
    extent_text,
    helpers_of,
    tables_of,
)

DIALECT: Final = Dialect(
    widths={Width.INT: "int", Width.INDEX: "index_t", Width.LONG: "int64_t", Width.ANY: "int64_t"},
    launch_type="unsigned",
    types={C64.c: "complex<float>", C128.c: "complex<double>"},  # behind `using cuda::std::complex`
)
_MAGNITUDE: Final = "std::fabs"  # of a number that may be negative, as a double


def view(kernel: Kernel) -> KernelView:
    """`kernel` for the CUDA templates."""
    kernel = add_index_arithmetic(kernel)
    functions, callees = spell_functions(kernel, DIALECT)
    speller = Speller(kernel, DIALECT, callees)
    taken = kernel_arguments(kernel, DIALECT)
    body = tuple(speller.block(kernel.body))
    is_template = any("index_t" in text for text in [*(a.type for a in taken), *(line.text for line in body)])
    return KernelView(
        name=kernel.symbol,
        doc=doc_lines(kernel.doc),
        is_index=bool(kernel.indices),
        is_template=is_template,
        helpers=helpers_of(kernel),
        functions=functions,
        tables=tables_of(kernel, DIALECT),
        kernel_arguments=taken,
        launch_arguments=launch_arguments(kernel, DIALECT),
        indices=(),
        launch=(),
        threads=tuple(extent_text(extent, kernel) for extent in kernel.size or ()),
        block=tuple(extent_text(extent, kernel) for extent in kernel.block),
        fits=_fits(kernel) if is_template else "",
        body=body,
        launch_bounds=kernel.launch_bounds,
        has_open_block=kernel.has_open_block,
        shared_bytes=bytes_text(kernel, DIALECT),
        shared_asks=asks(kernel),
        syncs_grid=syncs_grid(kernel),
    )


def _fits(kernel: Kernel) -> str:
    """The launcher's condition for 32-bit indices: `std::max({h * k, k * w}) <= INT32_MAX`."""
    texts = [_bound_text(bound, kernel) for bound in kernel.bounds]
    whole = [text for text, is_whole in texts if is_whole]
    parts = [f"std::max({{{', '.join(whole)}}})" if len(whole) > 1 else text for text in whole[:1]]
    parts += [text for text, is_whole in texts if not is_whole]
    return " && ".join(f"{part} <= INT32_MAX" for part in parts)


def _bound_text(bound: Bound, kernel: Kernel) -> tuple[str, bool]:
    """A bound in C++, and whether int64_t holds it.

    Products that no array's size stands for, and numbers of the call, which may be any, are taken as doubles, which do
    not overflow.
    """
    naturals = {*kernel.naturals, *kernel.constexprs}
    terms, is_whole = [], True
    for names, factor in sorted(bound.terms, key=lambda term: not term[0]):  # the constant last
        factors = sorted((_symbol(name, kernel, naturals) for name in names), key=_is_integer) or ["1"]
        if names and all(name in kernel.constexprs for name in names):
            factors[0] = f"int64_t({factors[0]})"
        is_grid = len(names) == 2 and all(name.startswith(("grid", "block")) for name in names)
        if len(names) == 1 and names[0].startswith(("gridDim", "blockDim")):
            factors = [f"int64_t({factors[0]})"]
        elif is_grid:
            factors = [f"int64_t({factors[1]})", factors[0]]
        elif not _is_integer(factors[0]):
            is_whole = False
        elif len(names) > 1 and not any(Counter(names) <= size for size in kernel.sizes):
            factors.insert(0, "1.0")
            is_whole = False
        if factor != 1:
            factors = [str(factor), *(name for name in factors if name != "1")]
        terms.append(" * ".join(factors))
    return " + ".join(terms), is_whole


def _symbol(name: str, kernel: Kernel, naturals: Set[str]) -> str:
    match name.partition("."):
        case ("gridDim", _, axis):
            return f"grid.{axis}"
        case ("blockDim", _, axis):
            return f"block.{axis}"
    return kernel.c_name(name) if name in naturals else f"{_MAGNITUDE}({kernel.c_name(name)})"


def _is_integer(factor: str) -> bool:
    return not factor.startswith(_MAGNITUDE)
