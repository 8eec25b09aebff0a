"""Python's integers in a simulated kernel: exact, and checked against the 64 bits of the compiled kernel.

In: literals, indices, extents, `int` parameters, the results of `range`, `len` and `round`. Out: `CheckedInt`, an `int`
whose arithmetic reports a result beyond 64 bits and a shift by 64 or more, and names the operands of a division by
zero. Comparisons give a `Truth`, whose arithmetic is checked, too. Python's own operators of its bools, as in
`(not a) - b`, are not: an operator that gets their result reports it. Where `integer_choice.py` shows that all integers
of a launch fit, they are CPython's `int`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, SupportsIndex

from py2cu.ir.operators import OPERATORS
from py2cu.simulator.state import THREAD
from py2cu.simulator.values.operators import COMPARISONS
from py2cu.simulator.values.rounding import as_float

LONG_LOW: Final = -(1 << 63)
LONG_HIGH: Final = (1 << 63) - 1
LONG_BITS: Final = 64
BEYOND_64_BITS: Final = "a Python integer leaves 64 bits"
_ROUNDED: Final = "a Python integer is rounded when it is converted to float64"

SYMBOLS: Final = {row.name: row.symbol for row in OPERATORS.values()}


class CheckedInt(int):
    """A Python integer of a kernel."""

    __slots__ = ()

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def bit_count(self) -> CheckedInt:
        return CheckedInt(abs(int(self)).bit_count())


class Truth(CheckedInt):
    """The result of a comparison: it prints as a bool, and counts as an integer."""

    __slots__ = ()

    def __repr__(self) -> str:
        return repr(bool(self))

    __str__ = __repr__


_TRUTHS: Final[dict[Any, Any]] = {False: Truth(0), True: Truth(1), NotImplemented: NotImplemented}


def truth(value: bool) -> bool | Truth:
    """The result of a comparison of elements."""
    return value if THREAD.integer is int else _TRUTHS[value]  # rule: truth-checked


def report_wide_shift(a: int, symbol: str, count: int, bits: int, what: str) -> None:
    """Report a shift of `what` by its `bits` or more, which C++ leaves undefined.

    Raises:
        ValueError: a negative count, as in Python.
    """
    if count < 0:
        raise ValueError(f"negative shift count: {a} {symbol} {count}")
    if count >= bits:
        THREAD.report(f"a shift of {what} by {bits} bits or more", f"{a} {symbol} {count}", is_open=True)


def division_by_zero(a: object, symbol: str, b: object) -> ZeroDivisionError:
    return ZeroDivisionError(f"{a} {symbol} {b}")


def check_64_bits(value: int, *operation: object) -> CheckedInt:
    """`value` as a `CheckedInt`, reported if 64 bits do not hold it."""
    if not LONG_LOW <= value <= LONG_HIGH and not THREAD.takes_uint64:  # rule: natural-takes-uint64
        spelled = " ".join(map(str, operation))
        THREAD.report(BEYOND_64_BITS, f"{spelled} is {value}", is_open=True)
    return CheckedInt(value)


def check_operand(value: object) -> None:
    """Report a result of Python's own operators that left 64 bits."""
    if value.__class__ is int:  # rule: operand-checked
        check_64_bits(value, "an operation on a truth value")


def report_inexact_comparison(compare: Callable[[float, float], bool], a: float, integer: int, double: float) -> None:
    """Report a comparison whose result with `integer`, as in Python, differs from that with `double`, as in C++."""
    if compare(a, integer) != compare(a, double):  # rule: comparison-inexact
        THREAD.report(_ROUNDED, f"{integer}, compared with {a!r}", is_open=True)


def _binary(plain: Callable[[Any, Any], Any], symbol: str, *, swapped: bool) -> Callable[[Any, Any], Any]:
    """An operator of `int`, checked; `swapped` for the reflected one."""

    def operate(a: Any, b: Any, low: int = LONG_LOW, high: int = LONG_HIGH) -> Any:
        check_operand(b)
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
            report_wide_shift(value, symbol, count, LONG_BITS, "a Python integer")
        return checked(a, b)

    return operate


