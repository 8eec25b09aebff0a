"""The strategy: whole kernels, block kernels in one to three dimensions and index kernels of up to four indices.

Out: `kernels()`, which draws Python source without its imports (`PRELUDE`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from hypothesis import strategies

import tests.fuzz.functions
import tests.fuzz.lists
import tests.fuzz.optional_numbers
import tests.fuzz.order
import tests.fuzz.parts
import tests.fuzz.tuples
import tests.fuzz.whole_numbers  # noqa: F401 - its productions
from py2cu.dtypes import Kind
from tests.fuzz.expressions import CLASSES, CONSTANTS, TABLES, convertible, value
from tests.fuzz.redefinitions import later_cell
from tests.fuzz.remarks import remarked
from tests.fuzz.shapes import AXES, GRID_AXES, LEADING, PRODUCTS, names_in, spaced
from tests.fuzz.statements import body
from tests.fuzz.writer import DTYPES, SYMBOLS, TILES, Array, Value, Writer

BLOCKS: Final = {1: (4,), 2: (4, 2), 3: (4, 2, 2), 4: (4,)}
NAME: Final = "f"  # of every kernel
VALUES: Final = {"tile": TILES}  # of template arguments
PRELUDE: Final = "\n".join([
    "from __future__ import annotations",
    "import cmath",
    "import math",
    "from typing import Optional",
    "import numpy as np",
    "import py2cu",
    "import torch",
    "from enum import Enum, IntEnum, IntFlag, auto",
    f"from jaxtyping import {', '.join([*(row.jaxtyping for row in DTYPES), 'Float', 'Int', 'Complex'])}",
    "from torch import Tensor",
    "from py2cu import Constexpr, Index, blockDim, blockIdx, gridDim, kernel, local, shared, syncthreads, threadIdx",
    *(f"{name} = {text}" for name, (_, text) in CONSTANTS.items()),
    *(f"{name} = {table}" for name, table in TABLES.items()),
    *(f"\n\n{text}" for text in CLASSES.values()),
    "",
    "",
])  # fmt: skip


@strategies.composite
def kernels(draw: Callable[[Any], Any]) -> str:
    """The source of one kernel, and of a later cell here and there."""
    w = Writer(draw)
    is_index = not w.chance(3)
    w.launch = launches(w, is_index)
    w.symbol = w.pick([None, None, None, None, *SYMBOLS])
    w.redefines = w.chance(8)
    meets = is_index and len(w.launch) <= GRID_AXES and w.chance(5)
    if meets:
        exchange(w)
    body(w, most=7)
    if meets and not any(line.strip() == "return" for line in w.lines):
        exchange(w)
    for array in w.outputs or [w.output(w.pick(w.dtypes))]:
        if w.chance(2) or len(w.outputs) == 1:
            w.add(f"{array.element} = {value(w, array.dtype, 2).text}")
    functions = [line for function in w.functions for line in (*function.lines, "")]
    before, within = (
        ([], ["    " * bool(line) + line for line in functions]) if not w.redefines and w.chance(4) else (functions, [])
    )
    indices = [] if is_index else _indices(w)
    lines = [*before, *_head(w, is_index), *within, *indices, *w.lines, ""]
    later = later_cell(w, lines) if w.redefines else []
    return "\n".join([*(remarked(w, lines) if w.chance(3) else lines), *later])


def launches(w: Writer, is_index: bool) -> tuple[tuple[str, str], ...]:
    """One to three axes, the fastest first, or four indices; one extent may be a product, a quotient or `...`."""
    axes = list(AXES[: w.pick([1, 1, 2, 3])])
    if is_index and w.chance(10):
        return AXES
    if is_index and w.chance(10):
        axes[-1] = LEADING, axes[-1][1]
    elif w.chance(2):
        place = w.pick(range(min(len(axes), len(PRODUCTS))))
        axes[place] = w.pick(PRODUCTS[place]), axes[place][1]
    return tuple(axes)


def exchange(w: Writer) -> None:
    """Every thread of a block tells another one a number. Those past the end, who come too, read zeros before."""
    dtype, name = w.pick(DTYPES), w.fresh("shared")
    sizes = [(f"threadIdx.{axis}", size) for axis, size in zip("xyz", BLOCKS[w.rank], strict=False)][::-1]
    w.add(f"{name} = shared({tuple(size for _, size in sizes)}, {dtype.name!r})")
    w.add(f"{name}[{', '.join(at for at, _ in sizes)}] = {convertible(w, dtype, 3).text}")
    w.add("syncthreads()")
    told = w.declare(Value("", dtype)).text
    w.add(f"{told} = {name}[{', '.join(f'{size - 1} - {at}' for at, size in sizes)}]")
    w.add(f"{w.output(dtype).element} = {told}")


def _head(w: Writer, is_index: bool) -> list[str]:
    """The decorator and the parameters, arrays and numbers mixed."""
    block, extents = f"block={BLOCKS[w.rank]}", [_written(w, extent) for extent, _ in w.launch]
    size = "" if is_index else f"size=({''.join(f'{extent!r}, ' for extent in extents)}), "
    kind = "int, " if w.chance(4) else ""
    indices = [f'{index}: Index[{kind}"{extent}"]' for extent, (_, index) in zip(extents[::-1], w.axes, strict=True)]
    arrays = [array.annotation for array in w.inputs + w.outputs]
    _give_dimensions(w)
    scalars = [f"{name}: {annotation}" for name, annotation in w.scalars.items()]
    middle = len(arrays) // 2
    required = [text for text in scalars if not text.endswith("= None")]
    optional = [text for text in scalars if text.endswith("= None")]
    optional += [w.pick([f"{array.annotation} | None = None", _optional(array)]) for array in w.optional]
    parameters = [*(indices if is_index else []), *arrays[:middle], *required, *arrays[middle:], *optional]
    return [f"@kernel({size}{block}{_strided(w, arrays)})", f"def {NAME}({', '.join(parameters)}):"]


def _strided(w: Writer, arrays: list[str]) -> str:
    """The option `strided`, for all arrays or for one; none for leading dimensions and for views in rows."""
    if not w.chance(5) or any(LEADING in text for text in (*arrays, *map(str, w.launch))):
        return ""
    if any(".view(" in line for line in w.lines):
        return ""
    name = w.pick(arrays).partition(":")[0]
    return f", strided={name!r}" if w.chance(2) else ", strided=True"


def _optional(array: Array) -> str:
    name, _, type_ = array.annotation.partition(": ")
    return f"{name}: Optional[{type_}] = None"


def _written(w: Writer, extent: str) -> str:
    return extent if extent.isidentifier() else w.pick([spaced(extent), extent])


def _give_dimensions(w: Writer) -> None:
    """A number for each name that no shape says, and for `n` here and there."""
    extents = {extent for array in w.inputs + w.outputs for extent in array.extents}
    needed = {name for extent in (*extents, *(extent for extent, _ in w.launch)) for name in names_in(extent)}
    told = {name for name in needed if name in extents or {f"2*{name}", f"{name}+1"} & extents}
    for name in sorted(needed - told | {"n"} if w.chance(4) else needed - told):
        if name not in w.scalars:
            w.scalar("int", Value(name, Kind.INT))


def _indices(w: Writer) -> list[str]:
    """A block kernel's own index arithmetic, guarded by itself or by the translator."""
    lines = [
        f"    {index} = blockIdx.{axis} * blockDim.{axis} + threadIdx.{axis}"
        for axis, (_, index) in zip("xyz", w.launch, strict=False)
    ]
    if not w.chance(2):
        return lines
    past = [f"{index} >= {_said(w, extent)}" for extent, index in w.launch]
    return [*lines, f"    if {' or '.join(past)}:", "        return"]


def _said(w: Writer, extent: str) -> str:
    """An extent of the launch: of an array's shape, or computed from numbers of the call."""
    arrays = [array for array in w.outputs + w.inputs if extent in array.extents]
    if arrays and not w.chance(4):
        array = w.pick(arrays)
        return f"{array.name}.shape[{array.extents.index(extent)}]"
    for name in sorted(names_in(extent)):
        w.scalar("int", Value(name, Kind.INT))
    return spaced(extent)
