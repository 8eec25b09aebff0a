"""Bind the dimension names of a signature to the extents of a call's arrays, and turn flat positions into indices.

In: a `Signature` and a call's arguments by name, or a shape. Out: `bind_dims`, the value of every name; `unravel`, an
index in every dimension. Errors: shapes that contradict each other, an input array that is missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from py2cu.dtypes import DType, Kind
from py2cu.ir.abi.parameters import Parameter, Role
from py2cu.ir.abi.signature import Signature, evaluate
from py2cu.ir.types import ArrayType, ElementType, Name, PythonType


def bind_dims(signature: Signature, arguments: Mapping[str, Any]) -> dict[str, int]:
    """The value of every dimension name and integer parameter, from shapes and scalars; outputs may be absent.

    An array that may be None may be absent, too: the dimensions that only this array has are 0 then.

    Raises:
        ValueError: a shape that contradicts another, or an argument that is missing.
    """
    numbers = ((p.name, arguments.get(p.name)) for p in signature.parameters if _is_whole(p))
    # A number of a traced call is symbolic, and stays so.
    dims = {name: int(value) if isinstance(value, int) else value for name, value in numbers if value is not None}
    for parameter in signature.arrays:
        if parameter.name not in arguments and parameter.role is not Role.OUTPUT and not parameter.may_be_none:
            raise ValueError(f"`{signature.name}` needs the array `{parameter.name}`")
    optional = {p.name for p in signature.arrays if p.may_be_none}
    for dim in signature.dims:
        if dim.array is not None and dim.array in arguments:
            dims.setdefault(dim.name, dim.solve(signature.flat_shape(dim.array, arguments)[dim.axis], dims))
        elif dim.array in optional:
            dims.setdefault(dim.name, 0)
    for parameter in (p for p in signature.arrays if p.name in arguments):
        _check_shape(parameter.name, parameter.type, signature.flat_shape(parameter.name, arguments), dims)
    return dims


def _is_whole(parameter: Parameter) -> bool:
    match parameter.type:
        case ElementType(dtype=DType(kind=Kind.BOOL | Kind.INT)) | PythonType(kind=Kind.BOOL | Kind.INT):
            return True
        case _:
            return False


def _check_shape(name: str, type_: object, shape: tuple[int, ...], dims: dict[str, int]) -> None:
    """Check one array's shape against its annotation; a name without a value takes it from this array."""
    assert isinstance(type_, ArrayType)
    if len(shape) != len(type_.dims):
        raise ValueError(f"`{name}` has {len(shape)} dimensions, its annotation {len(type_.dims)}")
    for axis, (extent, dim) in enumerate(zip(shape, type_.dims, strict=True)):
        if isinstance(dim, Name):
            dims.setdefault(dim.id, extent)
        expected = evaluate(dim, dims)
        if expected != extent:
            raise ValueError(f"axis {axis} of `{name}` has extent {extent}, expected {expected}")


def unravel(position: int, extents: Sequence[int]) -> tuple[int, ...]:
    """The index, in every dimension, of a flat position in an array of these extents; the last index runs fastest."""
    index: list[int] = []
    for extent in reversed(extents):
        position, at = divmod(position, extent)
        index.append(at)
    return (*reversed(index),)
