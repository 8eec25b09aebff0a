"""Float elements: rounded at their dtype, IEEE at the edges, and aware of how far a translation may be from them.

In: a float dtype. Out: `define_float`, a subclass of `float` for it. `error` bounds what a faithful translation may
differ by: multiply-add contraction, a few ulps of a math function, and all that follows from them; an exact operation
on exact operands adds nothing.
"""

from __future__ import annotations

import ctypes
import math
import operator
from collections.abc import Callable
from typing import Any, ClassVar, Final, Self, SupportsIndex

from py2cu.dtypes import F32, DType
from py2cu.runtime.meeting import COMPARISONS, THREAD, ElementRangeError, Method, Number, both_ways, compares

INF: Final = math.inf
LONG_LIMIT: Final = 1 << 63


class FloatElement(float):
    """A float of one dtype with its error bound."""

    __slots__ = ("error",)
    dtype: ClassVar[DType]
    weak: ClassVar[bool]  # Python's own float
    error: float
    of: ClassVar[Method]  # converts an operand; a Python number out of range is refused
    cast: ClassVar[Method]  # converts as an explicit cast or a store does
    make: ClassVar[Method]  # from a value that is rounded already, and its error

    def __new__(cls, value: Number = 0.0) -> Self:
        return cls.cast(value)  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return float.__repr__(self)

    def __format__(self, spec: str) -> str:
        return float.__format__(self, spec)

    __hash__ = float.__hash__

    def __reduce__(self) -> tuple[type[float], tuple[float]]:
        return float, (float(self),)

    def __neg__(self) -> FloatElement:
        negative: FloatElement = self.make(float.__neg__(self), self.error)
        return negative

    def __pos__(self) -> FloatElement:
        return self

    def __abs__(self) -> FloatElement:
        magnitude: FloatElement = self.make(float.__abs__(self), self.error)
        return magnitude

    def __bool__(self) -> bool:
        if self.error and float.__abs__(self) <= self.error:
            THREAD.doubt = True
        return float.__bool__(self)

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
        step = 10.0 ** -operator.index(digits)  # an error may carry the value over one
        return self.make(float(self.cast(float.__round__(self, digits))), self.error and self.error + step)


def integral(value: float, function: Callable[[float], int]) -> int:
    """`function` (floor, trunc, …) of a float as a Python integer; in doubt where the error crosses a step.

    Raises:
        ValueError, OverflowError: NaN, infinite, or beyond 64 bits.
    """
    error = getattr(value, "error", 0.0)
    result = function(float(value))
    if not -LONG_LIMIT <= result < LONG_LIMIT:
        raise OverflowError(f"{float(value)!r} does not fit a 64-bit integer")
    if error and not (error < INF and function(value - error + 0.0) == function(float(value) + error) == result):
        THREAD.doubt = True
    return result


def round_single(value: float) -> float:
    """`value` as the nearest float32; too large is infinite."""
    return ctypes.c_float(value).value


def settle(a: FloatElement, b: FloatElement, error: float) -> float:
    """An error that is no finite number: none where an operand is surely infinite or NaN, else anything goes."""
    sure = a.error < INF and b.error < INF and not (math.isfinite(a) and math.isfinite(b))
    return 0.0 if sure else INF


def measure(function: Method, arguments: tuple[float, ...], value: float, own: float) -> float:
    """The error of `function(*arguments)`: its `own`, and what it makes of the errors of its arguments."""
    total = own
    for place, argument in enumerate(arguments):
        error = getattr(argument, "error", 0.0)
        for shift in (-error, error) if error else ():
            moved = function(*(float(a) + shift * (i == place) for i, a in enumerate(arguments)))
            if moved != value and not (math.isnan(moved) and math.isnan(value)):
                total += abs(moved - value)
    return INF if math.isnan(total) else total


def _float_arithmetic(cls: type[FloatElement], single: bool) -> dict[str, Method]:
    """The four operators that kernels spend their time in. Sums and quotients of exact operands round alike everywhere;
    a product may stay unrounded inside a multiply-add, so its rounding is its error.
    """
    make, unit = cls.make, 2.0**-23 if single else 2.0**-52
    narrow: Callable[[float], float] = round_single if single else float
    plus, minus, times, over = float.__add__, float.__sub__, float.__mul__, float.__truediv__
    magnitude = float.__abs__

    def additive(compute: Method) -> Method:
        def operate(a: FloatElement, b: FloatElement) -> FloatElement:
            value = narrow(compute(a, b))
            error = a.error + b.error
            if error:
                error += unit * abs(value)
                if not error < INF:
                    error = settle(a, b, error)
            return make(value, error)  # type: ignore[no-any-return]

        return operate

    def multiply(a: FloatElement, b: FloatElement) -> FloatElement:
        exact = times(a, b)
        value = narrow(exact)
        error = abs(exact - value) if single else unit * abs(value)
        if a.error or b.error:
            error += magnitude(a) * b.error + magnitude(b) * a.error + a.error * b.error + unit * abs(value)
        if not error < INF:
            error = settle(a, b, error)
        return make(value, error)  # type: ignore[no-any-return]

    def divide(a: FloatElement, b: FloatElement) -> FloatElement:
        value = narrow(over(a, b)) if float.__bool__(b) else _divide_by_zero(cls, a, b)
        error = 0.0
        if a.error or b.error:
            room = magnitude(b) - b.error
            error = (a.error + abs(value) * b.error) / room + unit * abs(value) if room > 0 else INF
            if not error < INF:
                error = settle(a, b, error)
        return make(value, error)  # type: ignore[no-any-return]

    return {"add": additive(plus), "sub": additive(minus), "mul": multiply, "truediv": divide}


