"""The bits of an element as an element of another dtype: `x[i].view(torch.int32)`.

In: an element, and the class of another dtype of as many bits. Out: an element of that class. The bits of a float with
an error have one, too, which is infinite for the bits of NaN: Python does not keep its sign and payload.
"""

from __future__ import annotations

import math
import struct
from typing import Any, Final

from py2cu.dtypes import BF16, F32, DType
from py2cu.simulator.values.float_elements import FloatElement
from py2cu.simulator.values.integer_elements import IntElement
from py2cu.simulator.values.uncertain_bits import cast, raw_value

_FLOATS: Final = {16: "e", 32: "f", 64: "d"}
_WORDS: Final = {16: "H", 32: "I", 64: "Q"}
_MARGIN: Final = 8  # bits, of a float with an error: the error leaves out conversions of Python floats
_DROPPED: Final = F32.bits - BF16.bits  # the bits that a float32 has below those of a bfloat16


def view(element: Any, dtype: Any) -> Any:
    """`element.view(dtype)`; in a simulated kernel, a dtype is an element class.

    Raises:
        TypeError: `dtype` is no dtype of as many bits.
    """
    if not isinstance(element, FloatElement | IntElement) or element.dtype.bits != _width(dtype):
        raise TypeError(f"the bits of {element!r} are no {getattr(dtype, 'dtype', dtype)}")
    bits, error = _bits_of_float(element) if isinstance(element, FloatElement) else (raw_value(element), element.error)
    if issubclass(dtype, FloatElement):
        value = _float(bits, dtype.dtype)
        return dtype.with_error(value, _error_of_float(bits, error, value, dtype.dtype) if error else 0.0)
    return (
        cast(element, dtype) if isinstance(element, IntElement) else dtype.uncertain(dtype.wrapped(bits).value, error)
    )


def _width(cls: Any) -> int:
    """The bits of an element class of integers or floats; 0 for anything else."""
    return cls.dtype.bits if isinstance(cls, type) and issubclass(cls, FloatElement | IntElement) else 0


def _bits_of_float(element: FloatElement) -> tuple[int, float]:
    """The bits of a float, and how far those of the compiled kernel may be from them."""
    value, bits = element.value, _bits(element.value, element.dtype)
    if math.isnan(value) or not element.error < math.inf:  # rule: bits-of-nan
        return bits, math.inf
    if not element.error:
        return bits, 0
    extremes = (value - element.error, value + element.error)
    if any(math.copysign(1, each) != math.copysign(1, value) or abs(each) > element.dtype.high for each in extremes):
        return bits, math.inf
    return bits, _MARGIN + max(abs(_bits(each, element.dtype) - bits) for each in extremes)


def _error_of_float(bits: int, error: float, value: float, dtype: DType) -> float:
    """How far the float with these bits may be from `value`; infinite where the sign may differ, or a NaN is near."""
    half = 1 << dtype.bits - 1
    low, high = bits % (2 * half) - error, bits % (2 * half) + error
    if error == math.inf or not (0 <= low <= high < half or half <= low <= high < 2 * half):
        return math.inf
    furthest = max(abs(_float(int(each), dtype) - value) for each in (low, high))
    return furthest if math.isfinite(furthest) else math.inf


def _bits(value: float, dtype: DType) -> int:
    width, dropped = (32, _DROPPED) if dtype is BF16 else (dtype.bits, 0)
    bits: int = struct.unpack(_WORDS[width], struct.pack(_FLOATS[width], value))[0]
    return bits >> dropped


def _float(bits: int, dtype: DType) -> float:
    width, dropped = (32, _DROPPED) if dtype is BF16 else (dtype.bits, 0)
    word = (bits & (1 << dtype.bits) - 1) << dropped
    value: float = struct.unpack(_FLOATS[width], struct.pack(_WORDS[width], word))[0]
    return value
