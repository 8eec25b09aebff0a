"""`atomic.add(array, index, value)` and its kin in a simulated kernel: exact, and they return the old element.

Threads run one at a time, so nothing comes between; what an array's `update` tells its watcher is that it was atomic.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from typing import Any

Change = Callable[[Any, Any], Any]  # the old element and the value, both of the array's dtype: the new element


class SimulatedAtomics:
    """What stands in for `py2cu.atomic` and `numba.cuda.atomic`."""

    def add(self, array: Any, index: Any, value: Any) -> Any:
        at, position = array.locate(index)
        return at.add(position, at.convert(value), sys._getframe(1))

    def sub(self, array: Any, index: Any, value: Any) -> Any:
        at, position = array.locate(index)
        return at.add(position, -at.convert(value), sys._getframe(1))

    def min(self, array: Any, index: Any, value: Any) -> Any:
        return _update(array, index, value, lambda old, new: new if new < old else old)

    def max(self, array: Any, index: Any, value: Any) -> Any:
        return _update(array, index, value, lambda old, new: new if new > old else old)

    def exch(self, array: Any, index: Any, value: Any) -> Any:
        return _update(array, index, value, lambda _, new: new)

    def cas(self, array: Any, index: Any, compare: Any, value: Any) -> Any:
        return _swap(array, index, compare, value)

    def compare_and_swap(self, array: Any, compare: Any, value: Any) -> Any:
        """Numba's older `cas`, of the first element."""
        return _swap(array, 0, compare, value)

    def inc(self, array: Any, index: Any, limit: Any) -> Any:
        return _update(array, index, limit, lambda old, top: old.make(0) if old >= top else old + 1)

    def dec(self, array: Any, index: Any, limit: Any) -> Any:
        return _update(array, index, limit, lambda old, top: top if old == 0 or old > top else old - 1)

    def and_(self, array: Any, index: Any, value: Any) -> Any:
        return _update(array, index, value, operator.and_)

    def or_(self, array: Any, index: Any, value: Any) -> Any:
        return _update(array, index, value, operator.or_)

    def xor(self, array: Any, index: Any, value: Any) -> Any:
        return _update(array, index, value, operator.xor)


def _swap(array: Any, index: Any, compare: Any, value: Any) -> Any:
    at, position = array.locate(index)
    expected, new = at.convert(compare), at.convert(value)
    return at.update(position, lambda old: new if old == expected else old, sys._getframe(2))


def _update(array: Any, index: Any, value: Any, change: Change) -> Any:
    at, position = array.locate(index)
    converted = at.convert(value) if value.__class__ is not at.dtype else value
    return at.update(position, lambda old: change(old, converted), sys._getframe(2))