def _power(plain: Callable[[Any, Any], Any], symbol: str, *, swapped: bool) -> Callable[[Any, Any], Any]:
    checked = _binary(plain, symbol, swapped=swapped)

    def operate(a: Any, b: Any) -> Any:
        base, exponent = (b, a) if swapped else (a, b)
        if isinstance(base, int) and isinstance(exponent, int) and exponent > LONG_BITS and abs(base) > 1:
            THREAD.report(BEYOND_64_BITS, f"{base} {symbol} {exponent}", is_open=True)
            exponent = LONG_BITS + int(exponent) % 2  # large enough; Python would compute every bit
            return CheckedInt(int(base) ** exponent)
        return checked(a, b)

    return operate


def _divide(plain: Callable[[Any, Any], Any], symbol: str, *, swapped: bool) -> Callable[[Any, Any], Any]:
    """True division: Python rounds only the quotient, C++ the operands too."""
    checked = _binary(plain, symbol, swapped=swapped)

    def operate(a: Any, b: Any) -> Any:
        value = checked(a, b)
        if isinstance(b, int):
            dividend, divisor = (b, a) if swapped else (a, b)
            if value != as_float(dividend) / as_float(divisor):  # rule: quotient-inexact
                THREAD.report(_ROUNDED, f"{dividend} {symbol} {divisor}", is_open=True)
        return value

    return operate


def _unary(name: str) -> Callable[[Any], CheckedInt]:
    plain = getattr(int, f"__{name}__")
    return lambda a: check_64_bits(plain(a), name, a)


def _comparison(plain: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def compare(a: Any, b: Any) -> Any:
        check_operand(b)
        return _TRUTHS[plain(a, b)]  # rule: comparison-truth

    return compare


def _of_truths(checked: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """`&`, `|` and `^`: of two truth values, they give one."""
    return lambda a, b: _TRUTHS[checked(a, b)] if b.__class__ in (bool, Truth) else checked(a, b)


_SPECIAL: Final = {"lshift": _shift, "rshift": _shift, "pow": _power, "truediv": _divide}


def _install_operators() -> None:
    for name, symbol in SYMBOLS.items():
        checked = _SPECIAL.get(name, _binary)
        setattr(CheckedInt, f"__{name}__", checked(getattr(int, f"__{name}__"), symbol, swapped=False))
        setattr(CheckedInt, f"__r{name}__", checked(getattr(int, f"__r{name}__"), symbol, swapped=True))
    for name in ("neg", "pos", "abs", "invert"):
        setattr(CheckedInt, f"__{name}__", _unary(name))
    for name in COMPARISONS:
        setattr(CheckedInt, f"__{name}__", _comparison(getattr(int, f"__{name}__")))
    for name in ("and", "rand", "or", "ror", "xor", "rxor"):
        setattr(Truth, f"__{name}__", _of_truths(getattr(CheckedInt, f"__{name}__")))


_install_operators()


def checked_range(*bounds: SupportsIndex) -> Iterable[int]:
    """`range`, reported if C++ would count beyond 64 bits: its counter ends one step after the last number."""
    numbers = range(*map(operator.index, bounds))
    # rule: range-simulated
    if not LONG_LOW <= numbers.stop + numbers.step <= LONG_HIGH and numbers and abs(numbers.step) > 1:
        check_64_bits(numbers[-1] + numbers.step, f"the number after the last of {numbers}")
    return numbers if THREAD.integer is int else CheckedRange(numbers)


class CheckedRange:
    """A `range` whose numbers report it when arithmetic leaves 64 bits."""

    __slots__ = ("_numbers",)

    def __init__(self, numbers: range) -> None:
        self._numbers = numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[int]:
        return map(THREAD.integer, self._numbers)

    def __reversed__(self) -> Iterator[int]:
        return map(THREAD.integer, reversed(self._numbers))
