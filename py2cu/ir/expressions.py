"""Expression nodes of the IR: frozen, typed, each with its place in the Python.

Passes and targets match the union `Expr` exhaustively, so that mypy lists every place that does not know a new node.
Trees are untyped (`UNKNOWN`) until `infer_types` and typed afterwards; `verify.py` has the rules of each stage.
"""

from __future__ import annotations

from dataclasses import field
from typing import TypeAlias, cast

from py2cu.dtypes import DType
from py2cu.ir.types import PY_BOOL, PY_INT, UNKNOWN, Binary, Constant, DimExpr, Name, ReachingTypes, Type, span_field
from py2cu.records import record
from py2cu.source import Span

__all__ = [
    "ArrayName", "Atomic", "BoolOp", "Call", "Compare", "Convert", "DeviceCall", "Expr", "Extent", "IsDtype", "IsGiven",
    "LaunchIndex", "Load", "Select", "Tuple", "TupleItem", "Unary", "as_extent", "unconverted",
]  # fmt: skip

# --- expressions --------------------------------------------------------------------------------------------------


@record(frozen=True, slots=True)
class LaunchIndex:
    """One component of a launch object: `threadIdx.x`."""

    object: str  # blockIdx, threadIdx, blockDim or gridDim
    axis: str  # x, y or z
    span: Span = span_field()
    type: Type = PY_INT


@record(frozen=True, slots=True)
class Extent:
    """`array.shape[axis]`; `resolve_extents` replaces it by the dimension's expression."""

    array: str
    axis: int
    span: Span = span_field()
    type: Type = PY_INT


@record(frozen=True, slots=True)
class Unary:
    op: str  # - + ~ not
    operand: Expr
    span: Span = span_field()
    type: Type = UNKNOWN


@record(frozen=True, slots=True)
class Compare:
    op: str  # == != < <= > >=
    left: Expr
    right: Expr
    span: Span = span_field()
    type: Type = PY_BOOL


@record(frozen=True, slots=True)
class BoolOp:
    """Short-circuit `and` / `or`; value-returning until `lower_semantics`."""

    op: str  # and or
    left: Expr
    right: Expr
    span: Span = span_field()
    type: Type = UNKNOWN


@record(frozen=True, slots=True)
class Select:
    """`then if test else orelse`."""

    test: Expr
    then: Expr
    orelse: Expr
    span: Span = span_field()
    type: Type = UNKNOWN


@record(frozen=True, slots=True)
class Call:
    """A builtin, by the key of its row in `py2cu/builtins`, or a helper that `lower_semantics` put in."""

    function: str
    args: tuple[Expr, ...]
    span: Span = span_field()
    type: Type = UNKNOWN


@record(frozen=True, slots=True)
class DeviceCall:
    """A call of a device function: `function` is the key of one of the kernel's `functions`.

    `reaching` are the reaching types of its result, for `reaching_types`.
    """

    function: str
    args: tuple[Expr, ...]
    span: Span = span_field()
    type: Type = UNKNOWN
    reaching: ReachingTypes = field(default=frozenset(), compare=False)


@record(frozen=True, slots=True)
class ArrayName:
    """A whole array, handed to a device function."""

    id: str
    span: Span = span_field()
    type: Type = UNKNOWN


@record(frozen=True, slots=True)
class IsGiven:
    """`bias is not None`, of a parameter that may be None: for an array a template argument in C++, else a bool."""

    parameter: str
    span: Span = span_field()
    type: Type = PY_BOOL


@record(frozen=True, slots=True)
class IsDtype:
    """`x.dtype == torch.bfloat16`, of an array; `decide_dtypes` replaces it."""

    array: str
    dtype: DType
    span: Span = span_field()
    type: Type = PY_BOOL


@record(frozen=True, slots=True)
class Load:
    """`array[indices]` as a value; one flat index after `flatten_subscripts`.

    For an element that a loop over a part of the array reads, `origin` is the span of the expression that makes the
    part: `x[i]` in `for v in x[i]`. `hint` is the cache hint of `ldg(x, i)`.
    """

    array: str
    indices: tuple[Expr, ...]
    span: Span = span_field()
    type: Type = UNKNOWN
    origin: Span | None = field(default=None, compare=False, repr=False)
    hint: str = ""


@record(frozen=True, slots=True)
class Atomic:
    """`atomic.add(array, indices, value)`: its value is the element before. From `lift_atomics` on it stands alone."""

    op: str  # the key of its row in `py2cu/builtins/atomics.py`
    array: str
    indices: tuple[Expr, ...]
    values: tuple[Expr, ...]
    span: Span = span_field()
    type: Type = UNKNOWN


@record(frozen=True, slots=True)
class Convert:
    """`value` as another type: explicit where the user wrote the cast, implicit where promotion asked for it."""

    value: Expr
    type: Type
    span: Span = span_field()
    explicit: bool = False


def unconverted(operand: Expr) -> Expr:
    """An operand as it was before promotion."""
    return operand.value if isinstance(operand, Convert) and not operand.explicit else operand


@record(frozen=True, slots=True)
class Tuple:
    """`items` together: returned, or assigned to a local."""

    items: tuple[Expr, ...]
    span: Span = span_field()
    type: Type = UNKNOWN


@record(frozen=True, slots=True)
class TupleItem:
    """`value[at]` of a tuple; `count` is how many items the Python unpacks it into, 0 where it only indexes."""

    value: Expr
    at: int
    span: Span = span_field()
    type: Type = UNKNOWN
    count: int = 0
    field: str = ""  # set by split_tuples: the field of the struct in C


Expr: TypeAlias = (
    Constant | Name | LaunchIndex | Extent | Unary | Binary["Expr"] | Compare | BoolOp | Select | Call | DeviceCall
    | ArrayName | IsDtype | IsGiven | Load | Atomic | Convert | Tuple | TupleItem
)  # fmt: skip


def as_extent(expr: Expr) -> DimExpr:
    """`expr` as an extent. Until `resolve_extents`, those of a kernel's own arrays may hold `Extent` nodes, too."""
    return cast("DimExpr", expr)
