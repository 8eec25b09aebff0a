"""Comparisons: chains, `in` a tuple, and tuples, which are compared number by number.

    a < b <= c              a < b and b <= c
    k in (1, 3)             k == 1 or k == 3
    (a, b) != (1, 1)        a != 1 or b != 1
    (a, b) < (c, d)         a < c or (a == c and b < d)

In: a comparison in a scope. Out: the test; operands have no effects, so that reading one twice changes nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import libcst as cst

from py2cu import ir
from py2cu.frontend.bodies.dtype_tests import read_dtype_test
from py2cu.frontend.bodies.none_tests import read_none_test
from py2cu.frontend.bodies.scope import Scope
from py2cu.frontend.bodies.tables import Read
from py2cu.frontend.bodies.tuples.values import open_tuple, read_display, settle
from py2cu.frontend.hints.comparisons import rewrite_comparison
from py2cu.frontend.names.operators import SYMBOLS
from py2cu.frontend.names.syntax import display_elements, is_starred, named_in, source_text
from py2cu.ir.operators import COMPARISONS
from py2cu.source import Span

_LATER = "it is computed only where the comparison before it holds"


def read_comparison(node: cst.Comparison, scope: Scope, read: Read) -> ir.Expr:
    """Read a comparison or a chain of them."""
    if (test := read_none_test(node, scope)) is not None:
        return test
    if (test := read_dtype_test(node, scope, read)) is not None:
        return test
    left = settle(open_tuple(read(node.left), node.left, scope), scope)
    result: ir.Expr | None = None
    for target in node.comparisons:
        if result is not None and (named := named_in(target)):  # rule: walrus-in-chain
            what = f"`:=` assigns `{source_text(named[0].target)}` only where the comparison before it holds"
            scope.error("P103", what, named[0], "write the comparisons with `and`, in an `if` each")
        with scope.hoisted.conditional(_LATER if result is not None else "", only_effects=True):
            link, left = _read_link(left, target, node, scope, read)
        result = link if result is None else ir.BoolOp("and", result, link, scope.span_of(node))  # rule: chain-link
    assert result is not None
    return result


def _read_link(
    left: ir.Expr, target: cst.ComparisonTarget, node: cst.Comparison, scope: Scope, read: Read
) -> tuple[ir.Expr, ir.Expr]:
    """One comparison of a chain, and its right operand."""
    span, symbol = scope.span_of(node), type(target.operator)
    elements = display_elements(target.comparator) if symbol in (cst.In, cst.NotIn) else ()
    if elements and not any(map(is_starred, elements)):
        display = settle(read_display(target.comparator, elements, scope, read), scope)
        values = display.items if isinstance(display, ir.Tuple) else ()
        links = [_compare("==", left, value, span) for value in values]
        is_in = functools.reduce(lambda some, link: ir.BoolOp("or", some, link, span), links)
        return (is_in if symbol is cst.In else ir.Unary("not", is_in, span)), left
    if symbol not in SYMBOLS:
        what = "kernels compare with == != < <= > >=, and with `in` a tuple"
        value = scope.reporter.file.quote(left.span)
        scope.error("P103", what, target, f"`{rewrite_comparison(value, target, scope.environment)}`")
        return ir.Constant(False, span), left
    right = settle(open_tuple(read(target.comparator), target.comparator, scope), scope)
    return _compare(SYMBOLS[symbol], left, right, span), right


def _compare(op: str, left: ir.Expr, right: ir.Expr, span: Span) -> ir.Expr:
    """`left op right`. A tuple never equals a number; `infer_types` refuses an order between the two."""
    match left, right:
        case ir.Tuple(items=some), ir.Tuple(items=others):
            return _equal(op, some, others, span) if op in ("==", "!=") else _ordered(op, some, others, span)
        case (ir.Tuple(), _) | (_, ir.Tuple()) if op in ("==", "!="):
            return ir.Constant(op == "!=", span)  # rule: tuples-unequal
        case _:
            return ir.Compare(op, left, right, span)


def _equal(op: str, some: Sequence[ir.Expr], others: Sequence[ir.Expr], span: Span) -> ir.Expr:
    if len(some) != len(others) or not some:
        return ir.Constant((len(some) == len(others)) is (op == "=="), span)  # rule: tuples-of-lengths
    tests = [_compare_items(op, a, b, span) for a, b in zip(some, others, strict=True)]
    return functools.reduce(lambda a, b: ir.BoolOp("and" if op == "==" else "or", a, b, span), tests)  # rule: tuples-op


def _ordered(op: str, some: Sequence[ir.Expr], others: Sequence[ir.Expr], span: Span) -> ir.Expr:
    """Lexicographic order: the first items that differ decide, else the lengths."""
    if not some or not others:
        return ir.Constant(COMPARISONS[op](len(some), len(others)), span)  # rule: tuples-order
    (a, *some_behind), (b, *others_behind) = some, others
    if not some_behind and not others_behind:
        return _compare_items(op, a, b, span)
    rest = _ordered(op, some_behind, others_behind, span)
    is_less, is_equal = _compare_items(op[0], a, b, span), _compare_items("==", a, b, span)  # rule: tuples-strict
    return ir.BoolOp("or", is_less, ir.BoolOp("and", is_equal, rest, span), span)


def _compare_items(op: str, a: ir.Expr, b: ir.Expr, span: Span) -> ir.Expr:
    """`a op b` of two items. In a tuple Python takes one object for equal to itself, even a NaN."""
    is_one = isinstance(a, ir.Name) and isinstance(b, ir.Name) and a.id == b.id  # rule: tuples-same-name
    return ir.Constant(op in ("==", "<=", ">="), span) if is_one else _compare(op, a, b, span)
