"""The lines of a launcher that unpack tuples of numbers.

In: a `Signature`, the names of a call's arguments. Out: lines of Python that define `v_f_0`, `v_f_1` of a tuple `f`.
Promise: they refuse a number of a type that `bind.py` refuses. The form of a call says that there is a tuple, no more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Final

from py2cu.call.launchers.numbers import NUMBERS, kind_of
from py2cu.dtypes import Kind
from py2cu.ir.abi.signature import Signature

_USUAL: Final = {Kind.BOOL: "bool", Kind.INT: "int", Kind.FLOAT: "float", Kind.COMPLEX: "complex"}
"""By kind, the usual type of a number, for which a test by identity is enough."""


def unpacked(signature: Signature, passed: Collection[str], names: dict[str, Any]) -> Iterator[str]:
    """The lines, and, in `names`, what they refer to."""
    for name, items in signature.tuples:
        if name not in passed:
            continue
        yield f"{' '.join(f'v_{item},' for item in items)} = v_{name}"
        for item in items:
            kind = kind_of(signature.parameter(item))
            names[f"accepted_{_USUAL[kind]}"] = NUMBERS[kind][1]
            test = f"not isinstance(v_{item}, accepted_{_USUAL[kind]})"
            yield f"if v_{item}.__class__ is not {_USUAL[kind]} and {test}: raise misfit"
