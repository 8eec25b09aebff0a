"""Python's operators on numbers, one row each. The compiler derives what an operator means from its row.

The simulator shares only their names: it computes by rules of its own.
"""

from __future__ import annotations

import enum
import operator
from collections.abc import Callable
from typing import Any, Final

from py2cu.records import record

_BITS: Final = 64


class Family(enum.Enum):
    RING = enum.auto()  # `+`, `-`, `*`: integers make integers, exactly
    QUOTIENT = enum.auto()  # `/`, `//`, `%`: not defined for a divisor of zero
    POWER = enum.auto()
    LOGICAL = enum.auto()  # `&`, `|`, `^`: whole numbers only, bit by bit; bools make a bool
    SHIFT = enum.auto()  # `<<`, `>>`: whole numbers only


@record(frozen=True, slots=True)
class Operator:
    """A binary operator. The last four are helpers, "" where there is none."""

    symbol: str
    c: str  # C's operator with the same result for natural numbers; "" for none
    compute: Callable[[Any, Any], Any]  # Python's function
    family: Family
    is_modular: bool = False  # the low bits of the result depend on the operands' alone; of `<<`, on the left operand's
    may_leave: bool = False  # the result of two integers of a dtype may lie outside it
    zero_stays: bool = False  # the result is zero if the left operand is
    in_extents: bool = False  # extents of arrays may have it
    fold: Callable[[int, int], int] | None = None  # replaces `compute` for constants, where it would take too long
    helper: str = ""  # for operands of any sign
    wrapping: str = ""  # for integers that may overflow, which C++ leaves undefined
    elementwise: str = ""  # for a type variable that may be an integer or a float
    of_complex: str = ""  # for complex numbers

    @property
    def name(self) -> str:
        """The name of its method: `floordiv` for `__floordiv__`."""
        return self.compute.__name__.rstrip("_")


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
OF_HELPERS: Final = {row.helper: row.symbol for row in _ROWS if row.helper}  # the operator that each one replaces
UNARY: Final[dict[str, Callable[[Any], Any]]] = {
    "+": operator.pos, "-": operator.neg, "~": operator.invert, "not": operator.not_,
}  # fmt: skip
COMPARISONS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
TORCH_POWERS: Final = (2, 3, 0.5, -1, -2, -0.5)
"""The exponents, as constants, for which torch computes a float element's power by products, quotients and roots."""
