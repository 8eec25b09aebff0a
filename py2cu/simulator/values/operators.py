"""Operators of simulated numbers: the class in which two operands compute, and how a class gets an operator.

In: a class of elements and a function of two of its values. Out: `install_operator`, which installs both methods of the
operator. The class's `PromotionTable`, filled by `family.py`, gives the common class of two operands. The most frequent
operators check the operand's class themselves, to save a call, and call `promote_and_apply` for other classes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

Number = bool | int | float
Method = Callable[..., Any]


class ElementRangeError(ValueError):
    """A Python number meets an element whose type cannot hold it (`u8 < 300`)."""


class PromotionTable(dict[type, Any]):
    """The promotions of one class: maps the class of the other operand to their common class, or None without one."""

    def __missing__(self, other: type) -> Any:
        """A subclass of Python's numbers (a bare `threadIdx`) counts as its base."""
        promoted = self[other] = next((self[base] for base in other.__mro__ if base in self), None)
        return promoted


class PromotionExceptions(PromotionTable):
    """The promotions of one operator: `exceptions`, and for all other operands the `general` ones of its class."""

    def __init__(self, exceptions: Mapping[type, Any], general: PromotionTable) -> None:
        super().__init__(exceptions)
        self._general = general

    def __missing__(self, other: type) -> Any:
        promoted = self[other] = self._general[other]
        return promoted


COMPARISONS: Final = ("lt", "le", "eq", "ne", "gt", "ge")
_COMPUTE: Final[dict[tuple[type, str], Method]] = {}  # what an operator does with two values of exactly one class


def _apply_in(common: Any, name: str, a: object, b: object) -> Any:
    return NotImplemented if common is None else _COMPUTE[common, name](common.from_operand(a), common.from_operand(b))


def promote_and_apply(cls: Any, name: str) -> Method:
    """The operator `name` of a value of `cls` and an operand that promotes to another class."""
    promotions = cls.promotions
    return lambda a, b: _apply_in(promotions[b.__class__], name, a, b)


def install_operator(
    cls: Any,
    name: str,
    compute: Method,
    *,
    handles_any_operand: bool = False,
    promotions: PromotionTable | None = None,
) -> None:
    """Give `cls` the operator `name` and its reflection; Python itself reflects comparisons.

    `compute` takes two values of `cls`, or any second operand if it `handles_any_operand`. `promotions` replaces the
    table of the class for this operator.
    """
    _COMPUTE[cls, name] = compute
    from_operand, table = cls.from_operand, cls.promotions if promotions is None else promotions

    def forward(a: Any, b: Any) -> Any:
        if b.__class__ is cls:
            return compute(a, b)
        common = table[b.__class__]
        return compute(a, from_operand(b)) if common is cls else _apply_in(common, name, a, b)

    def reflected(b: Any, a: Any) -> Any:
        common = table[a.__class__]
        return compute(from_operand(a), b) if common is cls else _apply_in(common, name, a, b)

    setattr(cls, f"__{name}__", compute if handles_any_operand else forward)
    if name not in COMPARISONS:
        setattr(cls, f"__r{name}__", reflected)
