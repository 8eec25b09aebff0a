"""The shape of a launch: the grid, the block, and the limits beyond which threads return early.

In: a `Signature` and the values of its dimensions, or an explicit grid and block. Out: `Launch`, in CUDA's axis order.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from py2cu.ir.abi.signature import Signature, evaluate
from py2cu.options import is_launchable

Triple = tuple[int, int, int]
AXES: Final = "xyz"
MAX_BLOCKS: Final = 2**31 - 1  # on an axis


@dataclass(frozen=True, slots=True)
class Launch:
    """Grid and block, each in x, y, z."""

    grid: Triple
    block: Triple

    def debug_focus(self, break_at: object) -> tuple[Triple, Triple]:
        """The block and the thread that `break_at` names, each with all its dimensions.

        Raises:
            TypeError: it is no pair of numbers or tuples.
            ValueError: the launch has no such block or thread.
        """
        match break_at:
            case [block, thread]:
                return _place("block", block, self.grid), _place("thread", thread, self.block)
            case _:
                raise TypeError(f"`break_at` is a pair of a block and a thread, `(0, 5)`, not {break_at!r}")


def plan_launch(
    signature: Signature,
    dims: dict[str, int],
    grid: int | tuple[int, ...] | None = None,
    block: int | tuple[int, ...] | None = None,
) -> Launch:
    """Plan the grid and block of a call: the explicit ones, else as many blocks as cover the size (0 for size 0).

    Raises:
        ValueError: the size of the grid is unknown, the block is larger than the kernel's launch bounds or than any
            GPU's, or the grid is empty or larger than a GPU's.
    """
    default = tuple(evaluate(extent, dims) for extent in signature.block)
    shape = _triple(default if block is None else block)
    if not is_launchable(shape):  # rule: block-launchable
        listed = " × ".join(map(str, default if block is None else shape))
        raise ValueError(f"`{signature.name}`: no GPU launches blocks of {listed} threads")
    threads = math.prod(shape)
    if signature.launch_bounds and threads > signature.launch_bounds[0]:  # rule: bounds-simulated
        most = signature.launch_bounds[0]
        raise ValueError(f"`{signature.name}` is for blocks of at most {most} threads, got {threads}")
    if grid is not None:
        blocks = _triple(grid)
        _refuse_unlaunchable(signature, blocks, least=1)  # rule: block-refused
        return Launch(blocks, shape)
    sizes = _sizes(signature, dims)
    if sizes is None:
        how = f"launch it as {signature.name}[grid, block](...)"
        raise ValueError(f"the number of threads of `{signature.name}` is unknown: {how}")
    x, y, z = (max(0, -(-size // extent)) for size, extent in zip(sizes, shape, strict=True))
    _refuse_unlaunchable(signature, (x, y, z), least=0)  # rule: grid-launchable
    return Launch((x, y, z), shape)


def _refuse_unlaunchable(signature: Signature, blocks: Triple, least: int) -> None:
    """Raise ValueError for a grid that no `dim3` holds."""
    if min(blocks) < least or max(blocks) > MAX_BLOCKS:
        raise ValueError(f"`{signature.name}`: no GPU launches a grid of {' × '.join(map(str, blocks))} blocks")


def _sizes(signature: Signature, dims: dict[str, int]) -> Triple | None:
    """The number of threads that the kernel needs in x, y, z; None if unknown."""
    if signature.indices:
        extents = {index.axis: evaluate(index.extent, dims) for index in signature.indices}
        return extents.get("x", 1), extents.get("y", 1), extents.get("z", 1)
    return None if signature.size is None else _triple(tuple(evaluate(size, dims) for size in signature.size))


def _triple(value: int | tuple[int, ...]) -> Triple:
    parts = (value,) if isinstance(value, int) else tuple(value)
    if not 1 <= len(parts) <= 3:
        raise ValueError(f"a launch has one to three extents, not {len(parts)}")
    x, y, z = (*parts, 1, 1)[:3]
    return int(x), int(y), int(z)


def _place(what: str, index: object, extents: Triple) -> Triple:
    """The index of a block or a thread; missing last dimensions are 0."""
    parts = index if isinstance(index, tuple | list) else (index,)
    if not 1 <= len(parts) <= 3 or not all(isinstance(at, int) and not isinstance(at, bool) for at in parts):
        raise TypeError(f"the {what} of `break_at` is a whole number or one to three of them, not {index!r}")
    x, y, z = (*parts, 0, 0)[:3]
    if not all(0 <= at < extent for at, extent in zip((x, y, z), extents, strict=True)):
        shape = " × ".join(map(str, extents))
        raise ValueError(f"`break_at` names {what} {(x, y, z)}, but this launch has {shape} {what}s")
    return x, y, z


def places(extents: Triple) -> Iterator[Triple]:
    """Every block of a grid, or every thread of a block, in order: x first."""
    x, y, z = extents
    return ((i, j, k) for k, j, i in itertools.product(range(z), range(y), range(x)))


def find_limits(signature: Signature, dims: dict[str, int]) -> Triple | None:
    """The limit of each axis, from which on threads return early: an index's extent or a guard's; None without any."""
    if any(evaluate(index.extent, dims) < 0 for index in signature.flat_indices):
        return 0, 0, 0
    stops = [(index.axis, index.extent) for index in signature.indices]
    stops += [(guard.axis, guard.extent) for guard in signature.guards]
    if not stops:
        return None
    limits = [1 << 62] * 3
    for axis, extent in stops:
        place = AXES.index(axis)
        limits[place] = min(limits[place], evaluate(extent, dims))
    return limits[0], limits[1], limits[2]
