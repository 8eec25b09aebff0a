"""Halves are rounded after every operation, as torch rounds them; where C++ has no operator for them, or a function
would be less exact than torch's, the operation runs in float32.

    x[i] + y[i]         x[i] + y[i]                                   __half has it
    math.exp(x[i])      float16(exp(float32(x[i])))
    x[i] // y[i]        float16(float32(x[i]) // float32(y[i]))
    int(x[i])           int(float32(x[i]))
"""

from __future__ import annotations

from dataclasses import replace

from py2cu.diagnostics import Reporter
from py2cu.dtypes import F32, F64, Kind
from py2cu.ir.extents import Binary, Constant
from py2cu.ir.kernel import Kernel
from py2cu.ir.nodes import Call, Convert, Expr, Unary
from py2cu.ir.types import ElementType, Type
from py2cu.ir.visit import all_expressions, changed, rebuild_block
from py2cu.ir.waiting import WARP_CALLS
from py2cu.passes.promotion import as_float

_SINGLE = ElementType(F32)
_COMPARING = ("builtins.min", "builtins.max")  # these only choose
WIDENED = "widened"


def widen_halves(kernel: Kernel, reporter: Reporter) -> Kernel:
    """The kernel with halves only where `+ - * /`, signs, comparisons, loads and stores meet them.

    In a generic kernel that halves may call, every instance is written alike, with `widened(x[i])`.
    """
    if not any(_is_rounded(expr.type) for expr in all_expressions(kernel.body)):
        return kernel
    body = rebuild_block(kernel.body, _widen)
    uses_helper = any(isinstance(node, Call) and node.function == WIDENED for node in all_expressions(body))
    return changed(kernel, body=body, helpers=(*kernel.helpers, *((WIDENED,) if uses_helper else ())))


def _widen(expr: Expr) -> Expr:
    match expr:
        case Binary(op="//" | "%" | "**", left=left, right=right, type=type_) if _is_rounded(type_):
            wide = replace(expr, left=_wide(left), right=_wide(right), type=_wide_type(type_))
            return Convert(wide, type_, wide.span)
        case Call(args=args, type=type_) if _takes_halves(expr):
            call = replace(expr, args=tuple(_wide(arg) if _is_rounded(arg.type) else arg for arg in args))
            return Convert(replace(call, type=_wide_type(type_)), type_, call.span) if _is_rounded(type_) else call
        case Unary(op="+", operand=operand, type=type_) if _is_rounded(type_):
            return operand  # C++ would make a float of some halves
        case Convert(value=value, type=type_) if _is_half(type_) or _is_half(value.type):
            return expr if _SINGLE in (value.type, type_) else replace(expr, value=_wide(value))
        case _:
            return expr


def _takes_halves(call: Call) -> bool:
    return call.function not in (*_COMPARING, *WARP_CALLS) and any(_is_rounded(arg.type) for arg in call.args)


def _is_half(type_: Type) -> bool:
    """A half that is no instance of a type variable."""
    return isinstance(type_, ElementType) and type_.dtype.is_half and type_.dtype.variable is None


def _is_rounded(type_: Type) -> bool:
    """A half, or what a half may stand for as well."""
    if not isinstance(type_, ElementType) or type_.dtype.kind is not Kind.FLOAT:
        return False
    variable = type_.dtype.variable
    return variable.admits_halves if variable else type_.dtype.is_half


def _wide_type(type_: Type) -> ElementType:
    assert isinstance(type_, ElementType)
    return ElementType(F64) if type_.dtype.plain is F64 else _SINGLE


def _wide(value: Expr) -> Expr:
    match value:
        case Convert(value=Call(function="builtins.abs") as magnitude, type=type_) if _is_rounded(type_):
            return magnitude  # no rounding happened
        case Constant(value=number, type=ElementType(dtype=dtype)) if _is_half(value.type):
            held = as_float(dtype, number)  # which the digits in the source need not say
            return replace(value, value=held, type=_SINGLE, text=value.text if held.is_integer() else "")
        case _ if _is_rounded(value.type) and not _is_half(value.type):
            return Call(WIDENED, (value,), value.span, _wide_type(value.type))
        case _:
            return value if value.type == _SINGLE else Convert(value, _SINGLE, value.span)
