"""Python's functions of numbers, typed: `math.exp` of a float32 element is a float32 element.

In: the name of a function. Out: tables of functions: `MATH`, `CMATH`, and `BUILTINS` (`min`, `float`, `range`, …).
A function of Python numbers alone calls Python's own and raises as it does. A function of elements follows C:
`sqrt(-1)` is NaN.
"""

from __future__ import annotations

import builtins
import math
import sys
from collections.abc import Callable
from functools import cache, reduce
from types import FrameType
from typing import Any, Final

from py2cu.dtypes import DEFAULT_FLOAT
from py2cu.simulator.state import THREAD
from py2cu.simulator.values import float_parts
from py2cu.simulator.values.checked_int import CheckedInt, check_64_bits, checked_range
from py2cu.simulator.values.complex_elements import ComplexElement, complex_function
from py2cu.simulator.values.errors import propagate_error
from py2cu.simulator.values.family import Element, PyComplex, PyFloat, common_class, element_class
from py2cu.simulator.values.float_elements import FloatElement, integral, power_ieee
from py2cu.simulator.values.float_parts import float_of
from py2cu.simulator.values.integer_elements import IntElement

Function = Callable[..., Any]

EXACT: Final = ("sqrt", "fabs", "copysign", "fmod", "remainder")  # correctly rounded by every library
IMPRECISE: Final = ("pow", "gamma", "lgamma")  # CUDA documents up to 11 ulps
USUAL_ULPS: Final = 4
IMPRECISE_ULPS: Final = 16
INTEGER_FUNCTIONS: Final = ("gcd", "lcm", "isqrt", "factorial")
PREDICATES: Final = ("isnan", "isinf", "isfinite")
UNARY: Final = (
    "sqrt", "cbrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos",
    "atan",
    "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "gamma", "lgamma", "fabs",
)  # fmt: skip
COMPLEX: Final = (complex, ComplexElement)
ANALYTIC: Final = (
    "sqrt", "exp", "log", "log10", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh",
    "acosh", "atanh",
)  # fmt: skip
BINARY: Final = ("atan2", "hypot", "pow", "fmod", "remainder", "copysign")
TERNARY: Final = ("fma",)  # from Python 3.13 on

# --- functions of math --------------------------------------------------------------------------------------------


def _beyond_python(name: str, arguments: tuple[float, ...]) -> float:
    """C's result at poles and outside domains, where `math` raises; from torch, except for functions that it lacks."""
    if name == "gamma":
        x = arguments[0]
        return math.copysign(math.inf, x) if x == 0 or x > 0 else math.nan
    if name == "remainder":  # torch's is Python's `%`
        return math.nan
    if name == "fma":
        return arguments[0] * arguments[1] + arguments[2]
    import torch

    tensors = [torch.tensor(argument, dtype=torch.float64) for argument in arguments]
    return float(getattr(torch, name)(*tensors))


@cache
def _c_function(name: str) -> Callable[..., float]:
    """`math.name` as in C: total, with NaN or an infinity where Python raises."""
    function: Callable[..., float] = getattr(math, name)
    if name == "pow":
        return power_ieee

    def c_function(*arguments: float) -> float:
        try:
            return function(*arguments)
        except (ValueError, OverflowError):
            return _beyond_python(name, arguments)

    return c_function


def _rounding_error_of(name: str) -> Callable[[Any, float], float]:
    """The error of `math.name` of exact arguments, as a function of the result's class and value."""
    ulps = 0 if name in EXACT else IMPRECISE_ULPS if name in IMPRECISE else USUAL_ULPS
    near_zero = 1.0 if name == "lgamma" else 0.0

    def rounding_error(cls: Any, value: float) -> float:
        if name == "gamma" and value != value:
            return math.inf  # large negative numbers are all poles: CUDA's result is unspecified
        error: float = ulps * cls.dtype.epsilon * (abs(value) + near_zero)
        if error and math.isfinite(value) and abs(value) + error > cls.dtype.high:
            return math.inf  # one more ulp overflows
        return error if error < math.inf else 0.0

    return rounding_error


def _unary_math(name: str) -> Function:
    """`math.name` of one number: of an element as in C, rounded at its dtype; of a Python number as in Python."""
    function, c_function, rounding_error = getattr(math, name), _c_function(name), _rounding_error_of(name)

    def call(argument: Any) -> Any:
        argument = float_of(argument)
        cls: Any = argument.__class__
        compute = function if cls.is_python else c_function
        value = cls.narrow(compute(float(argument)))
        error = rounding_error(cls, value)
        return cls.with_error(value, propagate_error(compute, (argument,), value, error) if argument.error else error)

    call.__name__ = name
    return call


def _result_class(arguments: tuple[Any, ...]) -> Any:
    """The float class of a function's result."""
    common = common_element_class(arguments)
    return PyFloat if common is None else float_class(common)


def float_class(common: type[Element]) -> Any:
    """The float class in which a function of elements of `common` computes."""
    return common if issubclass(common, FloatElement) else element_class(DEFAULT_FLOAT)


def _typed_math(name: str) -> Function:
    """`math.name` of several numbers, in their common class."""
    function, c_function, rounding_error = getattr(math, name), _c_function(name), _rounding_error_of(name)

    def call(*arguments: Any) -> Any:
        cls = _result_class(arguments)
        compute = function if cls.is_python else c_function
        operands = tuple(map(cls.from_operand, arguments))
        value = cls.narrow(compute(*map(float, operands)))
        return cls.with_error(value, propagate_error(compute, operands, value, rounding_error(cls, value)))

    call.__name__ = name
    return call


