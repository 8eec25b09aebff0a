"""Python's operators on numbers, a row each: every table of operators in the compiler follows from these rows.

The simulator takes their names from here, and what it checks from nowhere but itself.
"""

from __future__ import annotations

import enum
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

_BITS: Final = 64


class Family(enum.Enum):
    RING = enum.auto()  # of integers: exact, and modular
    QUOTIENT = enum.auto()
    POWER = enum.auto()
    LOGICAL = enum.auto()  # on each bit
    SHIFT = enum.auto()


@dataclass(frozen=True, slots=True)
class Operator:
    """A binary operator; the names of helpers are "" where there is none."""

    symbol: str
    c: str  # C's operator that computes the same of natural numbers; "" for none
    compute: Callable[[Any, Any], Any]  # Python's function
    family: Family
    is_modular: bool = False  # the low bits of a result depend on those of the operands alone; of `<<`, of its left one
    may_leave: bool = False  # the result of two integers of a dtype may lie outside it
    zero_stays: bool = False  # the result is zero where the left operand is
    in_extents: bool = False  # extents of arrays may have it
    fold: Callable[[int, int], int] | None = None  # of constants, where `compute` would take too long
    helper: str = ""  # computes it of any numbers, where C has no such operator
    wrapping: str = ""  # computes it of integers, where overflow is undefined in C++
    elementwise: str = ""  # the same, of a type variable that may be a float as well
    of_complex: str = ""  # computes it of complex numbers

    @property
    def name(self) -> str:
        """The name of its method: `floordiv` for `__floordiv__`."""
        return self.compute.__name__.rstrip("_")

    @property
    def is_bitwise(self) -> bool:
        """True if floats do not have it."""
        return self.family in (Family.LOGICAL, Family.SHIFT)


def _bounded_power(base: int, exponent: int) -> int:
    """`base ** exponent`; beyond 64 bits, a smaller power of the same sign that exceeds them as well."""
    # The parity of the exponent decides the sign for a negative base.
    return int(base ** min(exponent, _BITS + exponent % 2))


_ROWS: Final = (
    Operator("+", "+", operator.add, Family.RING, is_modular=True, may_leave=True, in_extents=True,
             wrapping="wrapping_add", elementwise="add_elements"),
    Operator("-", "-", operator.sub, Family.RING, is_modular=True, may_leave=True, in_extents=True,
             wrapping="wrapping_sub", elementwise="subtract_elements"),
    Operator("*", "*", operator.mul, Family.RING, is_modular=True, may_leave=True, zero_stays=True, in_extents=True,
             wrapping="wrapping_mul", elementwise="multiply_elements", of_complex="complex_mul"),
    Operator("/", "/", operator.truediv, Family.QUOTIENT, zero_stays=True, of_complex="complex_div"),
    Operator("//", "/", operator.floordiv, Family.QUOTIENT, may_leave=True, zero_stays=True, in_extents=True,
             helper="floor_div"),  # -128 // -1 leaves int8
    Operator("%", "%", operator.mod, Family.QUOTIENT, zero_stays=True, in_extents=True, helper="floor_mod"),
    Operator("**", "", operator.pow, Family.POWER, may_leave=True, fold=_bounded_power, helper="int_pow",
             of_complex="complex_pow"),
    Operator("&", "&", operator.and_, Family.LOGICAL, is_modular=True, zero_stays=True),
    Operator("|", "|", operator.or_, Family.LOGICAL, is_modular=True),
    Operator("^", "^", operator.xor, Family.LOGICAL, is_modular=True),
    Operator("<<", "<<", operator.lshift, Family.SHIFT, is_modular=True, may_leave=True, zero_stays=True,
             wrapping="wrapping_shift"),
    Operator(">>", ">>", operator.rshift, Family.SHIFT, zero_stays=True),
)  # fmt: skip
OPERATORS: Final = {row.symbol: row for row in _ROWS}
OF_HELPERS: Final = {row.helper: row.symbol for row in _ROWS if row.helper}
UNARY: Final[dict[str, Callable[[Any], Any]]] = {
    "+": operator.pos, "-": operator.neg, "~": operator.invert, "not": operator.not_,
}  # fmt: skip
COMPARISONS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
