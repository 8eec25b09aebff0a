"""Shared memory of a simulated block: `shared(shape, dtype)`, and views of a part of it.

The first thread that reaches a call makes the array; all threads of the block that reach the same place of the code get
it. A one-dimensional array is sliced into views, `ms, ns = buf[:n], buf[n:]`, each with its own extent.
"""

from __future__ import annotations

import math
import operator
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any, Final

from py2cu.dtypes import DType
from py2cu.ir.abi.dims import unravel
from py2cu.simulator.findings import NOWHERE
from py2cu.simulator.memory.arrays import ArrayView, PartialIndex, UnwrittenArray
from py2cu.simulator.memory.races import RaceCheckedArray
from py2cu.simulator.memory.shaped import Shaped
from py2cu.simulator.memory.views import iterate, part_at, store_items
from py2cu.simulator.memory.writes import Write, count_from_end
from py2cu.simulator.state import THREAD

Extents = tuple[int, ...]
Cell = list[Any]  # a mutable cell: a list with one item
# A `Write` for each kind of store: reports do not show who wrote shared memory.
EXACT_WRITE: Final = Write(NOWHERE, 0, 0.0)
TAINTED_WRITE: Final = Write(NOWHERE, 0, math.inf)


class FastReads:
    """Fast reads: a cell holds the element, or None if the slow path must run checks.

    Cells are kept by the indices under which they were read.
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
    """A shared array of a block. Reading an element that a tainted thread wrote taints the reader."""

    def __init__(self, name: str, shape: Iterable[int], dtype: DType, values: Iterable[float | bool]) -> None:
        super().__init__(name, shape, dtype, values)
        self._cells_by_position: list[Cell] = [[None] for _ in self._values]
        self._cells: dict[Any, Cell] = {}  # the same cells, by index
        self._windows: dict[tuple[int, int], SharedView] = {}

    def _look_up(self, index: Any, frame: FrameType) -> Any:
        if index.__class__ is slice and len(self._extents) == 1:
            return self.window(0, len(self))[index]
        try:
            position = self._position(index)
        except PartialIndex:
            return part_at(self, index)
        if index == (position if len(self._extents) == 1 else unravel(position, self._extents)):
            self._cells[index] = self.cell(position)
        return self.load(position, frame)

    def load(self, position: int, _: FrameType, /) -> Any:
        write = self.writes.get(position)
        if write is None:
            self._report_unwritten(position)
        elif write.error == math.inf:  # rule: load-in-doubt
            THREAD.tainted = True
        return self._values[position]

    def store(self, position: int, value: Any, _: FrameType, /) -> None:
        if value.__class__ is self._cls:
            error, is_exact = value.error, True
        else:
            error, real = getattr(value, "error", 0.0), value
            value = self.convert(value)
            is_exact = not (self._is_integral and error) or (
                isinstance(real, float) and self._is_exact_integer(real, error)
            )
        # A float element with an infinite error need not taint its readers: it carries the error with it.
        is_certain = is_exact and (error < math.inf or not self._is_integral) and not THREAD.tainted  # rule: sure-store
        self._values[position] = value
        self._cells_by_position[position][0] = value if is_certain else None  # rule: doubt-value
        self.writes[position] = EXACT_WRITE if is_certain else TAINTED_WRITE  # rule: doubt-kind

    def update(self, position: int, change: Callable[[Any], Any], frame: FrameType, operation: object = None) -> Any:
        old = super().update(position, change, frame, operation)
        is_certain = self.writes[position].error < math.inf
        self._cells_by_position[position][0] = self._values[position] if is_certain else None
        return old

    def window(self, start: int, extent: int) -> SharedView:
        """A view of `extent` elements from `start` on, the same object for all threads."""
        key = start, extent
        if key not in self._windows:
            self._windows[key] = SharedView(self, start, extent)
        return self._windows[key]

    def cell(self, position: int, /) -> Cell:
        """The cell for fast reads of `position`."""
        return self._cells_by_position[position]


class RaceCheckedShared(RaceCheckedArray, SharedArray):
    """A race-checked shared array. It has no fast reads, since the detector has to see every read."""

    __slots__ = ()
    is_shared = True
    starts_unwritten = True
    __getitem__ = SharedArray.__getitem__

    def cell(self, _: int, /) -> Cell:
        return [None]


class SharedView(FastReads, Shaped):
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

    @property
    def extents(self) -> tuple[int, ...]:
        return (self._extent,)

    def __iter__(self) -> Any:
        return iterate(self)

    def get(self, index: Any, frame: FrameType, /) -> Any:
        return self._look_up(index, frame)

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
        self.store(index, value, sys._getframe(1))

    def store(self, index: Any, value: Any, frame: FrameType) -> None:
        """Store a number, or a tuple into a slice, for the user's frame."""
        if index.__class__ is slice:
            self.store_part(index, value, frame)
        else:
            self._array.store(self._position(index), value, frame)

    def store_part(self, part: slice, value: Any, frame: FrameType) -> None:
        """Store a tuple into a slice, for the user's frame."""
        store_items(self._slice(part), value, frame)

    def locate(self, index: Any) -> tuple[ArrayView, int]:
        return self._array, self._position(index)

    def _position(self, index: Any) -> int:
        if index.__class__ is int and 0 <= index < self._extent:
            return self._start + index
        at = int(operator.index(index))
        if not 0 <= at < self._extent:
            at = count_from_end(f"a view of {self.name}", 0, at, self._extent)
        return self._start + at

    def _slice(self, part: slice) -> SharedView:
        start, stop, step = part.indices(self._extent)
        if step != 1:
            raise IndexError(f"a view of `{self.name}` takes neighbouring elements: `[a:b]`")
        return self._array.window(self._start + start, max(0, stop - start))


class SharedMemory:
    """The shared arrays of one block, by call site."""

    def __init__(self, *, race_checked: bool) -> None:
        self._kind: Final = RaceCheckedShared if race_checked else SharedArray
        self._arrays: dict[object, tuple[Extents, DType, SharedArray]] = {}
        self._lines: Counter[int] = Counter()  # the number of arrays that each line made
        self.arrays: list[SharedArray] = []

    def array_for_call_site(
        self, frame: FrameType, extents: Extents, dtype: DType, place: object = None
    ) -> SharedArray:
        """The array of the call that `frame` is at; one array for all calls with the same `place`.

        Raises:
            ValueError: another thread asked for another shape or dtype there.
        """
        key = place or (frame.f_code, frame.f_lasti)
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
        """Make a shared array of the block."""
        self.arrays.append(self._kind(name, extents, dtype, [0] * math.prod(extents)))
        return self.arrays[-1]
