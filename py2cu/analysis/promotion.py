"""Promotion: the common type of two numbers, as in torch, with Python numbers weak; the rounding of constants."""

from __future__ import annotations

import math
import struct

from py2cu import ir
from py2cu.dtypes import BF16, F16, F64, DType, Kind, promote, promote_weak


def join(a: ir.ScalarType, b: ir.ScalarType) -> ir.ScalarType | None:
    """The common type of two numbers: torch's promotion, Python numbers weak; None where there is none."""
    match a, b:
        case ir.ElementType(dtype=left), ir.ElementType(dtype=right):
            common = promote(left, right)  # rule: promoted-pair
            return None if common is None else ir.ElementType(common)
        case (ir.ElementType(dtype=dtype), ir.PythonType(kind=kind)) | (
            ir.PythonType(kind=kind),
            ir.ElementType(dtype=dtype),
        ):
            weak = promote_weak(dtype, kind)  # rule: weak-type
            return None if weak is None else ir.ElementType(weak)
        case ir.PythonType(kind=left), ir.PythonType(kind=right):
            return ir.PythonType(max(left, right))
        case _:
            raise AssertionError((a, b))


def represents(dtype: DType, value: bool | int | float) -> bool:
    """True where `dtype` holds `value` exactly."""
    if dtype.kind >= Kind.FLOAT:
        return as_float(dtype.part, value) == value or value != value
    if dtype.kind is Kind.BOOL:
        return value in (0, 1)
    return math.isfinite(value) and value == int(value) and dtype.low <= value <= dtype.high


def as_float(dtype: DType, value: bool | int | float) -> float:
    """`value` rounded to `dtype`; to a half type by way of float32, as torch does."""
    if dtype.plain is F64:
        return float(value)
    try:
        single: float = struct.unpack("f", struct.pack("f", value))[0]
        return _as_half(dtype, single) if dtype.is_half else single
    except OverflowError:
        return math.copysign(math.inf, value)


def rounded_directly(dtype: DType, value: bool | int | float) -> float:
    """`value` rounded to a half type in one step, as C++ converts a double."""
    if dtype.is_half and math.isfinite(value):
        exponent = math.frexp(value)[1]
        smallest = {F16: -24, BF16: -133}[dtype.plain]  # of the last bit of a subnormal
        unit = math.ldexp(1.0, max(exponent - dtype.precision, smallest))
        return round(value / unit) * unit
    return as_float(dtype, value)


def _as_half(dtype: DType, single: float) -> float:
    if dtype.plain is F16:
        rounded: float = struct.unpack("e", struct.pack("e", single))[0]
        return rounded
    if not math.isfinite(single):
        return single
    (bits,) = struct.unpack("I", struct.pack("f", single))
    bits += 0x7FFF + (bits >> 16 & 1)  # to nearest, ties to even
    return float(struct.unpack("f", struct.pack("I", bits & 0xFFFF0000))[0])


def rounded(type_: ir.ScalarType, value: bool | int | float) -> bool | int | float:
    """`value` after a cast to `type_`, which has the same kind."""
    match type_:
        case ir.ElementType(dtype=dtype) if dtype.kind is Kind.FLOAT:
            return as_float(dtype, value)
        case _:
            return value


def constant_type(value: bool | int | float) -> ir.PythonType:
    """The Python type of a literal."""
    return ir.PY_BOOL if isinstance(value, bool) else ir.PY_INT if isinstance(value, int) else ir.PY_FLOAT


def constant_as(value: bool | int | float, type_: ir.ScalarType) -> bool | int | float:
    """A literal converted to the kind of `type_`: bool, int or float."""
    match ir.kind_of(type_):
        case Kind.BOOL:
            return bool(value)
        case Kind.INT:
            return int(value) if value == value and abs(value) != float("inf") else 0
        case Kind.FLOAT | Kind.COMPLEX:
            return float(value)
