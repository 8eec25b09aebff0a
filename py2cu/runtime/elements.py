"""Typed numbers: what a kernel's array elements are while CPython runs it (contract, section 5).

In: a dtype and a number. Out: `Float32(0.1)`, `UInt8(255)`: numbers whose operators promote as torch does, wrap or
round at their dtype, and take Python numbers as weak. Comparisons give Python bools.

A float element also carries `error`, a bound on how far a faithful translation may be from it. Where the Python could
go either way within that error (a branch, a truncation), `THREAD.doubt` is raised. Refused: one tolerance per dtype. It
either hides bugs or reports cancellation as one; a running bound does neither.
"""

from __future__ import annotations

from typing import Any, Final

from py2cu.dtypes import DEFAULT_FLOAT, DTYPES, F64, DType, Kind, promote, promote_weak
from py2cu.runtime.floats import FloatElement, define_float, integral, measure, power_ieee
from py2cu.runtime.integers import IntElement, define_int, truncate, wrapper
from py2cu.runtime.meeting import MEETING, THREAD, ElementRangeError, both_ways, common_class

__all__ = [
    "THREAD",
    "Bool",
    "Double",
    "Element",
    "ElementRangeError",
    "Float32",
    "Float64",
    "FloatElement",
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "IntElement",
    "UInt8",
    "common_class",
    "element_class",
    "integral",
    "measure",
    "power_ieee",
    "truncate",
    "wrapper",
]  # fmt: skip

Element = FloatElement | IntElement


def _define(dtype: DType) -> type[Element]:
    define = define_float if dtype.kind is Kind.FLOAT else define_int
    return define(dtype, dtype.jaxtyping)


_CLASSES: Final[dict[DType, type[Element]]] = {dtype: _define(dtype) for dtype in DTYPES}
(
    Bool, UInt8, Int8, Int16, Int32, Int64, UInt16, UInt32, UInt64, Float16, BFloat16, Float32, Float64,
) = (_CLASSES[dtype] for dtype in DTYPES)  # fmt: skip
Double: Final = define_float(F64, "Double", weak=True)
"""A Python float whose error is known: `float(x)` and `float` parameters. It raises where Python does."""

# A Python bool is a comparison's result, which counts as an integer.
_WEAK: Final[dict[type, Kind]] = {bool: Kind.INT, int: Kind.INT, float: Kind.FLOAT, Double: Kind.FLOAT}


def element_class(dtype: DType) -> type[Element]:
    """The class of elements of `dtype`."""
    return _CLASSES[dtype]


def _true_divide(a: IntElement, b: IntElement) -> Any:
    """`/` of integers, in the default float type."""
    if not b:
        raise ZeroDivisionError("division by zero")
    single = _CLASSES[DEFAULT_FLOAT]
    return single.of(a) / single.of(b)


def _fill_meetings() -> None:
    for a, own in _CLASSES.items():
        for b, other in _CLASSES.items():
            if (met := promote(a, b)) is not None:
                MEETING[own, other] = _CLASSES[met]
        for weak, kind in _WEAK.items():
            MEETING[own, weak] = MEETING[weak, own] = _CLASSES[promote_weak(a, kind)]
        if issubclass(own, IntElement):
            both_ways(own, "truediv", _true_divide)
    for weak in _WEAK:
        MEETING[Double, weak] = MEETING[weak, Double] = Double


_fill_meetings()
