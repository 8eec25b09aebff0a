"""Extents of launches and shapes of arrays: names, numbers, products and quotients.

In: the axes of a launch. Out: `Shape`s, each with the text that indexes a thread's own element. Extents are written as
annotations have them, without spaces.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

Axes = tuple[tuple[str, str], ...]  # extents and indices, fastest last

EXTENT_LIMIT: Final = 64  # of the launch's extents, and of the indices that run over them
SUBSCRIPT_LIMIT: Final = 2**20  # of any extent of an array
AXES: Final = (("n", "i"), ("m", "j"), ("p", "l"), ("h", "u"))  # the plainest launch, fastest first
GRID_AXES: Final = 3  # more indices than that come from one flat index, of x
LEADING: Final = "..."  # the product of any number of extents: only the first one of an array
# What the two fastest extents of a launch may be instead; the judge's sizes keep each below EXTENT_LIMIT.
PRODUCTS: Final = (
    ("n*m", "n*n", "2*n", "n+1", "(n+3)//4", "n//2", "n*m-1", "n*q//2"),
    ("m*q", "m+1", "(m+1)//2"),
)  # fmt: skip
# Constant extents behind those of the launch. Arrays have some thousands of elements at most: the simulator reads each.
_INNER: Final = (("64",), ("8", "3"), ("320",), ("160", "2"))
_NAME: Final = re.compile(r"[a-z]\w*")
_OPERATORS: Final = re.compile(r"(//|[-+*])")


@dataclass(frozen=True, slots=True)
class Shape:
    """The extents of an array, and the indices of a thread's own element.

    On the last `free` axes any index gives an element that is this thread's own. Where it is `still`, no thread writes
    the first row.
    """

    extents: tuple[str, ...]
    own: tuple[str, ...]
    free: int = 0
    still: bool = False

    @classmethod
    def whole(cls, axes: Axes) -> Shape:
        """One element a thread."""
        return cls(tuple(extent for extent, _ in axes), tuple(index for _, index in axes))

    def with_inner(self, extents: tuple[str, ...], own: tuple[str, ...]) -> Shape:
        """A row of these extents for each element, all of it the thread's own."""
        return Shape((*self.extents, *extents), (*self.own, *own), len(extents))


def input_shapes(axes: Axes) -> tuple[Shape, ...]:
    """Shapes of arrays that are only read, the simplest first."""
    whole, (extent, index) = Shape.whole(axes), axes[-1]
    row = Shape((extent,), (index,))
    shapes = (
        row,
        whole,
        Shape(("3", extent), ("-1", index)),
        Shape(("tile", extent), ("tile - 1", index)),
        Shape((extent, "q"), (index, "0")),
        Shape((times(2, extent),), (f"2 * {index} + 1",)),
        Shape((f"{extent}+1",), (f"{index} + 1",)),
        Shape(("q",), ("-1",)),
        *(row.with_inner(inner, _last(inner)) for inner in _INNER),
        whole.with_inner(("16",), ("5",)),
        Shape(("100", "7"), (index, "threadIdx.x")),
        Shape(("40", "64"), ("blockIdx.x", index)),
        Shape(("2", "160", extent), ("1", "-1", index)),
        row.with_inner(("tile",), ("tile - 1",)),
        row.with_inner(("tile*tile*16",), ("-1",)),
        *((Shape(("8", "64", "tile"), ("blockIdx.x", index, "-1")),) if len(axes) <= GRID_AXES else ()),
        Shape((times(64, extent),), (f"{index} * 64 + 63",)),
        Shape((times(320, extent),), (f"320 * {index} + 319",)),
    )
    return tuple(filter(_may_lead, shapes))


def output_shapes(axes: Axes) -> tuple[Shape, ...]:
    """Shapes of arrays of which each thread has elements of its own."""
    whole, rank = Shape.whole(axes), grid_rank(axes)
    blocks, threads = _flat("blockIdx", "gridDim", rank), _flat("threadIdx", "blockDim", rank)
    shapes = (
        whole.with_inner(("2",), ("-1",)),
        *(whole.with_inner(inner, _last(inner)) for inner in (_INNER if len(axes) == 1 else _INNER[:2])),
        Shape(("64", "40"), (blocks, threads)),
        Shape(("64", "16", "3"), (blocks, threads, "2"), free=1),
        Shape(("64", "16", "tile"), (blocks, threads, "tile - 1"), free=1),
        *((whole.with_inner(("tile*tile*16",), ("-1",)),) if len(axes) == 1 else ()),
        Shape(("64*40",), (f"({blocks}) * 40 + {threads}",)),
        *[Shape(("2", *whole.extents), ("1", *whole.own), still=True)] * 3,  # few kernels read the row
        *((Shape((*["16"] * (len(axes) - 1), "64"), whole.own),) if len(axes) <= GRID_AXES else ()),
    )
    return tuple(filter(_may_lead, shapes))


def grid_rank(axes: Axes) -> int:
    """The number of axes that the grid has."""
    return len(axes) if len(axes) <= GRID_AXES else 1


def _may_lead(shape: Shape) -> bool:
    """True for a shape in which `LEADING` is the first extent, and no part of another one."""
    return not any(LEADING in extent for extent in shape.extents[1:]) and (
        shape.extents[0] == LEADING or LEADING not in shape.extents[0]
    )


def _last(extents: tuple[str, ...]) -> tuple[str, ...]:
    return (*(str(int(extent) - 1) for extent in extents[:-1]), "-1")


def _flat(place: str, extent: str, rank: int) -> str:
    """The number of a block in the grid, or of a thread in its block: `place.y * extent.x + place.x`."""
    flat = f"{place}.{'xyz'[rank - 1]}"
    for axis in reversed("xyz"[: rank - 1]):
        flat = f"({flat})" if " " in flat else flat
        flat = f"{flat} * {extent}.{axis} + {place}.{axis}"
    return flat


def times(factor: int, extent: str) -> str:
    return f"{factor}*{extent}" if extent.isidentifier() else f"{factor}*({extent})"


def spaced(extent: str) -> str:
    """An extent with spaces around its operators."""
    return _OPERATORS.sub(r" \1 ", extent)


def names_in(extent: str) -> set[str]:
    return set(_NAME.findall(extent))


def limit(extent: str) -> int:
    """A bound of an extent, from its text alone."""
    return int(extent) if extent.isdigit() else EXTENT_LIMIT if extent.isidentifier() else SUBSCRIPT_LIMIT
