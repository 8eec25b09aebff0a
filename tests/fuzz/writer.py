"""What a random kernel under construction knows: its parameters, the names in scope, and where its choices come from.

In: hypothesis' `draw`. Out: `Writer`, which the productions of `expressions.py` and `statements.py` are given. Every
choice shrinks toward the first option.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

from hypothesis import strategies

from py2cu.dtypes import C64, DTYPES, F16, F32, GENERIC, I8, DType, Kind, TypeVariable
from tests.fuzz.shapes import AXES, Shape, input_shapes, names_in, output_shapes

Option = TypeVar("Option")
Type = DType | Kind  # an element of a dtype, or a Python number of a kind

NUMBERS: Final = (Kind.BOOL, Kind.INT, Kind.FLOAT, Kind.COMPLEX)
ALL: Final[tuple[Type, ...]] = (*DTYPES, *NUMBERS)
# Type variables, as the dtype of the least range that they stand for: what fits that fits all.
SYMBOLS: Final = tuple(
    replace(least, jaxtyping=name, variable=TypeVariable("T", name, GENERIC.get(name, (F32, F16))))
    for name, least in (("Float", F16), ("Int", I8), ("Complex", C64), ("Float32 | Float16", F16))
)
LIMIT: Final = 2**62  # Python integers stay below: they are exact to 64 bits only
LOCAL_LIMIT: Final = 2**45  # what is assigned to an integer local; its updates in loops add less than this again
TILES: Final = (3, 1)  # the values of the template argument `tile`
_below = functools.cache(lambda count: strategies.integers(0, count - 1))


@strategies.composite
def _unit(draw: Callable[[Any], Any], write: Callable[[], Option]) -> Option:
    """What `write` makes of draws of its own. Shrinking may call what a mapped strategy maps, without a draw."""
    draw(strategies.none())  # composites have to
    return write()


@dataclass(frozen=True, slots=True)
class Value:
    """An expression: its text, its type, and of a Python integer (and any constant) the values that it can have."""

    text: str
    type: Type
    low: float = 0
    high: float = 0
    constant: bool = False

    def fits(self, dtype: DType) -> bool:
        """True where an element of `dtype` holds every value of this Python number."""
        return dtype.kind >= Kind.FLOAT or (dtype.low <= self.low and self.high <= dtype.high)


@dataclass(frozen=True, slots=True)
class Array:
    """An array: an extent an axis, and the text that indexes this thread's own element there.

    All elements of a `private` one, which `local` makes, are this thread's own. Of the others it is the last `free`
    axes on which any index gives an element of this thread's own. No thread writes the first row of a `still` one.
    """

    name: str
    dtype: DType
    extents: tuple[str, ...]
    own: tuple[str, ...]
    private: bool = False
    free: int = 0
    still: bool = False

    @property
    def annotation(self) -> str:
        members = self.dtype.jaxtyping.split(" | ")
        return f"{self.name}: {' | '.join(self._member(name) for name in members)}"

    def _member(self, dtype: str) -> str:
        return f'{dtype}[Tensor, "{" ".join(self.extents)}"]'

    @property
    def element(self) -> str:
        return f"{self.name}[{', '.join(self.own)}]"


@dataclass(frozen=True, slots=True)
class List:
    """A list of this thread's own: the type of its elements, and its length, and of its rows theirs."""

    name: str
    type: Type
    shape: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A number that a device function takes; its default, where it has one."""

    name: str
    type: Type
    default: str

    @property
    def head(self) -> str:
        return f"{self.name}={self.default}" if self.default else self.name


@dataclass(frozen=True, slots=True)
class Function:
    """A device function: what its calls give it, and its text. `recurs`: it takes how deep, before all.

    Of an array, `own` are the names of the indices that follow it. `later` is the text of a redefinition.
    """

    name: str
    read: tuple[Array, ...]
    written: tuple[Array, ...]
    parameters: tuple[Parameter, ...]
    result: Type | None
    recurs: bool
    lines: tuple[str, ...]
    later: tuple[str, ...] = ()


@dataclass(slots=True)
class Writer:
    """One kernel, or device function, so far."""

    draw: Callable[[Any], Any]
    launch: tuple[tuple[str, str], ...] = AXES[:1]  # extents and indices, fastest first
    symbol: DType | None = None  # the type variable of a generic kernel
    redefines: bool = False  # a later cell changes what the kernel was translated from
    is_function: bool = False  # a device function, which has no arrays or scalars but its parameters
    is_closure: bool = False  # what is written here goes into a function of the kernel, which tests no array for None
    result: Type | None = None  # of a device function
    indices: list[Value] = field(default_factory=list)  # of elements that a device function is told
    functions: list[Function] = field(default_factory=list)  # that may be called
    lines: list[str] = field(default_factory=list)
    inputs: list[Array] = field(default_factory=list)
    outputs: list[Array] = field(default_factory=list)
    optional: list[Array] = field(default_factory=list)  # that a call may leave out
    buffers: list[Array] = field(default_factory=list)  # that `local` made
    lists: list[List] = field(default_factory=list)  # in scope here
    scalars: dict[str, str] = field(default_factory=dict)  # annotations by name
    scope: list[Value] = field(default_factory=list)  # locals that are surely assigned here
    outer: int = 0  # of them, those that were so before this block
    counters: list[Value] = field(default_factory=list)  # loop variables that may be rebound here
    indent: int = 1
    loops: int = 0  # around this place
    names: int = 0

    @property
    def types(self) -> tuple[Type, ...]:
        return (*ALL, *[self.symbol] * 4) if self.symbol else ALL

    @property
    def real_types(self) -> tuple[Type, ...]:
        return tuple(row for row in self.types if (row.kind if isinstance(row, DType) else row) is not Kind.COMPLEX)

    @property
    def dtypes(self) -> tuple[DType, ...]:
        return (*[self.symbol] * 4, *DTYPES) if self.symbol else DTYPES

    @property
    def rank(self) -> int:
        return len(self.launch)

    # --- choices ---

    def pick(self, options: Sequence[Option]) -> Option:
        return options[self.draw(_below(len(options)))]

    def chance(self, one_in: int) -> bool:
        return self.draw(_below(one_in)) == one_in - 1

    def apart(self, write: Callable[[], Option]) -> Option:
        """The choices of `write` as a unit, which shrinking can take away or replace as a whole."""
        return self.draw(_unit(write))

    # --- text ---

    def add(self, *lines: str) -> None:
        self.lines += ["    " * self.indent + line for line in lines]

    @contextlib.contextmanager
    def block(self, head: str) -> Iterator[None]:
        """What is assigned under `head` is not surely assigned after it."""
        self.add(head)
        kept, length = (list(self.scope), list(self.counters), self.outer, list(self.lists)), len(self.lines)
        self.indent += 1
        self.outer = len(self.scope)
        yield
        if len(self.lines) == length:
            self.add("pass")
        self.indent -= 1
        self.scope, self.counters, self.outer, self.lists = kept

    def fresh(self, prefix: str = "t") -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    def declare(self, value: Value, name: str | None = None) -> Value:
        """A local for `value`, in scope from here on; it is the caller who writes the assignment."""
        local = Value(name or self.fresh(), value.type)
        if value.type in (Kind.INT, Kind.BOOL):
            bound = 2 * LOCAL_LIMIT if value.type is Kind.INT else 1
            local = Value(local.text, value.type, -bound if value.type is Kind.INT else 0, bound)
        self.scope.append(local)
        return local

    def locals_of(self, type_: Type) -> list[Value]:
        return [local for local in self.scope if local.type is type_]

    # --- arrays and parameters ---

    @property
    def arrays(self) -> list[Array]:
        return self.inputs + self.outputs + self.buffers

    def readable(self, dtype: DType) -> Array | None:
        """An array of `dtype` of which every element may be read; a kernel gets an input for it."""
        at_hand = self.buffers + self.inputs if self.is_function else self.buffers
        return self._among(at_hand, dtype) or (None if self.is_function else self.input(dtype))

    def writable(self, dtype: DType) -> Array | None:
        """An array of `dtype` of which this thread may write elements of its own; a kernel gets an output for it."""
        at_hand = self.buffers + self.outputs if self.is_function else self.buffers
        return self._among(at_hand, dtype) or (None if self.is_function else self.output(dtype))

    def _among(self, arrays: Sequence[Array], dtype: DType) -> Array | None:
        known = [array for array in arrays if array.dtype is dtype]
        return self.pick(known) if known and (self.is_function or self.chance(2)) else None

    @property
    def axes(self) -> tuple[tuple[str, str], ...]:
        """The launch's extents and indices as arrays have them: fastest last."""
        return self.launch[::-1]

    def input(self, dtype: DType) -> Array:
        """An input of `dtype`; there are two at most, or calls would spend their time on arguments."""
        known = [array for array in self.inputs if array.dtype is dtype]
        if len(known) == 2 or (known and not self.chance(3)):
            return self.pick(known)
        array = self._shaped(f"x{len(known) or ''}_{_label(dtype)}", dtype)
        self.inputs.append(array)
        return array

    def _shaped(self, name: str, dtype: DType) -> Array:
        shape = self.pick(input_shapes(self.axes))
        self._give_template_arguments(shape)
        return Array(name, dtype, shape.extents, shape.own)

    def _give_template_arguments(self, shape: Shape) -> None:
        if any("tile" in names_in(extent) for extent in shape.extents):
            self.scalar("Constexpr[int]", Value("tile", Kind.INT))

    def output(self, dtype: DType) -> Array:
        """An array of `dtype` of which every thread owns elements, to be written."""
        known = [array for array in self.outputs if array.dtype is dtype]
        if known:
            return known[0]
        shape = self.pick(output_shapes(self.axes)) if self.chance(3) else Shape.whole(self.axes)
        self._give_template_arguments(shape)
        array = Array(f"out_{_label(dtype)}", dtype, shape.extents, shape.own, free=shape.free, still=shape.still)
        self.outputs.append(array)
        return array

    def may_be_none(self, dtype: DType) -> Array:
        """An input of `dtype` that a call may leave out."""
        name = f"given_{_label(dtype)}"
        known = next((array for array in self.optional if array.name == name), None)
        if known is None:
            shape = self.pick([Shape.whole(self.axes[-1:]), Shape.whole(self.axes)])
            known = Array(name, dtype, shape.extents, shape.own)
            self.optional.append(known)
        return known

    def scalar(self, annotation: str, value: Value) -> Value:
        """A scalar parameter, which goes by the text of `value`."""
        self.scalars.setdefault(value.text, annotation)
        return value


def _label(dtype: DType) -> str:
    """What arrays of `dtype` are named after."""
    return dtype.jaxtyping.lower().replace(" | ", "_or_") if dtype.variable else dtype.name


def fitted(value: Value, low: float, high: float) -> Value:
    """A Python integer brought into a range that holds -1009 to 1009, or 0 to 100 where it starts at 0."""
    if low <= value.low and value.high <= high:
        return value
    modulus = 1009 if high >= 1009 else 101 if high >= 101 else 2
    return Value(f"({value.text} % {modulus})", Kind.INT, 0, modulus - 1)
