"""Functions of floats that CUDA has and Python lacks."""

from __future__ import annotations

from typing import Any

from py2cu.builtins.public import placeholder, public


@public
@placeholder
def fma(a: Any, b: Any, c: Any) -> Any:
    """`a * b + c`, rounded once; `math.fma` of Python 3.13, whose row it has (`math.py`)."""


@public
@placeholder
def rsqrt(value: Any) -> Any:
    """`1 / math.sqrt(value)`; its row is a formula (`formulas.py`)."""
