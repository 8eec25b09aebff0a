"""Powers of floats: Python's, C's, and those that torch computes without `pow`.

In: plain floats. Out: plain floats, rounded only where a dtype is given.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from py2cu.dtypes import DType
from py2cu.simulator.values.rounding import ROUNDING, round_single

INF: Final = math.inf


def python_power(a: float, b: float) -> float:
    """Python's `a ** b`.

    Raises:
        TypeError: it is complex.
    """
    value = a**b
    if isinstance(value, complex):
        raise TypeError(f"{a!r} ** {b!r} is not real")
    return float(value)


def power_ieee(a: float, b: float) -> float:
    """C's `pow`: NaN and infinities where Python raises or gives a complex number."""
    try:
        return math.pow(a, b)
    except OverflowError:
        return -INF if a < 0 and b % 2 == 1 else INF
    except ValueError:
        if a != 0:
            return math.nan
        return math.copysign(INF, a) if b % 2 == 1 else INF


def _square(v: float, dtype: DType) -> float:
    return ROUNDING[dtype.name](v * v)


def _cube(v: float, dtype: DType) -> float:
    return ROUNDING[dtype.name](_square(v, dtype) * v)


def _reciprocal(v: float, dtype: DType) -> float:
    return ROUNDING[dtype.name](1 / v if v else math.copysign(INF, v))


def _root(v: float, dtype: DType) -> float:
    return ROUNDING[dtype.name](math.sqrt(v) if v >= 0 else math.nan)


def _reciprocal_root(v: float, dtype: DType) -> float:
    """Of halves, computed in float32 and rounded once."""
    root = _root(v, dtype) if dtype.bits > 16 else round_single(math.sqrt(v) if v >= 0 else math.nan)
    return _reciprocal(root, dtype)


TORCH_POWERS: Final[dict[float, Callable[[float, DType], float]]] = {
    2: _square,
    3: _cube,
    0.5: _root,
    -1: _reciprocal,
    -2: lambda v, dtype: _reciprocal(_square(v, dtype), dtype),
    -0.5: _reciprocal_root,
}
"""For each exponent, the power of an element of a dtype, rounded after every operation as torch does."""
