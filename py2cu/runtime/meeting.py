"""Where two numbers of a simulated kernel meet: the class they compute in, and the operators that send them there.

In: classes of elements. Out: `both_ways` and `compares`, which equip a class with an operator whose fast path is two
values of that very class, and `MEETING`, filled by `elements.py`, which decides all other pairs.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final

Number = bool | int | float
Method = Callable[..., Any]


class ElementRangeError(ValueError):
    """A Python number meets an element whose type cannot hold it (`u8 < 300`)."""


class ThreadState:
    """What the elements tell about the thread that computes with them; the simulator clears it per thread."""

    __slots__ = ("doubt",)

    def __init__(self) -> None:
        self.doubt = False


THREAD: Final = ThreadState()


MEETING: Final[dict[tuple[type, type], Any]] = {}  # both operands' classes -> the class they meet in


def common_class(a: object, b: object) -> Any:
    """The class in which two operands compute; None where one is no number or neither is an element."""
    found = MEETING.get((a.__class__, b.__class__))
    if found is None:
        found = MEETING.get((_plain(a), _plain(b)))
    return found


def _plain(value: object) -> type:
    """The class that decides: subclasses of Python's numbers (a bare `threadIdx`) count as those."""
    cls = value.__class__
    if hasattr(cls, "dtype") or cls is bool:
        return cls
    return next((base for base in (int, float) if isinstance(value, base)), cls)


def _meet(operation: Method, a: object, b: object) -> Any:
    common = common_class(a, b)
    return NotImplemented if common is None else operation(common.of(a), common.of(b))


def both_ways(cls: type, name: str, compute: Method) -> None:
    """Give `cls` the operator `name` and its reflection; `compute` takes two values of exactly `cls`."""
    operation = getattr(operator, f"__{name}__")

    def forward(a: Any, b: Any) -> Any:
        return compute(a, b) if b.__class__ is cls else _meet(operation, a, b)

    def reflected(b: Any, a: Any) -> Any:
        return _meet(operation, a, b)

    setattr(cls, f"__{name}__", forward)
    setattr(cls, f"__r{name}__", reflected)


def compares(cls: type, name: str, compute: Method) -> None:
    operation = getattr(operator, f"__{name}__")

    def compare(a: Any, b: Any) -> Any:
        return compute(a, b) if b.__class__ is cls else _meet(operation, a, b)

    setattr(cls, f"__{name}__", compare)


COMPARISONS: Final = ("lt", "le", "eq", "ne", "gt", "ge")
