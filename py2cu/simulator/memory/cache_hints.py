"""`ldg(array, index)`, `ldcs` and `stcs` in a simulated kernel: the plain accesses, reported for the user's frame."""

from __future__ import annotations

import sys
from typing import Any

from py2cu.simulator.memory.atomics import locate
from py2cu.simulator.memory.predication import PredicatedRows
from py2cu.simulator.memory.rows import Rows


def load_hinted(array: Any, index: Any) -> Any:
    """The substitute for `ldg` and `ldcs`."""
    frame = sys._getframe(1)
    if isinstance(array, Rows | PredicatedRows):
        return array.get(index, frame)
    target, position = locate(array, index, frame)
    return target.load(position, frame)


def store_hinted(array: Any, index: Any, value: Any) -> None:
    """The substitute for `stcs`."""
    frame = sys._getframe(1)
    if isinstance(array, Rows | PredicatedRows):
        array.put(index, value, frame)
    else:
        target, position = locate(array, index, frame)
        target.store(position, value, frame)
