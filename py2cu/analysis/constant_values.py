"""Refuses constant integer expressions whose value does not fit 64 bits.

    x[i] * 2 ** 63               P305 at `2 ** 63`
    (1 << 40) * (1 << 40)        P305 at the product
    round(1e20)                  P305

Other integers can overflow only at run time; the simulator reports those.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from py2cu import ir
from py2cu.builtins import ROWS, Rule
from py2cu.diagnostics import Reporter
from py2cu.ir.operators import OPERATORS, UNARY, Family
from py2cu.ir.visit import all_expressions, children, expressions, statements

_LOW: Final = -(1 << 63)
_HIGH: Final = (1 << 63) - 1
_UNSIGNED: Final = (1 << 64) - 1
_BITS: Final = 64
_HINT: Final = "Python integers are exact to 64 bits: use a smaller number or a float"


def _factorial(n: int) -> int:
    return math.factorial(min(n, _BITS))


_OF_INTEGERS: Final = (Rule.CHOICE, Rule.MAGNITUDE, Rule.WHOLE)
_PYTHON: Final = {key: row.python for key, row in ROWS.items() if row.python is not None}
_CALLS: Final[dict[str, Callable[..., int]]] = {
    key: _factorial if function is math.factorial else function
    for key, function in _PYTHON.items()
    if ROWS[key].rule in _OF_INTEGERS
}
_ROUNDINGS: Final[dict[str, Callable[[float], int]]] = {
    key: function for key, function in _PYTHON.items() if ROWS[key].rule is Rule.INTEGRAL
}
# rule: constant-unknown
_UNKNOWN: Final = (ArithmeticError, TypeError, ValueError)  # division by zero and the like: other checks refuse it


def check_constants(body: ir.Block, reporter: Reporter) -> None:
    """Refuse every constant expression beyond 64 bits, at the innermost place; typed kernels only.

    Numbers of 64 bits without a sign are meant where a mask has as many: `h * P & 0xFFFFFFFFFFFFFFFF`.
    """
    for stmt in statements(body):
        for expr in expressions(stmt):
            constant_value(expr, reporter, body)


def _masks_64_bits(body: ir.Block) -> bool:
    return any(map(_is_wide_mask, all_expressions(body)))


def _is_wide_mask(expr: ir.Expr) -> bool:
    if expr.__class__ is not ir.Binary or expr.op != "&" or not isinstance(expr.type, ir.PythonType):
        return False
    return any(isinstance(side, ir.Constant) and _HIGH < side.value <= _UNSIGNED for side in (expr.left, expr.right))


def items_of_table(load: ir.Load, table: ir.ArrayDecl) -> list[bool | int | float]:
    """The items of a table that `load`, typed, may read: constant indices choose among them."""
    places = [0]
    for index, extent in zip(load.indices, table.type.dims, strict=True):
        assert isinstance(extent, ir.Constant), extent
        count, at = int(extent.value), constant_value(index)
        along = range(count) if at is None else [at % count]  # rule: table-items
        places = [place * count + step for place in places for step in along]
    return [table.values[place] for place in places]


def constant_value(expr: ir.Expr, reporter: Reporter | None = None, body: ir.Block = ()) -> int | None:
    """The value of a constant integer expression; None if it depends on arguments, or exceeds 64 bits (reported).

    `body` is that of the function, which says whether numbers of 64 bits have a sign.
    """
    is_integer = isinstance(expr.type, ir.PythonType) and expr.type in (ir.PY_INT, ir.PY_BOOL)
    if not is_integer and reporter is None:
        return None  # nobody needs the value, and nothing is reported
    parts = [constant_value(child, reporter, body) for child in children(expr)]
    if not is_integer:
        return None
    numbers = [part for part in parts if part is not None]
    value = None
    match expr:
        case ir.Call(function=rounding, args=(arg,)) if (
            rounding in _ROUNDINGS and (number := _float_constant(arg)) is not None
        ):
            value = _computed(_ROUNDINGS[rounding], [number])  # rule: constant-rounding
        case _ if len(numbers) < len(parts):
            pass
        case ir.Constant(value=number):
            value = int(number)
        case ir.Binary(op=op) if not (OPERATORS[op].family is Family.SHIFT and numbers[1] >= _BITS):
            value = _computed(OPERATORS[op].fold or OPERATORS[op].compute, numbers)
        case ir.Unary(op="-" | "+" | "~" as op):
            value = _computed(UNARY[op], numbers)
        case ir.Call(function=function) if function in _CALLS:
            value = _computed(_CALLS[function], numbers)  # rule: constant-call
    # rule: natural-constant
    if value is None or _LOW <= value <= _HIGH or (_is_natural(expr, value) and _masks_64_bits(body)):
        return value
    if reporter is not None:
        what = "this constant" if isinstance(expr, ir.Constant) else "this"
        reporter.error("P305", f"{what} does not fit 64 bits", expr.span, _HINT)  # rule: constant-too-large
    return None


def _is_natural(expr: ir.Expr, value: int) -> bool:
    """True for an integer beyond an int64 that `widen_naturals` computes in uint64."""
    is_modular = isinstance(expr, ir.Binary) and expr.op != "-" and OPERATORS[expr.op].is_modular
    return (is_modular or isinstance(expr, ir.Constant)) and _HIGH < value <= _UNSIGNED


def _float_constant(expr: ir.Expr) -> float | None:
    match expr:
        case ir.Constant(value=float() as number):
            return number
        case ir.Unary(op="-", operand=ir.Constant(value=float() as number)):
            return -number
        case _:
            return None


def _computed(function: Callable[..., int], numbers: Sequence[float]) -> int | None:
    try:
        return function(*numbers)
    except _UNKNOWN:
        return None
