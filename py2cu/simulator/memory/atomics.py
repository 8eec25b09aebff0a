"""`atomic.add(array, index, value)` and the other atomics in a simulated kernel: exact, returning the old element.

Threads run one at a time, so no thread interrupts an atomic. An array's `update` reports it to the race detector.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from py2cu.simulator.memory.predication import is_predicated_off, scratch_element

Change = Callable[[Any, Any], Any]  # the old element and the value, both of the array's dtype: the new element


class SimulatedAtomics:
    """The substitute for `py2cu.atomic` and `numba.cuda.atomic`."""

    def add(self, array: Any, index: Any, value: Any) -> Any:
        frame = sys._getframe(1)
        target, position = locate(array, index, frame)
        return target.add(position, target.convert(value), frame)

    def sub(self, array: Any, index: Any, value: Any) -> Any:
        frame = sys._getframe(1)
        target, position = locate(array, index, frame)
        return target.add(position, -target.convert(value), frame)

    def min(self, array: Any, index: Any, value: Any) -> Any:
        return _update("min", array, index, value, lambda old, new: new if new < old else old)

    def max(self, array: Any, index: Any, value: Any) -> Any:
        return _update("max", array, index, value, lambda old, new: new if new > old else old)

    def nanmin(self, array: Any, index: Any, value: Any) -> Any:
        return _update("nanmin", array, index, value, lambda old, new: new if new < old or old != old else old)

    def nanmax(self, array: Any, index: Any, value: Any) -> Any:
        return _update("nanmax", array, index, value, lambda old, new: new if new > old or old != old else old)

    def exch(self, array: Any, index: Any, value: Any) -> Any:
        frame = sys._getframe(1)
        target, position = locate(array, index, frame)
        new = target.convert(value)
        return target.update(position, lambda _: new, frame, new)

    def cas(self, array: Any, index: Any, compare: Any, value: Any) -> Any:
        return _swap(array, index, compare, value)

    def compare_and_swap(self, array: Any, compare: Any, value: Any) -> Any:
        """Numba's older `cas`, of the first element."""
        return _swap(array, 0, compare, value)

    def inc(self, array: Any, index: Any, limit: Any) -> Any:
        return _update(f"inc {limit}", array, index, limit, lambda old, top: old.wrapped(0) if old >= top else old + 1)

    def dec(self, array: Any, index: Any, limit: Any) -> Any:
        return _update(f"dec {limit}", array, index, limit, lambda old, top: top if old == 0 or old > top else old - 1)

    def and_(self, array: Any, index: Any, value: Any) -> Any:
        return _update("and", array, index, value, operator.and_)

    def or_(self, array: Any, index: Any, value: Any) -> Any:
        return _update("or", array, index, value, operator.or_)

    def xor(self, array: Any, index: Any, value: Any) -> Any:
        return _update("xor", array, index, value, operator.xor)


def locate(array: Any, index: Any, frame: FrameType) -> tuple[Any, int]:
    """The array and the flat position of `index`; a scratch element if the access is predicated off."""
    element: tuple[Any, int] = scratch_element(array) if is_predicated_off(frame) else array.locate(index)
    return element


def _swap(array: Any, index: Any, compare: Any, value: Any) -> Any:
    frame = sys._getframe(2)
    target, position = locate(array, index, frame)
    expected, new = target.convert(compare), target.convert(value)
    return target.update(position, lambda old: new if old == expected else old, frame, new)


def _update(operation: str, array: Any, index: Any, value: Any, change: Change) -> Any:
    frame = sys._getframe(2)
    target, position = locate(array, index, frame)
    converted = target.convert(value) if value.__class__ is not target.dtype else value
    return target.update(position, lambda old: change(old, converted), frame, operation)
