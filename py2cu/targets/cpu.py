"""The CPU target: the same kernel as a plain function, called once an element or once a thread; blocks run in parallel.

Python integers are `int64_t` throughout, so nothing is instantiated twice.
"""

from __future__ import annotations

from collections import Counter
from functools import partial, reduce
from typing import Final

from py2cu.builtins.threads import LANE_HELPER
from py2cu.dtypes import C64, C128
from py2cu.ir.calls import asserts, launched_in
from py2cu.ir.extents import Binary, Constant, IndexParameter, Name
from py2cu.ir.kernel import Kernel
from py2cu.ir.nodes import Expr
from py2cu.ir.statements import EachThread, Turns
from py2cu.ir.types import ArrayType, Width
from py2cu.ir.visit import statements
from py2cu.ir.waiting import is_grid_barrier, lets_others, syncs_grid
from py2cu.targets.arguments import kernel_arguments, launch_arguments
from py2cu.targets.cpu_helpers import HELPERS, helpers_of_threads
from py2cu.targets.device_functions import in_order, spell_functions
from py2cu.targets.shared_memory import bytes_text
from py2cu.targets.spell_blocks import BlockSpeller
from py2cu.targets.spell_expressions import Dialect
from py2cu.targets.spell_statements import Speller, doc_lines
from py2cu.targets.view import (
    IndexLoop,
    KernelView,
    extent_text,
    helpers_of,
    tables_of,
)

DIALECT: Final = Dialect(
    widths=dict.fromkeys(Width, "int64_t"),
    launch_type="int64_t",
    functions={
        name: f"std::{name}" for name in ("abs", "min", "max", "isnan", "isinf", "isfinite", "signbit", "printf")
    },
    overloads="std::",
    launch_struct="Dim3",
    fence="std::atomic_thread_fence(std::memory_order_seq_cst)",
    grid_barrier="grid_barrier.wait()",
    unroll="#pragma GCC unroll",
    unrolls_wholly=False,
    own_atomics=True,
    throws=True,
    types={
        "__half": "c10::Half",
        "__nv_bfloat16": "c10::BFloat16",
        C64.c: "std::complex<float>",
        C128.c: "std::complex<double>",
    },
)


def view(kernel: Kernel) -> KernelView:
    """`kernel` for the CPU templates."""
    functions, callees = spell_functions(kernel, DIALECT)
    is_whole = any(isinstance(stmt, EachThread) or is_grid_barrier(stmt) for stmt in statements(kernel.body))
    speller = BlockSpeller(kernel, DIALECT, callees) if is_whole else Speller(kernel, DIALECT, callees)
    return KernelView(
        name=kernel.symbol,
        doc=doc_lines(kernel.doc),
        is_index=bool(kernel.indices),
        is_template=False,
        helpers=_helpers(kernel),
        functions=functions,
        tables=tables_of(kernel, DIALECT),
        kernel_arguments=kernel_arguments(kernel, DIALECT),
        launch_arguments=launch_arguments(kernel, DIALECT),
        indices=tuple(_loop(kernel, speller, index) for index in kernel.indices),
        launch=_used_launch_objects(kernel, is_whole),
        threads=tuple(extent_text(extent, kernel) for extent in kernel.size or ()),
        block=tuple(extent_text(extent, kernel) for extent in kernel.block),
        fits="",
        body=tuple(speller.body()),
        shared_bytes=bytes_text(kernel, DIALECT),
        is_whole=is_whole,
        syncs_grid=syncs_grid(kernel),
        sizes=_sizes(kernel),
        asserts=asserts(kernel),
        waits_anywhere=lets_others(kernel.body)
        or any(isinstance(stmt, EachThread) and stmt.turns is Turns.WAITING for stmt in statements(kernel.body)),
    )


def _sizes(kernel: Kernel) -> tuple[str, ...]:
    """How large a launch is: the sizes of its arrays and the number of its threads, without those that are no greater
    than another one.
    """
    shapes = [array.type.dims for array in kernel.arrays if isinstance(array.type, ArrayType)]
    threads: tuple[str, ...] = ("blocks * block.x * block.y * block.z",)
    if kernel.indices:
        shapes.insert(0, kernel.size or ())
        threads = ()
    products = [reduce(partial(Binary, "*"), shape) for shape in dict.fromkeys(shapes) if shape]
    sizes: list[tuple[Expr, _Factors | None]] = []
    for product in products:
        own = _factors(product)
        if own is None or not any(other is not None and _is_below(own, other) for _, other in sizes):
            sizes = [
                (each, other) for each, other in sizes if own is None or other is None or not _is_below(other, own)
            ]
            sizes.append((product, own))
    return (*threads, *dict.fromkeys(extent_text(product, kernel) for product, _ in sizes))


_Factors = tuple[int, Counter[str]]


def _factors(extent: Expr) -> _Factors | None:
    """3 and `h`, `w` of `3 * h * w`; None for anything but a product."""
    match extent:
        case Constant(value=int(value)):
            return value, Counter()
        case Name(id=name):
            return 1, Counter([name])
        case Binary(op="*", left=left, right=right):
            one, other = _factors(left), _factors(right)
            return None if one is None or other is None else (one[0] * other[0], one[1] + other[1])
        case _:
            return None


def _is_below(one: _Factors, other: _Factors) -> bool:
    """True where a product is no greater than another one, if no dimension is empty."""
    return one[0] <= other[0] and one[1] <= other[1]


def _helpers(kernel: Kernel) -> tuple[str, ...]:
    """What the text calls; what threads do together is spelled in the CPU's own way."""
    common = (name for name in helpers_of(kernel) if name not in HELPERS and name != LANE_HELPER)
    return (*common, *helpers_of_threads(kernel))


def _loop(kernel: Kernel, speller: Speller, index: IndexParameter) -> IndexLoop:
    name = speller.name(index.name)
    end, taken = f"{name}_end", {argument.name for argument in launch_arguments(kernel, speller.dialect)}
    taken |= {kernel.c_name(constexpr) for constexpr in kernel.constexprs}
    while end in taken:
        end += "_"
    return IndexLoop(name, extent_text(index.extent, kernel), end, index.axis)


def _used_launch_objects(kernel: Kernel, is_whole: bool) -> tuple[str, ...]:
    """What the kernel is told of the launch; one that runs whole blocks goes through their threads by itself."""
    used = launched_in(kernel)[""]
    if is_whole:
        used = used - {"threadIdx"} | {"blockDim"}
    return in_order(used)
