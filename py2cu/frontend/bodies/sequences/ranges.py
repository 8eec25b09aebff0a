"""Ranges: the numbers of `range(start, stop, step)`, in a loop or kept in a variable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from py2cu import ir
from py2cu.builtins.casts import INDEX
from py2cu.frontend.bodies.views import minus, plus

ONE: Final = ir.Constant(1, type=ir.PY_INT)


def as_index(value: ir.Expr) -> ir.Expr:
    """`value` as the Python integer that `range` makes of it; type inference refuses floats."""
    is_python = isinstance(value, ir.Constant | ir.Extent | ir.LaunchIndex)
    return value if is_python else ir.Call(INDEX, (value,), value.span)  # rule: range-as-index


@dataclass(frozen=True, slots=True)
class Range:
    """The numbers of `range(start, stop, step)`."""

    start: ir.Expr
    stop: ir.Expr
    step: ir.Expr = ONE

    @property
    def rounds(self) -> ir.Expr:
        match self.step:
            case ir.Constant(value=int(step)) if step != 0:
                start, stop = (self.start, self.stop) if step > 0 else (self.stop, self.start)
                return _quotient(minus(stop, start), abs(step))
            case step:
                distance = minus(self.start, self.stop)
                return ir.Unary("-", ir.Binary("//", distance, step, distance.span), distance.span)

    def item(self, at: ir.Expr) -> ir.Expr:
        match self.step:
            case ir.Constant(value=1):
                return plus(self.start, at)
            case ir.Constant(value=-1):
                return minus(self.start, at)
            case ir.Constant(value=int(step)):
                return plus(self.start, ir.Binary("*", at, ir.Constant(step, at.span, ir.PY_INT), at.span))
            case step:
                return plus(self.start, ir.Binary("*", at, step, at.span))

    @property
    def constant(self) -> range | None:
        """The numbers, if all three are constants."""
        match self.start, self.stop, self.step:
            case ir.Constant(value=int(start)), ir.Constant(value=int(stop)), ir.Constant(value=int(step)) if step != 0:
                return range(start, stop, step)
            case _:
                return None


def _quotient(distance: ir.Expr, step: int) -> ir.Expr:
    """How many steps of this size it takes to go `distance` or farther."""
    if step == 1:
        return distance
    if isinstance(distance, ir.Constant):
        return ir.Constant(-(-int(distance.value) // step), distance.span, ir.PY_INT)
    divisor = ir.Constant(step, distance.span, ir.PY_INT)
    return ir.Binary("//", plus(distance, minus(divisor, ONE)), divisor, distance.span)
