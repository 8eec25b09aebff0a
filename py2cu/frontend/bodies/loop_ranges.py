"""The head of a `for` loop → its range, and by how much to unroll it: `range(n)`, `unroll(range(0, n, 2), 4)`."""

from __future__ import annotations

from typing import Final

import libcst as cst

from py2cu import ir
from py2cu.frontend.bodies.expressions import ExpressionReader

LoopRange = tuple[ir.Expr, ir.Expr, ir.Expr]  # start, stop, step
MAX_UNROLL: Final = 65534  # GCC's limit
_UNROLL_HINT: Final = "`unroll(range(n), 4)`, or `unroll(range(8))` for all rounds"


def read_loop_range(node: cst.BaseExpression, expressions: ExpressionReader) -> tuple[LoopRange | None, int | None]:
    """The range that a loop over `node` counts through, and its unroll factor: 0 unrolls fully, None leaves it open.

    The range is None, after a diagnostic, if `node` is no call of `range`.
    """
    counts, unroll = _read_unroll(node, expressions)
    return _read_range(counts, expressions), unroll


def _read_unroll(node: cst.BaseExpression, expressions: ExpressionReader) -> tuple[cst.BaseExpression, int | None]:
    """The argument of `unroll` and the factor; `node` itself and None for any other expression."""
    scope = expressions.scope
    if not isinstance(node, cst.Call) or not expressions.calls.is_unroll(node):
        return node, None
    match node.args:
        case [cst.Arg(value=counts, keyword=None, star="")]:
            return counts, 0
        case [cst.Arg(value=counts, keyword=None, star=""), cst.Arg(value=factor, keyword=None, star="")]:
            number = scope.environment.constant(factor)
            if type(number) is int and 1 <= number <= MAX_UNROLL:
                return counts, number
            scope.error("P104", f"a loop is unrolled by a constant from 1 to {MAX_UNROLL}", factor, _UNROLL_HINT)
            return counts, None
        case _:
            scope.error("P104", "`unroll` takes a `range`, and by how much to unroll", node, _UNROLL_HINT)
            return (node.args[0].value if node.args else node), None


def _read_range(node: cst.BaseExpression, expressions: ExpressionReader) -> LoopRange | None:
    scope = expressions.scope
    match node:
        case cst.Call(func=func, args=args) if (
            scope.environment.qualify(func) == "builtins.range"
            and 1 <= len(args) <= 3
            and not any(arg.keyword or arg.star for arg in args)
        ):
            values = [expressions.read(arg.value) for arg in args]
            span = scope.span_of(node)
            start, stop = (ir.Constant(0, span), values[0]) if len(values) == 1 else (values[0], values[1])
            step = values[2] if len(values) == 3 else ir.Constant(1, span)
            return start, stop, step
    scope.error("P104", "a kernel's `for` runs over `range(…)`", node, "index the array: `for i in range(n)`")
    return None
