"""Hides negations of integers from ptxas (13.0) where it may fuse nested min/max into a three-input instruction: it
drops the minus of `max(max(-a, b), c)`.

    max(max(-x[i], y), x[i])       →       max(max(negate_hidden(x[i]), y), x[i])

Compilers recognise a min or max in calls of `min` and `max`, in a conditional expression whose branches are the
compared values, and in an `if` that assigns a compared value. The negation may stand anywhere in the kernel.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Final

from py2cu import ir
from py2cu.builtins import ROWS
from py2cu.diagnostics import Reporter
from py2cu.dtypes import Kind
from py2cu.ir.rewrite import rebuild_block, with_fields
from py2cu.ir.visit import all_expressions, assigned_names, names_in, statements
from py2cu.passes.lowering.operators import negative_of

HELPER = "negate_hidden"
_EXTREMA: Final = frozenset(name for row in ROWS.values() if row.of_integers for name in (row.of_integers, row.helper))
_REPLACED = ("wrapping_sub", "wrapping_mul")


def hide_negation(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """The kernel and its functions with hidden negations; all bodies count together, since compilers inline."""
    bodies = [kernel.body, *(function.body for function in kernel.functions)]
    if not any(map(_has_extremum, bodies)) or not any(_negations(body) for body in bodies):  # rule: negation-hidden
        return kernel
    return with_fields(_with_hidden_negations(kernel), functions=tuple(map(_with_hidden_negations, kernel.functions)))


def _has_extremum(body: ir.Block) -> bool:
    for expr in all_expressions(body):
        match expr:
            case ir.Call(function=function, type=type_) if function in _EXTREMA and _is_integer(type_):  # rule: extreme
                return True
            case ir.Select(test=ir.Compare() as test, then=then, orelse=orelse):
                if then in _compared(test) or orelse in _compared(test):  # rule: negation-choice
                    return True
    return any(
        isinstance(stmt, ir.If)
        and isinstance(stmt.test, ir.Compare)
        and not set(assigned_names((*stmt.body, *stmt.orelse))).isdisjoint(names_in(stmt.test))
        and any(_compared(stmt.test))
        for stmt in statements(body)
    )


def _compared(test: ir.Compare) -> Iterator[ir.Expr]:
    """The integer operands of an order comparison, such as `<`."""
    return (side for side in (test.left, test.right) if test.op[0] in "<>" and _is_integer(side.type))


def _negations(body: ir.Block) -> list[ir.Expr]:
    return [expr for expr in all_expressions(body) if _operand(expr) is not None]


def _operand(expr: ir.Expr) -> ir.Expr | None:
    """The operand that `expr` negates; None for a constant, and if `expr` is not the negation of an integer."""
    operand = negative_of(expr) if _is_integer(expr.type) else None
    return None if isinstance(operand, ir.Constant) else operand


def _is_integer(type_: object) -> bool:
    return isinstance(type_, ir.ElementType | ir.PythonType) and ir.kind_of(type_) is Kind.INT


def _with_hidden_negations(kernel: ir.Kernel) -> ir.Kernel:
    hidden: list[ir.Expr] = []

    def hide(expr: ir.Expr) -> ir.Expr:
        if isinstance(expr, ir.Convert) and expr.value in hidden and expr.type == expr.value.type:
            return expr.value  # already hidden
        operand = _operand(expr)
        if operand is None:
            return expr
        hidden.append(ir.Call(HELPER, (operand,), expr.span, expr.type))
        return hidden[-1]

    body = rebuild_block(kernel.body, hide)
    still_called = {expr.function for expr in all_expressions(body) if isinstance(expr, ir.Call)}
    remaining = (helper for helper in kernel.helpers if helper in still_called or helper not in _REPLACED)
    return with_fields(kernel, body=body, helpers=tuple(dict.fromkeys(chain(remaining, (HELPER,) if hidden else ()))))
