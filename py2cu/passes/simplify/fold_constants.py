"""Folds arithmetic of Python integers whose result is known.

    2 ** 24          →        16777216
    6 - 1 - k        →        5 - k
    abs(0 - 2)       →        2
    min(k, k)        →        k
    (i * 2 + 1) * 2 + 1   →   i * 4 + 3

Constants of the module keep their names, `THREADS // 2`, and operators of bits their operands, `1 << 5`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from py2cu import ir
from py2cu.analysis.constant_values import constant_value
from py2cu.analysis.ranges import INT_MAX
from py2cu.builtins import ROWS, Rule
from py2cu.diagnostics import Reporter
from py2cu.ir.operators import OPERATORS, Family
from py2cu.ir.rewrite import rebuild_block, with_fields
from py2cu.ir.visit import children, is_duplicable

_BITS: Final = (Family.SHIFT, Family.LOGICAL)


def fold_constants(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """The kernel with such integers as constants."""
    return with_fields(kernel, body=rebuild_block(kernel.body, _folded))


def _folded(expr: ir.Expr) -> ir.Expr:
    """`expr`, whose operands are folded."""
    if expr.type != ir.PY_INT:
        return expr
    match expr:
        case ir.Binary(op=op) if OPERATORS[op].family in _BITS:
            return expr
        case ir.Call(function=function, args=(first, *others)) if (
            ROWS[function].rule is Rule.CHOICE and is_duplicable(first) and all(other == first for other in others)
        ):
            return first  # rule: fold-choice
        case ir.Binary(
            op="*",
            left=ir.Binary(op="+", left=ir.Binary(op="*", left=scaled, right=factor) as product, right=term) as inner,
            right=outer,
        ):
            scale, rest = _small("*", factor, outer), _small("*", term, outer)
            if scale is None or rest is None:  # rule: fold-scaled
                return expr
            return replace(inner, left=replace(product, left=scaled, right=scale), right=rest)
        case ir.Binary(op="+", left=ir.Binary(op="+", left=first, right=term) as inner, right=last):
            rest = _small("+", term, last)
            return expr if rest is None else replace(inner, left=first, right=rest)  # rule: fold-terms
        case ir.Binary() | ir.Call() if all(map(_is_plain, children(expr))):
            value = constant_value(expr)
            return expr if value is None else ir.Constant(value, expr.span, ir.PY_INT)  # rule: fold-constant
        case _:
            return expr


def _is_plain(expr: ir.Expr) -> bool:
    """True for a constant without a name in the module."""
    return isinstance(expr, ir.Constant) and expr.named is None  # rule: fold-named


def _small(op: str, left: ir.Expr, right: ir.Expr) -> ir.Constant | None:
    """The result of two constants, if it fits in 32 bits: a wider constant would widen the expressions around it."""
    if not (_is_plain(left) and _is_plain(right)):
        return None
    value = constant_value(ir.Binary(op, left, right, left.span, ir.PY_INT))
    return ir.Constant(value, left.span, ir.PY_INT) if value is not None and abs(value) <= INT_MAX else None
