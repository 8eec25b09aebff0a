"""Python's functions of numbers, typed: `math.exp` of a float32 element is a float32 element.

In: the row of a function. Out: the function; and `BUILTINS`, those that need no import (`min`, `float`, `range`, …).
A function of Python numbers alone calls Python's own and raises as it does. A function of elements follows C:
`sqrt(-1)` is NaN.
"""

from __future__ import annotations

import builtins
import math
import sys
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import cache, reduce
from types import FrameType
from typing import Any, Final

from py2cu.builtins import Builtin
from py2cu.dtypes import DEFAULT_FLOAT
from py2cu.simulator.state import THREAD
from py2cu.simulator.values import special_functions
from py2cu.simulator.values.checked_int import CheckedInt, check_64_bits, check_operand, checked_range, truth
from py2cu.simulator.values.complex_elements import ComplexElement, complex_function
from py2cu.simulator.values.errors import propagate_error
from py2cu.simulator.values.family import Element, PyComplex, PyFloat, common_class, element_class
from py2cu.simulator.values.float_elements import FloatElement, integral
from py2cu.simulator.values.float_parts import float_of
from py2cu.simulator.values.integer_elements import IntElement
from py2cu.simulator.values.powers import power_ieee

Function = Callable[..., Any]

COMPLEX: Final = (complex, ComplexElement)
# --- functions of floats ------------------------------------------------------------------------------------------


def _fused_multiply_add(a: float, b: float, c: float) -> float:
    """`a * b + c` rounded once."""
    if not all(map(math.isfinite, (a, b, c))):
        return c if math.isfinite(a) and math.isfinite(b) else a * b + c  # the product may overflow
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    return float(exact) if exact else a * b + c  # a zero has the sign of the sum


_OF_FLOATS: Final = {
    "power_ieee": power_ieee, "fused_multiply_add": _fused_multiply_add, "special": special_functions
}  # fmt: skip
"""Functions that the texts of rows call, beside those of Python."""


@cache
def compiled(text: str, *parameters: str) -> Function:
    """The text of a row, of Python numbers, as a function of `parameters`."""
    return as_function(parameters, text, {"math": math, **_OF_FLOATS})


def as_function(parameters: Iterable[str], text: str, names: dict[str, Any]) -> Function:
    """The Python `text`, which may use `names`, as a function of `parameters`, which may have defaults."""
    function: Function = eval(f"lambda {', '.join(parameters)}: ({text})", names)
    return function


def _python_function(row: Builtin) -> Callable[..., float]:
    """The function of Python floats that the row means."""
    if row.reference or row.python is None:
        return compiled(row.reference, *"abc"[: row.arity[1]])
    return row.python


@cache
def _c_function(row: Builtin) -> Callable[..., float]:
    """The same as in C: total, with NaN or an infinity where Python raises."""
    function, beyond = _python_function(row), _beyond_python(row)

    def c_function(*arguments: float) -> float:
        try:
            return function(*arguments)
        except (ValueError, ArithmeticError):
            return beyond(*arguments)

    return c_function


def _beyond_python(row: Builtin) -> Callable[..., float]:
    """C's results at poles and outside domains: by the row, or torch's."""
    if row.beyond:
        return compiled(row.beyond, *"abc"[: row.arity[1]])

    def beyond(*arguments: float) -> float:
        import torch

        tensors = [torch.tensor(argument, dtype=torch.float64, device="cpu") for argument in arguments]
        return float(getattr(torch, row.name)(*tensors))

    return beyond


def _rounding_error_of(row: Builtin) -> Callable[..., float]:
    """The error of the function for exact arguments; it takes the result's class, its value and the arguments."""
    units = compiled(row.error, "value", *"abc"[: row.arity[1]])

    def rounding_error(cls: Any, value: float, *arguments: float) -> float:
        error: float = cls.dtype.epsilon * units(value, *arguments)
        if math.isnan(value):
            return error if error == math.inf else 0.0
        if math.isnan(error):  # rule: error-unspecified
            return math.inf
        if error and math.isfinite(value) and abs(value) + error > cls.dtype.high:  # rule: float32-overflow
            return math.inf  # one more ulp overflows
        return error if error < math.inf else 0.0

    return rounding_error


def function_of_floats(row: Builtin) -> Function:
    """A function of floats: of elements as in C, rounded at their common dtype; of Python numbers as in Python."""
    return _unary_math(row) if row.arity[1] == 1 else _typed_math(row)


def _unary_math(row: Builtin) -> Function:
    function, c_function, rounding_error = _python_function(row), _c_function(row), _rounding_error_of(row)

    def call(argument: Any) -> Any:
        argument = float_of(argument)
        cls: Any = argument.__class__
        compute = function if cls.is_python else c_function
        number = float(argument)
        value = cls.narrow(compute(number))
        error = rounding_error(cls, value, number)
        return cls.with_error(value, propagate_error(compute, (argument,), value, error) if argument.error else error)

    call.__name__ = row.name
    return call


def _result_class(arguments: tuple[Any, ...]) -> Any:
    """The float class of a function's result."""
    common = common_element_class(arguments)
    return PyFloat if common is None else float_class(common)


