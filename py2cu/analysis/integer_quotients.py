"""Finds rounded float quotients that are quotients of integers.

    math.ceil(k / tw)       ceil_div(k, tw)
    math.ceil(i / 4)        (i + 3) // 4
    math.floor(i / tw)      i // tw
    int(i / 4)              i // 4                      where neither can be negative

Only where the dividend is an index or an extent: no array has 2^53 elements, and below that bound Python's double
rounds like the exact quotient.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from py2cu import ir
from py2cu.analysis.ranges import INT_MAX, Ranges

_ROUNDED: Final = ("math.ceil", "math.floor", "math.trunc")
_MANY: Final = 2**10  # times a number of elements is still far below 2^53


def integer_quotient(expr: ir.Expr, ranges: Ranges) -> ir.Expr | None:
    """`expr`, a rounded float quotient, computed in integers; None if `expr` is anything else."""
    quotient = rounded_quotient(expr)
    if quotient is None:
        return None
    a, b = ir.unconverted(quotient.left), _divisor(quotient.right)
    if not (a.type == b.type == ir.PY_INT and ranges.counts_elements(a, _MANY)):  # rule: ceil-of-counts
        return None
    floored = ir.Binary("//", a, b, expr.span, ir.PY_INT)
    match expr, b:
        case ir.Call(function="math.floor"), _:
            return floored
        case ir.Call(function="math.ceil"), ir.Constant(value=int(by)) if 0 < by <= INT_MAX:  # rule: ceil-in-int
            up = ir.Binary("+", a, ir.Constant(by - 1, b.span, ir.PY_INT), a.span, ir.PY_INT)  # rule: ceil-by-constant
            return ir.Binary("//", up, b, expr.span, ir.PY_INT)
        case ir.Call(function="math.ceil"), _:
            return ir.Call("ceil_div", (a, b), expr.span, ir.PY_INT)
        case _:
            return floored if ranges.of(a).is_natural and ranges.of(b).is_natural else None


def _divisor(expr: ir.Expr) -> ir.Expr:
    """The divisor, as an integer if it is one: typing has converted the 4 of `i / 4` to a double."""
    match expr:
        case ir.Constant(value=int() | float() as value) if value == value // 1 and abs(value) < 2**63:
            return replace(expr, value=int(value), type=ir.PY_INT, text="")
        case _:
            return ir.unconverted(expr)


def rounded_quotient(expr: ir.Expr) -> ir.Binary[ir.Expr] | None:
    """The quotient that `expr` rounds; None where it does not."""
    match expr:
        case ir.Call(function=function, args=(ir.Binary(op="/", type=type_) as quotient,)) if function in _ROUNDED:
            return quotient if type_ == ir.PY_FLOAT else None
        case ir.Convert(value=ir.Binary(op="/", type=type_) as quotient, type=ir.PY_INT, explicit=True):
            return quotient if type_ == ir.PY_FLOAT else None
        case _:
            return None
