"""The strategy: whole kernels, index and block kernels in one to three dimensions.

Out: `kernels()`, which draws Python source without its imports (`PRELUDE`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from hypothesis import strategies

import tests.fuzz.functions
import tests.fuzz.whole_numbers  # noqa: F401 - its productions
from tests.fuzz.expressions import CONSTANTS, TABLES, convertible, value
from tests.fuzz.statements import body
from tests.fuzz.writer import AXES, DTYPES, SYMBOLS, TILES, Value, Writer

BLOCKS: Final = {1: (4,), 2: (4, 2), 3: (4, 2, 2)}
NAME: Final = "f"  # of every kernel
VALUES: Final = {"tile": TILES}  # of template arguments
PRELUDE: Final = "\n".join([
    "from __future__ import annotations",
    "import cmath",
    "import math",
    "import numpy as np",
    "import torch",
    f"from jaxtyping import {', '.join(row.jaxtyping for row in (*DTYPES, *SYMBOLS))}",
    "from torch import Tensor",
    "from py2cu import Constexpr, Index, blockDim, blockIdx, gridDim, kernel, local, shared, syncthreads, threadIdx",
    *(f"{name} = {text}" for name, (_, text) in CONSTANTS.items()),
    *(f"{name} = {table}" for name, table in TABLES.items()),
    "",
    "",
])  # fmt: skip


@strategies.composite
def kernels(draw: Callable[[Any], Any]) -> str:
    """The source of one kernel."""
    w = Writer(draw)
    w.rank = w.pick([1, 1, 2, 3])
    is_index = not w.chance(3)
    w.symbol = w.pick([None, None, None, None, *SYMBOLS])
    meets = is_index and w.chance(5)
    if meets:
        exchange(w)
    body(w, most=7)
    if meets and not any(line.strip() == "return" for line in w.lines):
        exchange(w)
    for array in w.outputs or [w.output(w.pick(w.dtypes))]:
        if w.chance(2) or len(w.outputs) == 1:
            w.add(f"{array.element} = {value(w, array.dtype, 2).text}")
    functions = [line for function in w.functions for line in (*function.lines, "")]
    before, within = ([], ["    " * bool(line) + line for line in functions]) if w.chance(4) else (functions, [])
    return "\n".join([*before, *_head(w, is_index), *within, *(() if is_index else _indices(w)), *w.lines, ""])


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
    block = f"block={BLOCKS[w.rank]}"
    size = "" if is_index else f"size=({''.join(f'{extent!r}, ' for extent, _ in AXES[: w.rank])}), "
    indices = [f'{index}: Index["{extent}"]' for extent, index in w.axes]
    arrays = [array.annotation for array in w.inputs + w.outputs]
    scalars = [f"{name}: {annotation}" for name, annotation in w.scalars.items()]
    scalars += ["n: int"] if w.chance(4) else []
    middle = len(arrays) // 2
    parameters = [*(indices if is_index else []), *arrays[:middle], *scalars, *arrays[middle:]]
    return [f"@kernel({size}{block})", f"def {NAME}({', '.join(parameters)}):"]


def _indices(w: Writer) -> list[str]:
    """A block kernel's own index arithmetic, guarded by itself or by the translator."""
    lines = [
        f"    {index} = blockIdx.{axis} * blockDim.{axis} + threadIdx.{axis}"
        for axis, (_, index) in zip("xyz", AXES[: w.rank], strict=False)
    ]
    places = {extent: axis for axis, extent in enumerate(w.outputs[0].extents)}
    past = [f"{index} >= {w.outputs[0].name}.shape[{places[extent]}]" for extent, index in AXES[: w.rank]]
    return [*lines, f"    if {' or '.join(past)}:", "        return"] if w.chance(2) else lines
