"""Functions of floats that CUDA has and Python lacks, and `opmath`, the type that torch computes in."""

from __future__ import annotations

from typing import Any

from py2cu.builtins.public import PY2CU, builtin, placeholder, public
from py2cu.builtins.registry import Rule


@public
@placeholder
def fma(a: Any, b: Any, c: Any) -> Any:
    """`a * b + c`, rounded once; `math.fma` of Python 3.13, whose row it has (`math.py`)."""


@public
@placeholder
def rsqrt(value: Any) -> Any:
    """`1 / math.sqrt(value)`; its row is a formula (`formulas.py`)."""


@builtin(Rule.OPMATH, PY2CU, in_python=True)
def opmath(value: Any) -> Any:
    """`value` in the type that torch computes in, `at::opmath_type`: float32 for halves; any other number as it is."""
    if str(getattr(value, "dtype", "")).removeprefix("torch.") not in ("float16", "bfloat16"):
        return value
    return value.float() if hasattr(value, "float") else value.astype("float32")
