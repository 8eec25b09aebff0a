"""Complex elements: two float elements, each rounded at its dtype and with its error bound.

In: a class of float elements. Out: `define_complex`, a class of complex numbers with parts of that class. Products
follow the textbook formula, like torch's scalar product and CPython's up to 3.13; quotients follow Smith's method. The
operators of C++ would repair infinite and NaN parts. An element divided by zero is divided part by part, as in torch;
Python's complex numbers raise. Real operands become complex first. Complex numbers have no order.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from typing import Any, ClassVar, Final, Self

from py2cu.dtypes import DType
from py2cu.simulator.values.checked_int import division_by_zero
from py2cu.simulator.values.errors import propagate_error
from py2cu.simulator.values.float_elements import FloatElement
from py2cu.simulator.values.operators import Method, PromotionTable, install_operator

_ULPS: Final = 16


class ComplexElement:
    """A complex number of one dtype."""

    __slots__ = ("imag", "real")
    dtype: ClassVar[DType]
    part: ClassVar[type[FloatElement]]
    promotions: ClassVar[PromotionTable]
    real: FloatElement
    imag: FloatElement
    from_operand: ClassVar[Method]  # converts an operand; a Python number out of range is refused
    convert: ClassVar[Method]  # converts as an explicit cast or a store does
    from_stored: ClassVar[Method]  # from a value of an array of the dtype

    def __new__(cls, value: object = 0) -> Self:
        return cls.convert(value)  # type: ignore[no-any-return]

    @classmethod
    def from_parts(cls, real: FloatElement, imag: FloatElement) -> Self:
        """A complex number of two parts, which have the class `part`."""
        number = object.__new__(cls)
        number.real, number.imag = real, imag
        return number

    @property
    def error(self) -> float:
        """The larger of the errors of the parts."""
        return max(self.real.error, self.imag.error)

    def conjugate(self) -> Self:
        return self.from_parts(self.real, -self.imag)

    def __complex__(self) -> complex:
        return complex(float(self.real), float(self.imag))

    def __repr__(self) -> str:
        return str(self) if self.part.is_python else f"{self.dtype}({self})"

    def __str__(self) -> str:
        sign = "" if str(self.imag).startswith("-") else "+"
        return f"{self.real}{sign}{self.imag}j"

    def __hash__(self) -> int:
        return hash(complex(self))

    def __reduce__(self) -> tuple[type[complex], tuple[float, float]]:
        return complex, (float(self.real), float(self.imag))

    def __bool__(self) -> bool:
        return bool(self.real) or bool(self.imag)

    def __pos__(self) -> Self:
        return self

    def __neg__(self) -> Self:
        return self.from_parts(-self.real, -self.imag)

    def __abs__(self) -> FloatElement:
        parts = self.real, self.imag
        value = self.part.narrow(math.hypot(*map(float, parts)))
        rounding_error = 4 * self.dtype.epsilon * value if value < math.inf else 0.0
        if rounding_error and value + rounding_error > self.dtype.part.high:
            rounding_error = math.inf  # one more ulp overflows
        magnitude: FloatElement = self.part.with_error(value, propagate_error(math.hypot, parts, value, rounding_error))
        if self.part.is_python and math.isinf(value) and all(map(math.isfinite, parts)):
            raise OverflowError("absolute value too large")
        return magnitude

    def __pow__(self, exponent: Any) -> Any:
        """Power by repeated squaring; kernels have only constant exponents."""
        if not isinstance(exponent, int) or exponent < 1:
            raise TypeError(f"{self!r} ** {exponent!r}: a kernel takes only positive integers as exponents")
        base: Any = self
        while exponent % 2 == 0:
            base, exponent = base * base, exponent // 2
        result = base
        while exponent := exponent // 2:
            base = base * base
            result = result * base if exponent % 2 else result
        return result


def define_complex(dtype: DType, name: str, part: type[FloatElement]) -> type[ComplexElement]:
    """The class of complex numbers of `dtype`, whose parts are of the class `part`."""
    members = {"__slots__": (), "dtype": dtype, "part": part, "promotions": PromotionTable()}
    cls: Any = type(name, (ComplexElement,), members)
    from_parts, zero = cls.from_parts, part.from_stored(0.0)

    def from_stored(value: complex) -> Any:
        return from_parts(part.from_stored(value.real), part.from_stored(value.imag))

    def converting(convert: Method) -> Method:
        def method(value: Any) -> Any:
            if isinstance(value, complex | ComplexElement):
                return from_parts(convert(value.real), convert(value.imag))
            return from_parts(convert(value), zero)

        return method

    from_operand = converting(part.from_operand)
    cls.from_stored, cls.convert = staticmethod(from_stored), staticmethod(converting(part.convert))
    cls.from_operand = staticmethod(lambda value: value if value.__class__ is cls else from_operand(value))
    _install_operators(cls)
    return cls  # type: ignore[no-any-return]


def _install_operators(cls: Any) -> None:
    """Give `cls` its operators."""
    from_parts = cls.from_parts
    install_operator(cls, "add", lambda a, b: from_parts(a.real + b.real, a.imag + b.imag))
    install_operator(cls, "sub", lambda a, b: from_parts(a.real - b.real, a.imag - b.imag))
    install_operator(cls, "mul", _multiply)
    install_operator(cls, "truediv", _divide)
    install_operator(cls, "eq", lambda a, b: a.real == b.real and a.imag == b.imag)
    install_operator(cls, "ne", lambda a, b: a.real != b.real or a.imag != b.imag)


def _multiply(a: Any, b: Any) -> Any:
    return a.from_parts(a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real)


def _divide(a: Any, b: Any) -> Any:
    """Smith's method. The comparison of the parts taints no thread: if they are nearly equal, both branches agree."""
    width, height = abs(float(b.real)), abs(float(b.imag))
    if width == height == 0:
        if b.part.is_python:
            raise division_by_zero(a, "/", b)
        return a.from_parts(a.real / b.part.from_stored(0.0), a.imag / b.part.from_stored(0.0))
    if width >= height:
        ratio = b.imag / b.real
        divisor = b.real + b.imag * ratio
        return a.from_parts((a.real + a.imag * ratio) / divisor, (a.imag - a.real * ratio) / divisor)
    ratio = b.real / b.imag
    divisor = b.real * ratio + b.imag
    return a.from_parts((a.real * ratio + a.imag) / divisor, (a.imag * ratio - a.real) / divisor)


