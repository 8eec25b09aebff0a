"""Divides float16 by constants without the branch of CUDA's division.

    x / 3        →        quotient(x, 3, 0.333333343)        float16(float32(x) * 0.333333343)

The inverse is a literal, since nvcc does not compute with the value of a `__half`. The product in float32 is within
2**-23 of the quotient, relative to it. All quotients of float16 are farther from the middle of two float16, where
rounding changes, except those that are such a middle. These are subnormal, and their divisor is an even number; if the
inverse is near enough, the product is the middle, too. `tests/test_half_quotients.py` compares all quotients.
"""

from __future__ import annotations

import math
import struct
from fractions import Fraction
from typing import Final

from py2cu import ir
from py2cu.diagnostics import Reporter
from py2cu.dtypes import F16, F32
from py2cu.ir.operators import OPERATORS
from py2cu.passes.lowering.required_helpers import with_helper
from py2cu.passes.lowering.widen_halves import ROUND_TO

HELPER: Final = "quotient"
_NEAR: Final = Fraction(1, 2**25)


def invert_divisors(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """The kernel with such quotients as calls of a helper; in a generic kernel the helper divides other dtypes."""
    return with_helper(kernel, HELPER, _quotient)


def _quotient(expr: ir.Expr) -> ir.Expr:
    match expr:
        case ir.Binary(op="/", left=left, right=right, type=ir.ElementType(dtype=dtype)) if F16 in dtype.admitted:
            inverse = inverse_of(_constant(right))
            if inverse is None:  # rule: half-inverse
                return expr
            factor = ir.Constant(inverse, right.span, ir.ElementType(F32), text=f"{inverse:.9g}")
            return ir.Call(HELPER, (left, right, factor), expr.span, expr.type)
        case _:
            return expr


def _constant(expr: ir.Expr) -> float:
    """The value of a constant float, before it is rounded to an element; NaN for other expressions."""
    match expr:
        case ir.Constant(value=int() | float() as value):
            return float(value)
        case ir.Convert(value=value):
            return _constant(value)
        case ir.Call(function=function, args=(value,)) if function == ROUND_TO:
            return _constant(value)
        case ir.Unary(op="-", operand=operand):
            return -_constant(operand)
        case ir.Call(function="math.sqrt", args=(value,), type=ir.PythonType()):
            square = _constant(value)
            return math.sqrt(square) if square >= 0 else math.nan
        case ir.Binary(op="+" | "-" | "*" | "/" as op, left=left, right=right, type=ir.PythonType()):
            a, b = _constant(left), _constant(right)
            return math.nan if op == "/" and b == 0 else float(OPERATORS[op].compute(a, b))
        case _:
            return math.nan


def inverse_of(divisor: float) -> float | None:
    """The float32 that makes products with the bits of all quotients by `divisor`, rounded to float16; None without."""
    if not abs(divisor) <= F16.high:
        return None
    half = _round("e", divisor)
    if half == 0 or half != _round("e", _round("f", divisor)):  # literals are rounded at once, others by way of float32
        return None
    inverse = _round("f", 1 / half)
    is_near = abs(Fraction(inverse) * Fraction(half) - 1) <= _NEAR
    return inverse if half % 2 or is_near else None  # rule: half-middle


def _round(layout: str, value: float) -> float:
    return float(struct.unpack(layout, struct.pack(layout, value))[0])
