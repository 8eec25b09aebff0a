"""Records of an array's stores (`Write`) and atomic additions (`Sum`), and its indices that are out of range."""

from __future__ import annotations

from typing import NamedTuple

from py2cu.simulator.findings import ThreadId
from py2cu.simulator.state import THREAD


class Write(NamedTuple):
    """The last store to one element. `real` is the float that was stored, if the array holds integers."""

    place: ThreadId
    line: int
    error: float
    real: float | None = None


class Sum(NamedTuple):
    """The terms that atomics have added to a float element.

    How many there are, the sum of the magnitudes of the finite terms, the sum of their errors, and whether one term is
    certainly NaN: then the sum is NaN in any order.
    """

    terms: int
    magnitude: float
    error: float
    is_nan: bool


class OutOfRange(IndexError):
    """An index past the extent of an array's axis."""

    def __init__(self, array: str, axis: int, index: int, extent: int) -> None:
        self.array, self.axis, self.index, self.extent = array, axis, index, extent
        super().__init__(f"index {index} of `{array}` is out of range: axis {axis} has extent {extent}")


def count_from_end(array: str, axis: int, index: int, extent: int) -> int:
    """The place of an index that is not in `range(extent)`. A negative index counts from the end, and is a finding
    unless it is a constant.

    Raises:
        OutOfRange: there is no such place.
    """
    if not -extent <= index < 0:
        raise OutOfRange(array, axis, index, extent)
    if not THREAD.is_constant_negative_index(axis, index):
        # rule: negative-report
        THREAD.report(f"a negative index of `{array}`", f"{index} on axis {axis}", is_open=True)
    return index + extent
