"""Where two numbers of a simulated kernel meet: the class they compute in, and the operators that send them there.

In: classes of elements. Out: `both_ways` and `compares`, which equip a class with an operator whose fast path is two
values of that very class; its `partners`, filled by `elements.py`, decide all other pairs. An operator that kernels
spend their time in is one function, which asks for the class of its second operand itself, and of `elsewhere`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

Number = bool | int | float
Method = Callable[..., Any]


class ElementRangeError(ValueError):
    """A Python number meets an element whose type cannot hold it (`u8 < 300`)."""


class PromotionTable(dict[type, Any]):
    """Of one class of elements: the class of an operand -> the class in which both compute; None where they cannot."""

    def __missing__(self, other: type) -> Any:
        """A subclass of Python's numbers (a bare `threadIdx`) counts as its base."""
        found = self[other] = next((self[base] for base in other.__mro__ if base in self), None)
        return found


_COMPUTE: Final[dict[tuple[type, str], Method]] = {}  # what an operator does with two values of exactly a class


def _meet(name: str, common: Any, a: object, b: object) -> Any:
    return NotImplemented if common is None else _COMPUTE[common, name](common.from_operand(a), common.from_operand(b))


def promote_and_apply(cls: Any, name: str) -> Method:
    """What the operator `name` of `cls` does with a second operand with which it does not meet in `cls`."""
    partners = cls.partners
    return lambda a, b: _meet(name, partners[b.__class__], a, b)


def install_comparison(cls: Any, name: str, compute: Method, *, handles_any_operand: bool = False) -> None:
    """Give `cls` the operator `name`; `compute` takes two values of `cls`; where it `is_whole`, any second one."""
    _COMPUTE[cls, name] = compute
    of, partners = cls.from_operand, cls.partners

    def forward(a: Any, b: Any) -> Any:
        if b.__class__ is cls:
            return compute(a, b)
        common = partners[b.__class__]
        return compute(a, of(b)) if common is cls else _meet(name, common, a, b)

    setattr(cls, f"__{name}__", compute if handles_any_operand else forward)


def install_binary(cls: Any, name: str, compute: Method, *, handles_any_operand: bool = False) -> None:
    """Give `cls` the operator `name` and its reflection; Python reflects comparisons by itself."""
    install_comparison(cls, name, compute, handles_any_operand=handles_any_operand)
    of, partners = cls.from_operand, cls.partners

    def reflected(b: Any, a: Any) -> Any:
        common = partners[a.__class__]
        return compute(of(a), b) if common is cls else _meet(name, common, a, b)

    setattr(cls, f"__r{name}__", reflected)


COMPARISONS: Final = ("lt", "le", "eq", "ne", "gt", "ge")
