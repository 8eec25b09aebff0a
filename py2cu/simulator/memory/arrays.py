"""The arrays of a simulated kernel: `x[r, c]` loads an element, `out[i] = v` stores one and records the writing thread.

In: a shape, a dtype and initial values. Out: `ArrayView`, with the elements and, for each written element, a `Write`:
the last thread to write it, its line, and the error bound of the stored value.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator
from types import FrameType
from typing import Any

from py2cu.dtypes import DType, Kind
from py2cu.ir.abi.dims import unravel
from py2cu.simulator.memory.rows import Rows
from py2cu.simulator.memory.shaped import Shaped
from py2cu.simulator.memory.views import iterate, part_at, store_items
from py2cu.simulator.memory.writes import Sum, Write, count_from_end
from py2cu.simulator.state import THREAD
from py2cu.simulator.values.checked_int import CheckedInt
from py2cu.simulator.values.family import element_class
from py2cu.simulator.values.integer_elements import IntElement
from py2cu.simulator.values.operators import ElementRangeError


class PartialIndex(IndexError):
    """An index that selects no single element."""


class ArrayView(Shaped):
    """One array argument; every dimension is indexed."""

    __slots__ = (
        "_cls", "_dtype", "_extents", "_is_integral", "_length", "_sums", "_uncertain", "_values", "name", "writes",
    )  # fmt: skip

    def __init__(self, name: str, shape: Iterable[int], dtype: DType, values: Iterable[float | bool]) -> None:
        self.name = name
        self.writes: dict[int, Write] = {}
        self._sums: dict[int, Sum] = {}
        self._uncertain: set[int] = set()  # positions of integers that may differ in the compiled kernel
        self._extents = tuple(map(int, shape))
        self._length = self._extents[0] if len(self._extents) == 1 else 0  # an index from 0 to it is the flat position
        self._dtype = dtype
        self._is_integral = dtype.kind in (Kind.BOOL, Kind.INT)
        self._cls: Any = element_class(dtype)
        self._values = list(map(self._cls.from_stored, values))

    @property
    def dtype(self) -> Any:
        return self._cls

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(map(THREAD.integer, self._extents))

    @property
    def elements(self) -> list[Any]:
        """All elements, the last index fastest."""
        return self._values

    def __repr__(self) -> str:
        return f"<{self._dtype} array `{self.name}` of shape {self._extents}>"

    def __len__(self) -> int:
        if not self._extents:
            raise TypeError(f"`{self.name}` has no dimension")
        return self._extents[0]

    @property
    def extents(self) -> tuple[int, ...]:
        return self._extents

    def __iter__(self) -> Iterator[Any]:
        return iterate(self)

    def __getitem__(self, index: Any) -> Any:
        try:
            position = self._position(index)
        except PartialIndex:
            return part_at(self, index)
        if self._uncertain and position in self._uncertain:
            THREAD.tainted = True
        return self._values[position]

    def get(self, index: Any, frame: FrameType, /) -> Any:
        """The element or the part at `index`, for the user's frame."""
        try:
            position = self._position(index)
        except PartialIndex:
            return part_at(self, index)
        return self.load(position, frame)

    def __setitem__(self, index: Any, value: Any) -> None:
        frame = sys._getframe(1)
        try:
            position = self._position(index)
        except PartialIndex:
            self.store_part(index, value, frame)
        else:
            self.store(position, value, frame)

    def store_part(self, index: Any, value: Any, frame: FrameType) -> None:
        """Store a tuple, a part or a number into the elements that `index` selects, for the user's frame."""
        store_items(part_at(self, index), value, frame)

    @property
    def itemsize(self) -> int:
        """The bytes of an element."""
        return self._dtype.itemsize

    def view(self, *shape: int) -> Rows:
        """View an array in rows: `x.view(-1, 4)`, `m.view(h, -1, 4)`.

        Raises:
            RuntimeError: the last row would be incomplete.
        """
        *leading, rows, row = shape
        if rows != -1 or (*map(int, leading),) != self.extents[:-1]:
            kept = "".join(f"{extent}, " for extent in self.extents[:-1])
            raise TypeError(f"`{self.name}` is viewed in rows as `{self.name}.view({kept}-1, {row})`")
        return Rows(self, int(row))

    def locate(self, index: Any) -> tuple[ArrayView, int]:
        """The array and the flat position of `index`."""
        return self, self._position(index)

    def access(self, index: tuple[Any, ...], _: FrameType, /) -> tuple[ArrayView, int]:
        """The array and the flat position of `index`, for the user's frame."""
        return self, self._position(index)

    def load(self, position: int, _: FrameType, /) -> Any:
        """The element that the user's frame reads."""
        if self._uncertain and position in self._uncertain:
            THREAD.tainted = True
        return self._values[position]

    def store(self, position: int, value: Any, frame: FrameType, /) -> None:
        """Store the value that the user's `frame` assigns."""
        real: float | None = None
        if value.__class__ is not self._cls:
            real = value if isinstance(value, float) and self._is_integral else None
            value = self.convert(value)
        error = value.error if real is None else getattr(real, "error", 0.0)
        self._values[position] = value
        self.writes[position] = Write(THREAD.place, frame.f_lineno, math.inf if THREAD.tainted else error, real)
        if self._is_exact_integer(real, error):
            self._uncertain.discard(position)
        else:
            self._uncertain.add(position)

    def _is_exact_integer(self, real: float | None, error: float) -> bool:
        """False if a float was stored as an integer that may differ in the compiled kernel."""
        if real is None or not error:
            return True
        truncate, value = self._cls.truncate, float(real)
        return bool(error < math.inf and truncate(value - error) == truncate(value + error) == truncate(value))

    def update(self, position: int, change: Callable[[Any], Any], frame: FrameType, _operation: object = None) -> Any:
        """Replace an element by `change(element)` atomically, and return the old element.

        Updates with equal `_operation` commute. It is the name of an arithmetic operation, the new element of an
        exchange, or None for an update without effect.
        """
        THREAD.count_atomic()
        old = self._values[position]
        new = self._values[position] = change(old)
        self.writes[position] = Write(THREAD.place, frame.f_lineno, math.inf if THREAD.tainted else new.error)
        return old

    def add(self, position: int, value: Any, frame: FrameType) -> Any:
        """Add to an element atomically. The error of the sum allows for every order of the additions."""
        # rule: order-of-zero
        operation = "add" if value.value != 0 else None  # a comparison of elements could taint the thread
        if self._is_integral:
            return self.update(position, lambda old: old + value, frame, operation)
        old = self._values[position]
        before = self._sums.get(position) or Sum(0, *_size(old), _is_surely_nan(old))
        magnitude, error = _size(value)
        total = self._sums[position] = Sum(
            before.terms + 1,
            before.magnitude + magnitude,
            before.error + error,
            before.is_nan or _is_surely_nan(value),
        )
        bound = total.error + total.terms * self._dtype.epsilon * total.magnitude  # rule: sum-rounding
        if total.is_nan:  # rule: sum-of-nan
            bound = 0.0
        elif total.magnitude > self._dtype.high:  # rule: sum-too-large
            bound = math.inf  # in some order the sum overflows on the way
        return self.update(position, lambda old: self._cls.with_error(float(old + value), bound), frame, operation)

    def spell(self, position: int) -> str:
        """The element at `position` as the user spells it."""
        return f"{self.name}[{', '.join(map(str, unravel(position, self._extents)))}]"

    def convert(self, value: Any) -> Any:
        """Convert `value` to an element of this array, by the rules of a store in a kernel."""
        if self._dtype.kind is Kind.COMPLEX:
            return self._cls.convert(value)
        if not isinstance(value, float):
            return self._convert_integer(value)
        if not self._is_integral:
            return self._cls.convert(value)
        truncated, is_specified = self._cls.truncate(value)
        if not is_specified:
            THREAD.tainted = True
            THREAD.report(f"a float that {self._dtype} cannot hold is stored into `{self.name}`", repr(float(value)))
        return self._cls.from_stored(truncated)

    def _convert_integer(self, value: int | IntElement) -> Any:
        if not isinstance(value, int | IntElement):
            raise TypeError(f"`{self.name}` holds numbers, not {type(value).__name__}")
        try:
            return self._cls.from_operand(value)
        except ElementRangeError:
            THREAD.report(f"a Python integer wraps in `{self.name}` of {self._dtype}", f"{value}")  # rule: wraps-stored
            return self._cls.convert(value)

    def _position(self, index: Any) -> int:
        """The flat position of the element at `index`."""
        if index.__class__ is CheckedInt:
            index = int(index)
        if index.__class__ is int and 0 <= index < self._length:
            return index
        indices = index if index.__class__ is tuple else (index,)
        if len(indices) != len(self._extents):
            raise PartialIndex(f"`{self.name}` has {len(self._extents)} dimensions, got {len(indices)} indices")
        position = 0
        for axis, extent in enumerate(self._extents):
            i = indices[axis]
            if i.__class__ is not int:
                i = int(i) if i.__class__ is CheckedInt else self._integer(i)
            if not 0 <= i < extent:
                i = count_from_end(self.name, axis, i, extent)
            position = position * extent + i
        return position

    def _integer(self, index: Any) -> int:
        if isinstance(index, slice):
            raise PartialIndex(f"a slice of `{self.name}` is no element")
        if not isinstance(index, int | IntElement):
            raise TypeError(f"an index of `{self.name}` is an integer, not {type(index).__name__}")
        return int(index)


def _size(value: Any) -> tuple[float, float]:
    """Magnitude and error of a float element. Both are 0 for a certain infinity or NaN: a sum keeps it in any order."""
    if math.isfinite(value):
        return abs(float(value)), value.error
    return 0.0, 0.0 if value.error < math.inf else math.inf  # rule: sum-in-doubt


def _is_surely_nan(value: Any) -> bool:
    return math.isnan(value) and value.error < math.inf


class UnwrittenArray(ArrayView):
    """An array whose elements are undefined until the kernel writes them."""

    __slots__ = ()

    def __getitem__(self, index: Any) -> Any:
        return self.get(index, sys._getframe(1))

    def load(self, position: int, frame: FrameType, /) -> Any:
        if position not in self.writes:
            self._report_unwritten(position)
        return super().load(position, frame)

    def update(self, position: int, change: Callable[[Any], Any], frame: FrameType, operation: object = None) -> Any:
        if position not in self.writes:
            self._report_unwritten(position)
        return super().update(position, change, frame, operation)

    def _report_unwritten(self, position: int) -> None:
        THREAD.tainted = True
        THREAD.report(f"an element of `{self.name}` is read before it is written", self.spell(position))
