"""Complex elements: two float elements, each rounded at its dtype and aware of its error.

In: a class of float elements. Out: `define_complex`, the class of complex numbers made of two of them. A product is the
formula as it stands, as torch's scalar one and CPython's to 3.13, and a quotient is Smith's; C++'s own operators would
repair infinite and NaN parts. An element divided by zero is divided part by part, as torch does; Python's own complex
numbers raise. Real operands become complex first. Complex numbers have no order.
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
    partners: ClassVar[PromotionTable]
    real: FloatElement
    imag: FloatElement
    from_operand: ClassVar[Method]  # converts an operand; a Python number out of range is refused
    convert: ClassVar[Method]  # converts as an explicit cast or a store does
    from_stored: ClassVar[Method]  # from a value of an array of the dtype

    def __new__(cls, value: object = 0) -> Self:
        return cls.convert(value)  # type: ignore[no-any-return]

    @classmethod
    def made(cls, real: FloatElement, imag: FloatElement) -> Self:
        """From parts of the class of parts."""
        number = object.__new__(cls)
        number.real, number.imag = real, imag
        return number

    @property
    def error(self) -> float:
        """The larger of the errors of the parts."""
        return max(self.real.error, self.imag.error)

    def conjugate(self) -> Self:
        return self.made(self.real, -self.imag)

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
        return self.made(-self.real, -self.imag)

    def __abs__(self) -> FloatElement:
        parts = self.real, self.imag
        value = self.part.narrow(math.hypot(*map(float, parts)))
        own = 4 * self.dtype.epsilon * value if value < math.inf else 0.0
        if own and value + own > self.dtype.part.high:
            own = math.inf  # a last bit more, and it overflows
        made: FloatElement = self.part.with_error(value, propagate_error(math.hypot, parts, value, own))
        if self.part.is_python and math.isinf(value) and all(map(math.isfinite, parts)):
            raise OverflowError("absolute value too large")
        return made

    def __pow__(self, exponent: Any) -> Any:
        """By squaring; kernels have constant exponents alone."""
        if not isinstance(exponent, int) or exponent < 1:
            raise TypeError(f"{self!r} ** {exponent!r}: kernels take whole exponents from 1 on")
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
    members = {"__slots__": (), "dtype": dtype, "part": part, "partners": PromotionTable()}
    cls: Any = type(name, (ComplexElement,), members)
    made, zero = cls.made, part.from_stored(0.0)

    def exact(value: complex) -> Any:
        return made(part.from_stored(value.real), part.from_stored(value.imag))

    def converting(convert: Method) -> Method:
        def method(value: Any) -> Any:
            if isinstance(value, complex | ComplexElement):
                return made(convert(value.real), convert(value.imag))
            return made(convert(value), zero)

        return method

    of = converting(part.from_operand)
    cls.from_stored, cls.convert = staticmethod(exact), staticmethod(converting(part.convert))
    cls.from_operand = staticmethod(lambda value: value if value.__class__ is cls else of(value))
    _equip(cls)
    return cls  # type: ignore[no-any-return]


def _equip(cls: Any) -> None:
    """Give `cls` its operators."""
    made = cls.made
    install_operator(cls, "add", lambda a, b: made(a.real + b.real, a.imag + b.imag))
    install_operator(cls, "sub", lambda a, b: made(a.real - b.real, a.imag - b.imag))
    install_operator(
        cls, "mul", lambda a, b: made(a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real)
    )
    install_operator(cls, "truediv", _divide)
    install_operator(cls, "eq", lambda a, b: a.real == b.real and a.imag == b.imag)
    install_operator(cls, "ne", lambda a, b: a.real != b.real or a.imag != b.imag)


def _multiply(a: Any, b: Any) -> Any:
    return a.made(a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real)


def _divide(a: Any, b: Any) -> Any:
    """Smith's method. Which part divides is no matter of doubt: where they are near, both ways come out alike."""
    width, height = abs(float(b.real)), abs(float(b.imag))
    if width == height == 0:
        if b.part.is_python:
            raise division_by_zero(a, "/", b)
        return a.made(a.real / b.part.from_stored(0.0), a.imag / b.part.from_stored(0.0))
    if width >= height:
        ratio = b.imag / b.real
        divisor = b.real + b.imag * ratio
        return a.made((a.real + a.imag * ratio) / divisor, (a.imag - a.real * ratio) / divisor)
    ratio = b.real / b.imag
    divisor = b.real * ratio + b.imag
    return a.made((a.real * ratio + a.imag) / divisor, (a.imag * ratio - a.real) / divisor)


# --- functions ----------------------------------------------------------------------------------------------------


def complex_function(name: str) -> Callable[[ComplexElement], ComplexElement]:
    """`cmath.name` of a complex number, each part rounded at its type.

    Libraries differ by some ulps of the result's magnitude; where it nearly overflows, and beside a part that is NaN, C
    leaves them open.
    """
    function: Callable[[complex], complex] = getattr(cmath, name)

    def total(value: complex) -> complex:
        """C's answer where `cmath` raises, from torch."""
        try:
            return function(value)
        except (ValueError, OverflowError):
            import torch

            found: complex = getattr(torch, name)(torch.tensor(value, dtype=torch.complex128)).item()
            return found

    def call(argument: ComplexElement) -> ComplexElement:
        cls, part = argument.__class__, argument.part
        compute = function if part.is_python else total
        value, high = complex(argument), argument.dtype.high
        result = compute(value)
        sizes = abs(result.real), abs(result.imag)
        size = max(filter(math.isfinite, sizes), default=0.0)
        has_one_nan = math.isnan(result.real) != math.isnan(result.imag)
        is_open = has_one_nan or (cmath.isfinite(value) and not max(sizes) < high / 4)
        own = math.inf if is_open else _ULPS * argument.dtype.epsilon * (size + 1.0)
        error = own + _moved(total, argument, result)
        return cls.made(*(part.with_error(part.narrow(p), error) for p in (result.real, result.imag)))

    call.__name__ = name
    return call


def _moved(function: Callable[[complex], complex], argument: ComplexElement, result: complex) -> float:
    """What `function` makes of the errors of its argument's parts, and of a few of their last bits.

    Libraries take an argument apart in ways of their own: near a pole, that moves the result by far more than its ulps.
    """
    total = 0.0
    for part, unit in ((argument.real, 1), (argument.imag, 1j)):
        own = 4 * argument.dtype.epsilon * abs(part) if math.isfinite(part) else 0.0
        reach = part.error + own
        for shift in (-reach, reach) if reach else ():
            if not shift < math.inf:
                return math.inf
            moved = function(complex(argument) + shift * unit)
            total += max(abs(moved.real - result.real), abs(moved.imag - result.imag))
    return math.inf if math.isnan(total) else total
