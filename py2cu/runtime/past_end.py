"""Arrays as a thread past the end has them, where no thread may stop since others wait for it: reads give zero, writes
do nothing. `passes/guard_accesses.py` says the same in C++.
"""

from __future__ import annotations

import contextlib
import sys
from typing import Any

from py2cu.runtime.arrays import ArrayView, OutOfRange
from py2cu.runtime.rows import Rows


class PastEnd:
    """An array argument of such a thread: where an index is in range, the array itself."""

    def __init__(self, array: ArrayView) -> None:
        self._array = array

    def __getattr__(self, name: str) -> Any:
        return getattr(self._array, name)

    def __len__(self) -> int:
        return len(self._array)

    def __getitem__(self, index: Any) -> Any:
        array, position = self.locate(index)
        return array.load(position, sys._getframe(1))

    def __setitem__(self, index: Any, value: Any) -> None:
        array, position = self.locate(index)
        array.store(position, value, sys._getframe(1))

    def view(self, rows: int, row: int) -> PastEndRows:
        return PastEndRows(self._array.view(rows, row))

    def locate(self, index: Any) -> tuple[ArrayView, int]:
        """The array and the flat position that `index` means; out of range, those of a zero that nobody else sees."""
        try:
            return self._array.locate(index)
        except OutOfRange:
            return nowhere(self._array)


class PastEndRows:
    """The same of an array that is seen in rows."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rows, name)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: Any) -> Any:
        frame = sys._getframe(1)
        try:
            return self._rows.load(index, frame)
        except OutOfRange:
            array, position = nowhere(self._rows)
            zero = array.load(position, frame)
            return zero if index.__class__ is tuple else (zero,) * int(self._rows.shape[1])

    def __setitem__(self, index: Any, value: Any) -> None:
        with contextlib.suppress(OutOfRange):
            self._rows.store(index, value, sys._getframe(1))

    def locate(self, index: Any) -> tuple[ArrayView, int]:
        try:
            return self._rows.locate(index)
        except OutOfRange:
            return nowhere(self._rows)


def nowhere(array: Any) -> tuple[ArrayView, int]:
    """A zero of the dtype of `array`, and its position."""
    return ArrayView("nowhere", (1,), array.dtype.dtype, [0]), 0


def as_past_end(argument: object) -> object:
    """An argument of the kernel, as such a thread has it."""
    return PastEnd(argument) if isinstance(argument, ArrayView) else argument
