"""Which types of Python numbers a parameter takes, by the kind of its type."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from typing import Final

import torch

from py2cu.dtypes import DType, Kind
from py2cu.ir.abi.parameters import Parameter
from py2cu.ir.types import ElementType, PythonType

SYMBOLS: Final = (torch.SymInt, torch.SymFloat)  # numbers while a call is traced
NUMBERS: Final[Mapping[Kind, tuple[str, tuple[type, ...]]]] = {
    Kind.BOOL: ("a bool", (bool, torch.SymBool)),
    Kind.INT: ("a whole number", (numbers.Integral, torch.SymInt)),
    Kind.FLOAT: ("a number", (numbers.Real, *SYMBOLS)),
    Kind.COMPLEX: ("a complex number", (numbers.Complex, *SYMBOLS)),
}
"""For each kind, its description and the types."""


def kind_of(parameter: Parameter) -> Kind:
    match parameter.type:
        case ElementType(dtype=DType(kind=kind)) | PythonType(kind=kind):
            return kind
        case _:
            raise AssertionError(parameter)
