"""A simulated array viewed in rows: after `x4 = x.view(-1, 4)`, `x4[i]` is a row and `x4[i, j]` an element.

The array itself loads and stores, element by element, so its findings are the array's.
"""

from __future__ import annotations

import math
import operator
import sys
from types import FrameType
from typing import Any, Protocol

from py2cu.simulator.memory.shaped import Shaped
from py2cu.simulator.memory.writes import count_from_end
from py2cu.simulator.state import THREAD


class Elements(Protocol):
    """An array."""

    name: str

    @property
    def dtype(self) -> Any: ...

    @property
    def extents(self) -> tuple[int, ...]: ...

    def load(self, position: int, frame: FrameType, /) -> Any: ...

    def store(self, position: int, value: Any, frame: FrameType, /) -> None: ...


class Rows(Shaped):
    """The elements of an array in rows of equal length: they divide its last dimension."""

    __slots__ = ("_array", "_extents", "name")

    def __init__(self, array: Elements, width: int) -> None:
        *leading, length = array.extents
        shape = ", ".join(map(str, (*leading, -1, width)))
        if length % width:  # rule: view-length
            size = math.prod(array.extents)
            raise RuntimeError(f"shape '[{shape}]' is invalid for input of size {size}")  # torch's message
        self.name = f"{array.name}.view({shape})"
        self._array, self._extents = array, (*leading, length // width, width)

    @property
    def dtype(self) -> Any:
        return self._array.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(map(THREAD.integer, self._extents))

    def __len__(self) -> int:
        return self._extents[0]

    def __iter__(self) -> Any:
        raise TypeError(f"`{self.name}` cannot be iterated over; index it")

    def __repr__(self) -> str:
        return f"<rows of {self._extents[-1]} elements of {self._array!r}>"

    def __getitem__(self, index: Any) -> Any:
        return self.get(index, sys._getframe(1))

    def __setitem__(self, index: Any, value: Any) -> None:
        self.put(index, value, sys._getframe(1))

    def get(self, index: Any, frame: FrameType) -> Any:
        """The row, as a tuple, or the element that the user's `frame` reads."""
        if self.is_element(index):
            return self._array.load(self._position(index), frame)
        return tuple(self._array.load(at, frame) for at in self._row(index))

    def put(self, index: Any, value: Any, frame: FrameType) -> None:
        """Store the row, a tuple, or the element that the user's `frame` assigns."""
        if self.is_element(index):
            self._array.store(self._position(index), value, frame)
            return
        row = self._row(index)
        if value.__class__ is not tuple or len(value) != len(row):
            raise ValueError(f"a row of `{self.name}` takes a tuple of {len(row)} numbers")
        for at, item in zip(row, value, strict=True):
            self._array.store(at, item, frame)

    def locate(self, index: Any) -> tuple[Elements, int]:
        """The array and the flat position of the element at `index`."""
        return self._array, self._position(index)

    def is_element(self, index: Any) -> bool:
        """True for the index of an element, not of a row."""
        return index.__class__ is tuple and len(index) == len(self._extents)

    def _row(self, index: Any) -> range:
        """The flat positions of a row."""
        places = index if index.__class__ is tuple else (index,)
        if len(places) != len(self._extents) - 1:
            raise IndexError(f"a row of `{self.name}` has {len(self._extents) - 1} indices, an element one more")
        start = 0
        for axis, place in enumerate(places):
            start = start * self._extents[axis] + self._in_range(place, axis)
        width = self._extents[-1]
        return range(start * width, (start + 1) * width)

    def _position(self, index: Any) -> int:
        if not self.is_element(index):
            raise IndexError(f"an element of `{self.name}` has {len(self._extents)} indices")
        return self._row(index[:-1])[self._in_range(index[-1], len(index) - 1)]

    def _in_range(self, index: Any, axis: int) -> int:
        at, extent = int(operator.index(index)), self._extents[axis]
        return at if 0 <= at < extent else count_from_end(self.name, axis, at, extent)
