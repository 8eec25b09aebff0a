"""How numbers meet: torch's promotion between elements, Python numbers weak; and what a type makes of a constant."""

from __future__ import annotations

import struct

from py2cu.dtypes import DType, Kind, promote, promote_weak
from py2cu.ir.types import PY_BOOL, PY_FLOAT, PY_INT, ElementType, PythonType, ScalarType, kind_of


def join(a: ScalarType, b: ScalarType) -> ScalarType:
    """The type in which two numbers meet: torch's promotion, Python numbers weak."""
    match a, b:
        case ElementType(dtype=left), ElementType(dtype=right):
            return ElementType(promote(left, right))
        case (ElementType(dtype=dtype), PythonType(kind=kind)) | (PythonType(kind=kind), ElementType(dtype=dtype)):
            return ElementType(promote_weak(dtype, kind))
        case PythonType(kind=left), PythonType(kind=right):
            return PythonType(max(left, right))
        case _:
            raise AssertionError((a, b))


def represents(dtype: DType, value: bool | int | float) -> bool:
    """True where `dtype` holds `value` exactly."""
    if dtype.kind is Kind.FLOAT:
        return as_float(dtype, value) == value or value != value
    if dtype.kind is Kind.BOOL:
        return value in (0, 1)
    return value == int(value) and dtype.low <= value <= dtype.high if abs(value) != float("inf") else False


def as_float(dtype: DType, value: bool | int | float) -> float:
    """`value` rounded to `dtype`."""
    try:
        return struct.unpack("f", struct.pack("f", value))[0] if dtype.bits == 32 else float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def rounded(type_: ScalarType, value: bool | int | float) -> bool | int | float:
    """`value`, of the kind of `type_`, as a cast to `type_` leaves it."""
    match type_:
        case ElementType(dtype=dtype) if dtype.kind is Kind.FLOAT:
            return as_float(dtype, value)
        case _:
            return value


def constant_type(value: bool | int | float) -> PythonType:
    """The Python type of a literal."""
    return PY_BOOL if isinstance(value, bool) else PY_INT if isinstance(value, int) else PY_FLOAT


def constant_as(value: bool | int | float, type_: ScalarType) -> bool | int | float:
    """A literal as a value of `type_`'s kind."""
    match kind_of(type_):
        case Kind.BOOL:
            return bool(value)
        case Kind.INT:
            return int(value) if value == value and abs(value) != float("inf") else 0
        case Kind.FLOAT:
            return float(value)
