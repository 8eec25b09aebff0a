"""Types of IR values, and the extents of array types: flat, frozen, compared by value.

An extent is an expression of names, constants and arithmetic, `2*n + 1`. These three nodes are defined here, since
array types hold them; `expressions.py` has the other nodes. Do not subclass a concrete type: every `match` over `Type`
names all of them, and mypy checks that.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import field
from typing import Final, Generic, TypeAlias, TypeVar

from py2cu.dtypes import DType, Kind
from py2cu.records import record
from py2cu.source import NOWHERE, Span

__all__ = [
    "INDEX", "INT", "LONG", "PY_BOOL", "PY_COMPLEX", "PY_FLOAT", "PY_INT", "UNKNOWN", "UNNAMED_LEADING", "ArrayType",
    "Binary", "Constant", "ConstantDeclaration", "DimExpr", "ElementType", "Name", "NamedConstant", "ParameterPath",
    "PythonType", "ReachingTypes", "ScalarType", "TupleType", "Type", "UnknownType", "ValueType", "Width",
    "constant_extent", "constant_width", "is_complex", "kind_of", "part_of",
]  # fmt: skip


class Width(enum.Enum):
    """The C type that carries a Python integer, chosen by `passes/lowering/integer_widths.py`."""

    ANY = "any"  # not chosen yet
    INT = "int"  # always fits 32 bits
    INDEX = "index_t"  # fits 32 bits where the launcher finds that it does, else 64
    LONG = "int64_t"

    def __init__(self, _: str) -> None:
        self.rank = len(type(self).__members__)

    def __lt__(self, other: Width) -> bool:
        """A wider type holds all values of a narrower one; the order is that of the lines above."""
        return self.rank < other.rank


@record(frozen=True, slots=True)
class ElementType:
    """A number with a dtype: an array element, or a result computed from one."""

    dtype: DType

    def __str__(self) -> str:
        return self.dtype.name


@record(frozen=True, slots=True)
class PythonType:
    """A Python number. It is weak: where it meets an element, it takes the element's type."""

    kind: Kind
    width: Width = field(default=Width.ANY, compare=False)

    def __str__(self) -> str:
        return f"Python {self.kind.name.lower()}"


UNNAMED_LEADING: Final = "..."
"""The name of the product of unnamed leading extents, until `uniquify_dimensions` gives it another one."""


