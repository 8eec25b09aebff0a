"""Casts: Python's `int`, `float`, `bool`, and the scalar types of NumPy, torch and numba called as functions.

Elements have casts as methods: torch's `x[i].float()`, `x[i].to(torch.int64)`, `x[i].item()`. A row of a method has no
name that Python knows; `element_method` gives its key.
"""

from __future__ import annotations

from typing import Final

from py2cu.builtins.registry import Builtin, Rule
from py2cu.dtypes import BF16, BOOL, C64, C128, DTYPES, F16, F32, F64, I8, I16, I32, I64, U8, DType

METHODS: Final = {
    "float": F32, "double": F64, "half": F16, "bfloat16": BF16, "cfloat": C64, "cdouble": C128, "bool": BOOL,
    "int": I32, "long": I64, "short": I16, "char": I8, "byte": U8,
}  # fmt: skip
"""Torch's methods of elements that are casts."""
ITEM: Final = "builtins.element.item"
TO_DTYPE_OF: Final = "builtins.element.to"  # of an element and an array
LIKE: Final = "builtins.array.dtype"  # `x.dtype(0)`: of a number and an array
INDEX: Final = "builtins.range.index"  # what `range` makes of a bound


def element_method(dtype: DType) -> str:
    """The key of the method that casts an element to `dtype`."""
    return f"builtins.element.{dtype.name}"


def element_view(dtype: DType) -> str:
    """The key of the method that gives the bits of an element as an element of `dtype`."""
    return f"builtins.element.view.{dtype.name}"


def _names(dtype: DType) -> tuple[str, ...]:
    spelled = (dtype.name, "bool_") if dtype is BOOL else (dtype.name,)
    return tuple(f"{library}.{name}" for library in ("numpy", "torch", "numba") for name in spelled)


ROWS: Final = (
    *(Builtin((f"builtins.{name}",), Rule.CAST, result=name) for name in ("int", "float", "bool")),
    Builtin(("builtins.complex",), Rule.CAST, (1, 2), result="complex"),
    *(Builtin(_names(dtype), Rule.CAST, result=dtype) for dtype in DTYPES),
    *(Builtin((element_method(dtype),), Rule.METHOD, result=dtype) for dtype in DTYPES),
    *(Builtin((element_view(dtype),), Rule.VIEW, result=dtype) for dtype in DTYPES),
    Builtin((ITEM,), Rule.METHOD),
    Builtin((TO_DTYPE_OF,), Rule.METHOD, (2, 2)),
    Builtin((LIKE,), Rule.LIKE, (2, 2)),
    Builtin((INDEX,), Rule.INDEX),
)