# --- functions ----------------------------------------------------------------------------------------------------


def complex_function(name: str) -> Callable[[ComplexElement], ComplexElement]:
    """`cmath.name` of a complex number, each part rounded at its type.

    Libraries differ by a few ulps of the result's magnitude. C does not specify results that nearly overflow, or the
    part beside a part that is NaN.
    """
    function: Callable[[complex], complex] = getattr(cmath, name)

    def c_function(value: complex) -> complex:
        """The function, with C's result, from torch, where `cmath` raises."""
        try:
            return function(value)
        except (ValueError, OverflowError):
            import torch

            computed: complex = getattr(torch, name)(torch.tensor(value, dtype=torch.complex128, device="cpu")).item()
            return computed

    def call(argument: ComplexElement) -> ComplexElement:
        cls, part = argument.__class__, argument.part
        compute = function if part.is_python else c_function
        value, high = complex(argument), argument.dtype.high
        result = compute(value)
        sizes = abs(result.real), abs(result.imag)
        size = max(filter(math.isfinite, sizes), default=0.0)
        has_one_nan = math.isnan(result.real) != math.isnan(result.imag)
        is_open = has_one_nan or (cmath.isfinite(value) and not max(sizes) < high / 4)
        rounding_error = math.inf if is_open else _ULPS * argument.dtype.epsilon * (size + 1.0)
        error = rounding_error + _propagated_error(c_function, argument, result)
        return cls.from_parts(*(part.with_error(part.narrow(p), error) for p in (result.real, result.imag)))

    call.__name__ = name
    return call


def _propagated_error(function: Callable[[complex], complex], argument: ComplexElement, result: complex) -> float:
    """How far the result moves with the errors of the argument's parts, and with a few of their ulps.

    Libraries reduce an argument in different ways: near a pole, that moves the result by far more than its ulps.
    """
    total = 0.0
    for part, unit in ((argument.real, 1), (argument.imag, 1j)):
        rounding_error = 4 * argument.dtype.epsilon * abs(part) if math.isfinite(part) else 0.0
        reach = part.error + rounding_error
        for shift in (-reach, reach) if reach else ():
            if not shift < math.inf:
                return math.inf
            moved = function(complex(argument) + shift * unit)
            total += max(abs(moved.real - result.real), abs(moved.imag - result.imag))
    return math.inf if math.isnan(total) else total
