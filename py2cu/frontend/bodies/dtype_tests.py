"""Tests of dtypes: `x.dtype == torch.bfloat16`, `x.dtype is not torch.float32`, `x.dtype in (torch.half, torch.float)`.

In: a comparison in the body of a kernel. Out: the test as IR; a diagnostic for other comparisons of a dtype.
"""

from __future__ import annotations

import functools
from typing import Final

import libcst as cst

from py2cu import ir
from py2cu.dtypes import DType, find_dtype
from py2cu.frontend.bodies.methods import array_name
from py2cu.frontend.bodies.parts import is_tensor
from py2cu.frontend.bodies.scope import Scope
from py2cu.frontend.bodies.tables import Read
from py2cu.frontend.names.syntax import source_text

_NEGATED: Final = (cst.NotEqual, cst.IsNot, cst.NotIn)


def read_dtype_test(node: cst.Comparison, scope: Scope, read: Read) -> ir.Expr | None:
    """`node` as IR if it compares the dtype of an array, else None."""
    operands = (node.left, *(target.comparator for target in node.comparisons))
    array = next((array for operand in operands if (array := _array_of(operand, scope)) is not None), None)
    if array is None:
        return None
    span, values = scope.span_of(node), _compared(node, scope)
    dtypes = [dtype for value in values if (dtype := _dtype(value, scope)) is not None]
    if not dtypes or len(dtypes) != len(values):
        text = f"{source_text(array)}.dtype"
        hint = f"`{text} == torch.bfloat16`, or `{text} in (torch.float16, torch.bfloat16)`"
        scope.error("P103", "kernels compare the dtype of an array with dtypes of torch", node, hint)
        return ir.Constant(False, span)
    name = array_name(array, scope, read).id
    tests: list[ir.Expr] = [ir.IsDtype(name, dtype, span) for dtype in dtypes]
    test = functools.reduce(lambda some, other: ir.BoolOp("or", some, other, span), tests)
    # rule: dtype-unequal
    return ir.Unary("not", test, span) if isinstance(node.comparisons[0].operator, _NEGATED) else test


def _compared(node: cst.Comparison, scope: Scope) -> list[cst.BaseExpression]:
    """The values with which a comparison compares a dtype; none if it is no comparison of dtypes."""
    match node:
        case cst.Comparison(
            comparisons=[
                cst.ComparisonTarget(
                    operator=cst.In() | cst.NotIn(),
                    comparator=cst.Tuple(elements=elements) | cst.List(elements=elements) | cst.Set(elements=elements),
                )
            ]
        ):
            return [element.value for element in elements]
        case cst.Comparison(
            left=left,
            comparisons=[
                cst.ComparisonTarget(operator=cst.Equal() | cst.Is() | cst.NotEqual() | cst.IsNot(), comparator=right)
            ],
        ):
            return [left if _array_of(left, scope) is None else right]
        case _:
            return []


def _array_of(node: cst.BaseExpression, scope: Scope) -> cst.BaseExpression | None:
    """The array whose dtype `node` is."""
    match node:
        case cst.Attribute(value=array, attr=cst.Name(value="dtype")) if is_tensor(array, scope):
            return array
        case _:
            return None


def _dtype(node: cst.BaseExpression, scope: Scope) -> DType | None:
    """The dtype of torch that `node` names: a dtype of NumPy is equal to none of them."""
    library, _, name = (scope.environment.qualify(node) or "").rpartition(".")
    return find_dtype(name) if library == "torch" else None
