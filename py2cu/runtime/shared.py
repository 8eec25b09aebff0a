"""Shared memory of a simulated block: `shared(shape, dtype)`, and views of a part of it.

A call makes one array a block, whichever thread comes first: all threads that come by the same place of the code get
the same. A one-dimensional one is sliced into views, `ms, ns = buf[:n], buf[n:]`, which know their own extent.
"""

from __future__ import annotations

import math
import operator
import sys
from typing import Any, Final

from py2cu.dtypes import DType
from py2cu.runtime.arrays import ArrayView, OutOfRange, UnwrittenArray
from py2cu.runtime.buffers import said_dtype, said_shape
from py2cu.runtime.journal import THREAD
from py2cu.runtime.python_integers import Integer
from py2cu.runtime.races import WatchedArray

Extents = tuple[int, ...]


class SharedArray(UnwrittenArray):
    """An array of a block's. What a thread in doubt has written puts its readers in doubt."""

    __slots__ = ()

    def __getitem__(self, index: Any) -> Any:
        if index.__class__ is slice:
            return Window(self, 0, len(self))[index]
        return self.load(self._position(index), sys._getframe(1).f_lineno)

    def load(self, position: int, line: int, /) -> Any:
        write = self.writes.get(position)
        if write is not None and write.error == math.inf:
            THREAD.doubt = True
        return super().load(position, line)


class WatchedShared(WatchedArray, SharedArray):
    """The same, held against other threads."""

    __slots__ = ()
    is_shared = True
    __getitem__ = SharedArray.__getitem__


class Window:
    """Neighbouring elements of a one-dimensional shared array."""

    __slots__ = ("_array", "_extent", "_start")

    def __init__(self, array: SharedArray, start: int, extent: int) -> None:
        self._array, self._start, self._extent = array, start, extent

    @property
    def dtype(self) -> Any:
        return self._array.dtype

    @property
    def name(self) -> str:
        return self._array.name

    @property
    def shape(self) -> tuple[Integer]:
        return (Integer(self._extent),)

    def __len__(self) -> int:
        return self._extent

    def __iter__(self) -> Any:
        return iter(self._array)

    def __repr__(self) -> str:
        return f"<elements {self._start} to {self._start + self._extent} of {self._array!r}>"

    def __getitem__(self, index: Any) -> Any:
        if index.__class__ is slice:
            return self._slice(index)
        return self._array.load(self._position(index), sys._getframe(1).f_lineno)

    def __setitem__(self, index: Any, value: Any) -> None:
        self._array.store(self._position(index), value, sys._getframe(1).f_lineno)

    def locate(self, index: Any) -> tuple[ArrayView, int]:
        return self._array, self._position(index)

    def _position(self, index: Any) -> int:
        at = int(operator.index(index))
        if -self._extent <= at < 0 and THREAD.counts_from_end(0, at):
            at += self._extent
        if not 0 <= at < self._extent:
            raise OutOfRange(f"a view of {self.name}", 0, at, self._extent)
        return self._start + at

    def _slice(self, part: slice) -> Window:
        start, stop, step = part.indices(self._extent)
        if step != 1:
            raise IndexError(f"a view of `{self.name}` takes neighbouring elements: `[a:b]`")
        return Window(self._array, self._start + start, max(0, stop - start))


SharedKey = tuple[object, int]


class SharedMemory:
    """The shared arrays of one block, by the place of the code that makes them."""

    def __init__(self, *, watched: bool) -> None:
        self._kind: Final = WatchedShared if watched else SharedArray
        self._arrays: dict[SharedKey, tuple[Extents, DType, SharedArray]] = {}

    def make(self, key: SharedKey, name: str, extents: Extents, dtype: DType) -> SharedArray:
        """The array that `key` stands for.

        Raises:
            ValueError: another thread asked for another shape or dtype.
        """
        if key not in self._arrays:
            self._arrays[key] = extents, dtype, self._kind(name, extents, dtype, [0] * math.prod(extents))
        known_extents, known_dtype, array = self._arrays[key]
        if (known_extents, known_dtype) != (extents, dtype):
            known = f"{known_extents} of {known_dtype}"
            raise ValueError(
                f"the threads of a block share one array: {known} for one, {extents} of {dtype} for another"
            )
        return array


def make_shared(shape: Any, dtype: Any) -> SharedArray:
    """`shared(shape, dtype)` in a simulated kernel."""
    frame = sys._getframe(1)
    name = THREAD.reserved_name("a shared array")
    return THREAD.runner.block.memory.make((frame.f_code, frame.f_lasti), name, said_shape(shape), said_dtype(dtype))
