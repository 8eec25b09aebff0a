"""Rounding to a narrower float, to nearest even.

In: a dtype's name or the dtype. Out: `ROUNDING`, a function of floats for each dtype; `cell`, a buffer that rounds
stored values; `from_integer`, which converts integers without double rounding.
"""

from __future__ import annotations

import array
import math
import struct
from collections.abc import Callable
from typing import Any, Final

from py2cu.dtypes import DType

_EXACT: Final = 1 << 53  # integers up to it are doubles

_single: Final = array.array("f", [0.0])
_HALF: Final = struct.Struct("e")
_WORD: Final = struct.Struct("f")
_BITS: Final = struct.Struct("I")


def round_single(value: float) -> float:
    """`value` as the nearest float32; infinite if it is too large."""
    _single[0] = value
    return _single[0]


def round_half(value: float) -> float:
    """`value` as a float16, rounded to float32 first, as in torch."""
    single = round_single(value)
    try:
        return _HALF.unpack(_HALF.pack(single))[0]  # type: ignore[no-any-return]
    except OverflowError:
        return math.copysign(math.inf, single)


def round_brain(value: float) -> float:
    """`value` as a bfloat16, rounded to float32 first: the upper half of its bits, to nearest even."""
    if math.isnan(value):
        return value
    (bits,) = _BITS.unpack(_WORD.pack(round_single(value)))
    high = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000
    return _WORD.unpack(_BITS.pack(high))[0]  # type: ignore[no-any-return]


ROUNDING: Final[dict[str, Callable[[float], float]]] = {
    "float16": round_half,
    "bfloat16": round_brain,
    "float32": round_single,
    "float64": float,
}


class _Cell:
    """A buffer of one element, for a dtype that `array` lacks."""

    def __init__(self, narrow: Callable[[float], float]) -> None:
        self._narrow, self._value = narrow, 0.0

    def __setitem__(self, _: int, value: float) -> None:
        self._value = self._narrow(value)

    def __getitem__(self, _: int) -> float:
        return self._value


def cell(dtype: DType) -> Any:
    """A buffer that rounds at `dtype` what is stored at 0; faster than a call."""
    code = {"float32": "f", "float64": "d"}.get(dtype.name)
    return _Cell(ROUNDING[dtype.name]) if code is None else array.array(code, [0.0])


def from_integer(integer: int) -> float:
    """An integer as a double that rounds to a narrower float as the integer itself would.

    Beyond 53 bits, the last kept bit is set if any dropped bit is ("round to odd"): it avoids double rounding.
    """
    if -_EXACT <= integer <= _EXACT:
        return float(integer)
    drop = abs(integer).bit_length() - 53
    high = abs(integer) >> drop
    return math.copysign(as_float((high | (high << drop != abs(integer))) << drop), integer)


def as_float(integer: int) -> float:
    try:
        return float(integer)
    except OverflowError:  # an integer beyond double
        return math.inf if integer > 0 else -math.inf
