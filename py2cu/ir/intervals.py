"""Ranges as data: an interval, and for integers a polynomial that bounds the magnitude.

The polynomial's variables are dimensions, integer arguments and grid sizes of the launch.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from py2cu.records import record

Monomial = tuple[str, ...]
SymbolicBound = Mapping[Monomial, int]  # {("h", "w"): 1, (): -1} is h * w - 1


@record(frozen=True, slots=True)
class Interval:
    """Values from `low` to `high`, or NaN, and for integers a bound of their magnitude."""

    low: float = -math.inf
    high: float = math.inf
    bound: SymbolicBound | None = None

    @property
    def is_natural(self) -> bool:
        return self.low >= 0

    def union(self, other: Interval) -> Interval:
        return Interval(min(self.low, other.low), max(self.high, other.high), larger(self.bound, other.bound))


ANYTHING: Final = Interval()


def constant(value: float) -> Interval:
    if math.isnan(value):
        return ANYTHING
    is_integral = math.isfinite(value) and value == int(value)
    return Interval(value, value, {(): abs(int(value))} if is_integral else None)


def natural(bound: SymbolicBound, high: float = math.inf) -> Interval:
    return Interval(0, high, bound)


def larger(a: SymbolicBound | None, b: SymbolicBound | None) -> SymbolicBound | None:
    """A polynomial that bounds both: its variables are not negative, so coefficient by coefficient."""
    if a is None or b is None:
        return None
    return {term: max(a.get(term, 0), b.get(term, 0)) for term in {**a, **b}}


def plus(a: SymbolicBound | None, b: SymbolicBound | None) -> SymbolicBound | None:
    if a is None or b is None:
        return None
    return {term: a.get(term, 0) + b.get(term, 0) for term in {**a, **b}}


def times(a: SymbolicBound | None, b: SymbolicBound | None) -> SymbolicBound | None:
    if a is None or b is None or len(a) * len(b) > 64:
        return None
    product: dict[Monomial, int] = {}
    for left, m in a.items():
        for right, n in b.items():
            term = tuple(sorted(left + right))
            product[term] = product.get(term, 0) + m * n
    return product