def _divide_by_zero(cls: type[FloatElement], a: float, b: float) -> float:
    """IEEE's answer for elements; Python's own floats raise, as they do in Python."""
    if cls.weak:
        raise ZeroDivisionError("float division by zero")
    a = float(a)
    return math.nan if a == 0 or math.isnan(a) else math.copysign(INF, a) * math.copysign(1.0, b)


def _float_steps(cls: type[FloatElement], single: bool) -> dict[str, Method]:
    """`//`, `%` and `**`: rarer, so their error is measured by moving the operands."""
    unit = 2.0**-23 if single else 2.0**-52
    narrow: Callable[[float], float] = round_single if single else float

    def floor_divide(a: float, b: float) -> float:
        return float(a) // float(b) if b != 0 else _divide_by_zero(cls, a, b)

    def modulo(a: float, b: float) -> float:
        return float(a) % float(b) if b != 0 else _divide_by_zero(cls, math.nan, b)

    def measured(function: Callable[[float, float], float], ulps: int) -> Method:
        def operate(a: FloatElement, b: FloatElement) -> FloatElement:
            x, y = float(a), float(b)
            value = narrow(function(x, y))
            own = ulps * unit * abs(value) if math.isfinite(value) else 0.0
            made: FloatElement = cls.make(value, measure(function, (a, b), value, own))
            if made.error and math.isnan(value):
                made.error = settle(a, b, made.error)
            return made

        return operate

    power = _python_power if cls.weak else power_ieee
    return {"floordiv": measured(floor_divide, 1), "mod": measured(modulo, 1), "pow": measured(power, 8)}


def _python_power(a: float, b: float) -> float:
    value = a**b
    if isinstance(value, complex):
        raise TypeError(f"{a!r} ** {b!r} is not real")
    return float(value)


def power_ieee(a: float, b: float) -> float:
    """C's `pow`: NaN and infinities where Python raises or turns complex."""
    try:
        return math.pow(a, b)
    except OverflowError:
        return -INF if a < 0 and b % 2 == 1 else INF
    except ValueError:
        if a != 0:
            return math.nan
        return math.copysign(INF, a) if b % 2 == 1 else INF


def define_float(dtype: DType, name: str, *, weak: bool = False) -> type[FloatElement]:
    """The class of floats of `dtype`; `weak` for Python's own, which raise where Python does."""
    narrow: Callable[[float], float] = round_single if dtype is F32 else float
    unit = dtype.epsilon
    cls: Any = type(name, (FloatElement,), {"__slots__": (), "dtype": dtype, "weak": weak})
    new = float.__new__

    def make(value: float, error: float) -> Any:
        made: Any = new(cls, value)
        made.error = error
        return made

    def cast(value: Number) -> Any:
        error = getattr(value, "error", 0.0)
        rounded = narrow(_as_float(value))
        return make(rounded, error and error + unit * abs(rounded))

    def of(value: Number) -> Any:
        if value.__class__ is cls:
            return value
        made = cast(value)
        if math.isinf(made) and value.__class__ in (int, float) and not math.isinf(value):
            raise ElementRangeError(f"{value!r} does not fit {dtype}")
        return made

    cls.make, cls.cast, cls.of = staticmethod(make), staticmethod(cast), staticmethod(of)
    equip_float(cls)
    return cls  # type: ignore[no-any-return]


def _as_float(value: Number) -> float:
    try:
        return float(value)
    except OverflowError:  # an integer beyond double
        return math.copysign(INF, value)


def equip_float(cls: type[FloatElement]) -> None:
    """Give `cls` its operators."""
    single = cls.dtype is F32
    for name, compute in (_float_arithmetic(cls, single) | _float_steps(cls, single)).items():
        both_ways(cls, name, compute)
    for name in COMPARISONS:
        compares(cls, name, _doubtful(getattr(float, f"__{name}__")))


def _doubtful(compare: Method) -> Method:
    minus = float.__sub__

    def compute(a: FloatElement, b: FloatElement) -> bool:
        error = a.error + b.error
        if error and abs(minus(a, b)) <= error:
            THREAD.doubt = True
        return compare(a, b)  # type: ignore[no-any-return]

    return compute
