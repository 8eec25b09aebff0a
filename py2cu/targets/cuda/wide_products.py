"""Multiplies numbers of 32 bits to one of 64 bits by a single instruction.

    uint64(a) * 0xD2511F53        →        wide_product(a, 0xD2511F53)        a is a uint32

nvcc (13.0) multiplies by a constant beyond int32 in 64 bits, and adds products with the upper half of each operand.
"""

from __future__ import annotations

from typing import Final

from py2cu import ir
from py2cu.diagnostics import Reporter
from py2cu.dtypes import U32, U64, Kind
from py2cu.ir.rewrite import with_fields
from py2cu.passes.lowering.required_helpers import with_helper

HELPER: Final = "wide_product"
_UINT32: Final = ir.ElementType(U32)


def multiply_wide(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """The kernel with such products as calls of a helper."""
    return with_helper(kernel, HELPER, _product)


def _product(expr: ir.Expr) -> ir.Expr:
    match expr:
        case ir.Binary(op="*", left=left, right=right, type=ir.ElementType(dtype=dtype)) if dtype is U64:
            a, b = _narrow(left), _narrow(right)
            return expr if a is None or b is None else ir.Call(HELPER, (a, b), expr.span, expr.type)
        case _:
            return expr


def _narrow(operand: ir.Expr) -> ir.Expr | None:
    """A uint64 as a uint32, if it is known to be one."""
    match operand:
        case ir.Constant(value=value) if value <= U32.high:  # rule: wide-product
            return with_fields(operand, type=_UINT32)
        case ir.Convert(value=value) if _is_narrow(value.type):
            return value if value.type == _UINT32 else with_fields(operand, type=_UINT32)
        case _:
            return None


def _is_narrow(type_: ir.Type) -> bool:
    if not isinstance(type_, ir.ElementType) or type_.dtype.kind is not Kind.INT:
        return False
    return not type_.dtype.signed and type_.dtype.variable is None and type_.dtype.bits <= U32.bits
