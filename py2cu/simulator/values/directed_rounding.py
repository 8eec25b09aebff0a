"""Operations and conversions whose rounding has a mode: to the nearest, down, up or to zero.

In: the name of an operation of `builtins/intrinsics.py`, a mode, and elements. Out: an element, rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any, Final

from py2cu.dtypes import BY_NAME, DType
from py2cu.simulator.values.errors import propagate_error
from py2cu.simulator.values.family import element_class
from py2cu.simulator.values.integer_elements import IntElement

_ROOT_BITS: Final = 80  # of a root, more than any float has


def _root(value: Any) -> Any:
    """The root of a float or of a fraction; a root that is no fraction becomes one between the same two floats."""
    if not isinstance(value, Fraction):
        return value if not value else math.sqrt(value) if value > 0 else math.nan
    digits = value.numerator.bit_length() - value.denominator.bit_length()
    scale = Fraction(2) ** (_ROOT_BITS - digits // 2)
    scaled = value * scale * scale
    root = math.isqrt(math.floor(scaled))
    return (root if root * root == scaled else root + Fraction(1, 2)) / scale


def _quotient(a: Any, b: Any) -> Any:
    return a / b if b or isinstance(b, Fraction) else a * math.copysign(math.inf, b)


_TERMS: Final[dict[str, Callable[..., tuple[Any, ...]]]] = {
    "add": lambda a, b: (a, b),
    "sub": lambda a, b: (a, -b),
    "fma": lambda a, b, c: (a * b, c),
    "mul": lambda a, b: (a * b,),
    "div": lambda a, b: (_quotient(a, b),),
    "rcp": lambda a: (_quotient(1, a),),
    "sqrt": lambda a: (_root(a),),
    "float32": lambda a: (a,),
    "float64": lambda a: (a,),
}
"""The terms whose sum is the result; of floats, each with IEEE 754's infinities, NaN and sign of zero."""


def directed(name: str, mode: str, *arguments: Any) -> Any:
    """The result of an operation, or of the conversion to a dtype, for elements."""
    cls: Any = element_class(BY_NAME[name]) if name in BY_NAME else arguments[0].__class__
    numbers = [each.value if isinstance(each, IntElement) else float(each) for each in arguments]
    compute = partial(_rounded, name, mode, cls.dtype)
    value = compute(*numbers)
    error = propagate_error(compute, arguments, value, 0.0)
    return cls.with_error(value, error and error + cls.dtype.epsilon * abs(value))


def _rounded(name: str, mode: str, dtype: DType, *numbers: float) -> float:
    if not all(map(math.isfinite, numbers)):
        return _sum(_TERMS[name](*map(_unit, numbers)))
    terms = _TERMS[name](*numbers)
    try:
        exact = sum(_TERMS[name](*map(Fraction, numbers)))
    except (ZeroDivisionError, ValueError):  # a pole, or the root of a negative number
        return _sum(terms)
    if exact:
        return _round(exact, mode, dtype)
    is_positive = all(math.copysign(1.0, term) > 0 for term in terms)
    return -0.0 if len(terms) > 1 and mode == "rd" and not is_positive else _sum(terms)  # rule: directed-zero


def _sum(terms: tuple[Any, ...]) -> float:
    return float(sum(terms[1:], terms[0]))


def _unit(number: float) -> float:
    """The number as a unit: beside infinities and NaN, only its sign counts, and a product of others may overflow."""
    return math.copysign(1.0, number) if number and math.isfinite(number) else number


def _round(exact: Fraction, mode: str, dtype: DType) -> float:
    """A number other than 0 as a float of `dtype`."""
    sign, size = -1 if exact < 0 else 1, abs(exact)
    is_away = mode == ("ru" if sign > 0 else "rd")
    to_whole: Callable[[Fraction], int] = round if mode == "rn" else math.ceil if is_away else math.floor
    bits = size.numerator.bit_length() - size.denominator.bit_length()
    exponent = bits if size >= Fraction(2) ** bits else bits - 1
    least = 3 - 2 ** (dtype.bits - dtype.precision - 1) - dtype.precision
    step = Fraction(2) ** max(exponent + 1 - dtype.precision, least)
    result = to_whole(size / step) * step
    if result > Fraction(dtype.high):
        return sign * (dtype.high if to_whole is math.floor else math.inf)  # rule: directed-overflow
    return sign * float(result)