@record(frozen=True, slots=True)
class ArrayType:
    """An array; `dims` are its extents, expressions of dimension names.

    The elements of a `weak` one are Python numbers, as in a tuple of constants; `dtype` is the one that holds them.
    `leading` is `*batch` or `...` as written, where the first extent is the product of any number of extents.
    """

    dtype: DType
    dims: tuple[DimExpr, ...]
    weak: bool = False
    leading: str = ""

    @property
    def element(self) -> ScalarType:
        """The type of its elements as values."""
        return PythonType(self.dtype.kind) if self.weak else ElementType(self.dtype)

    @property
    def trailing(self) -> int:
        """The number of extents behind the leading ones; of an array without leading extents, of all."""
        return len(self.dims) - bool(self.leading)

    def split(self, shape: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The leading extents in `shape`, and the others."""
        place = max(len(shape) - self.trailing, 0) if self.leading else 0
        return tuple(shape[:place]), tuple(shape[place:])

    def flattened(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The extents that the kernel sees of an array of this shape: the product of the leading ones comes first."""
        if not self.leading or len(shape) < self.trailing:
            return tuple(shape)
        leading, others = self.split(shape)
        return (math.prod(leading), *others)

    def __str__(self) -> str:
        return f"{len(self.dims)}-D array of {self.dtype}"


@record(frozen=True, slots=True)
class TupleType:
    """A tuple of numbers: the result of a device function, or a local."""

    items: tuple[ScalarType, ...]

    def __str__(self) -> str:
        return f"a tuple of {', '.join(map(str, self.items))}"


@record(frozen=True, slots=True)
class UnknownType:
    """The type of an expression before `infer_types`; `verify` forbids it afterwards."""

    def __str__(self) -> str:
        return "unknown"


ScalarType = ElementType | PythonType
ValueType = ElementType | PythonType | TupleType  # what locals hold and functions return
Type = ElementType | PythonType | ArrayType | TupleType | UnknownType


@record(frozen=True, slots=True)
class ParameterPath:
    """A path of a device function on which a value is the argument for parameter `name`.

    In `y = a if c else 0.5`, one path to `y` brings the parameter `a`.
    """

    name: str
    type: ScalarType


ReachingTypes = frozenset[ElementType | PythonType | ParameterPath | bool | int | float]
"""The types that a value has on the paths to it; a Python constant stands for itself."""

UNKNOWN: Final = UnknownType()
PY_BOOL: Final = PythonType(Kind.BOOL)
PY_INT: Final = PythonType(Kind.INT)
INT: Final = PythonType(Kind.INT, Width.INT)
INDEX: Final = PythonType(Kind.INT, Width.INDEX)
LONG: Final = PythonType(Kind.INT, Width.LONG)
PY_FLOAT: Final = PythonType(Kind.FLOAT)
PY_COMPLEX: Final = PythonType(Kind.COMPLEX)


def kind_of(type_: ScalarType) -> Kind:
    """Bool, int, float or complex, whether element or Python number."""
    return type_.dtype.kind if isinstance(type_, ElementType) else type_.kind


def is_complex(type_: Type) -> bool:
    return isinstance(type_, ElementType | PythonType) and kind_of(type_) is Kind.COMPLEX


def part_of(type_: ScalarType) -> ScalarType:
    """The type of the real and the imaginary part of a number: of a real number, its own."""
    if isinstance(type_, ElementType):
        return ElementType(type_.dtype.part)
    return PY_FLOAT if type_.kind is Kind.COMPLEX else type_


# --- extents ---


def span_field() -> Span:
    """A node's span, which does not count when nodes are compared."""
    return field(default=NOWHERE, compare=False)


@record(frozen=True, slots=True)
class Constant:
    """A literal, or a name that stands for one (`math.pi`, a module constant); `text` is how the user wrote it.

    `cast` is the element type that the source gives it: `np.uint8(3)`. `named` is the constant of the module that it
    is read from, perhaps with a minus sign; a pass may keep it on a constant with another value.
    """

    value: bool | int | float
    span: Span = span_field()
    type: Type = UNKNOWN
    text: str = field(default="", compare=False)
    cast: ElementType | None = field(default=None, compare=False)
    named: NamedConstant | None = field(default=None, compare=False)

    @property
    def written(self) -> NamedConstant | None:
        """The constant of the module whose value, or negated value, this still is; None of any other number."""
        named = self.named
        if named is None or self.is_negated or _is_same(self.value, named.value):
            return named
        return None

    @property
    def is_negated(self) -> bool:
        """Whether this is the negated value of the constant from which it is read."""
        value = None if self.named is None else self.named.value
        return value is not None and not isinstance(value, bool) and _is_same(self.value, -value) and value != 0


def _is_same(a: float, b: float) -> bool:
    """True of equal numbers, of which zeros have one sign, and of two NaN."""
    return (a == b and math.copysign(1, a) == math.copysign(1, b)) or (a != a and b != b)


@record(frozen=True, slots=True)
class NamedConstant:
    """A number that the module names: `WIDE = 2 * TILE`; `Config_TILE` of a class.

    `definition` is typed: arithmetic that C computes alike, or the digits of the number. An extent that the kernel
    computes from such constants, `shared(2 * TILE, …)`, has a definition and no name.
    """

    name: str
    value: bool | int | float
    definition: DimExpr
    line: int = field(compare=False)  # of the definition in its file; 0 where only the value is known
    array: str = ""  # of a local `16 // x.itemsize`: the array
    dtype: DType | None = None  # of its elements


@record(frozen=True, slots=True)
class ConstantDeclaration:
    """The declaration of a constant of the module, and those of the constants in its definition."""

    constant: NamedConstant
    symbol: str
    c_type: str
    text: str
    needs: tuple[ConstantDeclaration, ...]


def constant_width(value: float) -> PythonType:
    """The type in which C holds a whole number."""
    return INT if -(2**31) <= value < 2**31 else LONG


def constant_extent(value: int) -> Constant:
    """An extent that is a number."""
    return Constant(value, type=PY_INT)


@record(frozen=True, slots=True)
class Name:
    """A local variable, a scalar parameter, an element index or a dimension."""

    id: str
    span: Span = span_field()
    type: Type = UNKNOWN


Operand_co = TypeVar("Operand_co", covariant=True)


@record(frozen=True, slots=True)
class Binary(Generic[Operand_co]):
    """Arithmetic with Python's meaning on expressions or extents; after `lower_semantics`, C computes it alike."""

    op: str  # + - * / // % ** & | ^ << >>
    left: Operand_co
    right: Operand_co
    span: Span = span_field()
    type: Type = UNKNOWN


DimExpr: TypeAlias = Constant | Name | Binary["DimExpr"]
"""An extent: an expression of dimension names."""
