"""Rounding of Python's floats and integers to a narrower float, to nearest even.

In: a dtype's name in `ROUNDING`, or the dtype, of which `cell` makes a place that rounds.
"""

from __future__ import annotations

import array
import math
import struct
from collections.abc import Callable
from typing import Any, Final

from py2cu.dtypes import DType

_EXACT: Final = 1 << 53  # every integer up to it is a double

_single: Final = array.array("f", [0.0])
_HALF: Final = struct.Struct("e")
_WORD: Final = struct.Struct("f")
_BITS: Final = struct.Struct("I")


def round_single(value: float) -> float:
    """`value` as the nearest float32; too large is infinite."""
    _single[0] = value
    return _single[0]


def round_half(value: float) -> float:
    """`value` as a float16, by way of float32 as torch goes."""
    single = round_single(value)
    try:
        return _HALF.unpack(_HALF.pack(single))[0]  # type: ignore[no-any-return]
    except OverflowError:
        return math.copysign(math.inf, single)


def round_brain(value: float) -> float:
    """`value` as a bfloat16, by way of float32: its upper half, to nearest even."""
    if math.isnan(value):
        return value
    (bits,) = _BITS.unpack(_WORD.pack(round_single(value)))
    kept = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000
    return _WORD.unpack(_BITS.pack(kept))[0]  # type: ignore[no-any-return]


ROUNDING: Final[dict[str, Callable[[float], float]]] = {
    "float16": round_half,
    "bfloat16": round_brain,
    "float32": round_single,
    "float64": float,
}


class _Cell:
    """One place of a dtype that `array` does not know."""

    def __init__(self, narrow: Callable[[float], float]) -> None:
        self._narrow, self._value = narrow, 0.0

    def __setitem__(self, _: int, value: float) -> None:
        self._value = self._narrow(value)

    def __getitem__(self, _: int) -> float:
        return self._value


def cell(dtype: DType) -> Any:
    """What rounds at `dtype`: it gives back at 0 what was put there, at a fraction of the cost of a call."""
    code = {"float32": "f", "float64": "d"}.get(dtype.name)
    return _Cell(ROUNDING[dtype.name]) if code is None else array.array(code, [0.0])


def from_integer(whole: int) -> float:
    """An integer as a double, whose rounding to a narrower float is that of the integer itself.

    Beyond 53 bits the last one kept is set where any is dropped ("round to odd"), or two roundings would be made.
    """
    if -_EXACT <= whole <= _EXACT:
        return float(whole)
    drop = abs(whole).bit_length() - 53
    kept = abs(whole) >> drop
    return math.copysign(as_float((kept | (kept << drop != abs(whole))) << drop), whole)


def as_float(whole: int) -> float:
    try:
        return float(whole)
    except OverflowError:  # an integer beyond double
        return math.inf if whole > 0 else -math.inf
