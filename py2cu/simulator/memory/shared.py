"""Shared memory of a simulated block: `shared(shape, dtype)`, and views of a part of it.

A call makes one array a block, whichever thread comes first: all threads that come by the same place of the code get
the same. A one-dimensional one is sliced into views, `ms, ns = buf[:n], buf[n:]`, which know their own extent.
"""

from __future__ import annotations

import math
import operator
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from types import CodeType, FrameType
from typing import Any, Final

from py2cu.dtypes import DType
from py2cu.ir.abi.dims import unravel
from py2cu.simulator.findings import NOWHERE
from py2cu.simulator.memory.arrays import ArrayView, UnwrittenArray
from py2cu.simulator.memory.races import RaceCheckedArray
from py2cu.simulator.memory.writes import OutOfRange, Write
from py2cu.simulator.state import THREAD

Extents = tuple[int, ...]
Cell = list[Any]  # of one element
# What is kept of a write that no report shows
EXACT_WRITE: Final = Write(NOWHERE, 0, 0.0)
TAINTED_WRITE: Final = Write(NOWHERE, 0, math.inf)


class FastReads:
    """What is read by an index: at once where nothing has to be said of it, as most of a block's reads are.

    A cell holds an element, or None where its readers are to be told of something. It stands under the indices that it
    was found by.
    """

    __slots__ = ()
    _cells: dict[Any, Cell]

    def __getitem__(self, index: Any) -> Any:
        try:
            element = self._cells[index][0]
        except (KeyError, TypeError):  # a slice
            element = None
        return self._look_up(index, sys._getframe(1)) if element is None else element

    def _look_up(self, index: Any, frame: FrameType) -> Any:
        raise NotImplementedError


class SharedArray(FastReads, UnwrittenArray):
    """An array of a block's. What a thread in doubt has written puts its readers in doubt."""

    def __init__(self, name: str, shape: Iterable[int], dtype: DType, values: Iterable[float | bool]) -> None:
        super().__init__(name, shape, dtype, values)
        self._in_order: list[Cell] = [[None] for _ in self._values]
        self._cells: dict[Any, Cell] = {}
        self._windows: dict[tuple[int, int], SharedView] = {}

    def _look_up(self, index: Any, frame: FrameType) -> Any:
        if index.__class__ is slice:
            return self.window(0, len(self))[index]
        position = self._position(index)
        if index == self._index(position):
            self._cells[index] = self.cell(position)
        return self.load(position, frame)

    def _index(self, position: int) -> int | tuple[int, ...]:
        """The index from zero at which `position` is."""
        if len(self._extents) == 1:
            return position
        return unravel(position, self._extents)

    def load(self, position: int, _: FrameType, /) -> Any:
        write = self.writes.get(position)
        if write is None:
            self._note_unwritten(position)
        elif write.error == math.inf:
            THREAD.tainted = True
        return self._values[position]

    def store(self, position: int, value: Any, _: FrameType, /) -> None:
        if value.__class__ is self._cls:
            error, is_settled = value.error, True
        else:
            error, real = getattr(value, "error", 0.0), value
            value = self.convert(value)
            is_settled = not self._is_whole or not error or self._is_settled(real, error)
        # A float of any value says so itself, wherever it goes.
        is_certain = is_settled and (error < math.inf or not self._is_whole) and not THREAD.tainted
        self._values[position] = value
        self._in_order[position][0] = value if is_certain else None
        self.writes[position] = EXACT_WRITE if is_certain else TAINTED_WRITE

    def update(self, position: int, change: Callable[[Any], Any], frame: FrameType, operation: object = None) -> Any:
        old = super().update(position, change, frame, operation)
        is_certain = self.writes[position].error < math.inf
        self._in_order[position][0] = self._values[position] if is_certain else None
        return old

    def window(self, start: int, extent: int) -> SharedView:
        """A view, the same for all threads."""
        key = start, extent
        if key not in self._windows:
            self._windows[key] = SharedView(self, start, extent)
        return self._windows[key]

    def cell(self, position: int, /) -> Cell:
        """What readers of `position` may look at."""
        return self._in_order[position]


