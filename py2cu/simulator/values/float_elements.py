"""Float elements: rounded at their dtype, with IEEE's special values, and with an error bound.

In: a float dtype. Out: `define_float`, a subclass of `float` for it. `error` bounds how far a faithful translation may
differ: by multiply-add contraction if the launch allows it, by a few ulps of a math function, and by the propagation of
such errors. An exact operation on exact operands adds no error.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, ClassVar, Final, Self, SupportsIndex

from py2cu.dtypes import DType
from py2cu.simulator.state import THREAD
from py2cu.simulator.values.checked_int import (
    LONG_HIGH,
    LONG_LOW,
    CheckedInt,
    division_by_zero,
    report_inexact_comparison,
    truth,
)
from py2cu.simulator.values.errors import INF, error_if_nonfinite, propagate_error, remainder_error
from py2cu.simulator.values.integer_elements import IntElement
from py2cu.simulator.values.operators import (
    COMPARISONS,
    ElementRangeError,
    Method,
    Number,
    PromotionTable,
    install_operator,
    promote_and_apply,
)
from py2cu.simulator.values.powers import TORCH_POWERS, power_ieee, python_power
from py2cu.simulator.values.rounding import ROUNDING, as_float, cell, from_integer

INFINITE: Final = (INF, -INF)
_LITERALS: Final = 256  # converted literals that each class caches

# --- the class ----------------------------------------------------------------------------------------------------


class FloatElement(float):
    """A float of one dtype with its error bound.

    `value` is the same number as a plain float, with which Python computes fastest.
    """

    __slots__ = ("error", "value")
    dtype: ClassVar[DType]
    is_python: ClassVar[bool]  # Python's own float
    narrow: ClassVar[Callable[[float], float]]  # rounds at the dtype
    promotions: ClassVar[PromotionTable]
    error: float
    value: float
    from_operand: ClassVar[Method]  # converts an operand; a Python number out of range is refused
    convert: ClassVar[Method]  # converts as an explicit cast or a store does
    with_error: ClassVar[Method]  # from a value that is rounded already, and its error
    from_stored: ClassVar[Method]  # from a value of an array of the dtype

    def __new__(cls, value: Number = 0.0) -> Self:
        return cls.convert(value)  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return str(self) if self.is_python else f"{self.dtype}({self})"

    def __str__(self) -> str:
        """The fewest digits that identify the element among those of its dtype."""
        value, narrow = float(self), type(self).narrow
        if not math.isfinite(value):
            return repr(value)
        short = (float(f"{value:.{digits}g}") for digits in range(1, 18))
        return repr(next(near for near in short if narrow(near) == value))

    def __format__(self, spec: str) -> str:
        return float.__format__(self, spec) if spec else str(self)

    __hash__ = float.__hash__

    def __reduce__(self) -> tuple[type[float], tuple[float]]:
        return float, (float(self),)

    @property
    def real(self) -> Any:
        return self

    @property
    def imag(self) -> Any:
        return self.from_stored(0.0)

    def conjugate(self) -> Any:
        return self

    def __neg__(self) -> FloatElement:
        negative: FloatElement = self.with_error(-self.value, self.error)
        return negative

    def __pos__(self) -> FloatElement:
        return self

    def __abs__(self) -> FloatElement:
        magnitude: FloatElement = self.with_error(abs(self.value), self.error)
        return magnitude

    def __bool__(self) -> bool:
        if self.error and abs(self.value) <= self.error:
            THREAD.tainted = True
        return self.value != 0.0

    def __int__(self) -> int:
        return integral(self, float.__trunc__)

    __trunc__ = __int__

    def __floor__(self) -> int:
        return integral(self, float.__floor__)

    def __ceil__(self) -> int:
        return integral(self, float.__ceil__)

    def __round__(self, digits: SupportsIndex | None = None) -> Any:
        if digits is None:
            return integral(self, float.__round__)
        step = 10.0 ** -operator.index(digits)  # an error may move the value over a step
        return self.with_error(float(self.convert(float.__round__(self, digits))), self.error and self.error + step)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self


def integral(value: float, function: Callable[[float], int]) -> int:
    """`function` (floor, trunc, …) of a float as a Python integer; taints the thread if the error crosses a step.

    Raises:
        ValueError, OverflowError: NaN, infinite, or beyond 64 bits.
    """
    error = getattr(value, "error", 0.0)
    result = function(float(value))
    if not LONG_LOW <= result <= LONG_HIGH:
        raise OverflowError(f"{float(value)!r} does not fit a 64-bit integer")
    if error and not (error < INF and function(value - error + 0.0) == function(float(value) + error) == result):
        THREAD.tainted = True
    return result


def define_float(dtype: DType, name: str, *, is_python: bool = False) -> type[FloatElement]:
    """Define the class of floats of `dtype`; `is_python`: Python's floats, which raise where Python does."""
    narrow, unit = ROUNDING[dtype.name], dtype.epsilon
    as_double = as_float if narrow is float else from_integer
    cls: Any = type(
        name, (FloatElement,), {"__slots__": (), "dtype": dtype, "is_python": is_python, "promotions": PromotionTable()}
    )
    new = float.__new__

    def with_error(value: float, error: float) -> Any:
        element: Any = new(cls, value)
        element.value = value
        element.error = error
        return element

    def from_stored(value: float) -> Any:
        element: Any = new(cls, value)
        element.value = float(value)  # a new shared array holds the integer 0
        element.error = 0.0
        return element

    def convert(value: Number | IntElement) -> Any:
        if value.__class__ is float:
            return from_stored(narrow(value))
        if isinstance(value, FloatElement):
            rounded = narrow(float(value))
            rounding_error = unit * abs(rounded)
            return with_error(rounded, value.error and value.error + (rounding_error if rounding_error < INF else 0.0))
        if isinstance(value, IntElement):
            return from_stored(narrow(as_double(value.value)))
        return from_stored(narrow(float(value) if isinstance(value, float) else as_double(value)))

    literals: dict[Number, Any] = {}

    def from_operand(value: Any) -> Any:
        kind = value.__class__
        if kind is cls:
            return value
        if kind is float and not value:
            return from_stored(value)  # 0.0 and -0.0 are one key
        is_literal = kind is int or kind is float
        if is_literal and value in literals:
            return literals[value]
        element = in_range(value)
        if is_literal and len(literals) < _LITERALS:
            literals[value] = element
        return element

    def in_range(value: Number | IntElement) -> Any:
        element = convert(value)
        if element.value in INFINITE and (value.__class__ is float or isinstance(value, int)) and value not in INFINITE:
            raise ElementRangeError(f"{value!r} does not fit {dtype}")
        return element

    cls.narrow = staticmethod(narrow)
    cls.with_error, cls.from_stored, cls.convert, cls.from_operand = (
        staticmethod(method) for method in (with_error, from_stored, convert, from_operand)
    )
    _install_operators(cls)
    return cls  # type: ignore[no-any-return]


