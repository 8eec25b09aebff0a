"""Tests of dtypes: `x.dtype == torch.bfloat16`, `x.dtype is not torch.float32`, `x.dtype in (torch.half, torch.float)`.

In: a comparison in the body of a kernel. Out: the test as IR; a diagnostic for other comparisons of a dtype.
"""

from __future__ import annotations

import functools
from itertools import chain
from typing import Final

import libcst as cst

from py2cu import ir
from py2cu.frontend.bodies.methods import array_name
from py2cu.frontend.bodies.parts import is_tensor
from py2cu.frontend.bodies.scope import Scope
from py2cu.frontend.bodies.tables import Read
from py2cu.frontend.names.numpy_arrays import named_dtype
from py2cu.frontend.names.syntax import display_elements, source_text

_TESTS: Final = (cst.Equal, cst.Is, cst.In)
_NEGATED: Final = (cst.NotEqual, cst.IsNot, cst.NotIn)


def read_dtype_test(node: cst.Comparison, scope: Scope, read: Read) -> ir.Expr | None:
    """`node` as IR if it compares the dtype of an array, else None."""
    left, operator, values = node.left, node.comparisons[0].operator, [*chain(*map(_operands, node.comparisons))]
    if _array_of(left, scope) is None and len(values) == 1:
        left, values = values[0], [left]
    array = _array_of(left, scope)
    if array is None and all(_array_of(value, scope) is None for value in values):
        return None
    span = scope.span_of(node)
    named = (named_dtype(value, scope.environment, "torch") for value in values)  # those of NumPy are equal to none
    dtypes = [dtype for dtype in named if dtype is not None]
    is_one = len(node.comparisons) == 1 and isinstance(operator, _TESTS + _NEGATED)
    if array is None or not is_one or not dtypes or len(dtypes) != len(values):
        text = next(source_text(each) for each in (left, *values) if _array_of(each, scope) is not None)
        hint = f"`{text} == torch.bfloat16`, or `{text} in (torch.float16, torch.bfloat16)`"
        scope.error("P103", "kernels compare the dtype of an array with dtypes of torch", node, hint)
        return ir.Constant(False, span)
    name = array_name(array, scope, read).id
    tests: list[ir.Expr] = [ir.IsDtype(name, dtype, span) for dtype in dtypes]
    test = functools.reduce(lambda some, other: ir.BoolOp("or", some, other, span), tests)
    return ir.Unary("not", test, span) if isinstance(operator, _NEGATED) else test  # rule: dtype-unequal


def _operands(target: cst.ComparisonTarget) -> list[cst.BaseExpression]:
    """What a comparison compares with: behind `in`, the items of a tuple."""
    is_in, elements = isinstance(target.operator, cst.In | cst.NotIn), display_elements(target.comparator)
    return [element.value for element in elements] if is_in else [target.comparator]


def _array_of(node: cst.BaseExpression, scope: Scope) -> cst.BaseExpression | None:
    """The array whose dtype `node` is."""
    match node:
        case cst.Attribute(value=array, attr=cst.Name(value="dtype")) if is_tensor(array, scope):
            return array
        case _:
            return None
