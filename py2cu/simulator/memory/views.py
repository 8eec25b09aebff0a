"""Parts of simulated arrays: `x[i]` of a matrix, `row[:n]`. A part shares the array's elements, which report findings.

An index of a part is checked where an element is accessed, as in the compiled kernel, which computes it there.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any, Protocol

from py2cu.simulator.memory.shaped import Shaped
from py2cu.simulator.memory.writes import OutOfRange, count_from_end
from py2cu.simulator.state import THREAD


class Accessed(Protocol):
    """An array that checks who accesses it."""

    name: str

    @property
    def dtype(self) -> Any: ...

    @property
    def extents(self) -> tuple[int, ...]: ...

    def access(self, index: tuple[Any, ...], frame: FrameType, /) -> tuple[Any, int]:
        """The array that holds the element at `index`, and its flat position."""


class Part(Shaped):
    """The elements of `array` whose first indices are `prefix` and whose next is at least `start`."""

    __slots__ = ("_array", "_extents", "_prefix", "_start", "name")

    def __init__(self, array: Accessed, prefix: tuple[Any, ...], start: int, extents: tuple[int, ...]) -> None:
        self._array, self._prefix, self._start, self._extents = array, prefix, start, extents
        self.name = array.name

    @property
    def dtype(self) -> Any:
        return self._array.dtype

    @property
    def extents(self) -> tuple[int, ...]:
        return self._extents

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(map(THREAD.integer, self._extents))

    def __len__(self) -> int:
        return self._extents[0]

    def __repr__(self) -> str:
        return f"<part of shape {self._extents} of {self._array!r}>"

    def __iter__(self) -> Iterator[Any]:
        return iterate(self)

    def __getitem__(self, index: Any) -> Any:
        return self.get(index, sys._getframe(1))

    def get(self, index: Any, frame: FrameType, /) -> Any:
        """The element or the part at `index`, for the user's frame."""
        part = self.part(index, frame)
        if part is not None:
            return part
        array, position = self.access(index if isinstance(index, tuple) else (index,), frame)
        return array.load(position, frame)

    def part(self, index: Any, _: FrameType) -> Part | None:
        """The part of this part at `index`, which the user's frame makes; None where that is one element."""
        return part_at(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        self.store(index, value, sys._getframe(1))

    def store(self, index: Any, value: Any, frame: FrameType) -> None:
        """Store a number, or into a part a tuple or another part, for the user's frame."""
        part = part_at(self, index)
        if part is not None:
            store_items(part, value, frame)
            return
        array, position = self.access(index if isinstance(index, tuple) else (index,), frame)
        array.store(position, value, frame)

    def access(self, index: tuple[Any, ...], frame: FrameType, /) -> tuple[Any, int]:
        first, *others = (self._count(axis, each) for axis, each in enumerate(index))
        if self._start or self._extents[0] != self._array.extents[len(self._prefix)]:
            if first >= self._extents[0]:
                raise OutOfRange(f"a part of {self.name}", 0, first, self._extents[0])
            first += self._start
        return self._array.access((*self._prefix, first, *others), frame)

    def locate(self, index: Any) -> tuple[Any, int]:
        """The array and the position for an atomic operation."""
        return self.access(index if isinstance(index, tuple) else (index,), sys._getframe(1))

    def _count(self, axis: int, index: Any) -> int:
        """An index of this part, from its start where it is negative."""
        at = operator.index(index)
        # rule: negative-in-view
        return at if at >= 0 else count_from_end(f"a part of {self.name}", axis, at, self._extents[axis])


def is_partial(array: Any, index: Any) -> bool:
    """True where `index` selects more than one element."""
    indices = index if isinstance(index, tuple) else (index,)
    return len(indices) < len(array.extents) or any(isinstance(each, slice) for each in indices)


def part_at(array: Any, index: Any, kind: type[Part] = Part) -> Part | None:
    """The part of `array` that `index` selects, as an object of class `kind`; None where it selects one element.

    Raises:
        IndexError: it takes more indices than there are dimensions, or slices another axis than the first one left.
    """
    indices = index if isinstance(index, tuple) else (index,)
    extents = array.extents
    singles = [each for each in indices if not isinstance(each, slice)]
    ranges = indices[len(singles) :]
    if len(indices) > len(extents) or any(not isinstance(each, slice) for each in ranges):
        raise IndexError(f"`{array.name}` has {len(extents)} dimensions, got {len(indices)} indices")
    if len(singles) == len(extents):
        return None
    if any(each != slice(None) for each in ranges[1:]):
        raise IndexError(f"only the first axis that is left of `{array.name}` is sliced")
    left = extents[len(singles) :]
    singles = [_from_start(each, axis, extents[axis]) for axis, each in enumerate(singles)]
    part = ranges[0] if ranges else slice(None)
    for bound in (part.start, part.stop):
        if bound is not None and int(bound) < 0 and not THREAD.is_constant_negative_index(-1, int(bound)):
            # rule: negative-bound-report
            THREAD.report(f"a negative bound of a slice of `{array.name}`", str(int(bound)), is_open=True)
    start, stop, step = part.indices(left[0])
    if step != 1:
        raise IndexError(f"a part of `{array.name}` takes neighbouring elements: `[a:b]`")
    return kind(array, tuple(singles), start, (max(0, stop - start), *left[1:]))


def store_items(part: Any, value: Any, frame: FrameType) -> None:
    """Store into the elements of a part: a tuple, nested ones into its rows; another part; one number into all.

    Raises:
        ValueError: the tuple has another length than the part, or the other part another shape.
    """
    count = len(part)
    if isinstance(value, tuple | list):
        if len(value) != count:
            raise ValueError(f"{count} elements or rows of `{part.name}` take a tuple of {count} values")
        for at, item in enumerate(value):
            part.store(THREAD.integer(at), item, frame)
        return
    is_part = hasattr(value, "extents")
    if is_part and value.extents != part.extents:
        raise ValueError(f"a part of shape {part.extents} takes one of this shape, not {value.extents}")
    for at in map(THREAD.integer, range(count)):
        part.store(at, value.get(at, frame) if is_part else value, frame)


def _from_start(index: Any, axis: int, extent: int) -> Any:
    """A negative constant index, counted from the start; any other index as it is."""
    at = int(index)  # an unsigned element does not compare with a negative number
    return at + extent if -extent <= at < 0 and THREAD.is_constant_negative_index(axis, at) else index


def iterate(array: Any) -> Iterator[Any]:
    """The elements of an array of one dimension, or its parts, read as a loop takes them."""
    for at in range(len(array)):
        yield array.get(THREAD.integer(at), sys._getframe(1))
