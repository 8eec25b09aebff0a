"""Integer and bool elements: wrapped at their dtype, floor division and remainder with Python's signs.

In: an integer dtype. Out: `define_int`, a class for it. It is no subclass of `int`: `0.5 * element` must not be taken
by Python's own float before the element is asked.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, ClassVar, Final, Self

from py2cu.dtypes import BOOL, DType
from py2cu.runtime.floats import LONG_LIMIT
from py2cu.runtime.meeting import COMPARISONS, THREAD, ElementRangeError, Method, Number, both_ways, compares


class IntElement:
    """An integer (or bool) of one dtype, wrapped."""

    __slots__ = ("value",)
    dtype: ClassVar[DType]
    value: int
    of: ClassVar[Method]
    cast: ClassVar[Method]
    make: ClassVar[Method]  # from any integer, which wraps

    def __new__(cls, value: Number = 0) -> Self:
        return cls.cast(value)  # type: ignore[no-any-return]

    def __index__(self) -> int:
        return self.value

    __int__ = __trunc__ = __floor__ = __ceil__ = __index__

    def __float__(self) -> float:
        return float(self.value)

    def __bool__(self) -> bool:
        return self.value != 0

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return repr(bool(self.value)) if self.dtype is BOOL else repr(self.value)

    def __format__(self, spec: str) -> str:
        return format(self.value, spec) if spec else repr(self)

    def __reduce__(self) -> tuple[type[int], tuple[int]]:
        return int, (self.value,)

    def __round__(self, digits: int | None = None) -> Any:
        return self.value if digits is None else self.make(round(self.value, digits))

    def __pos__(self) -> IntElement:
        return self

    def __neg__(self) -> IntElement:
        if self.dtype is BOOL:
            raise TypeError("a bool element has no sign")
        return self.make(-self.value)  # type: ignore[no-any-return]

    def __abs__(self) -> IntElement:
        return self.make(abs(self.value))  # type: ignore[no-any-return]

    def __invert__(self) -> IntElement:
        return self.make(not self.value if self.dtype is BOOL else ~self.value)  # type: ignore[no-any-return]


def wrapper(dtype: DType) -> Callable[[int], int]:
    """The function that wraps a Python integer at `dtype`."""
    if dtype is BOOL:
        return lambda value: int(value != 0)
    half, mask = -int(dtype.low), (1 << dtype.bits) - 1
    return lambda value: ((value + half) & mask) - half


def truncate(value: float, dtype: DType) -> tuple[int, bool]:
    """A float as an integer of `dtype`, and whether that is specified.

    Truncation toward zero. An unsigned dtype goes through int64 and wraps, as torch on the CPU; anything else that
    does not fit is left open by C++, so nobody may rely on it.
    """
    value = float(value)
    if dtype is BOOL:
        return value != 0, True
    if not -LONG_LIMIT <= value < LONG_LIMIT:  # NaN too
        return wrapper(dtype)(-LONG_LIMIT), False
    whole = math.trunc(value)
    return wrapper(dtype)(whole), not dtype.signed or dtype.low <= whole <= dtype.high


def define_int(dtype: DType, name: str) -> type[IntElement]:
    """The class of integers of `dtype`."""
    cls: Any = type(name, (IntElement,), {"__slots__": (), "dtype": dtype})
    wrap, low, high = wrapper(dtype), dtype.low, dtype.high
    new = object.__new__

    def make(value: int) -> Any:
        made: Any = new(cls)
        made.value = wrap(value)
        return made

    def cast(value: Any) -> Any:
        if not isinstance(value, float):
            return make(int(value))
        whole, specified = truncate(value, dtype)
        if not specified or _may_move(value, dtype):
            THREAD.doubt = True
        return make(whole)

    def of(value: Any) -> Any:
        if value.__class__ is cls:
            return value
        if not isinstance(value, IntElement) and not low <= value <= high:
            raise ElementRangeError(f"{value!r} does not fit {dtype}")
        return cast(value)

    cls.make, cls.cast, cls.of = staticmethod(make), staticmethod(cast), staticmethod(of)
    _equip(cls)
    return cls  # type: ignore[no-any-return]


def _may_move(value: float, dtype: DType) -> bool:
    """Whether a value within the error of `value` truncates to another integer."""
    error = getattr(value, "error", 0.0)
    return bool(error) and truncate(float(value) - error, dtype) != truncate(float(value) + error, dtype)


def _shift_left(a: int, b: int) -> int:
    return a << b if b < 64 else 0  # all bits are gone; Python would build them first


def _power(a: int, b: int) -> int:
    if b < 0:
        raise ElementRangeError(f"an integer to the power {b}")
    return pow(a, b, 1 << 64)


_OPERATORS: Final[dict[str, Method]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "floordiv": operator.floordiv, "mod": operator.mod,
    "rshift": operator.rshift, "lshift": _shift_left, "pow": _power,
}  # fmt: skip
_BITWISE: Final[dict[str, Method]] = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}


def _equip(cls: type[IntElement]) -> None:
    """Give `cls` its operators. `/` comes with `elements.py`: it makes floats."""
    for name, compute in (_OPERATORS | _BITWISE).items():
        both_ways(cls, name, _wrapping(cls.make, compute))
    for name in COMPARISONS:
        compares(cls, name, _comparing(getattr(operator, name)))
    if cls.dtype is BOOL:
        for name, compute in _BITWISE.items():
            _keep_bool(cls, name, compute)


def _wrapping(make: Method, compute: Method) -> Method:
    return lambda a, b: make(compute(a.value, b.value))


def _comparing(compute: Method) -> Method:
    return lambda a, b: compute(a.value, b.value)


def _keep_bool(cls: type[IntElement], name: str, compute: Method) -> None:
    """`&`, `|`, `^` of a bool element and a Python bool stay bool; arithmetic counts the latter as an integer."""
    for full in (f"__{name}__", f"__r{name}__"):
        promoting: Method = getattr(cls, full)

        def operate(a: Any, b: Any, promoting: Method = promoting) -> Any:
            return cls.make(compute(a.value, b)) if b.__class__ is bool else promoting(a, b)

        setattr(cls, full, operate)
