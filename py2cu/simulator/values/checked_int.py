"""Python's own integers in a simulated kernel: exact, and aware of the 64 bits that the compiled kernel has for them.

In: literals, indices, extents, `int` parameters, what `range`, `len` and `round` give. Out: `Integer`, an `int` whose
arithmetic notes a result beyond 64 bits and a shift by 64 or more, and says of a division by zero what was divided.
Where `small_integers.py` finds that all of a launch's surely fit, they are Python's own.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any, Final, SupportsIndex

from py2cu.simulator.state import THREAD
from py2cu.simulator.values.rounding import as_float

LONG_LOW: Final = -(1 << 63)
LONG_HIGH: Final = (1 << 63) - 1
LONG_BITS: Final = 64
BEYOND: Final = "a Python integer leaves 64 bits"
_NO_FLOAT: Final = "a Python integer that no float holds becomes one"

SYMBOLS: Final = {
    "add": "+", "sub": "-", "mul": "*", "floordiv": "//", "mod": "%", "pow": "**", "lshift": "<<", "rshift": ">>",
    "and": "&", "or": "|", "xor": "^", "truediv": "/",
}  # fmt: skip


class CheckedInt(int):
    """A Python integer of a kernel."""

    __slots__ = ()

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self


def shift_noted(a: int, symbol: str, count: int, bits: int, what: str) -> None:
    """Note a shift of `what` by its `bits` or more; C++ leaves its result open.

    Raises:
        ValueError: a negative count, as Python does.
    """
    if count < 0:
        raise ValueError(f"negative shift count: {a} {symbol} {count}")
    if count >= bits:
        THREAD.report(f"a shift of {what} by {bits} bits or more", f"{a} {symbol} {count}", is_open=True)


def division_by_zero(a: object, symbol: str, b: object) -> ZeroDivisionError:
    return ZeroDivisionError(f"{a} {symbol} {b}")


def check_64_bits(value: int, *operation: object) -> CheckedInt:
    """`value` as an `Integer`, noted where 64 bits do not hold it."""
    if not LONG_LOW <= value <= LONG_HIGH:
        spelled = " ".join(map(str, operation))
        THREAD.report(BEYOND, f"{spelled} is {value}", is_open=True)
    return CheckedInt(value)


def note_compared(compare: Callable[[float, float], bool], a: float, whole: int, double: float) -> None:
    """Note a comparison that comes out otherwise with `whole`, as in Python, than with its `double`, as in C++."""
    if compare(a, whole) != compare(a, double):
        THREAD.report(_NO_FLOAT, f"{whole}, compared with {a!r}", is_open=True)


def _binary(plain: Callable[[Any, Any], Any], symbol: str, *, swapped: bool) -> Callable[[Any, Any], Any]:
    """An operator of `int`, checked; `swapped` for the reflected one."""

    def operate(a: Any, b: Any, low: int = LONG_LOW, high: int = LONG_HIGH) -> Any:
        try:
            value = plain(a, b)
        except ZeroDivisionError:
            raise division_by_zero(*((b, symbol, a) if swapped else (a, symbol, b))) from None
        if value.__class__ is not int:
            return value  # a float, or NotImplemented
        if low <= value <= high:
            return CheckedInt(value)
        return check_64_bits(value, *((b, symbol, a) if swapped else (a, symbol, b)))

    return operate


def _shift(plain: Callable[[Any, Any], Any], symbol: str, *, swapped: bool) -> Callable[[Any, Any], Any]:
    checked = _binary(plain, symbol, swapped=swapped)

    def operate(a: Any, b: Any) -> Any:
        value, count = (b, a) if swapped else (a, b)
        if isinstance(value, int) and isinstance(count, int):
            shift_noted(value, symbol, count, LONG_BITS, "a Python integer")
        return checked(a, b)

    return operate


def _power(plain: Callable[[Any, Any], Any], symbol: str, *, swapped: bool) -> Callable[[Any, Any], Any]:
    checked = _binary(plain, symbol, swapped=swapped)

    def operate(a: Any, b: Any) -> Any:
        base, exponent = (b, a) if swapped else (a, b)
        if isinstance(base, int) and isinstance(exponent, int) and exponent > LONG_BITS and abs(base) > 1:
            THREAD.report(BEYOND, f"{base} {symbol} {exponent}", is_open=True)
            exponent = LONG_BITS + int(exponent) % 2  # far enough: Python would build all the bits
            return CheckedInt(int(base) ** exponent)
        return checked(a, b)

    return operate


def _divide(plain: Callable[[Any, Any], Any], symbol: str, *, swapped: bool) -> Callable[[Any, Any], Any]:
    """True division: Python rounds the quotient alone, C++ what it divides too."""
    checked = _binary(plain, symbol, swapped=swapped)

    def operate(a: Any, b: Any) -> Any:
        value = checked(a, b)
        if isinstance(b, int):
            dividend, divisor = (b, a) if swapped else (a, b)
            if value != as_float(dividend) / as_float(divisor):
                THREAD.report(_NO_FLOAT, f"{dividend} {symbol} {divisor}", is_open=True)
        return value

    return operate


def _unary(name: str) -> Callable[[Any], CheckedInt]:
    plain = getattr(int, f"__{name}__")
    return lambda a: check_64_bits(plain(a), name, a)


_SPECIAL: Final = {"lshift": _shift, "rshift": _shift, "pow": _power, "truediv": _divide}


def _equip() -> None:
    for name, symbol in SYMBOLS.items():
        checked = _SPECIAL.get(name, _binary)
        setattr(CheckedInt, f"__{name}__", checked(getattr(int, f"__{name}__"), symbol, swapped=False))
        setattr(CheckedInt, f"__r{name}__", checked(getattr(int, f"__r{name}__"), symbol, swapped=True))
    for name in ("neg", "pos", "abs", "invert"):
        setattr(CheckedInt, f"__{name}__", _unary(name))


_equip()


def checked_range(*bounds: SupportsIndex) -> Iterable[int]:
    """`range`; what C++ counts to is one step further than its last number."""
    numbers = range(*map(operator.index, bounds))
    if not LONG_LOW <= numbers.stop + numbers.step <= LONG_HIGH and numbers and abs(numbers.step) > 1:
        check_64_bits(numbers[-1] + numbers.step, f"what follows the last of {numbers}")
    return numbers if THREAD.integer is int else map(THREAD.integer, numbers)
