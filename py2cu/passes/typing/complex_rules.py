"""Refuses operations that Python does not define for complex numbers: ordering, rounding, conversion to real ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from py2cu import ir
from py2cu.builtins import ROWS, Rule
from py2cu.ir.complex_numbers import CONJUGATE

HIGHEST_POWER: Final = 64
PARTS: Final = "take a part, `.real` or `.imag`, or the magnitude, `abs(…)`"
_COMPLEX_OPERATORS: Final = frozenset(["+", "-", "*", "/", "==", "!="])
_COMPLEX_RULES: Final = (
    Rule.ANALYTIC, Rule.COMPLEX, Rule.PART, Rule.MAGNITUDE, Rule.ARGUMENT, Rule.RESULT, Rule.OPMATH
)  # fmt: skip


def refusal(
    expr: ir.Binary[ir.Expr] | ir.Compare | ir.Unary | ir.Call, operands: Sequence[ir.Expr]
) -> tuple[str, str] | None:
    """Message and hint if `expr` is not defined for its complex operands; None if it is, or if none is complex."""
    complex_type = next((operand.type for operand in operands if ir.is_complex(operand.type)), None)
    return None if complex_type is None else _refusal(expr, operands, complex_type)


def _refusal(
    expr: ir.Binary[ir.Expr] | ir.Compare | ir.Unary | ir.Call, operands: Sequence[ir.Expr], type_: ir.Type
) -> tuple[str, str] | None:
    match expr:
        case ir.Binary(op="**") if not _is_power(operands[1]):
            message = f"{type_} has only constant powers from 1 to {HIGHEST_POWER}"
            return message, "for any other power: `cmath.exp(b * cmath.log(a))`"
        case ir.Binary(op="**") | ir.Unary(op="-" | "+" | "not"):
            return None
        case ir.Binary(op=op) | ir.Compare(op=op) if op in _COMPLEX_OPERATORS:
            return None
        case ir.Compare():
            return f"{type_} has no order", "compare the magnitudes, `abs(…)`, or a part, `.real`"
        case ir.Binary(op=op) | ir.Unary(op=op):
            return f"`{op}` is not defined for {type_}", PARTS
        case ir.Call(function=name):
            return _call_refusal(name, type_)


def _call_refusal(name: str, type_: ir.Type) -> tuple[str, str] | None:
    row = ROWS[name]
    if row.rule in _COMPLEX_RULES or name == CONJUGATE:
        return None
    short = name.removeprefix("builtins.")
    of_complex = f"cmath.{name.rpartition('.')[2]}"
    hint = f"`{of_complex}` takes complex numbers" if of_complex in ROWS else PARTS
    return f"`{short}` takes real numbers, not {type_}", hint


def _is_power(exponent: ir.Expr) -> bool:
    match exponent:
        case ir.Constant(value=int(value)):
            return not isinstance(value, bool) and 1 <= value <= HIGHEST_POWER
        case _:
            return False
