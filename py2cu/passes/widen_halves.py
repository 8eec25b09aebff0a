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
from py2cu.dtypes import F32
from py2cu.ir.extents import Binary, Constant
from py2cu.ir.nodes import Call, Convert, Expr
from py2cu.ir.statements import Kernel
from py2cu.ir.types import ElementType, Type
from py2cu.ir.visit import rebuild_block
from py2cu.passes.promotion import as_float

_SINGLE = ElementType(F32)
_COMPARING = ("builtins.min", "builtins.max")  # these only choose


def widen_halves(kernel: Kernel, reporter: Reporter) -> Kernel:
    """The kernel with halves only where `+ - * /`, signs, comparisons, loads and stores meet them."""
    return replace(kernel, body=rebuild_block(kernel.body, _widen))


def _widen(expr: Expr) -> Expr:
    match expr:
        case Binary(op="//" | "%" | "**", left=left, right=right, type=type_) if _is_half(type_):
            return _rounded(replace(expr, left=_single(left), right=_single(right), type=_SINGLE), type_)
        case Call(function=function, args=args, type=type_) if function not in _COMPARING and any(
            _is_half(arg.type) for arg in args
        ):
            wide = replace(expr, args=tuple(map(_single, args)))
            return _rounded(replace(wide, type=_SINGLE), type_) if _is_half(type_) else wide
        case Convert(value=value, type=type_) if (_is_half(type_) or _is_half(value.type)) and type_ != value.type:
            return expr if _SINGLE in (value.type, type_) else replace(expr, value=_single(value))
        case _:
            return expr


def _takes_halves(call: Call) -> bool:
    return call.function not in _COMPARING and any(_is_half(arg.type) for arg in call.args)


def _is_half(type_: Type) -> bool:
    return isinstance(type_, ElementType) and type_.dtype.is_half


def _single(value: Expr) -> Expr:
    match value:
        case Constant(value=number, type=ElementType(dtype=dtype)) if dtype.is_half:
            return replace(value, value=as_float(dtype, number), type=_SINGLE)
        case Convert(value=Call(function="builtins.abs") as magnitude, type=type_) if _is_half(type_):
            return magnitude  # no rounding happened
        case _:
            return value if value.type == _SINGLE else Convert(value, _SINGLE, value.span)


def _rounded(value: Expr, type_: Type) -> Expr:
    return Convert(value, type_, value.span)
