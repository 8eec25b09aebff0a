"""Widens operations on halves to float32 where C++ has no operator for halves, or only a less exact function than
torch's; the result is rounded to the half type after every operation, as in torch.

    x[i] + y[i]         x[i] + y[i]                                   __half has it
    math.exp(x[i])      float16(exp(float32(x[i])))
    x[i] // y[i]        float16(float32(x[i]) // float32(y[i]))
    int(x[i])           int(float32(x[i]))
    opmath(x[i])        float32(x[i])
    float16(d[i])       float16(float32(d[i]))            also of a double or a wide integer, which C++ rounds once

In a generic kernel that has instances for halves, all instances share one text, with `to_compute_type(x[i])` and
`round_to<T>(d[i])`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from py2cu import ir
from py2cu.analysis.effects import is_collective
from py2cu.analysis.promotion import as_float
from py2cu.builtins import ROWS, Rule
from py2cu.diagnostics import Reporter
from py2cu.dtypes import F32, Kind
from py2cu.ir.rewrite import rebuild_block, with_fields
from py2cu.ir.visit import all_expressions

_SINGLE = ir.ElementType(F32)
TO_COMPUTE_TYPE: Final = "to_compute_type"
ROUND_TO: Final = "round_to"


def widen_halves(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """The kernel with halves only as operands of `+ - * /`, signs and comparisons, and in loads and stores.

    `narrow_floats` adds the helper `round_to`, because that pass removes some of the calls of `round_to`.
    """
    if not any(_is_rounded(expr.type) for expr in all_expressions(kernel.body)):
        return kernel
    body = rebuild_block(kernel.body, _widen)
    uses_helper = any(isinstance(node, ir.Call) and node.function == TO_COMPUTE_TYPE for node in all_expressions(body))
    return with_fields(kernel, body=body, helpers=(*kernel.helpers, *((TO_COMPUTE_TYPE,) if uses_helper else ())))


def _widen(expr: ir.Expr) -> ir.Expr:
    match expr:
        case ir.Binary(op="**", right=right) if constant_exponent(right) in (2, 3, -1, -2):  # rule: half-power
            return expr  # products and quotients
        case ir.Binary(op="//" | "%" | "**", left=left, right=right, type=type_) if _is_rounded(type_):
            wide = replace(expr, left=_wide(left), right=_wide(right), type=_wide_type(type_))
            return ir.Convert(wide, type_, wide.span)
        case ir.Call(function="py2cu.opmath", args=(value,)):
            operand = _wide(value)
            return replace(operand, explicit=True) if isinstance(operand, ir.Convert) else operand  # rule: half-opmath
        case ir.Call(args=args, type=type_) if _takes_halves(expr):
            # rule: half-part
            call = replace(expr, args=tuple(_wide(arg) if _is_rounded(arg.type) else arg for arg in args))
            return ir.Convert(replace(call, type=_wide_type(type_)), type_, call.span) if _is_rounded(type_) else call
        case ir.Unary(op="+", operand=operand, type=type_) if _is_rounded(type_):
            return operand  # C++ would promote some half types to float
        case ir.Convert(value=value, type=type_) if _is_half(type_) and may_be_half(value.type):  # rule: half-widened
            return replace(expr, value=ir.Convert(value, _SINGLE, value.span))
        case ir.Convert(value=value, type=type_) if may_be_half(type_) and not _is_half(value.type):
            return convert_generic(value, type_)
        case ir.Convert(value=value, type=type_) if _is_half(type_) or _is_half(value.type):
            return expr if _SINGLE in (value.type, type_) else replace(expr, value=_wide(value))
        case _:
            return expr


def constant_exponent(exponent: ir.Expr) -> float | None:
    """The value of a constant exponent, also of one that this pass widened; None for any other."""
    match exponent:
        case ir.Constant(value=value) | ir.Call(function="to_compute_type", args=(ir.Constant(value=value),)):
            return value if isinstance(value, int | float) else None
        case _:
            return None


def convert_generic(value: ir.Expr, type_: ir.Type) -> ir.Expr:
    """`value` converted to a type variable; through float32 if that may be a half and `value` exceeds float32."""
    loses = may_be_half(type_) and not _fits_float32(value.type)  # rule: half-converted
    return ir.Call(ROUND_TO, (value,), value.span, type_) if loses else ir.Convert(value, type_, value.span)


def _fits_float32(type_: ir.Type) -> bool:
    """True if float32 represents every value of the type."""
    match type_:
        case ir.ElementType(dtype=dtype) if dtype.variable is not None:
            return False
        case ir.ElementType(dtype=dtype):
            return dtype.bits <= 16 or (dtype.kind is Kind.FLOAT and dtype.bits == 32)  # rule: half-of-float32
        case _:
            return type_ == ir.PY_BOOL


def _takes_halves(call: ir.Call) -> bool:
    row = ROWS.get(call.function)
    computes = not is_collective(call) and (row is None or row.rule not in (Rule.CHOICE, Rule.VIEW))  # rule: half-bits
    return computes and any(_is_rounded(arg.type) for arg in call.args)


def _is_half(type_: ir.Type) -> bool:
    """True for a half type that is not a type variable."""
    return isinstance(type_, ir.ElementType) and type_.dtype.is_half and type_.dtype.variable is None


def _is_rounded(type_: ir.Type) -> bool:
    """True for a half type, or a type variable that admits halves."""
    return isinstance(type_, ir.ElementType) and type_.dtype.admits_halves


def may_be_half(type_: ir.Type) -> bool:
    """True for a type variable that admits halves."""
    return _is_rounded(type_) and not _is_half(type_)


def _wide_type(type_: ir.Type) -> ir.ElementType:
    assert isinstance(type_, ir.ElementType)
    return ir.ElementType(type_.dtype.opmath)


def _wide(value: ir.Expr) -> ir.Expr:
    match value:
        case ir.Convert(value=ir.Call(function="builtins.abs", args=(operand,)) as magnitude, type=type_) if (
            _is_rounded(type_) and _is_widened(operand, type_)
        ):
            return magnitude  # `type_` holds it
        case ir.Constant(value=number, type=ir.ElementType(dtype=dtype)) if _is_half(value.type):
            rounded = as_float(dtype, number)  # may differ from the digits in the source
            return replace(value, value=rounded, type=_SINGLE, text=value.text if rounded.is_integer() else "")
        case _ if may_be_half(value.type):
            return ir.Call(TO_COMPUTE_TYPE, (value,), value.span, _wide_type(value.type))
        case _:
            return value if value.type == _SINGLE else ir.Convert(value, _SINGLE, value.span)


def _is_widened(value: ir.Expr, type_: ir.Type) -> bool:
    """True for a value of `type_` in the type that it is computed in."""
    match value:
        case ir.Convert(value=inner) | ir.Call(function="to_compute_type", args=(inner,)):
            return inner.type == type_
        case _:
            return False
