"""Options of a kernel (`@kernel(size=…, block=…)`), limits of a launch, and the grid and block of an explicit launch.

In: the decorator's keywords, at run time or read from its source. Out: `KernelOptions`. Errors: `TypeError` for a grid
or a block that is no integer or tuple.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, TypedDict

Size = str | int | tuple[str | int, ...]
Block = int | str | tuple[int | str, ...]
Strided = bool | str | tuple[str, ...]
Values = Mapping[str, tuple[int, ...]]
"""Values of `Constexpr[int]` parameters, by name."""

NO_VALUES: Final[Values] = MappingProxyType({})

DEFAULT_BLOCKS = {1: (256,), 2: (16, 16), 3: (8, 8, 8)}
MAX_BLOCK = (1024, 1024, 64)  # CUDA's limits in x, y, z
MAX_THREADS = 1024
MAX_BLOCKS = 32  # on a multiprocessor


def is_launchable(block: tuple[int, ...]) -> bool:
    """Whether a GPU can run blocks of this many threads in x, y, z."""
    within = all(1 <= extent <= limit for extent, limit in zip(block, MAX_BLOCK, strict=False))
    return within and math.prod(block) <= MAX_THREADS


@dataclass(frozen=True, slots=True)
class KernelOptions:
    """The keywords of `kernel`, which documents them, and what `Kernel.with_options` changes.

    `float64` puts float64 and complex128 in place of narrower floats. `namespace` is that of the launchers in the
    emitted C++, "" for the global one.
    """

    size: Size | None = None
    block: Block | None = None
    init: Mapping[str, int | float] = field(default_factory=dict)
    name: str | None = None
    strided: Strided = False
    coarsen: int | None = None
    launch_bounds: int | tuple[int, ...] | None = None
    float64: bool = False
    signature: str | None = None  # Numba's, for a kernel under `@cuda.jit`
    namespace: str = ""

    @classmethod
    def of(
        cls,
        *,
        size: Size | None = None,
        block: Block | None = None,
        init: Mapping[str, int | float] | None = None,
        name: str | None = None,
        strided: Strided = False,
        coarsen: int | None = None,
        launch_bounds: int | tuple[int, int] | None = None,
    ) -> KernelOptions:
        """The options that these keywords give; lists become tuples."""
        bounds = _as_tuple(launch_bounds)
        return cls(_as_tuple(size), _as_tuple(block), dict(init or {}), name, _as_tuple(strided), coarsen, bounds)

    @property
    def bounds(self) -> tuple[int, ...]:
        """`launch_bounds` as a tuple, empty without launch bounds."""
        bounds = self.launch_bounds
        return () if bounds is None else bounds if isinstance(bounds, tuple) else (bounds,)

    def __hash__(self) -> int:
        plain = (self.size, self.block, self.name, self.strided, self.coarsen, self.launch_bounds, self.float64)
        return hash((*plain, self.signature, self.namespace, tuple(self.init.items())))


class KernelKeywords(TypedDict, total=False):
    """The keywords of `kernel` for type checkers."""

    size: Size | None
    block: Block | None
    init: Mapping[str, int | float] | None
    name: str | None
    strided: Strided
    coarsen: int | None
    launch_bounds: int | tuple[int, int] | None


Extent = int | tuple[int, ...]
LaunchShape = tuple[list[int], list[int]]
"""The extents of a grid, and those of a block."""


def launch_shape(launch: tuple[Extent, Extent], name: str) -> LaunchShape:
    """The grid and the block of `name[grid, block]`, one extent for each axis; NumPy's integers become Python's.

    Raises:
        TypeError: `launch` is not a pair of integers or tuples of integers.
    """
    try:
        grid, block = launch
        if grid.__class__ is int and block.__class__ is int:
            return [grid], [block]
        return _extents(grid), _extents(block)
    except (TypeError, ValueError):
        what = "grid and block are whole numbers or tuples of whole numbers"
        raise TypeError(f"launch it as {name}[grid, block](...); {what}") from None


def extents_of(grid: Sequence[int], block: Sequence[int]) -> tuple[int, ...] | None:
    """The three extents of a grid and those of a block; None if they are impossible."""
    if not (0 < len(grid) <= 3 and 0 < len(block) <= 3 and all(0 < extent < 2**31 for extent in (*grid, *block))):
        return None
    return (*[*grid, 1, 1][:3], *[*block, 1, 1][:3])


def require_extents(name: str, grid: Sequence[int], block: Sequence[int]) -> tuple[int, ...]:
    """The three extents of a grid and those of a block, to launch the kernel `name`.

    Raises:
        RuntimeError: the grid or the block is impossible.
    """
    if (found := extents_of(grid, block)) is not None:
        return found
    raise RuntimeError(f"{name}: {_flaw('grid', grid) or _flaw('block', block)}")


def _flaw(name: str, extents: Sequence[int]) -> str:
    """What is wrong with the extents of a grid or a block, if anything is."""
    if not 0 < len(extents) <= 3:
        return f"`{name}` has one to three extents"
    wrong = [extent for extent in extents if not 0 < extent < 2**31]
    return f"`{name}` has an extent of {wrong[0]}" if wrong else ""


def _extents(value: Extent) -> list[int]:
    # rule: launch-extent
    return [operator.index(extent) for extent in ((value,) if hasattr(value, "__index__") else value)]


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
