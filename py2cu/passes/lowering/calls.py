"""Lowers calls of builtins: those that C++ computes otherwise become a helper, a conversion or another call.

    max(a, b)           python_max(a, b)         floats: CUDA's fmax drops NaN
    max(a, b, c)        max(max(a, b), c)
    abs(x[i])           wrapping_abs(x[i])       where the element may be the least value of its dtype

`operators.py` calls `CallLowering` for every `Call` of a kernel.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

from py2cu import ir
from py2cu.analysis.ranges import Ranges
from py2cu.builtins import ROWS, Builtin, Rule
from py2cu.dtypes import I32, I64, U32, Kind
from py2cu.ir.visit import walk
from py2cu.passes.lowering.conversions import is_generic, to_signed, wrapping
from py2cu.passes.lowering.required_helpers import RequiredHelpers
from py2cu.source import Span

BITS_AS: Final = "bits_as"


@dataclass(frozen=True, slots=True)
class CallLowering:
    """Lowers the calls of builtins in one kernel."""

    ranges: Ranges
    helpers: RequiredHelpers

    def call(self, expr: ir.Call) -> ir.Expr:
        if expr.function in ("ceil_div", "list_index"):
            self.helpers.require(expr.function)
            return replace(expr, args=tuple(map(to_signed, expr.args)))
        row = ROWS.get(expr.function)
        if row is None or not isinstance(expr.type, ir.ElementType | ir.PythonType):
            return expr
        if row.of_integers:
            return self.extremum(expr, row, expr.type)
        if expr.function == "math.isinf" and not any(isinstance(part, ir.Name | ir.Load) for part in walk(expr)):
            return infinite(expr.args[0], expr.span)
        if row.rule is Rule.VIEW:
            self.helpers.require(BITS_AS)
            return replace(expr, function=BITS_AS)
        if row.spelling and row.rule is Rule.ELEMENTS:
            self.helpers.require(row.name)  # on targets that lack CUDA's function
            return expr
        helper = "round_decimals" if row.rule is Rule.INTEGRAL and len(expr.args) == 2 else row.helper
        if helper:
            self.helpers.require(helper)
            if row.rule is Rule.BITS:
                return ir.Call(helper, (self.word(expr.args[0]),), expr.span, expr.type)
            if row.rule is Rule.REDUCE:  # the targets recognise a collective by its name  # rule: reduction-name
                return expr
            return ir.Call(helper, tuple(map(to_signed, expr.args)), expr.span, expr.type)
        if row.rule is Rule.SCALED:
            return self.scaled(expr)
        if row.rule is Rule.INTEGRAL:
            source = expr.args[0].type
            return ir.Convert(replace(expr, type=source), expr.type, expr.span, explicit=True)
        return self.magnitude(expr, expr.type) if row.rule is Rule.MAGNITUDE else expr  # rule: magnitude

    def word(self, value: ir.Expr) -> ir.Expr:
        """An integer whose C type has its width: a Python integer has 64 bits, or 32 where these hold it."""
        if value.type != ir.PY_INT:
            return value
        range_ = self.ranges.of(value)
        dtype = U32 if range_.is_natural and range_.high <= U32.high else I64
        return ir.Convert(value, ir.ElementType(dtype), value.span, explicit=True)

    def scaled(self, expr: ir.Call) -> ir.Expr:
        """C's `ldexp` takes an `int` exponent, Python's any integer."""
        value, power = expr.args
        range_ = self.ranges.of(power)
        if I32.low <= range_.low and range_.high <= I32.high:  # rule: scaled-exponent
            return replace(expr, args=(value, ir.unconverted(power)))
        self.helpers.require("ldexp_by_any")
        return ir.Call("ldexp_by_any", expr.args, expr.span, expr.type)

    def magnitude(self, expr: ir.Call, type_: ir.ScalarType) -> ir.Expr:
        """The least value of a signed type has no counterpart: its `abs` wraps around to itself."""
        range_ = self.ranges.of(expr.args[0])
        if range_.is_natural and ir.kind_of(type_) is Kind.INT and not is_generic(type_):
            return expr.args[0]
        if not isinstance(type_, ir.ElementType) or type_.dtype.kind is not Kind.INT:
            return expr
        if not is_generic(type_):
            if range_.low > type_.dtype.low:
                return expr
            if type_.dtype.bits == 8:
                return wrapping(expr)
        self.helpers.require("wrapping_abs")
        return ir.Call("wrapping_abs", expr.args, expr.span, type_)

    def extremum(self, expr: ir.Call, row: Builtin, type_: ir.ScalarType) -> ir.Expr:
        """`min` and `max` of many, two at a time from the left, as Python compares them."""
        name = row.helper if ir.kind_of(type_) is Kind.FLOAT or is_generic(type_) else row.of_integers
        if name == row.helper:
            self.helpers.require(name)
        result = to_signed(expr.args[0])
        for arg in expr.args[1:]:
            result = ir.Call(name, (result, to_signed(arg)), expr.span, type_)
        return result


def infinite(value: ir.Expr, span: Span) -> ir.Compare:
    """`isinf` of a constant as a comparison: nvcc (13.0) folds `isinf` of NaN to true."""
    type_ = value.type
    magnitude = ir.Call("math.fabs", (value,), value.span, type_)
    return ir.Compare("==", magnitude, ir.Constant(math.inf, value.span, type_), span)
