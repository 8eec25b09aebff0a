"""The bits of an element as an element of another dtype: `x[i].view(torch.int32)`.

In: an element, and the class of another dtype of as many bits. Out: an element of that class. The bits of a float with
an error, and of NaN, whose sign and payload Python does not keep, taint the thread.
"""

from __future__ import annotations

import math
import struct
from typing import Any, Final

from py2cu.dtypes import BF16, F32, DType
from py2cu.simulator.state import THREAD
from py2cu.simulator.values.float_elements import FloatElement
from py2cu.simulator.values.integer_elements import IntElement

_FLOATS: Final = {16: "e", 32: "f", 64: "d"}
_WORDS: Final = {16: "H", 32: "I", 64: "Q"}
_DROPPED: Final = F32.bits - BF16.bits  # the bits that a float32 has below those of a bfloat16


def view(element: Any, dtype: Any) -> Any:
    """`element.view(dtype)`; in a simulated kernel, a dtype is an element class.

    Raises:
        TypeError: `dtype` is no dtype of as many bits.
    """
    if not isinstance(element, FloatElement | IntElement) or element.dtype.bits != _width(dtype):
        raise TypeError(f"the bits of {element!r} are no {getattr(dtype, 'dtype', dtype)}")
    bits = _bits_of_float(element) if isinstance(element, FloatElement) else int(element.value)
    return dtype.from_stored(_float(bits, dtype.dtype)) if issubclass(dtype, FloatElement) else dtype.wrapped(bits)


def _width(cls: Any) -> int:
    """The bits of an element class of integers or floats; 0 for anything else."""
    return cls.dtype.bits if isinstance(cls, type) and issubclass(cls, FloatElement | IntElement) else 0


def _bits_of_float(element: FloatElement) -> int:
    if element.error or math.isnan(element.value):  # rule: bits-of-nan
        THREAD.tainted = True
    width, dropped = (32, _DROPPED) if element.dtype is BF16 else (element.dtype.bits, 0)
    bits: int = struct.unpack(_WORDS[width], struct.pack(_FLOATS[width], element.value))[0]
    return bits >> dropped


def _float(bits: int, dtype: DType) -> float:
    width, dropped = (32, _DROPPED) if dtype is BF16 else (dtype.bits, 0)
    word = (bits & (1 << dtype.bits) - 1) << dropped
    value: float = struct.unpack(_FLOATS[width], struct.pack(_WORDS[width], word))[0]
    return value
