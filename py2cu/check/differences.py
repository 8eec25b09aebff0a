"""Compare an array of the compiled kernel with that of its Python, element by element.

In: the array before the launch, after the Python and after the compiled kernel, and the writes of the Python. Out:
`Difference`s, the first of each kind. Elements that Python wrote must agree within the error that the simulator tracked
plus `slack`, a few ulps; elements that it did not write must keep their bits.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

import torch

from py2cu.check.redzones import bit_patterns, poison_pattern
from py2cu.dtypes import F64, DType, Kind
from py2cu.simulator import Write
from py2cu.simulator.values.integer_elements import truncation

SLACK_ULPS: Final = 8  # rounding of Python floats and conversions that the tracked error leaves out  # rule: slack-ulps


class Fault(enum.StrEnum):
    """The ways in which a compiled kernel can be wrong."""

    VALUE = "wrong value"
    UNWRITTEN = "unwritten element"
    UNEXPECTED_WRITE = "element that Python does not write"
    INPUT = "changed input"
    OUTSIDE = "write outside the array"
    RAISED = "compiled code failed"
    GRADIENT = "wrong gradient"
    DATA_RACE_OR_BARRIER = "data race or barrier error"
    SAME_VALUE = "race that stores the value that is already there"


@dataclass(frozen=True, slots=True)
class Difference:
    """One element that differs: the flat position, both values, and the write of the Python, if any."""

    fault: Fault
    position: int
    expected: complex
    actual: complex
    write: Write | None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One array: its element type, and its values before, after the Python and after the compiled kernel."""

    dtype: DType
    before: torch.Tensor
    expected: torch.Tensor
    actual: torch.Tensor


def tolerance(dtype: DType, value: float, error: float = 0.0, slack: int = SLACK_ULPS) -> float:
    """How far an acceptable result may lie from `value`: the tracked error, plus `slack` ulps and subnormal steps."""
    return error + slack * (dtype.epsilon * abs(value) + _smallest(dtype))  # rule: float32-tolerance


@cache
def _smallest(dtype: DType) -> float:
    """The smallest positive float of `dtype`, a subnormal; 0 for other kinds."""
    if dtype.kind is not Kind.FLOAT:
        return 0.0
    return float(torch.finfo(getattr(torch, dtype.name)).smallest_normal) * dtype.epsilon


def agree(dtype: DType, expected: complex, actual: complex, write: Write, slack: int = SLACK_ULPS) -> bool:
    """Whether `actual` is acceptable for `expected`, which `write` stored; of complex numbers, each part must be."""
    if isinstance(expected, complex) or isinstance(actual, complex):
        pairs = ((expected.real, actual.real), (expected.imag, actual.imag))
        return all(agree(dtype.part, *pair, write, slack) for pair in pairs)
    if write.error == math.inf or expected == actual:
        return True
    if dtype.kind is Kind.FLOAT:
        reach = tolerance(dtype, expected, write.error, slack)
        if math.isinf(actual) and math.isfinite(expected):  # one ulp more would overflow
            return math.copysign(1.0, actual) == math.copysign(1.0, expected) and abs(expected) + reach > dtype.high
        if not (math.isfinite(expected) and math.isfinite(actual)):
            return math.isnan(expected) and math.isnan(actual)
        return abs(expected - actual) <= reach
    if write.real is None:
        return abs(expected - actual) <= write.error  # of bits: see `uncertain_bits`  # rule: bits-agree
    return _truncates_to(dtype, write.real, int(actual), write.error, slack)


def _truncates_to(dtype: DType, real: float, actual: int, error: float, slack: int) -> bool:
    """Whether a float near `real` truncates to `actual`: a multiply-add may carry it across an integer."""
    reach = tolerance(getattr(real, "dtype", F64), float(real), error, slack)
    truncate = truncation(dtype)
    low, high = (truncate(float(real) + shift)[0] for shift in (-reach, reach))
    return low <= actual <= high or actual in (low, high)


def differences(
    snapshot: Snapshot, writes: Mapping[int, Write], *, poisoned: bool, slack: int = SLACK_ULPS, tainted: bool = False
) -> list[Difference]:
    """The first difference of each kind, by position.

    `poisoned`: the array held poison before. `tainted`: which elements are written depends on unspecified values, so
    that unexpected writes are no difference.
    """
    first: dict[Fault, Difference] = {}
    for difference in _scan(snapshot, writes, poisoned, slack):
        if not (tainted and difference.fault is Fault.UNEXPECTED_WRITE):
            first.setdefault(difference.fault, difference)
    return list(first.values())


def _scan(snapshot: Snapshot, writes: Mapping[int, Write], poisoned: bool, slack: int) -> Iterator[Difference]:
    before, after_python, after_kernel = (
        bit_patterns(t) for t in (snapshot.before, snapshot.expected, snapshot.actual)
    )
    expected, actual = snapshot.expected.flatten().tolist(), snapshot.actual.flatten().tolist()
    untouched = poison_pattern(snapshot.actual.dtype) if poisoned else None
    for position, value in enumerate(actual):
        write = writes.get(position)
        fault: Fault | None = None
        if write is None:
            fault = Fault.UNEXPECTED_WRITE if after_kernel[position] != before[position] else None
        elif after_kernel[position] == untouched and after_python[position] != untouched and write.error < math.inf:
            fault = Fault.UNWRITTEN
        elif not agree(snapshot.dtype, expected[position], value, write, slack):
            fault = Fault.VALUE
        if fault is not None:
            yield Difference(fault, position, expected[position], value, write)


def undetermined_elements(writes: Mapping[int, Write]) -> int:
    """The number of written elements whose value is not determined, so that nothing can be compared."""
    return sum(write.error == math.inf for write in writes.values())
