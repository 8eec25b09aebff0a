"""The lines of a launcher that unpack tuples of numbers.

In: a `Signature`, the names of a call's arguments. Out: lines of Python that define `v_f_0`, `v_f_1` of a tuple `f`.
Promise: they refuse a number of a type that `bind.py` refuses. The form of a call says that there is a tuple, no more.
"""

from __future__ import annotations

import numbers
from collections.abc import Collection, Iterator
from typing import Any, Final

from py2cu.dtypes import DType, Kind
from py2cu.ir.abi.signature import Signature
from py2cu.ir.types import ElementType, PythonType

_NUMBERS: Final[dict[Kind, tuple[type, type]]] = {
    Kind.BOOL: (bool, bool),
    Kind.INT: (int, numbers.Integral),
    Kind.FLOAT: (float, numbers.Real),
    Kind.COMPLEX: (complex, numbers.Complex),
}
"""The usual type of a number, and what a call accepts."""


def unpacked(signature: Signature, passed: Collection[str], names: dict[str, Any]) -> Iterator[str]:
    """The lines, and, in `names`, what they refer to."""
    for name, items in signature.tuples:
        if name not in passed:
            continue
        yield f"{' '.join(f'v_{item},' for item in items)} = v_{name}"
        for item in items:
            usual, accepted = _NUMBERS[_kind(signature, item)]
            names[f"accepted_{usual.__name__}"] = accepted
            test = f"not isinstance(v_{item}, accepted_{usual.__name__})"
            yield f"if v_{item}.__class__ is not {usual.__name__} and {test}: raise misfit"


def _kind(signature: Signature, name: str) -> Kind:
    match signature.parameter(name).type:
        case ElementType(dtype=DType(kind=kind)) | PythonType(kind=kind):
            return kind
        case other:
            raise AssertionError(other)
