"""Sums and products of extents: the strides of a contiguous array, and lower bounds of its size.

In: the extents of an array, or an extent and a stride. Out: expressions, and products of names. Nothing here raises.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence, Set
from typing import Final, TypeVar

from py2cu.ir.operators import OPERATORS
from py2cu.ir.types import PY_INT, Binary, Constant, DimExpr, Name, Type, constant_extent
from py2cu.source import NOWHERE, Span

T = TypeVar("T")

_SMALL: Final = 64  # the largest divisor with which a quotient counts as large as the dividend


def folded(op: str, left: T, right: T, span: Span = NOWHERE, type_: Type = PY_INT) -> T | Constant | Binary[T]:
    """`left op right` of integers, without numbers that do not count; of constants, the result."""
    match op, left, right:
        case _, Constant(value=int(a)), Constant(value=int(b)):
            return Constant(OPERATORS[op].compute(a, b), span, PY_INT)
        case ("+" | "-", _, Constant(value=0)) | ("*", _, Constant(value=1)) | ("*", Constant(value=0), _):
            return left
        case ("+", Constant(value=0), _) | ("*", Constant(value=1), _) | ("*", _, Constant(value=0)):
            return right
        case _:
            return Binary(op, left, right, span, type_)


def contiguous_strides(dims: Sequence[DimExpr]) -> tuple[DimExpr, ...]:
    """The distance in elements between neighbours on each axis: `h*w`, `w` and 1 for the extents `n`, `h` and `w`."""
    strides: list[DimExpr] = [constant_extent(1)] * bool(dims)
    for dim in reversed(dims[1:]):
        strides.append(folded("*", dim, strides[-1], dim.span))
    return tuple(reversed(strides))


def lower_bounds(factors: Iterable[DimExpr], naturals: Set[str]) -> list[Counter[str]]:
    """Products of names that are no greater than the product of `factors`, give or take a small factor.

    `naturals` are the names that are never negative.
    """
    products: list[Counter[str]] = [Counter()]
    for factor in factors:
        products = [one + other for one in products for other in _addends(factor, naturals)]
    return products


def _addends(extent: DimExpr, naturals: Set[str]) -> list[Counter[str]]:
    """Products of names, each a lower bound of `extent` (up to a small factor).

    `h + w` gives `h` and `w`, `h * w` gives `h*w`, `n + 1` gives `n`.
    """
    match extent:
        case Name(id=name):
            return [Counter([name])]
        case Binary(op="*", left=left, right=right):
            return lower_bounds((left, right), naturals)
        case Binary(op="+", left=Name(id=left), right=Name(id=right)) if {left, right} <= naturals:  # rule: addends
            return [Counter([left]), Counter([right])]
        case Binary(op="+" | "-", left=left, right=Constant()) | Binary(op="+", left=Constant(), right=left):
            return _addends(left, naturals)
        case Binary(op="//", left=left, right=Constant(value=by)) if by <= _SMALL:
            return _addends(left, naturals)
        case _:
            return [Counter()]
