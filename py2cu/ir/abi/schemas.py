"""Spells torch schemas for the overloads of a kernel's op: `rgb2grey.out(Tensor x, Tensor(a!) out) -> ()`.

In: a `Signature` and a `SchemaStyle`. Out: a schema for each overload. The op of the emitted binding takes plain
integers; the op `py2cu::…` (`call/definition.py`) takes symbolic ones.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from itertools import chain

from py2cu.dtypes import DType, Kind
from py2cu.ir.abi.parameters import Parameter, Role
from py2cu.ir.abi.signature import Signature
from py2cu.ir.types import ArrayType, ElementType, PythonType, is_complex
from py2cu.records import record

ALLOCATES, FILLS, ON_GRID = "default", "out", "grid"
"""The overloads: one allocates the outputs, or there are none; one fills given outputs; one is an explicit launch."""


@record(frozen=True, slots=True)
class SchemaStyle:
    """How the schemas of one op name parameters, spell integers, and which integers a call may leave out."""

    spell: Callable[[Parameter], str]
    integer: str
    may_omit: Callable[[Parameter], bool]

    def arguments(self, parameter: Parameter) -> tuple[str, ...]:
        """The op's names for a parameter: a complex number is two real ones, since torch's stable ABI has none."""
        name = self.spell(parameter)
        return (f"{name}_real", f"{name}_imag") if is_complex(parameter.type) else (name,)

    def scalar(self, kind: Kind) -> str:
        return {Kind.BOOL: "bool", Kind.INT: self.integer}.get(kind, "float")

    def is_optional(self, parameter: Parameter) -> bool:
        return parameter.default is not None or parameter.may_be_none or self.may_omit(parameter)


def schemas(name: str, signature: Signature, style: SchemaStyle) -> dict[str, str]:
    """The schema of each overload that the kernel has."""
    everything = signature.parameters
    outputs = len(signature.outputs) if signature.op_allocates else 0
    overloads = {}
    if signature.size is not None and outputs:
        returns = "Tensor" if outputs == 1 else f"({', '.join(['Tensor'] * outputs)})"
        overloads[ALLOCATES] = _schema(name, signature.inputs, style, defaults=True, returns=returns)
        overloads[FILLS] = _schema(f"{name}.{FILLS}", everything, style)
    elif signature.size is not None:
        overloads[ALLOCATES] = _schema(name, everything, style, defaults=True)
    launch = (f"{style.integer}[] grid", f"{style.integer}[] block")
    overloads[ON_GRID] = _schema(f"{name}.{ON_GRID}", everything, style, *launch)
    return overloads


def _schema(
    name: str,
    parameters: tuple[Parameter, ...],
    style: SchemaStyle,
    *more: str,
    defaults: bool = False,
    returns: str = "()",
) -> str:
    """`rgb2grey.out(Tensor x, Tensor(a!) out) -> ()`.

    Scalars have the user's defaults. With `defaults`, so do trailing template arguments, and trailing extents that
    follow from shapes are None by default. A parameter without a default behind one with a default is keyword-only.
    """
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    has_default = _defaults_in(parameters, style, trailing=defaults)
    items: list[list[str]] = []
    for parameter, is_default in zip(parameters, has_default, strict=True):
        names = style.arguments(parameter)
        match parameter.type:
            case ArrayType():
                alias = f"({next(letters)}!)" if parameter.role is not Role.INPUT else ""
                optional = "?" if parameter.may_be_none else ""
                default = "=None" if parameter.may_be_none and is_default else ""
                items.append([f"Tensor{alias}{optional} {names[0]}{default}"])
                continue
            case ElementType(dtype=DType(kind=kind)) | PythonType(kind=kind):
                scalar = style.scalar(kind)
        if parameter.may_be_none or style.may_omit(parameter):
            items.append([f"{scalar}? {names[0]}" + ("=None" if is_default else "")])
            continue
        values = default_parts(parameter) if is_default else (None,) * len(names)
        items.append([_scalar(scalar, *each) for each in zip(names, values, strict=True)])
    place = _first_by_keyword((*has_default, *(False for _ in more)))
    words = [*items, *([text] for text in more)]
    words[place:] = [["*"], *words[place:]] if place < len(words) else []  # rule: default-star
    return f"{name}({', '.join(chain.from_iterable(words))}) -> {returns}"


def _defaults_in(parameters: tuple[Parameter, ...], style: SchemaStyle, *, trailing: bool) -> tuple[bool, ...]:
    """Which parameters of an overload have a default."""
    start = len(parameters)
    while trailing and start and style.is_optional(parameters[start - 1]):
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