def _next_after(a: Any, b: Any) -> Any:
    """`math.nextafter` in the steps of the element type."""
    cls = _result_class((a, b))
    if cls is PyFloat:
        return math.nextafter(a, b)
    import torch

    dtype = getattr(torch, cls.dtype.name)
    x, y = cls.from_operand(a), cls.from_operand(b)
    value = float(torch.nextafter(torch.tensor(float(x), dtype=dtype), torch.tensor(float(y), dtype=dtype)))
    error = x.error + y.error
    return cls.with_error(value, error and error + 2 * cls.dtype.epsilon * abs(value))


def _copy_sign(a: Any, b: Any) -> Any:
    """`math.copysign`; the sign of a NaN is unspecified."""
    signed = _typed_math("copysign")(a, b)
    return signed.with_error(float(signed), signed.error + 2 * abs(float(signed))) if math.isnan(b) else signed


def _typed_predicate(name: str) -> Function:
    function: Callable[[float], bool] = getattr(math, name)
    return lambda value: function(float(value))


def _typed_step(name: str) -> Function:
    """`math.floor`, `ceil`, `trunc`: Python integers."""
    step: Callable[[float], int] = getattr(math, name)
    return lambda value: CheckedInt(integral(value, step) if isinstance(value, float) else value)


def _typed_integer(name: str) -> Function:
    """A function of integers only."""
    function: Callable[..., int] = getattr(math, name)
    return lambda *numbers: check_64_bits(function(*numbers), f"math.{name} of", *numbers)


MATH: Final[dict[str, Function]] = {
    **{name: _unary_math(name) for name in UNARY if hasattr(math, name)},
    **{name: _typed_math(name) for name in (*BINARY, *TERNARY) if hasattr(math, name)},
    "copysign": _copy_sign,
    "nextafter": _next_after,
    "ldexp": float_parts.load_exponent,
    **{name: _typed_predicate(name) for name in PREDICATES},
    **{name: _typed_step(name) for name in ("floor", "ceil", "trunc")},
    **{name: _typed_integer(name) for name in INTEGER_FUNCTIONS},
}


# --- functions of cmath -------------------------------------------------------------------------------------------


def _typed_cmath(name: str) -> Function:
    """`cmath.name`, whose result is always complex."""
    compute = complex_function(name)

    def call(argument: Any) -> Any:
        cls = PyComplex.promotions[argument.__class__]
        if cls is None:
            raise TypeError(f"{argument!r} and a complex number have no common type")
        return compute(cls.from_operand(argument))

    call.__name__ = name
    return call


CMATH: Final[dict[str, Function]] = {name: _typed_cmath(name) for name in ANALYTIC}


# --- functions of Python ------------------------------------------------------------------------------------------


def _extremum(name: str) -> Function:
    """`min` or `max` in the common element type. A tie taints nothing: both operands are within the error."""
    plain: Function = getattr(builtins, name)
    beats: Callable[[float, float], bool] = float.__lt__ if name == "min" else float.__gt__

    def select(*values: Any, **default: Any) -> Any:
        if len(values) == 1:
            values = _items_of(values[0], sys._getframe(1))
            if not values:
                return plain(values, **default)
        common = common_element_class(values)
        if common is None:
            return plain(values)
        items = [common.from_operand(value) for value in values]
        if not issubclass(common, FloatElement):
            return plain(items)
        best = items[0]
        for item in items[1:]:
            best = item if beats(item, best) else best
        return common.with_error(float(best), max(item.error for item in items))

    return select


def _items_of(iterable: Any, frame: FrameType) -> tuple[Any, ...]:
    """The items of an iterable; the user's `frame` reads those of an array."""
    if hasattr(iterable, "extents"):
        return tuple(iterable.get(at, frame) for at in range(len(iterable)))
    return tuple(iterable)


def common_element_class(values: tuple[Any, ...]) -> type[Element] | None:
    """The class in which all `values` compute; None if no value is an element."""
    if not any(isinstance(value, Element) for value in values):
        return None
    first, *rest = sorted(values, key=lambda value: not isinstance(value, Element))

    def widen(joined: type[Element], value: object) -> type[Element]:
        common = joined if value.__class__ is joined else common_class(joined(0), value)
        if common is None:
            raise TypeError(f"{value!r} and an element of {joined.dtype} have no common type")
        return common

    start: type[Element] = first.__class__
    return reduce(widen, rest, start)


def python_complex(real: Any = 0.0, imag: Any = 0.0) -> ComplexElement:
    """`complex(x, y)`: a Python number with the errors of its elements."""
    if isinstance(real, COMPLEX):
        if imag:
            raise TypeError("`complex(x, y)` takes real numbers in a kernel")
        return PyComplex.convert(real)  # type: ignore[no-any-return]
    return PyComplex.from_parts(PyFloat.convert(real), PyFloat.convert(imag))


def _python_float(value: Any = 0.0) -> float:
    """`float(x)`: a Python float with the error of the element."""
    converted: float = PyFloat.convert(value if isinstance(value, FloatElement | IntElement) else float(value))
    return converted


def _integer_from(function: Function) -> Function:
    """A function of Python that returns integers of the kernel. Elements report floats that fit no integer."""

    def call(*arguments: Any) -> Any:
        if len(arguments) == 1 and arguments[0].__class__ is float:
            return THREAD.integer(integral(arguments[0], function))
        value = function(*arguments)
        return THREAD.integer(value) if value.__class__ is int else value

    return call


BUILTINS: Final[dict[str, Function]] = {
    "min": _extremum("min"), "max": _extremum("max"), "float": _python_float, "complex": python_complex,
    "int": _integer_from(int), "range": checked_range, "len": _integer_from(len), "round": _integer_from(round),
}  # fmt: skip
