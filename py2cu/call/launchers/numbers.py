"""Which types of Python numbers a parameter takes, by the kind of its type.

And, for launchers, the lines that unpack tuples of numbers and refuse those of other types: the form of a call says
that there is a tuple, no more.
"""

from __future__ import annotations

import numbers
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

import torch

from py2cu.dtypes import DType, Kind
from py2cu.ir.abi.parameters import Parameter
from py2cu.ir.abi.signature import Signature
from py2cu.ir.types import ElementType, PythonType

SYMBOLS: Final = (torch.SymInt, torch.SymFloat)  # numbers while a call is traced
NUMBERS: Final[Mapping[Kind, tuple[str, tuple[type, ...]]]] = {
    Kind.BOOL: ("a bool", (bool, torch.SymBool)),
    Kind.INT: ("a whole number", (numbers.Integral, torch.SymInt)),
    Kind.FLOAT: ("a number", (numbers.Real, *SYMBOLS)),
    Kind.COMPLEX: ("a complex number", (numbers.Complex, *SYMBOLS)),
}
"""For each kind, its description and the types."""

_USUAL: Final = {Kind.BOOL: "bool", Kind.INT: "int", Kind.FLOAT: "float", Kind.COMPLEX: "complex"}
"""By kind, the usual type of a number, for which a test by identity is enough."""


def kind_of(parameter: Parameter) -> Kind:
    match parameter.type:
        case ElementType(dtype=DType(kind=kind)) | PythonType(kind=kind):
            return kind
        case _:
            raise AssertionError(parameter)


def unpacked(signature: Signature, passed: Collection[str], names: dict[str, Any]) -> Iterator[str]:
    """Lines that define `v_f_0`, `v_f_1` of a tuple `f`, and, in `names`, what they refer to."""
    for name, items in signature.tuples:
        if name not in passed:
            continue
        yield f"{' '.join(f'v_{item},' for item in items)} = v_{name}"
        for item in items:
            kind = kind_of(signature.parameter(item))
            names[f"accepted_{_USUAL[kind]}"] = NUMBERS[kind][1]
            test = f"not isinstance(v_{item}, accepted_{_USUAL[kind]})"
            yield f"if v_{item}.__class__ is not {_USUAL[kind]} and {test}: raise misfit"
