"""Widens the floats of annotations to 64 bits, for the check of gradients.

    x: float32[n], w: complex64[n]     →     x: float64[n], w: complex128[n]
    acc = local(4, float32)            →     acc = local(4, float64)

The type variables of a generic kernel admit wide floats alone (`wide_variables`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from py2cu import ir
from py2cu.diagnostics import Reporter
from py2cu.dtypes import C128, F64, DType, Kind, TypeVariable
from py2cu.ir.rewrite import with_fields

Type = TypeVar("Type", bound=ir.ValueType | ir.ArrayType)


def widen_floats(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """The kernel with float64 and complex128 in its parameters, arrays and annotated locals."""
    return with_fields(
        kernel,
        parameters=tuple(replace(each, type=_widened(each.type)) for each in kernel.parameters),
        array_decls=tuple(replace(each, type=_widened(each.type)) for each in kernel.array_decls),
        annotated=tuple(replace(each, type=_widened(each.type)) for each in kernel.annotated),
    )


def _widened(type_: Type) -> Type:
    match type_:
        case ir.ArrayType(dtype=dtype) | ir.ElementType(dtype=dtype):
            return replace(type_, dtype=_wide(dtype))
        case _:
            return type_


def wide_variables(kernel: ir.Kernel) -> tuple[TypeVariable, ...]:
    """The type variables of `kernel` with float64 and complex128 in the place of narrower floats."""
    return tuple(replace(v, admits=tuple(dict.fromkeys(map(_wide, v.admits)))) for v in kernel.variables)


def _wide(dtype: DType) -> DType:
    wide = {Kind.FLOAT: F64, Kind.COMPLEX: C128}.get(dtype.kind)
    return dtype if dtype.variable is not None or wide is None else wide
