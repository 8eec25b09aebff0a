"""`math.modf`, `math.frexp`, `math.ldexp` and C's `remquo`, typed: the parts of a float, each with its error bound.

In: a number. Out: an element or a Python float, of the type that functions of one number return; `exponent` returns a
Python integer. Each part is discontinuous where the other one changes.
"""

from __future__ import annotations

import math
import operator
from fractions import Fraction
from typing import Any, Final

from py2cu.dtypes import DEFAULT_FLOAT, I32
from py2cu.simulator.state import THREAD
from py2cu.simulator.values.checked_int import CheckedInt
from py2cu.simulator.values.family import PyFloat, element_class
from py2cu.simulator.values.float_elements import FloatElement, integral
from py2cu.simulator.values.integer_elements import IntElement

_JUMP: Final = 2.0  # the error of a fraction or a mantissa at a discontinuity


def float_of(argument: Any) -> Any:
    """Convert a number to the float in which functions of one number compute."""
    if isinstance(argument, FloatElement):
        return argument
    cls: Any = element_class(DEFAULT_FLOAT) if isinstance(argument, IntElement) else PyFloat
    return cls.from_operand(argument)


def fraction(argument: Any) -> Any:
    """The first number of `math.modf`."""
    value = float_of(argument)
    part, whole_part = math.modf(value)
    is_sure = not value.error or all(math.modf(end)[1] == whole_part for end in _ends(value))
    return value.with_error(part, value.error if is_sure else _jump_error(value))


def whole(argument: Any) -> Any:
    """The second number of `math.modf`."""
    value = float_of(argument)
    low, high = (math.modf(end)[1] for end in _ends(value))
    return value.with_error(math.modf(value)[1], value.error and abs(high - low))


def mantissa(argument: Any) -> Any:
    """The first number of `math.frexp`."""
    value = float_of(argument)
    part, power = math.frexp(value)
    is_sure = not value.error or all(math.frexp(end)[1] == power for end in _ends(value))
    return value.with_error(part, _ldexp_ieee(value.error, -power) if is_sure else _jump_error(value))


def exponent(argument: Any) -> CheckedInt:
    """The second number of `math.frexp`."""
    return CheckedInt(integral(float_of(argument), lambda value: math.frexp(value)[1]))


def quotient_bits(a: Any, b: Any) -> Any:
    """The second number of C's `remquo`: the sign and the last three bits of the quotient that is nearest `a / b`."""
    if a.error or b.error:
        THREAD.tainted = True
    cls: Any = element_class(I32)
    x, y = float(a), float(b)
    if math.isnan(y) or not (math.isfinite(x) and y):
        return cls.wrapped(0)
    quotient = round(Fraction(x) / Fraction(y)) if math.isfinite(y) else 0
    return cls.wrapped(quotient % 8 if quotient > 0 else -(-quotient % 8))


def load_exponent(argument: Any, power: Any) -> Any:
    """`math.ldexp`: exact unless the result leaves the float's range."""
    value, by = float_of(argument), operator.index(power)
    compute = math.ldexp if value.is_python else _ldexp_ieee
    return value.with_error(value.narrow(compute(float(value), by)), _ldexp_ieee(value.error, by))


def _jump_error(value: Any) -> float:
    """The error of a part at a discontinuity; infinite if the error of the number is."""
    return _JUMP if value.error < math.inf else math.inf


def _ends(value: Any) -> tuple[float, float]:
    return float(value) - value.error, float(value) + value.error


def _ldexp_ieee(value: float, power: int) -> float:
    """C's `ldexp`: infinite where Python raises."""
    try:
        return math.ldexp(value, power)
    except OverflowError:
        return math.copysign(math.inf, value)