# --- operators ----------------------------------------------------------------------------------------------------


def _install_operators(cls: type[FloatElement]) -> None:
    """Give `cls` its operators."""
    for name, compute in _arithmetic(cls).items():
        install_operator(cls, name, compute, handles_any_operand=True)
    for name, compute in _rare_operators(cls).items():
        install_operator(cls, name, compute)
    if not cls.is_python:
        install_operator(cls, "pow", _power_of_element(cls), handles_any_operand=True)
    for name in COMPARISONS:  # rule: compare-tainting
        install_operator(cls, name, _tainting_comparison(cls, name), handles_any_operand=True)


def _arithmetic(cls: type[FloatElement]) -> dict[str, Method]:
    """The four operators that kernels spend their time in.

    Sums and quotients of exact operands round alike everywhere. A product may stay unrounded inside a multiply-add, so
    its rounding is its error.
    """
    return {
        "add": _additive(cls, "add", 1.0), "sub": _additive(cls, "sub", -1.0), "mul": _multiplication(cls),
        "truediv": _division(cls),
    }  # fmt: skip


def _additive(cls: type[FloatElement], name: str, sign: float) -> Method:
    """The sum of `a` and `sign` times `b`."""
    unit, new, rounded = cls.dtype.epsilon, float.__new__, cell(cls.dtype)
    promotions, from_operand, apply_promoted = cls.promotions, cls.from_operand, promote_and_apply(cls, name)

    def operate(a: Any, b: Any) -> Any:
        if b.__class__ is not cls:
            if promotions[b.__class__] is not cls:
                return apply_promoted(a, b)
            b = from_operand(b)
        rounded[0] = a.value + sign * b.value
        value = rounded[0]
        error = a.error + b.error
        if error:
            error += unit * abs(value)
            if not error < INF:
                error = error_if_nonfinite(a, b, error)
        element: Any = new(cls, value)
        element.value = value
        element.error = error
        return element

    return operate


def _multiplication(cls: type[FloatElement]) -> Method:
    unit, new, rounded = cls.dtype.epsilon, float.__new__, cell(cls.dtype)
    promotions, from_operand, apply_promoted = cls.promotions, cls.from_operand, promote_and_apply(cls, "mul")
    is_double = cls.narrow is float

    def multiply(a: Any, b: Any) -> Any:
        if b.__class__ is not cls:
            if promotions[b.__class__] is not cls:
                return apply_promoted(a, b)
            b = from_operand(b)
        product = a.value * b.value  # of narrow floats: exact
        rounded[0] = product
        value = rounded[0]
        error = 0.0
        if THREAD.contracts or a.error or b.error:
            if THREAD.contracts:
                error = abs(unit * value if is_double else product - value)  # rule: multiply-add
            if a.error or b.error:
                error += abs(a.value) * b.error + abs(b.value) * a.error + a.error * b.error + unit * abs(value)
            if not error < INF:
                error = error_if_nonfinite(a, b, error)
        element: Any = new(cls, value)
        element.value = value
        element.error = error
        return element

    return multiply