class WatchedShared(RaceCheckedArray, SharedArray):
    """The same, held against other threads, for which every read counts."""

    __slots__ = ()
    is_shared = True
    starts_unwritten = True
    __getitem__ = SharedArray.__getitem__

    def cell(self, _: int, /) -> Cell:
        return [None]


class SharedView(FastReads):
    """Neighbouring elements of a one-dimensional shared array."""

    __slots__ = ("_array", "_cells", "_extent", "_start")

    def __init__(self, array: SharedArray, start: int, extent: int) -> None:
        self._array, self._start, self._extent = array, start, extent
        self._cells: dict[Any, Cell] = {}

    @property
    def dtype(self) -> Any:
        return self._array.dtype

    @property
    def name(self) -> str:
        return self._array.name

    @property
    def shape(self) -> tuple[int]:
        return (THREAD.integer(self._extent),)

    def __len__(self) -> int:
        return self._extent

    def __iter__(self) -> Any:
        return iter(self._array)

    def __repr__(self) -> str:
        return f"<elements {self._start} to {self._start + self._extent} of {self._array!r}>"

    def _look_up(self, index: Any, frame: FrameType) -> Any:
        if index.__class__ is slice:
            return self._slice(index)
        position = self._position(index)
        if index == position - self._start:
            self._cells[index] = self._array.cell(position)
        return self._array.load(position, frame)

    def __setitem__(self, index: Any, value: Any) -> None:
        self._array.store(self._position(index), value, sys._getframe(1))

    def locate(self, index: Any) -> tuple[ArrayView, int]:
        return self._array, self._position(index)

    def _position(self, index: Any) -> int:
        if index.__class__ is int and 0 <= index < self._extent:
            return self._start + index
        at = int(operator.index(index))
        if not 0 <= at < self._extent:
            at = self._from_end(at)
        return self._start + at

    def _from_end(self, at: int) -> int:
        if -self._extent <= at < 0 and THREAD.is_constant_negative_index(0, at):
            return at + self._extent
        raise OutOfRange(f"a view of {self.name}", 0, at, self._extent)

    def _slice(self, part: slice) -> SharedView:
        start, stop, step = part.indices(self._extent)
        if step != 1:
            raise IndexError(f"a view of `{self.name}` takes neighbouring elements: `[a:b]`")
        return self._array.window(self._start + start, max(0, stop - start))


class SharedMemory:
    """The shared arrays of one block, by the place of the code that makes them."""

    def __init__(self, *, watched: bool) -> None:
        self._kind: Final = WatchedShared if watched else SharedArray
        self._arrays: dict[tuple[CodeType, int], tuple[Extents, DType, SharedArray]] = {}
        self._lines: Counter[int] = Counter()  # how many arrays the lines have made
        self.arrays: list[SharedArray] = []

    def array_for_call_site(self, frame: FrameType, extents: Extents, dtype: DType) -> SharedArray:
        """The array of the call that `frame` is at.

        Raises:
            ValueError: another thread asked for another shape or dtype there.
        """
        key = frame.f_code, frame.f_lasti
        if key not in self._arrays:
            names = THREAD.array_names()[self._lines[frame.f_lineno] :]
            self._lines[frame.f_lineno] += 1
            self._arrays[key] = extents, dtype, self.make(names[0] if names else "a shared array", extents, dtype)
        first, first_dtype, array = self._arrays[key]
        if (first, first_dtype) != (extents, dtype):
            raise ValueError(
                f"`{array.name}` is {first} of {first_dtype} for one thread, {extents} of {dtype} for another"
            )
        return array

    def make(self, name: str, extents: Extents, dtype: DType) -> SharedArray:
        """An array of the block's."""
        self.arrays.append(self._kind(name, extents, dtype, [0] * math.prod(extents)))
        return self.arrays[-1]
