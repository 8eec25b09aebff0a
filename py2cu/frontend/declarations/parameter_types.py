"""Types of parameters, as annotations denote them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeGuard

from py2cu import ir
from py2cu.dtypes import DType
from py2cu.ir.printer import print_expr


@dataclass(frozen=True, slots=True)
class IndexAnnotation:
    """`Index["n"]`, `Index[int, "n"]`."""

    extent: ir.DimExpr


@dataclass(frozen=True, slots=True)
class ConstexprAnnotation:
    """`Constexpr[int]`, `Constexpr[bool]`."""

    type: ir.PythonType


@dataclass(frozen=True, slots=True)
class OptionalAnnotation:
    """`Float32[Tensor, "n"] | None`, `float | None`."""

    type: ir.ArrayType | ir.PythonType


@dataclass(frozen=True, slots=True)
class TupleAnnotation:
    """`tuple[float, int]`."""

    items: tuple[ir.ElementType | ir.PythonType, ...]


ParameterType = (
    ir.ArrayType
    | ir.ElementType
    | ir.PythonType
    | IndexAnnotation
    | ConstexprAnnotation
    | OptionalAnnotation
    | TupleAnnotation
)


def may_be_none(type_: ParameterType | None) -> TypeGuard[ir.ArrayType | ir.PythonType]:
    """True for the types of parameters that a call may leave out without a default."""
    return isinstance(type_, ir.ArrayType) or (isinstance(type_, ir.PythonType) and not ir.is_complex(type_))


def with_dims_of(array: ir.ArrayType, dtype: DType) -> str:
    """The annotation of an array with the dimensions of another one: `BFloat16[Tensor, "m n"]`."""
    dims = [print_expr(dim).replace(" ", "") for dim in array.dims]
    dims[: bool(array.leading)] = [array.leading] * bool(array.leading)
    name = dtype.jaxtyping if dtype.variable is None else dtype.variable.annotation
    return f'{name}[Tensor, "{" ".join(dims)}"]'
