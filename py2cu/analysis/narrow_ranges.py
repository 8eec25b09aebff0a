"""Ranges of arithmetic in narrow integers, exact where `Ranges` only bounds widths.

    x[i] // 2            0 to 127, of a uint8
    (x[i] & 15) << 4     0 to 240

In: a typed kernel. Out: `NarrowRanges`. The lowering uses `Ranges`, whose coarser bounds decide the types of emitted
integers.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Final

from py2cu import ir
from py2cu.analysis.ranges import Ranges
from py2cu.builtins import ROWS, Bound
from py2cu.dtypes import DType, Kind
from py2cu.ir.intervals import Interval
from py2cu.ir.operators import OPERATORS

_NARROW: Final = 32  # bits: integers of fewer are narrow
_LONGEST: Final = 64  # a greater shift or exponent leaves every narrow dtype alike


def narrow_dtype(expr: ir.Expr) -> DType | None:
    """The dtype of an integer element of fewer than 32 bits; None for anything else, and for a type variable."""
    match expr.type:
        case ir.ElementType(dtype=dtype) if dtype.kind is Kind.INT and dtype.bits < _NARROW and dtype.variable is None:
            return dtype
        case _:
            return None


class NarrowRanges(Ranges):
    """The ranges of one typed kernel's expressions, with exact ones of arithmetic in narrow integers."""

    def leaves_dtype(self, expr: ir.Expr, dtype: DType) -> bool:
        """True for an operation whose result may be outside `dtype`, its own."""
        match expr:
            case ir.Binary(op=op) if OPERATORS[op].may_leave:
                pass
            case ir.Unary(op="-"):
                pass
            case ir.Call(function=function) if function in ROWS and ROWS[function].range is Bound.MAGNITUDE:
                pass
            case _:
                return False
        exact = self.before_wrap(expr)
        return exact.low < dtype.low or exact.high > dtype.high  # rule: narrow-wraps

    def _of(self, expr: ir.Expr) -> Interval:
        if isinstance(expr, ir.Binary) and narrow_dtype(expr) is not None:
            exact = _range_of(expr.op, self.of(expr.left), self.of(expr.right))
            if exact is not None:
                return Interval(*exact)
        return super()._of(expr)


def _range_of(op: str, a: Interval, b: Interval) -> tuple[float, float] | None:
    """The least and the greatest result for operands in these bounded ranges; None where `Ranges` is exact."""
    match op:
        case "//":
            divisors = {divisor for divisor in (b.low, -1, 1, b.high) if b.low <= divisor <= b.high and divisor != 0}
            return _extremes(operator.floordiv, a, divisors) if divisors else None
        case "%" if b.low > 0:
            return 0, min(a.high, b.high - 1) if a.is_natural else b.high - 1
        case "<<" if b.is_natural:
            return _extremes(operator.mul, a, {2 ** min(shift, _LONGEST) for shift in (b.low, b.high)})
        case ">>" if b.is_natural:
            return _extremes(operator.floordiv, a, {2 ** min(shift, _LONGEST) for shift in (b.low, b.high)})
        case "&" if a.is_natural and b.is_natural:
            return 0, min(a.high, b.high)
        case "**" if b.is_natural:
            greatest = max(1, -a.low, a.high) ** min(b.high, _LONGEST)
            is_even = b.low == b.high and b.high % 2 == 0
            return 0 if a.is_natural or is_even else -greatest, greatest
        case _:
            return None


def _extremes(function: Callable[[float, float], float], a: Interval, operands: Iterable[float]) -> tuple[float, float]:
    """The least and the greatest result of an operation that is monotonic in its first operand."""
    results = [function(bound, operand) for bound in (a.low, a.high) for operand in operands]
    return min(results), max(results)
