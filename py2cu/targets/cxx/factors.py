"""Factors extents, which are sums of products of names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction

from py2cu import ir


@dataclass(frozen=True, slots=True)
class Factors:
    """3 and `h`, `w` of `3 * h * w`."""

    constant: Fraction
    names: Counter[str] = field(default_factory=Counter)

    def times(self, other: Factors) -> Factors:
        return Factors(self.constant * other.constant, self.names + other.names)

    def is_below(self, other: Factors) -> bool:
        """True where the product is no greater than another one, if no dimension is empty."""
        return self.constant <= other.constant and self.names <= other.names


def factors(extent: ir.Expr) -> Factors | None:
    """The factors of an extent; None for anything but a product."""
    match extent:
        case ir.Constant(value=int(value)):
            return Factors(Fraction(value))
        case ir.Name(id=name):
            return Factors(Fraction(1), Counter([name]))
        case ir.Binary(op="*", left=left, right=right):
            return product((left, right))
        case _:
            return None


def product(extents: Iterable[ir.Expr]) -> Factors | None:
    """The factors of a product of extents; None where one is no product itself."""
    total: Factors | None = Factors(Fraction(1))
    for factor in map(factors, extents):
        total = None if total is None or factor is None else total.times(factor)
    return total


def addends(extent: ir.Expr) -> tuple[Factors, ...] | None:
    """Products whose sum an extent does not exceed, if no name in it is negative; None where there are none."""
    match extent:
        case ir.Binary(op="+", left=left, right=right):
            one, other = addends(left), addends(right)
            return None if one is None or other is None else one + other
        case ir.Binary(op="-", left=left, right=ir.Constant(value=int(value))) if value >= 0:
            return addends(left)
        case ir.Binary(op="//", left=left, right=ir.Constant(value=int(value))) if value > 0:
            divided = addends(left)
            return None if divided is None else tuple(each.times(Factors(Fraction(1, value))) for each in divided)
        case _:
            term = factors(extent)
            return None if term is None else (term,)
