"""Functions that Python lacks, of Python floats: Bessel functions, inverse and scaled error functions.

They are total: NaN outside of a domain, and infinite at poles, as in CUDA.
"""

from __future__ import annotations

import ctypes
import math
from fractions import Fraction
from functools import cache
from statistics import NormalDist
from typing import Any, Final

_ROOT_OF_TWO: Final = math.sqrt(2.0)
_HALF_ROOT_OF_PI: Final = 0.886226925452758
_TINY: Final = 1e-300
_ROOT_OF_HALF: Final = Fraction("0.7071067811865475244008443621048490392848")
_NORMAL: Final = NormalDist()


@cache
def _of_libm(name: str) -> Any:
    function = getattr(ctypes.CDLL(None), name)
    function.restype = ctypes.c_double
    return function


def bessel(name: str, *arguments: float) -> float:
    """The C function `name`, whose order is the first of two arguments; NaN for negative orders, as CUDA's."""
    *order, x = arguments
    if order and order[0] < 0:
        return math.nan
    value: float = _of_libm(name)(*map(int, order), ctypes.c_double(x))
    return value


def normcdfinv(p: float) -> float:
    """The number below which a normal variable is with probability `p`."""
    if 0 < p < 1:
        return _NORMAL.inv_cdf(p)
    return math.inf if p == 1 else -math.inf if p == 0 else math.nan


def erfcinv(y: float) -> float:
    """The inverse of `erfc`; half of a tiny number may be no float."""
    if 0 < y < _TINY:
        near = 27.0
        for _ in range(6):  # Newton's steps for the logarithm
            near += (math.log(erfcx(near)) - near * near - math.log(y)) * erfcx(near) * _HALF_ROOT_OF_PI
        return near
    return 0.0 - normcdfinv(y / 2 if y >= 0 else math.nan) / _ROOT_OF_TWO


def erfinv(y: float) -> float:
    """The inverse of `erf`."""
    if abs(y) > 0.5 or y != y:
        return math.copysign(normcdfinv((1 - abs(y)) / 2) / _ROOT_OF_TWO, y)
    near = normcdfinv((1 + y) / 2) / _ROOT_OF_TWO
    return near + (y - math.erf(near)) * (_HALF_ROOT_OF_PI * math.exp(near * near)) if y else y  # Newton's step


def normcdf(x: float) -> float:
    """The probability that a normal variable is below `x`: the root of a half has more digits than a float."""
    if not abs(x) < 40:
        return x if x != x else float(x > 0)
    exact = -Fraction(x) * _ROOT_OF_HALF
    near = float(exact)
    slope = -2 / math.sqrt(math.pi) * math.exp(-near * near)
    return 0.5 * (math.erfc(near) + slope * float(exact - Fraction(near)))


def erfcx(x: float) -> float:
    """`exp(x * x) * erfc(x)`."""
    if x > 26:  # the asymptotic series of Abramowitz and Stegun, 7.1.23
        series, term = 1.0, 1.0
        for k in range(1, 8):
            term *= -(2 * k - 1) / (2 * x * x)
            series += term
        return 0.5641895835477563 * series / x
    if not x * x < 709.5:
        return x if x != x else math.inf
    rest = float(Fraction(x) ** 2 - Fraction(x * x))
    return math.exp(x * x) * (1 + rest) * math.erfc(x)
