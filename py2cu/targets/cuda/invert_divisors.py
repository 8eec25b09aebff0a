"""Divides float16 by constants without the branch of CUDA's division.

    x / 3        →        quotient(x, 3)        float16(float32(x) * (1 / float32(3)))

The float32 product of a float16 with an inverse is within 2**-23 of the quotient, relative to it. All quotients of
float16 have a greater distance from the middle of two float16, where rounding changes, except those that are such a
middle. They are subnormal, and their divisor is an even number; if the inverse is near enough, the product is the
middle, too. `tests/test_half_quotients.py` compares all quotients.
"""

from __future__ import annotations

import math
import struct
from fractions import Fraction
from typing import Final

from py2cu import ir
from py2cu.diagnostics import Reporter
from py2cu.dtypes import F16
from py2cu.ir.operators import OPERATORS
from py2cu.ir.rewrite import rebuild_block, with_fields

HELPER: Final = "quotient"
_NEAR: Final = Fraction(1, 2**25)


def invert_divisors(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """The kernel with such quotients as calls of a helper; in a generic kernel the helper divides other dtypes."""
    body = rebuild_block(kernel.body, _quotient)
    if body == kernel.body:
        return kernel
    return with_fields(kernel, body=body, helpers=tuple(dict.fromkeys((*kernel.helpers, HELPER))))


def _quotient(expr: ir.Expr) -> ir.Expr:
    match expr:
        case ir.Binary(op="/", left=left, right=right, type=ir.ElementType(dtype=dtype)) if F16 in dtype.admitted:
            is_product = is_exact(_constant(right))  # rule: half-inverse
            return ir.Call(HELPER, (left, right), expr.span, expr.type) if is_product else expr
        case _:
            return expr


def _constant(expr: ir.Expr) -> float:
    """The value of a constant float, before it is rounded to an element; NaN for other expressions."""
    match expr:
        case ir.Constant(value=int() | float() as value):
            return float(value)
        case ir.Convert(value=value) | ir.Call(function="round_to", args=(value,)):
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


def is_exact(divisor: float) -> bool:
    """Whether a quotient by `divisor`, rounded to float16, has the bits of such a product, whatever is divided."""
    if not abs(divisor) <= F16.high:
        return False
    # Literals are rounded to float16 at once, other numbers by way of float32.
    rounded = {_round("e", divisor), _round("e", _round("f", divisor))}
    return all(number and (number % 2 or _is_near(number)) for number in rounded)  # rule: half-middle


def _is_near(divisor: float) -> bool:
    """Whether products with the inverse are exact where quotients by an even number are."""
    return abs(Fraction(_round("f", 1 / divisor)) * Fraction(divisor) - 1) <= _NEAR


def _round(layout: str, value: float) -> float:
    return float(struct.unpack(layout, struct.pack(layout, value))[0])