def float_class(common: type[Element]) -> Any:
    """The float class in which a function of elements of `common` computes."""
    return common if issubclass(common, FloatElement) else element_class(DEFAULT_FLOAT)


def _typed_math(row: Builtin) -> Function:
    function, c_function, rounding_error = _python_function(row), _c_function(row), _rounding_error_of(row)

    def call(*arguments: Any) -> Any:
        cls = _result_class(arguments)
        compute = function if cls.is_python else c_function
        operands = tuple(map(cls.from_operand, arguments))
        numbers = [float(operand) for operand in operands]
        value = cls.narrow(compute(*numbers))
        return cls.with_error(value, propagate_error(compute, operands, value, rounding_error(cls, value, *numbers)))

    call.__name__ = row.name
    return call


def next_after(a: Any, b: Any) -> Any:
    """`math.nextafter` in the steps of the element type."""
    cls = _result_class((a, b))
    if cls is PyFloat:
        return math.nextafter(a, b)
    import torch

    dtype = getattr(torch, cls.dtype.name)
    x, y = cls.from_operand(a), cls.from_operand(b)
    one, other = (torch.tensor(float(each), dtype=dtype, device="cpu") for each in (x, y))
    value = float(torch.nextafter(one, other))
    error = x.error + y.error
    return cls.with_error(value, error and error + 2 * cls.dtype.epsilon * abs(value))


def copy_sign(a: Any, b: Any) -> Any:
    """`math.copysign`; the sign of a NaN is unspecified."""
    cls = _result_class((a, b))
    x, y = cls.from_operand(a), cls.from_operand(b)
    value = math.copysign(float(x), float(y))
    error = propagate_error(math.copysign, (x, y), value, 0.0)
    return cls.with_error(value, error + 2 * abs(value) if math.isnan(y) else error)


def predicate(row: Builtin) -> Function:
    """`math.isnan` and its like."""
    function = _python_function(row)
    return lambda value: truth(bool(function(float(value))))


def step(row: Builtin) -> Function:
    """`math.floor`, `ceil`, `trunc`: Python integers."""
    function: Any = _python_function(row)
    return lambda value: CheckedInt(integral(value, function) if isinstance(value, float) else value)


def function_of_integers(row: Builtin) -> Function:
    """A function of integers only."""
    function: Any = _python_function(row)

    def call(*numbers: Any) -> Any:
        for number in numbers:
            check_operand(number)
        return check_64_bits(function(*numbers), f"{row.key} of", *numbers)

    return call


def rounding(row: Builtin) -> Function:
    """Torch's `floor` and the like keep the element type."""
    round_: Any = _python_function(row)

    def call(value: Any) -> Any:
        if not isinstance(value, float) or not math.isfinite(value):
            return value
        result = math.copysign(round_(float(value)), value)  # a zero keeps the sign  # rule: float32-signed-zero
        if not isinstance(value, FloatElement):
            return result
        moved = value.error and abs(round_(float(value) + value.error) - round_(float(value) - value.error))
        return value.with_error(result, moved)

    return call


# --- functions of complex numbers ---------------------------------------------------------------------------------


def function_of_complex(name: str) -> Function:
    """`cmath.name`, whose result is always complex."""
    compute = complex_function(name)

    def call(argument: Any) -> Any:
        cls = PyComplex.promotions[argument.__class__]
        if cls is None:
            raise TypeError(f"{argument!r} and a complex number have no common type")
        return compute(cls.from_operand(argument))

    call.__name__ = name
    return call


# --- functions of Python ------------------------------------------------------------------------------------------


def _extremum(name: str) -> Function:
    """`min` or `max` in the common element type. A tie taints nothing: both operands are within the error."""
    plain: Function = getattr(builtins, name)
    beats: Callable[[float, float], bool] = float.__lt__ if name == "min" else float.__gt__

    def select(*values: Any, **default: Any) -> Any:
        if len(values) == 1:
            values = _items_of(values[0], sys._getframe(1))
        common = common_element_class((*values, *default.values()))
        if common is None or not values:
            return plain(values, **default)
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
    check_operand(value)
    converted: float = PyFloat.convert(value if isinstance(value, FloatElement | IntElement) else float(value))
    return converted


def _integer_from(function: Function) -> Function:
    """A function of Python that returns integers of the kernel. Elements report floats that fit no integer."""

    def call(*arguments: Any) -> Any:
        if len(arguments) == 1 and arguments[0].__class__ is float:
            return THREAD.integer(integral(arguments[0], function))  # rule: integer-of-float
        for argument in arguments:
            check_operand(argument)
        value = function(*arguments)
        return THREAD.integer(value) if value.__class__ is int else value

    return call


def _truth_from(function: Function) -> Function:
    """A function of Python that returns a bool."""
    return lambda *arguments: truth(function(*arguments))


BUILTINS: Final[dict[str, Function]] = {
    "min": _extremum("min"), "max": _extremum("max"), "float": _python_float, "complex": python_complex,
    "int": _integer_from(int), "range": checked_range, "len": _integer_from(len), "round": _integer_from(round),
    "bool": _truth_from(bool), "any": _truth_from(any), "all": _truth_from(all),
}  # fmt: skip
