"""Lowers conversions between number types, and says where an expression is unsigned in CUDA.

    bool(x)             x != 0
    uint8(f)            static_cast<uint8_t>(static_cast<int64_t>(f))     a float that may lie outside uint8
    uint64(f)           to_uint64(f)

`operators.py` calls `ConversionLowering` for every `Convert` of a kernel.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from py2cu import ir
from py2cu.analysis.ranges import Ranges
from py2cu.dtypes import U64, Kind, promote
from py2cu.ir.complex_numbers import of_real
from py2cu.passes.lowering.required_helpers import RequiredHelpers


@dataclass(frozen=True, slots=True)
class ConversionLowering:
    """Lowers the conversions of one kernel."""

    ranges: Ranges
    helpers: RequiredHelpers

    def convert(self, expr: ir.Convert) -> ir.Expr:
        source, target = expr.value.type, expr.type
        assert isinstance(source, ir.ElementType | ir.PythonType) and isinstance(target, ir.ElementType | ir.PythonType)
        if isinstance(expr.value, ir.Convert) and source == target:  # the widths may differ
            return replace(expr.value, type=target)  # rule: widened-operand
        if isinstance(expr.value, ir.Convert) and expr.value.value.type == target and widens(target, source):
            return expr.value.value
        if ir.kind_of(target) is Kind.BOOL and ir.kind_of(source) is not Kind.BOOL:
            return nonzero(expr.value)
        if isinstance(target, ir.ElementType) and target.dtype.kind is Kind.INT and ir.kind_of(source) is Kind.FLOAT:
            return self.truncate(expr, target)  # rule: truncation
        return expr

    def truncate(self, expr: ir.Convert, target: ir.ElementType) -> ir.Expr:
        """A float that may lie outside an unsigned or narrow type goes through int64, as torch's CPU does."""
        value, dtype = self.ranges.of(expr.value), target.dtype
        if value.low > dtype.low - 1 and value.high < dtype.high + 1:
            return expr
        if dtype is U64:
            self.helpers.require("to_uint64")
            return ir.Call("to_uint64", (expr.value,), expr.span, target)
        if dtype.bits < 32 or not dtype.signed:
            return replace(expr, value=ir.Convert(expr.value, ir.LONG, expr.span, explicit=True))
        return expr


def to_signed(expr: ir.Expr) -> ir.Expr:
    """`expr` with CUDA's unsigned launch objects made signed, for operations with numbers that may be negative."""
    match expr:
        case ir.Binary(op="+" | "*", left=left, right=right) if is_unsigned(left) != is_unsigned(right):
            return replace(expr, left=to_signed(left), right=to_signed(right))
    return ir.Convert(expr, expr.type, expr.span, explicit=True) if is_unsigned(expr) else expr


def nonzero(value: ir.Expr) -> ir.Compare:
    """The truth of a number."""
    type_ = value.type
    assert isinstance(type_, ir.ElementType | ir.PythonType)
    zero = ir.Constant(0 if ir.kind_of(type_) < Kind.FLOAT else 0.0, value.span, ir.part_of(type_))
    return ir.Compare("!=", value, of_real(zero, type_) if ir.is_complex(type_) else zero, value.span)


def widens(narrow: ir.ScalarType, wide: ir.ScalarType) -> bool:
    """True if `wide` represents every value of `narrow`, so that converting there and back changes nothing."""
    match narrow, wide:
        case ir.ElementType(dtype=a), ir.ElementType(dtype=b):
            return promote(a, b) is b
        case ir.ElementType(dtype=a), ir.PythonType(kind=kind):
            return a.kind is kind and (kind is Kind.FLOAT or a.bits < 64)
        case _:
            return False


def is_generic(type_: ir.Type) -> bool:
    """True for a type variable: all instances are lowered alike, into one template."""
    return isinstance(type_, ir.ElementType) and type_.dtype.variable is not None


def wrapping(expr: ir.Binary[ir.Expr] | ir.Unary | ir.Call) -> ir.Convert:
    """Narrow arithmetic cast to its own type, since C computes it in `int`."""
    return ir.Convert(expr, expr.type, expr.span, explicit=True)


def strip_wrap(expr: ir.Expr) -> ir.Expr:
    """`expr` without the cast of `wrapping`, for values that are stored in their own type anyway."""
    if (
        isinstance(expr, ir.Convert)
        and expr.explicit
        and expr.type == expr.value.type
        and isinstance(expr.value, ir.Binary | ir.Unary)
    ):
        return expr.value if isinstance(expr.type, ir.ElementType) else expr
    return expr


def is_unsigned(expr: ir.Expr) -> bool:
    """True where CUDA computes `expr` in unsigned arithmetic."""
    match expr:
        case ir.LaunchIndex():
            return True
        case ir.Unary(op="+", operand=operand):
            return is_unsigned(operand)  # rule: index-operand
        case ir.Binary(op="+" | "*" | "/" | "%" | "&" | "|" | "^", left=left, right=right):
            return is_unsigned(left) or is_unsigned(right)
        case _:
            return False
