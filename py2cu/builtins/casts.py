"""Casts: Python's `int`, `float`, `bool`, and the scalar types of NumPy, torch and numba called as functions."""

from __future__ import annotations

from typing import Final

from py2cu.builtins.registry import Builtin, Rule
from py2cu.dtypes import BOOL, DTYPES, DType


def _names(dtype: DType) -> tuple[str, ...]:
    spelled = (dtype.name, "bool_") if dtype is BOOL else (dtype.name,)
    return tuple(f"{library}.{name}" for library in ("numpy", "torch", "numba") for name in spelled)


ROWS: Final = (
    *(Builtin((f"builtins.{name}",), Rule.CAST, result=name) for name in ("int", "float", "bool")),
    Builtin(("builtins.complex",), Rule.CAST, (1, 2), result="complex"),
    *(Builtin(_names(dtype), Rule.CAST, result=dtype) for dtype in DTYPES),
)
