"""Emits torch schemas for the overloads of a kernel's op: `rgb2grey.out(Tensor x, Tensor(a!) out) -> ()`."""

from __future__ import annotations

import math
import sys
from itertools import chain

from py2cu import ir
from py2cu.dtypes import DType, Kind
from py2cu.ir.abi.parameters import Parameter, Role
from py2cu.ir.abi.signature import Signature

_SCHEMA_SCALARS = {Kind.BOOL: "bool", Kind.INT: "int", Kind.FLOAT: "float", Kind.COMPLEX: "float"}


def operators(kernel: ir.Kernel, signature: Signature) -> tuple[tuple[str, str], ...]:
    """The schema and C++ function of each overload: allocating its outputs, filling given ones, on an explicit grid."""
    name, outputs = kernel.symbol, len(signature.outputs)
    everything = signature.parameters
    overloads = []
    if signature.size is not None and outputs:
        returns = "Tensor" if outputs == 1 else f"({', '.join(['Tensor'] * outputs)})"
        schema = _schema(kernel, name, signature.inputs, signature, defaults=True, returns=returns)
        overloads += [(schema, f"{name}_new"), (_schema(kernel, f"{name}.out", everything, signature), f"{name}_fill")]
    elif signature.size is not None:
        overloads.append((_schema(kernel, name, everything, signature, defaults=True), f"{name}_fill"))
    on_grid = _schema(kernel, f"{name}.grid", everything, signature, "int[] grid", "int[] block")
    return (*overloads, (on_grid, f"{name}_on_grid"))


def _schema(
    kernel: ir.Kernel,
    name: str,
    parameters: tuple[Parameter, ...],
    signature: Signature,
    *more: str,
    defaults: bool = False,
    returns: str = "()",
) -> str:
    """`rgb2grey.out(Tensor x, Tensor(a!) out) -> ()`.

    Scalars have the user's defaults. With `defaults`, so do trailing template arguments, and trailing extents that
    follow from shapes are None by default. A parameter without a default behind one with a default is keyword-only.
    """
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    has_default = _defaults_in(parameters, signature, trailing=defaults)
    items: list[list[str]] = []
    for parameter, is_default in zip(parameters, has_default, strict=True):
        spelled = parameter.name if parameter.name.isascii() else kernel.c_name(parameter.name)
        match parameter.type:
            case ir.ArrayType():
                alias = f"({next(letters)}!)" if parameter.role is not Role.INPUT else ""
                optional = "?" if parameter.may_be_none else ""
                items.append(
                    [f"Tensor{alias}{optional} {spelled}" + ("=None" if parameter.may_be_none and is_default else "")]
                )
                continue
            case ir.ElementType(dtype=DType(kind=kind)) | ir.PythonType(kind=kind):
                scalar = _SCHEMA_SCALARS[kind]
        if signature.is_derived(parameter):
            items.append([f"{scalar}? {spelled}" + ("=None" if is_default else "")])
            continue
        names = (f"{spelled}_real", f"{spelled}_imag") if ir.is_complex(parameter.type) else (spelled,)
        values = default_parts(parameter) if is_default else (None,) * len(names)
        items.append([_scalar(scalar, *each) for each in zip(names, values, strict=True)])
    place = _first_by_keyword((*has_default, *(False for _ in more)))
    words = [*items, *([text] for text in more)]
    words[place:] = [["*"], *words[place:]] if place < len(words) else []
    return f"{name}({', '.join(chain.from_iterable(words))}) -> {returns}"


def _defaults_in(parameters: tuple[Parameter, ...], signature: Signature, *, trailing: bool) -> tuple[bool, ...]:
    """Which parameters of an overload have a default."""
    start = len(parameters)
    while trailing and start and signature.is_optional(parameters[start - 1]):
        start -= 1
    return tuple(
        place >= start or parameter.may_be_none or (parameter.default is not None and parameter.constexpr is None)
        for place, parameter in enumerate(parameters)
    )


def _first_by_keyword(has_default: tuple[bool, ...]) -> int:
    """The place of the first parameter without a default behind one that has one; their count if there is none."""
    first = has_default.index(True) if True in has_default else len(has_default)
    return has_default.index(False, first) if False in has_default[first:] else len(has_default)


def default_parts(parameter: Parameter) -> tuple[bool | int | float, ...]:
    """The default of a scalar in torch's schema; both parts of a complex number."""
    assert parameter.default is not None
    value = parameter.default.value
    return (value.real, value.imag) if isinstance(value, complex) else (value,)


def is_unsupported(value: float | None) -> bool:
    """True for a default that a schema cannot express: infinities, NaN and subnormals; it has None in their place."""
    return value is not None and (not math.isfinite(value) or 0 < abs(value) < sys.float_info.min)


def _scalar(kind: str, name: str, default: float | None) -> str:
    if default is None:
        return f"{kind} {name}"
    return f"{kind}? {name}=None" if is_unsupported(default) else f"{kind} {name}={default}"
