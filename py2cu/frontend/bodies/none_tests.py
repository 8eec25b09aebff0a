"""Tests for None: `bias is None`, `scale is not None`.

In: a comparison in the body of a kernel. Out: the test as IR; a diagnostic for other comparisons with None, and for
tests of what is never None.
"""

from __future__ import annotations

import libcst as cst

from py2cu import ir
from py2cu.frontend.bodies.scope import Scope
from py2cu.frontend.hints.annotations import dims_text
from py2cu.frontend.names.syntax import is_named, source_text


def read_none_test(node: cst.Comparison, scope: Scope) -> ir.Expr | None:
    """`node` as IR if it compares with None, else None."""
    match node:
        case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(operator=operator, comparator=right)]):
            pass
        case _:
            return None
    if is_named(left, "None"):
        left, right = right, left
    if not is_named(right, "None"):
        return None
    span = scope.span_of(node)
    name = left.value if isinstance(left, cst.Name) else ""
    if name in scope.broken:
        return ir.Constant(False, span)
    if name not in scope.optional_parameters:
        _refuse(left, node, scope)
        return ir.Constant(False, span)
    is_given = ir.IsGiven(name, span)
    match operator:
        case cst.Is():
            return ir.Unary("not", is_given, span)
        case cst.IsNot():
            return is_given
        case _:
            word = "is" if isinstance(operator, cst.Equal) else "is not"
            scope.error("P103", "kernels compare with None by `is` and `is not`", node, f"write `{name} {word} None`")
            return ir.Constant(False, span)


def _refuse(left: cst.BaseExpression, node: cst.Comparison, scope: Scope) -> None:
    """Report a `None` test of a value that cannot be None."""
    text = source_text(left)
    if isinstance(left, cst.Name) and left.value in scope.arrays:
        what = f"the array `{text}` is never None here"
        is_parameter = left.value not in scope.array_decls and not scope.returns
        dims = dims_text(len(scope.arrays[left.value].dims))
        hint = f'annotate it `{text}: Float32[Tensor, "{dims}"] | None = None`'
        scope.error("P411", what, node, hint if is_parameter else "test it in the kernel, before the call")
    elif isinstance(left, cst.Name) and scope.is_unknown(left):
        scope.unknown_name(left)
    else:
        hint = "leave the test out: only a parameter whose default is None may be None"
        scope.error("P411", f"`{text}` is never None", node, hint)
