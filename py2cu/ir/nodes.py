"""The IR on one page: a kernel as frozen, typed nodes, each with its place in the Python.

Every later stage matches these unions exhaustively, so mypy lists what a new node still needs.
Trees are untyped (`UNKNOWN`) from the front end to `infer_types` and typed from there on; `verify.py` says which
nodes each stage may meet.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from py2cu.ir.types import PY_BOOL, PY_INT, UNKNOWN, ArrayType, ElementType, PythonType, Type
from py2cu.source import NOWHERE, Span


def _place() -> Span:
    return field(default=NOWHERE, compare=False)


# --- expressions --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal, or a name that stands for one (`math.pi`, a module constant); `text` is how the user wrote it."""

    value: bool | int | float
    span: Span = _place()
    type: Type = UNKNOWN
    text: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Name:
    """A local variable, a scalar parameter, an element index or a dimension."""

    id: str
    span: Span = _place()
    type: Type = UNKNOWN


@dataclass(frozen=True, slots=True)
class LaunchIndex:
    """One component of a launch object: `threadIdx.x`."""

    object: str  # blockIdx, threadIdx, blockDim or gridDim
    axis: str  # x, y or z
    span: Span = _place()
    type: Type = PY_INT


@dataclass(frozen=True, slots=True)
class Extent:
    """`array.shape[axis]`; `resolve_extents` replaces it by the dimension's expression."""

    array: str
    axis: int
    span: Span = _place()
    type: Type = PY_INT


@dataclass(frozen=True, slots=True)
class Unary:
    op: str  # - + ~ not
    operand: Expr
    span: Span = _place()
    type: Type = UNKNOWN


@dataclass(frozen=True, slots=True)
class Binary:
    """Arithmetic with Python's meaning; `lower_semantics` leaves only what C computes alike."""

    op: str  # + - * / // % ** & | ^ << >>
    left: Expr
    right: Expr
    span: Span = _place()
    type: Type = UNKNOWN


@dataclass(frozen=True, slots=True)
class Compare:
    op: str  # == != < <= > >=
    left: Expr
    right: Expr
    span: Span = _place()
    type: Type = PY_BOOL


@dataclass(frozen=True, slots=True)
class BoolOp:
    """Short-circuit `and` / `or`; value-returning until `lower_semantics`."""

    op: str  # and or
    left: Expr
    right: Expr
    span: Span = _place()
    type: Type = UNKNOWN


@dataclass(frozen=True, slots=True)
class Select:
    """`then if test else orelse`."""

    test: Expr
    then: Expr
    orelse: Expr
    span: Span = _place()
    type: Type = UNKNOWN


@dataclass(frozen=True, slots=True)
class Call:
    """A builtin, by the key of its row in `py2cu/builtins`, or a helper that `lower_semantics` put in."""

    function: str
    args: tuple[Expr, ...]
    span: Span = _place()
    type: Type = UNKNOWN


@dataclass(frozen=True, slots=True)
class Load:
    """`array[indices]` as a value; one flat index after `flatten_subscripts`."""

    array: str
    indices: tuple[Expr, ...]
    span: Span = _place()
    type: Type = UNKNOWN


@dataclass(frozen=True, slots=True)
class Convert:
    """`value` as another type: explicit where the user wrote the cast, implicit where promotion asked for it."""

    value: Expr
    type: Type
    span: Span = _place()
    explicit: bool = False


Expr = (
    Constant | Name | LaunchIndex | Extent | Unary | Binary | Compare | BoolOp | Select | Call | Load | Convert
)  # fmt: skip


# --- parameters ------------------------------------------------------------------------------------------------------


class Role(enum.Enum):
    """What a kernel does with a parameter, and who provides it."""

    INPUT = "input"
    INOUT = "inout"  # written, and the caller provides it
    OUTPUT = "output"  # written, and allocated where the caller gives none


@dataclass(frozen=True, slots=True)
class Parameter:
    """An argument of the call: an array or a scalar, in the user's order."""

    name: str
    type: ArrayType | ElementType | PythonType
    role: Role = Role.INPUT
    span: Span = _place()

    @property
    def is_array(self) -> bool:
        return isinstance(self.type, ArrayType)


@dataclass(frozen=True, slots=True)
class IndexParameter:
    """`i: Index["n"]`: the thread's place along one axis, in an index kernel."""

    name: str
    extent: Expr
    axis: str
    span: Span = _place()


@dataclass(frozen=True, slots=True)
class Guard:
    """Threads at or past `extent` on `axis` do nothing."""

    index: str
    extent: Expr
    axis: str


@dataclass(frozen=True, slots=True)
class FromEnd:
    """A negative constant index, which counts from the end: at `line`, on `axis` of `array`."""

    line: int
    array: str
    axis: int
    index: int
