"""Numba's signatures: `"void(float32[:, ::1], int32)"` → the type of each parameter.

In: a text, of the decorator or of `--signature`. Out: a `NumbaSignature`. Errors: `ValueError`, in words for users.
The language is that of `numba.types`: names (`float32`, `f4`, `intp`), arrays by their slices (`f4[:]` has any
strides, `f4[::1]` is contiguous), `Array(float32, 2, "C")`, `Tuple((int32, float32))`, `UniTuple(int32, 3)`; and
`int`, `float`, `bool` are numbers of Python. So is an integer that is no array: Numba computes with it in 64 bits.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from py2cu import ir
from py2cu.dtypes import SHORT, DType, Kind, find_dtype
from py2cu.source import parsed_expression

_PYTHON: Final = {"int": ir.PY_INT, "float": ir.PY_FLOAT, "bool": ir.PY_BOOL, "complex": ir.PY_COMPLEX}
_RANK: Final = 8


@dataclass(frozen=True, slots=True)
class NumbaArray:
    """An array: `float32[:, :]`, which has any strides, or `float32[:, ::1]`."""

    dtype: DType
    rank: int
    is_strided: bool


Number = ir.ElementType | ir.PythonType
NumbaType = Number | NumbaArray | tuple[Number, ...]
"""The type of a parameter: a number, an array, or a tuple of numbers."""


@dataclass(frozen=True, slots=True)
class NumbaSignature:
    """The types of a kernel's parameters, in order; `name` is the kernel, where the text says one."""

    name: str | None
    types: tuple[NumbaType, ...]


def read_signature(text: str) -> NumbaSignature:
    """The signature `text`: `void(f4[:], i4)`, `scale(f4[:], i4)` with the name of a kernel, or `(f4[:], i4)`.

    Raises:
        ValueError: the text is no signature.
    """
    try:
        node = parsed_expression(text.strip())
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError(f"`{text}` is no signature") from None
    match node:
        case ast.Call(func=function, args=arguments, keywords=[]):
            return NumbaSignature(_kernel(function), tuple(map(_type, arguments)))
        case ast.Tuple(elts=arguments):
            return NumbaSignature(None, tuple(map(_type, arguments)))
        case _:
            return NumbaSignature(None, (_type(node),))


def signature_for(kernel: str, texts: Iterable[str]) -> str | None:
    """The last of these valid signatures that names `kernel`, or else the last that names none; None without either."""
    named = {read_signature(text).name: text for text in texts}
    return named.get(kernel, named.get(None))


def _kernel(node: ast.expr) -> str | None:
    """The kernel that a signature names; None for its result, which is `void`."""
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else None
    if name in ("void", "none"):
        return None
    if name is None or isinstance(node, ast.Attribute) or _dtype(name) is not None:
        raise ValueError(f"a kernel returns nothing, not `{ast.unparse(node)}`: write `void(…)`")
    return name


def _type(node: ast.expr) -> NumbaType:
    match node:
        case ast.Subscript(value=element, slice=slices):
            return _array(node, _element(element), slices.elts if isinstance(slices, ast.Tuple) else [slices])
        case ast.Call(func=function, args=[element, ast.Constant(value=int(rank)), *layout]) if (
            _last(function) in ("Array", "array") and 0 <= rank <= _RANK
        ):
            order = getattr(layout[0], "value", None) if layout else "A"
            if order == "F":
                raise ValueError(_in_columns(node))
            if order not in ("C", "A"):
                raise ValueError(f"`{ast.unparse(node)}` is no array type: its layout is 'C' or 'A'")
            return NumbaArray(_element(element), rank, order != "C")
        case ast.Call(func=function, args=[element, ast.Constant(value=int(count))]) if (
            _last(function) == "UniTuple" and 0 < count <= _RANK
        ):
            return (_number(element),) * count
        case ast.Call(func=function, args=[ast.Tuple(elts=items) | ast.List(elts=items)]) if (
            _last(function) in ("Tuple", "tuple") and items
        ):
            return tuple(map(_number, items))
        case ast.Tuple(elts=items) if items:
            return tuple(map(_number, items))
        case _:
            return _number(node)


def _array(node: ast.expr, dtype: DType, slices: list[ast.expr]) -> NumbaArray:
    steps: list[bool] = []
    for each in slices:
        match each:
            case ast.Slice(lower=None, upper=None, step=None):
                steps.append(False)
            case ast.Slice(lower=None, upper=None, step=ast.Constant(value=1 as step)) if type(step) is int:
                steps.append(True)
            case _:
                raise ValueError(f"`{ast.unparse(node)}` is no array type: write `:` for each dimension")
    if any(steps[:-1]):
        raise ValueError(_in_columns(node))
    return NumbaArray(dtype, len(steps), not steps[-1])


def _in_columns(node: ast.expr) -> str:
    return f"`{ast.unparse(node)}` is contiguous in columns: write `:` for each dimension, which takes any strides"


def _number(node: ast.expr) -> Number:
    """`float32`; `int`, a number of Python, which takes the type of the elements that it meets."""
    if (python := _PYTHON.get(_last(node) or "")) is not None:
        return python
    dtype = _element(node)
    fits = dtype.kind is Kind.INT and (dtype.signed or dtype.bits < 64)
    return ir.PY_INT if fits else ir.ElementType(dtype)


def _element(node: ast.expr) -> DType:
    dtype = _dtype(_last(node) or "")
    if dtype is None:
        raise ValueError(f"`{ast.unparse(node)}` is no type that a kernel can take")
    return dtype


def _dtype(name: str) -> DType | None:
    return SHORT.get(name) or find_dtype(name)


def _last(node: ast.expr) -> str | None:
    """`float32` of `float32`, `types.float32` and `"float32"`."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.Constant(value=str(name)):
            return name
        case _:
            return None
