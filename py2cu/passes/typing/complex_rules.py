"""Refuses what Python does not do with complex numbers: order them, round them, convert them to real numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from py2cu.builtins import ROWS, Rule
from py2cu.ir.complex_numbers import CONJUGATE
from py2cu.ir.expressions import Call, Compare, Expr, Unary
from py2cu.ir.types import Binary, Constant, Type, is_complex

HIGHEST_POWER: Final = 64
PARTS: Final = "take a part, `.real` or `.imag`, or the magnitude, `abs(…)`"
_KEPT: Final = frozenset(["+", "-", "*", "/", "==", "!="])
_RULES: Final = (Rule.ANALYTIC, Rule.COMPLEX, Rule.PART, Rule.ARGUMENT, Rule.RESULT)


def refusal(expr: Binary[Expr] | Compare | Unary | Call, operands: Sequence[Expr]) -> tuple[str, str] | None:
    """Why `expr` has no meaning where one of its typed `operands` is complex, and what to write; None where it has."""
    reason = next((operand.type for operand in operands if is_complex(operand.type)), None)
    return None if reason is None else _refusal(expr, operands, reason)


def _refusal(
    expr: Binary[Expr] | Compare | Unary | Call, operands: Sequence[Expr], type_: Type
) -> tuple[str, str] | None:
    match expr:
        case Binary(op="**") if not _is_power(operands[1]):
            message = f"{type_} has only constant powers from 1 to {HIGHEST_POWER}"
            return message, "for any other power: `cmath.exp(b * cmath.log(a))`"
        case Binary(op="**") | Unary(op="-" | "+" | "not"):
            return None
        case Binary(op=op) | Compare(op=op) if op in _KEPT:
            return None
        case Compare():
            return f"{type_} has no order", "compare the magnitudes, `abs(…)`, or a part, `.real`"
        case Binary(op=op) | Unary(op=op):
            return f"`{op}` is not for {type_}", PARTS
        case Call(function=name):
            return _call_refusal(name, type_)


def _call_refusal(name: str, type_: Type) -> tuple[str, str] | None:
    row = ROWS[name]
    if row.rule in _RULES or name in (CONJUGATE, "builtins.abs"):
        return None
    short = name.removeprefix("builtins.")
    of_complex = f"cmath.{name.rpartition('.')[2]}"
    hint = f"`{of_complex}` takes complex numbers" if of_complex in ROWS else PARTS
    return f"`{short}` takes real numbers, not {type_}", hint


def _is_power(exponent: Expr) -> bool:
    match exponent:
        case Constant(value=int(value)):
            return not isinstance(value, bool) and 1 <= value <= HIGHEST_POWER
        case _:
            return False