def _division(cls: type[FloatElement]) -> Method:
    unit, new, rounded = cls.dtype.epsilon, float.__new__, cell(cls.dtype)
    promotions, from_operand, apply_promoted = cls.promotions, cls.from_operand, promote_and_apply(cls, "truediv")

    def divide(a: Any, b: Any) -> Any:
        if b.__class__ is not cls:
            if promotions[b.__class__] is not cls:
                return apply_promoted(a, b)
            b = from_operand(b)
        rounded[0] = a.value / b.value if b.value else _divide_by_zero(cls, a, "/", b)  # rule: zero-divisor
        value = rounded[0]
        error = 0.0
        if a.error or b.error:
            room = abs(b.value) - b.error
            error = (a.error + abs(value) * b.error) / room + unit * abs(value) if room > 0 else INF
            if not error < INF:
                error = error_if_nonfinite(a, b, error)
        element: Any = new(cls, value)
        element.value = value
        element.error = error
        return element

    return divide


def _divide_by_zero(cls: type[FloatElement], a: float, symbol: str, b: float) -> float:
    """IEEE's result for elements; Python's floats raise, as in Python."""
    if cls.is_python:  # rule: zero-raises
        raise division_by_zero(a, symbol, b)
    a = float(a) if symbol != "%" else math.nan
    return math.nan if a == 0 or math.isnan(a) else math.copysign(INF, a) * math.copysign(1.0, b)


def _rare_operators(cls: type[FloatElement]) -> dict[str, Method]:
    """`//`, `%` and `**`. They are rare, so a slow way is good enough: evaluate them again with shifted operands."""
    narrow, unit = cls.narrow, cls.dtype.epsilon

    def floor_divide(a: float, b: float) -> float:
        return a // b if b != 0 else _divide_by_zero(cls, a, "//", b)

    def modulo(a: float, b: float) -> float:
        return a % b if b != 0 else _divide_by_zero(cls, a, "%", b)

    def with_propagated_error(function: Callable[[float, float], float], ulps: int) -> Method:
        def operate(a: FloatElement, b: FloatElement) -> FloatElement:
            value = narrow(function(float(a), float(b)))
            rounding_error = ulps * unit * abs(value) if math.isfinite(value) else 0.0
            element: FloatElement = cls.with_error(value, propagate_error(function, (a, b), value, rounding_error))
            if element.error and math.isnan(value):
                element.error = error_if_nonfinite(a, b, element.error)
            return element

        return operate

    def remainder(a: FloatElement, b: FloatElement) -> FloatElement:
        value = narrow(modulo(float(a), float(b)))
        error = remainder_error(a, b) + unit * abs(value) if a.error or b.error else 0.0
        return cls.with_error(value, error_if_nonfinite(a, b, error) if math.isnan(value) else error)  # type: ignore[no-any-return]

    return {
        "floordiv": with_propagated_error(floor_divide, 1),
        "mod": remainder,
        "pow": with_propagated_error(python_power if cls.is_python else power_ieee, 8),
    }


def _power_of_element(cls: Any) -> Method:
    """`**` as torch computes it for a constant exponent. The error is that of `pow`, which other exponents take."""
    general = cls.__pow__

    def operate(a: Any, b: Any) -> Any:
        power = general(a, b)
        if b.__class__ in (int, float, CheckedInt) and b in TORCH_POWERS:  # rule: torch-power-simulated
            return cls.with_error(TORCH_POWERS[b](a.value, cls.dtype), power.error)
        return power

    return operate


def _tainting_comparison(cls: type[FloatElement], name: str) -> Method:
    """The comparison `name`; it taints the thread if the operands' errors could change the result."""
    compare, apply_promoted = getattr(operator, name), promote_and_apply(cls, name)
    promotions, from_operand, is_python = cls.promotions, cls.from_operand, cls.is_python

    def operate(a: Any, b: Any) -> Any:
        if b.__class__ is not cls:
            if promotions[b.__class__] is not cls:
                return apply_promoted(a, b)
            converted = from_operand(b)
            if is_python and isinstance(b, int):
                report_inexact_comparison(compare, a.value, b, converted.value)
            b = converted
        error = a.error + b.error
        if error and abs(a.value - b.value) <= error:
            THREAD.tainted = True
        return truth(compare(a.value, b.value))

    return operate
