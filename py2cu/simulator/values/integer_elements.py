"""Integer and bool elements: wrapped at their dtype, with floor division and remainder by Python's signs.

In: an integer dtype. Out: `define_int`, a class for it. It is no subclass of `int`, or Python's float would compute
`0.5 * element` without asking the element.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, ClassVar, Final, Self

from py2cu.dtypes import BOOL, DType
from py2cu.simulator.state import THREAD
from py2cu.simulator.values.checked_int import (
    BEYOND_64_BITS,
    LONG_BITS,
    LONG_HIGH,
    LONG_LOW,
    SYMBOLS,
    Truth,
    division_by_zero,
    report_wide_shift,
    truth,
)
from py2cu.simulator.values.operators import (
    COMPARISONS,
    ElementRangeError,
    Method,
    Number,
    PromotionExceptions,
    PromotionTable,
    install_operator,
)


class IntElement:
    """An integer (or bool) of one dtype, wrapped."""

    __slots__ = ("value",)
    dtype: ClassVar[DType]
    promotions: ClassVar[PromotionTable]
    value: int
    error: ClassVar[float] = 0.0  # of what has one, see `uncertain_bits.py`
    uncertain: ClassVar[Method]  # from a value and an error
    from_operand: ClassVar[Method]  # converts an operand; a Python integer out of range is refused
    convert: ClassVar[Method]  # converts as an explicit cast or a store does
    cast: ClassVar[Method]  # one with an error, to this class
    wrapped: ClassVar[Method]  # from any integer, wrapped at the dtype
    from_stored: ClassVar[Method]  # from a value of an array of the dtype
    truncate: ClassVar[Callable[[float], tuple[int, bool]]]  # a float as an integer of the dtype: see `truncation`

    def __new__(cls, value: Number = 0) -> Self:
        return cls.convert(value)  # type: ignore[no-any-return]

    def __index__(self) -> int:
        if self.value > LONG_HIGH:  # a uint64, used as a Python integer  # rule: index-checked
            THREAD.report(BEYOND_64_BITS, f"{self!r}", is_open=True)
        return self.value

    def bit_count(self) -> int:
        return THREAD.integer(abs(self.value).bit_count())

    __int__ = __trunc__ = __floor__ = __ceil__ = __index__

    def __float__(self) -> float:
        return float(self.value)

    def __bool__(self) -> bool:
        return self.value != 0

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return f"{self.dtype}({self})"

    def __str__(self) -> str:
        return str(bool(self.value) if self.dtype is BOOL else self.value)

    def __format__(self, spec: str) -> str:
        return format(self.value, spec) if spec else str(self)

    def __reduce__(self) -> tuple[type[int], tuple[int]]:
        return int, (self.value,)

    def __round__(self, digits: int | None = None) -> Any:
        return self.value if digits is None else self.wrapped(round(self.value, digits))

    @property
    def real(self) -> IntElement:
        return self

    @property
    def imag(self) -> IntElement:
        return self.wrapped(0)  # type: ignore[no-any-return]

    def conjugate(self) -> IntElement:
        return self

    def __pos__(self) -> IntElement:
        return self

    def __neg__(self) -> IntElement:
        if self.dtype is BOOL:
            raise TypeError("a bool element has no sign")
        return self.wrapped(-self.value)  # type: ignore[no-any-return]

    def __abs__(self) -> IntElement:
        return self.wrapped(abs(self.value))  # type: ignore[no-any-return]

    def __invert__(self) -> IntElement:
        return self.wrapped(not self.value if self.dtype is BOOL else ~self.value)  # type: ignore[no-any-return]

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self


def wrapper(dtype: DType) -> Callable[[int], int]:
    """The function that wraps a Python integer at `dtype`."""
    if dtype is BOOL:
        return lambda value: int(value != 0)
    half, mask = -int(dtype.low), (1 << dtype.bits) - 1
    return lambda value: ((value + half) & mask) - half


def truncation(dtype: DType) -> Callable[[float], tuple[int, bool]]:
    """The function that truncates a float to an integer of `dtype`; its second result: whether C++ specifies the first.

    Truncation is toward zero. For an unsigned dtype, the float is converted to int64 and wraps, as in torch on the CPU;
    for uint64, values from 2**63 on are converted directly. For any other value that does not fit, C++ specifies none.
    """
    if dtype is BOOL:
        return lambda value: (int(value != 0), True)
    wrap, low, high = wrapper(dtype), int(dtype.low), int(dtype.high)
    limit, unspecified = 1 << max(dtype.bits, LONG_BITS - 1), (wrapper(dtype)(LONG_LOW), False)
    trunc, wraps = float.__trunc__, not dtype.signed  # rule: truncation-simulated

    def truncate(value: float) -> tuple[int, bool]:
        if not LONG_LOW <= float(value) < limit:  # NaN too
            return unspecified
        truncated = trunc(value)
        return (truncated, True) if low <= truncated <= high else (wrap(truncated), wraps)

    return truncate


def define_int(dtype: DType, name: str) -> type[IntElement]:
    """Define the class of integers of `dtype`."""
    cls: Any = type(name, (IntElement,), {"__slots__": (), "dtype": dtype, "promotions": PromotionTable()})
    wrap, low, high = wrapper(dtype), int(dtype.low), int(dtype.high)
    truncate = truncation(dtype)
    new = object.__new__

    def wrapped(value: int) -> Any:
        element: Any = new(cls)
        element.value = wrap(value)
        return element

    def from_stored(value: int) -> Any:
        element: Any = new(cls)
        element.value = value
        return element

    def convert(value: Any) -> Any:
        if not isinstance(value, float):
            if isinstance(value, IntElement):
                return cls.cast(value, cls) if value.error else wrapped(value.value)
            return wrapped(int(value))
        truncated, is_specified = truncate(value)
        error = getattr(value, "error", 0.0)
        if not is_specified or (error and truncate(float(value) - error) != truncate(float(value) + error)):
            THREAD.tainted = True
        return from_stored(truncated)

    def from_operand(value: Any) -> Any:
        if value.__class__ is cls:
            return value
        if isinstance(value, IntElement):
            return cls.cast(value, cls) if value.error else wrapped(value.value)
        plain = int(value)
        if low <= plain <= high:
            return from_stored(plain)
        raise ElementRangeError(f"{value!r} does not fit {dtype}")

    cls.wrapped, cls.convert, cls.from_operand, cls.truncate = (
        staticmethod(method) for method in (wrapped, convert, from_operand, truncate)
    )
    cls.from_stored = staticmethod(wrapped if dtype is BOOL else from_stored)  # an array of bools stores Python bools
    _install_operators(cls)
    return cls  # type: ignore[no-any-return]


# --- operators ----------------------------------------------------------------------------------------------------

_BITWISE: Final[dict[str, Method]] = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}


def _install_operators(cls: type[IntElement]) -> None:
    """Give `cls` its operators. `/` comes with `family.py`, because it makes floats."""
    for name, compute in _operators(cls.dtype).items():
        install_operator(cls, name, _wrapping(cls.wrapped, compute))
    for name, compute in _BITWISE.items():
        # `&`, `|`, `^` of a bool element and a Python bool stay bool; arithmetic counts the Python bool as an integer.
        promotions = PromotionExceptions({bool: cls, Truth: cls}, cls.promotions) if cls.dtype is BOOL else None
        install_operator(cls, name, _wrapping(cls.wrapped, compute), promotions=promotions)
    for name in COMPARISONS:
        install_operator(cls, name, _comparing(getattr(operator, name)))


def _operators(dtype: DType) -> dict[str, Method]:
    """Arithmetic on Python integers, to be wrapped at `dtype`."""
    return {
        "add": operator.add, "sub": operator.sub, "mul": operator.mul, "pow": _power,
        "floordiv": _dividing(operator.floordiv, "//"), "mod": _dividing(operator.mod, "%"),
        "lshift": _shift(dtype, operator.lshift, "<<"), "rshift": _shift(dtype, operator.rshift, ">>"),
    }  # fmt: skip


def _power(a: int, b: int) -> int:
    if b < 0:
        raise ElementRangeError(f"an integer to the power {b}: {a} {SYMBOLS['pow']} {b}")
    return pow(a, b, 1 << LONG_BITS)


def _dividing(compute: Method, symbol: str) -> Method:
    def divide(a: int, b: int) -> Any:
        if b == 0:
            raise division_by_zero(a, symbol, b)
        return compute(a, b)

    return divide


def _shift(dtype: DType, compute: Method, symbol: str) -> Method:
    bits, what = dtype.bits, f"{dtype}"

    def shift(a: int, count: int) -> Any:
        if not 0 <= count < bits:
            report_wide_shift(a, symbol, count, bits, what)
        return compute(a, min(count, LONG_BITS))  # all bits are shifted out; Python would compute them first

    return shift


def _wrapping(wrapped: Method, compute: Method) -> Method:
    return lambda a, b: wrapped(compute(a.value, b.value))


def _comparing(compute: Method) -> Method:
    return lambda a, b: truth(compute(a.value, b.value))
