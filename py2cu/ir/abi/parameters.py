"""Parameters of a kernel, and guards of its threads: the data with which a cached kernel is called.

Extents are the only expressions here, so that a cached kernel is called without the rest of the IR.
"""

from __future__ import annotations

import enum
from dataclasses import field
from typing import Final, TypeGuard

from py2cu.ir.types import ArrayType, DimExpr, ElementType, PythonType, ValueType, span_field
from py2cu.records import record
from py2cu.source import Span

CONSTEXPR_MAX: Final = 2**31 - 1


class Role(enum.Enum):
    """What a kernel does with a parameter, and who provides it."""

    INPUT = "input"
    INOUT = "inout"  # written, and the caller provides it
    OUTPUT = "output"  # written, and allocated where the caller gives none
    FACTORY = "factory"  # the same of a kernel that takes no tensor: its op takes the array, a call in Python may not


def is_constexpr_value(value: object) -> TypeGuard[int]:
    """True for a value of a `Constexpr[int]` parameter: an int in C++, and not negative, as extents are."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= CONSTEXPR_MAX


@record(frozen=True, slots=True)
class Refusal:
    """Instances of a generic kernel that cannot be made, each with a dtype for every type variable, and the reason."""

    dtypes: tuple[tuple[str, ...], ...]
    reason: str  # "line 12: …"


@record(frozen=True, slots=True)
class Constexpr:
    """What makes a parameter a template argument: the values that there are instances for, each once."""

    values: tuple[int, ...]

    @property
    def most(self) -> int:
        """The greatest value; the greatest possible one if none is known."""
        return max(self.values, default=CONSTEXPR_MAX)


@record(frozen=True, slots=True)
class Default:
    """The value of a scalar that a call leaves out; `text` is the literal that the user wrote, if it was one."""

    value: bool | int | float | complex
    text: str = field(default="", compare=False)
    span: Span = span_field()


@record(frozen=True, slots=True)
class Parameter:
    """An argument of the call: an array or a scalar, in the user's order."""

    name: str
    type: ArrayType | ElementType | PythonType
    role: Role = Role.INPUT
    span: Span = span_field()
    constexpr: Constexpr | None = None
    default: Default | None = None
    by_keyword: bool = False  # keyword-only: behind a `*`
    may_be_none: bool = False  # a call may leave it out: annotated `… | None = None`

    @property
    def is_array(self) -> bool:
        return isinstance(self.type, ArrayType)


@record(frozen=True, slots=True)
class TupleParameter(Parameter):
    """A tuple of numbers in the signature that calls see; `numbers` are the scalar parameters of the kernel."""

    numbers: tuple[str, ...] = ()


@record(frozen=True, slots=True)
class Stride:
    """The distance in elements between neighbours on an axis of an array, which the launcher takes as `name`."""

    name: str
    array: str
    axis: int


@record(frozen=True, slots=True)
class IndexParameter:
    """`i: Index["n"]`: the thread's place along one axis, in an index kernel."""

    name: str
    extent: DimExpr
    axis: str
    span: Span = span_field()


@record(frozen=True, slots=True)
class BlockParameter:
    """A parameter that the launch provides for each block: shared memory of `type`, or a barrier (None)."""

    name: str
    type: ArrayType | None = None


@record(frozen=True, slots=True)
class Guard:
    """Threads at or past `extent` on `axis` do nothing."""

    index: str
    extent: DimExpr
    axis: str


@record(frozen=True, slots=True)
class PredicatedSite:
    """An access or a call, whose text ends here, that is predicated off for threads past the end.

    These threads may not return, since others wait for them. A read is zero, a call is zero of its `result` type.
    """

    line: int
    column: int
    guards: tuple[Guard, ...]
    result: ValueType | None = None


@record(frozen=True, slots=True)
class NegativeIndex:
    """A negative constant index, which counts from the end: at `line`, on `axis` of an array, -1 of a slice's bound."""

    line: int
    axis: int
    index: int
