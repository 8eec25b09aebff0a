"""Transfer functions of the range analysis: the range of a result from the ranges of its operands.

In: an operator, a conversion or a call, and the ranges of its operands. Out: the range of the exact result. `ranges.py`
limits it to the expression's type and tracks locals through the kernel.
"""

from __future__ import annotations

import math
from typing import Final, assert_never

from py2cu import ir
from py2cu.analysis.promotion import represents
from py2cu.builtins import Bound, Builtin, Rule, row_behind
from py2cu.dtypes import BF16, F16, F32, F64, Kind
from py2cu.ir.intervals import ANYTHING, Interval, SymbolicBound, constant, larger, plus, times
from py2cu.ir.operators import OF_HELPERS

TRUTH: Final = Interval(0, 1, {(): 1})


def range_of_type(type_: ir.Type) -> Interval:
    """The range of all values of this type."""
    match type_:
        case ir.ElementType(dtype=dtype) if dtype.kind < Kind.FLOAT:
            return Interval(dtype.low, dtype.high, {(): int(max(-dtype.low, dtype.high))} if dtype.bits < 64 else None)
        case ir.PythonType(kind=Kind.BOOL):
            return TRUTH
        case _:
            return ANYTHING


def range_of_binary(expr: ir.Binary[ir.Expr], a: Interval, b: Interval) -> Interval:
    """The range of arithmetic whose operands have the ranges `a` and `b`, before the result is limited to its type."""
    is_real = is_float(expr.type)
    match expr.op:
        case "+":
            return range_of_sum(a, b)
        case "-":
            difference = larger(a.bound, b.bound) if a.is_natural and b.is_natural else plus(a.bound, b.bound)
            return Interval(a.low - b.high, a.high - b.low, difference)
        case "*":
            corners = [product_of_bounds(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
            return Interval(min(corners), max(corners), times(a.bound, b.bound))
        case "//" if not is_real:
            low = 0 if a.is_natural and b.is_natural else -math.inf
            return Interval(low, a.high if low == 0 else math.inf, a.bound)
        case "%" if not is_real:
            low = 0 if b.is_natural else -math.inf
            bound = a.bound if a.is_natural and b.is_natural and b.bound is None else b.bound
            return Interval(low, b.high if b.is_natural else math.inf, bound)
        case "&" if a.is_natural or b.is_natural:
            known = a if a.is_natural else b
            return Interval(0, known.high, known.bound)
        case "&" | "|" | "^":
            # Bits set in one operand only add at most that operand: the sum bounds the result.
            is_natural = a.is_natural and b.is_natural
            high = a.high + b.high if is_natural else math.inf
            return Interval(0 if is_natural else -math.inf, high, plus(a.bound, b.bound))
        case "**" if not is_real:
            high = _power(max(abs(a.low), a.high), b.high)
            is_even = b.low == b.high and b.high % 2 == 0
            low = 0 if a.is_natural or is_even else -high  # rule: power-sign
            return Interval(low, high, {(): int(high)} if math.isfinite(high) else None)
        case ">>" if a.is_natural:
            return Interval(0, a.high, a.bound)
        case "/" if a.is_natural and b.low > 0:
            return Interval(0, a.high / b.low, a.bound if b.low >= 1 else None)
        case "/" if _is_integer(expr.right):  # a nonzero integer is at least 1 in magnitude
            return Interval(bound=a.bound)
        case _:
            return range_of_type(expr.type)


def range_of_call(expr: ir.Call, args: list[Interval]) -> Interval:
    """The range of a builtin or helper whose arguments have the ranges `args`."""
    match expr.function:
        case helper if helper in OF_HELPERS:
            left, right = expr.args
            return range_of_binary(ir.Binary(OF_HELPERS[helper], left, right, type=expr.type), *args)
        case "ceil_div":
            is_natural = args[0].is_natural and args[1].is_natural
            return Interval(0 if is_natural else -math.inf, args[0].high if is_natural else math.inf, args[0].bound)
        case _:
            row = row_behind(expr.function)
            return range_of_type(expr.type) if row is None else _range_of_row(row, expr, args)


def _range_of_row(row: Builtin, expr: ir.Call, args: list[Interval]) -> Interval:
    match row.range:
        case None:
            return range_of_type(expr.type)
        case Bound.WHOLE:
            return Interval(0 if args[0].is_natural else -math.inf, math.inf, args[0].bound)
        case Bound.MAGNITUDE:
            return Interval(0, max(abs(args[0].low), abs(args[0].high)), args[0].bound)
        case Bound.GREATEST:
            deciding = _deciding(expr, args)
            return Interval(max(arg.low for arg in deciding), max(arg.high for arg in args), _largest_bound(args))
        case Bound.LEAST:
            deciding = _deciding(expr, args)
            bounds = [arg.bound for arg in deciding if arg.bound is not None]
            bound = bounds[0] if bounds and all(arg.is_natural for arg in args) else _largest_bound(args)
            return Interval(min(arg.low for arg in args), min(arg.high for arg in deciding), bound)
        case low, high:
            greatest = max(abs(low), abs(high))
            return Interval(low, high, {(): int(greatest)} if math.isfinite(greatest) else None)
        case _:
            assert_never(row.range)


def _deciding(expr: ir.Call, args: list[Interval]) -> list[Interval]:
    """The arguments of `min` or `max` that bound the result from both sides: the first, and all that cannot be NaN."""
    others = zip(expr.args[1:], args[1:], strict=True)
    return [args[0], *(known for arg, known in others if not _may_be_nan(arg))]  # rule: extremum-nan


def range_of_conversion(value: Interval, source: ir.Type, target: ir.Type) -> Interval:
    """The range of `value` converted from one type to another."""
    if isinstance(source, ir.ElementType | ir.PythonType) and isinstance(target, ir.ElementType | ir.PythonType):
        truncates = ir.kind_of(source) is Kind.FLOAT and ir.kind_of(target) is Kind.INT
        if truncates and math.isfinite(value.low) and math.isfinite(value.high):
            low, high = math.trunc(value.low), math.trunc(value.high)
            return Interval(low, high, {(): max(abs(low), abs(high))})
        if truncates:
            return Interval(0 if value.low > -1 else -math.inf)
        if ir.kind_of(target) is Kind.FLOAT:
            return rounded(value, target)
        if ir.kind_of(target) is Kind.BOOL:  # rule: range-of-truth
            return TRUTH
    return value


def range_of_constant(value: bool | int | float, type_: ir.Type) -> Interval:
    """The range of a literal of this type; a dtype that instantiates a type variable may round it."""
    if not isinstance(type_, ir.ElementType) or type_.dtype.kind is not Kind.FLOAT:
        return constant(value)
    dtypes = (F16, BF16) if type_.dtype.variable else (type_.dtype,)
    # rule: range-of-constant
    return constant(value) if all(represents(dtype, value) for dtype in dtypes) else rounded(constant(value), type_)


def rounded(exact: Interval, type_: ir.Type) -> Interval:
    """`exact` after rounding to floats of this type: bounds move out by one step, except zero and Python floats."""
    if type_ == ir.PY_FLOAT:
        return exact
    dtype = type_.dtype if isinstance(type_, ir.ElementType) else F32
    step = F32 if dtype in (F32, F64) else BF16  # the coarsest step that a type variable admits
    below, above = (step.epsilon * (abs(bound) + 1) if bound else 0.0 for bound in (exact.low, exact.high))
    low, high = exact.low - below, exact.high + above
    # rule: range-round
    return Interval(max(low, 0) if exact.low >= 0 else low, min(high, 0) if exact.high <= 0 else high)


def range_of_sum(a: Interval, b: Interval) -> Interval:
    """The range of `a + b`."""
    return Interval(a.low + b.low, a.high + b.high, plus(a.bound, b.bound))


def product_of_bounds(a: float, b: float) -> float:
    """`a * b`, where 0 times infinity is 0."""
    return 0.0 if a == 0 or b == 0 else a * b


def is_float(type_: ir.Type) -> bool:
    """True for real floating-point types, of elements and of Python."""
    return isinstance(type_, ir.ElementType | ir.PythonType) and ir.kind_of(type_) is Kind.FLOAT


def _largest_bound(args: list[Interval]) -> SymbolicBound | None:
    """A symbolic bound of the maximum of `args`."""
    bound = args[0].bound
    for arg in args[1:]:
        bound = larger(bound, arg.bound)
    return bound


def _may_be_nan(expr: ir.Expr) -> bool:
    """True if `expr` may be NaN: Python's `min` and `max` return NaN only if it is the first argument."""
    match expr:
        case ir.Constant(value=value):
            return math.isnan(value)
        case ir.Convert(value=value):
            return _may_be_nan(value)
        case ir.Call(function=function, args=(first, *_)) if (row := row_behind(function)) and row.rule is Rule.CHOICE:
            return _may_be_nan(first)
        case _:
            return not isinstance(expr.type, ir.ElementType | ir.PythonType) or ir.kind_of(expr.type) > Kind.INT


def _is_integer(expr: ir.Expr) -> bool:
    """True for a Python integer, before its conversion to a float by true division."""
    inner = expr.value if isinstance(expr, ir.Convert) else expr
    return isinstance(inner.type, ir.PythonType) and inner.type.kind is Kind.INT


def _power(base: float, exponent: float) -> float:
    """The magnitude of a power whose base has the magnitude `base`; infinity if it exceeds 64 bits."""
    if base <= 1:
        return 1
    return base**exponent if 0 <= exponent * math.log2(base) <= 64 else math.inf  # rule: power-bound
