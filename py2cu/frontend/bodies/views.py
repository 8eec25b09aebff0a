"""Views of parts of arrays: `row = x[i]`, `head = row[:n]`. A view copies nothing, and its definition has no code.

`row[k]` is read as `x[i, k]`. A name is a view from its definition to the end of the block that defines it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeGuard

from py2cu import ir
from py2cu.builtins.casts import INDEX
from py2cu.ir.extents import folded
from py2cu.ir.visit import names_in
from py2cu.source import Span

ZERO = ir.Constant(0, type=ir.PY_INT)


@dataclass(frozen=True, slots=True)
class View:
    """The part of `array` under the indices `prefix`; on its first axis, the elements from `start` to `stop`.

    `rank` counts the axes that are left. `start` is None at the first element, `stop` None at the last. `origin` is the
    span of the expression that makes the part, `hint` the cache hint of its elements.
    """

    array: str
    rank: int
    prefix: tuple[ir.Expr, ...] = ()
    start: ir.Expr | None = None
    stop: ir.Expr | None = None
    origin: Span | None = field(default=None, compare=False)
    hint: str = ""

    def indices(self, indices: tuple[ir.Expr, ...]) -> tuple[ir.Expr, ...]:
        """Convert indices in the view to indices in the array. A negative constant counts from the end."""
        if not indices:
            return self.prefix
        first, *others = indices
        if not is_negative(first):  # rule: negative-part
            first = first if self.start is None else plus(self.start, first)
        elif self.stop is not None:  # else the view ends where the array does
            first = count_back(self.stop, first)  # rule: negative-of-range
        return (*self.prefix, first, *others)

    def at(self, indices: tuple[ir.Expr, ...]) -> View:
        """The part of the array that these leading indices select; they are fewer than `rank`."""
        rank = self.rank - len(indices)
        return View(self.array, rank, self.indices(indices), origin=self.origin) if indices else self

    def load(self, indices: tuple[ir.Expr, ...], span: Span) -> ir.Load:
        """The element at `indices`, which iteration reads."""
        return ir.Load(self.array, self.indices(indices), span, origin=self.origin, hint=self.hint)

    def extent(self, axis: int) -> ir.Expr:
        """The number of elements on an axis of the view."""
        whole = ir.Extent(self.array, len(self.prefix) + axis)
        if axis > 0 or (self.start is None and self.stop is None):
            return whole
        stop = whole if self.stop is None else self.stop
        if self.start is None:
            return stop
        return larger(minus(stop, self.start), ZERO)

    @property
    def numbers(self) -> tuple[ir.Expr, ...]:
        """What a call passes beside the array."""
        return (*self.prefix, *(each for each in (self.start, self.stop) if each is not None))

    def kept(self, assigned: frozenset[str], save: Callable[[ir.Expr], ir.Expr]) -> View:
        """The view with a local, which `save` makes, for each index that costs something or that `assigned` change."""

        def keep(index: ir.Expr) -> ir.Expr:
            return index if is_fixed(index, assigned) else save(index)

        return replace(
            self,
            prefix=tuple(map(keep, self.prefix)),
            start=None if self.start is None else keep(self.start),
            stop=None if self.stop is None else keep(self.stop),
        )


@dataclass(frozen=True, slots=True)
class ArrayArgument:
    """The form of an array that a call passes: its type, and of a part of it, which numbers go with it."""

    type: ir.ArrayType
    indices: int = 0
    has_start: bool = False
    has_stop: bool = False

    @classmethod
    def of(cls, view: View, type_: ir.ArrayType) -> ArrayArgument:
        return cls(type_, len(view.prefix), view.start is not None, view.stop is not None)

    @property
    def key(self) -> str:
        """The form as the keys of device functions write it: `2`, `?x4:1` of a row, `?:0a` of `x[k:]`."""
        if not self.is_part:
            return str(len(self.type.dims))
        extents = "x".join(str(dim.value) if isinstance(dim, ir.Constant) else "?" for dim in self.type.dims)
        return f"{extents}:{self.indices}{'a' * self.has_start}{'b' * self.has_stop}"

    @property
    def is_part(self) -> bool:
        return self.indices > 0 or self.has_start or self.has_stop

    def with_extents(self, names: tuple[ir.DimExpr, ...]) -> ir.ArrayType:
        """The type of the parameter, with the extents `names`. A part of an array keeps its constant extents."""
        pairs = zip(self.type.dims, names, strict=True)
        dims = (dim if self.is_part and isinstance(dim, ir.Constant) else name for dim, name in pairs)
        return ir.ArrayType(self.type.dtype, tuple(dims))

    def names(self, array: str) -> tuple[str, ...]:
        """The parameters beside the array, in the order of `View.numbers`."""
        places = [""] if self.indices == 1 else range(self.indices)
        indices = [f"{array}_index{place}" for place in places] if self.indices else []
        return (*indices, *[f"{array}_start"] * self.has_start, *[f"{array}_stop"] * self.has_stop)

    def view(self, array: str, names: Sequence[str]) -> View:
        """The part of `array` that these parameters select."""
        numbers = [ir.Name(name) for name in names]
        start = numbers[self.indices] if self.has_start else None
        rank = len(self.type.dims) - self.indices
        return View(array, rank, tuple(numbers[: self.indices]), start, numbers[-1] if self.has_stop else None)


@dataclass(slots=True)
class ViewNames:
    """The views that are visible at a place of a body. Names of views are no names of numbers."""

    views: dict[str, View] = field(default_factory=dict)
    outer: frozenset[str] = frozenset()  # those that enclosing blocks define
    ended: set[str] = field(default_factory=set)  # names whose block has ended
    numbers: set[str] = field(default_factory=set)  # names that numbers were assigned to
    ranges: set[str] = field(default_factory=set)  # names of ranges, here or in blocks that have ended
    lists: dict[str, str] = field(default_factory=dict)  # of arrays that are lists in the Python: the names

    @contextmanager
    def block(self) -> Iterator[None]:
        """What is defined here ends with the block."""
        views, outer = dict(self.views), self.outer
        self.outer = frozenset(views)
        yield
        self.ended |= self.views.keys() - views.keys()
        self.views, self.outer = views, outer

    def problem(self, name: str, kind: str = "part of an array") -> str | None:
        """Why `name` cannot become a view here, which is `kind`; None if it can."""
        if name in self.numbers:
            return f"`{name}` is a number elsewhere in this function, and {kind} here"
        if name in self.outer:
            return f"`{name}` is part of another array outside of this block"
        return None

    def is_list(self, array: str) -> bool:
        """True for an array that is a list in the Python."""
        return array in self.lists

    def named_list(self, name: str) -> View | None:
        """The whole list that was assigned to `name`; None for any other name, and for a second name of a list."""
        view = self.views.get(name)
        return view if view is not None and self.lists.get(view.array) == name else None

    def kind(self, name: str) -> str:
        """What the name of a view or a range, here or in a block that has ended, stands for."""
        if name in self.ranges:
            return "a range"
        return "a list" if name in self.lists.values() else "part of an array"

    def is_view(self, name: str) -> bool:
        """True for a name that is a view here or elsewhere in the function."""
        return name in self.views or name in self.ended


def is_fixed(value: ir.Expr, assigned: frozenset[str]) -> bool:
    """True for cheap arithmetic that the assignments to `assigned` do not change."""
    return _is_arithmetic(value) and assigned.isdisjoint(names_in(value))


def _is_arithmetic(index: ir.Expr) -> bool:
    """True for sums and products of names, constants and launch objects."""
    match index:
        case ir.Constant() | ir.Name() | ir.LaunchIndex() | ir.Extent():
            return True
        case ir.Binary(op="+" | "-" | "*", left=left, right=right):
            return _is_arithmetic(left) and _is_arithmetic(right)
        case ir.Call(function=function, args=(value,)) if function == INDEX:
            return _is_arithmetic(value)
        case _:
            return False


# --- arithmetic of indices ------------------------------------------------------------------------------------------


def is_negative(index: ir.Expr) -> TypeGuard[ir.Constant]:
    """True for a constant below zero: such an index counts from the end."""
    return isinstance(index, ir.Constant) and index.value < 0


def count_back(stop: ir.Expr, index: ir.Constant) -> ir.Expr:
    """The place of the negative `index` in what ends at `stop`."""
    return minus(stop, ir.Constant(-int(index.value), index.span, ir.PY_INT))


def plus(left: ir.Expr, right: ir.Expr) -> ir.Expr:
    return folded("+", left, right, right.span, ir.UNKNOWN)


def minus(left: ir.Expr, right: ir.Expr) -> ir.Expr:
    return folded("-", left, right, left.span, ir.UNKNOWN)


def times(left: ir.Expr, right: ir.Expr) -> ir.Expr:
    return folded("*", left, right, right.span, ir.UNKNOWN)


def smaller(left: ir.Expr, right: ir.Expr) -> ir.Expr:
    match left, right:
        case ir.Constant(value=int(a)), ir.Constant(value=int(b)):
            return ir.Constant(min(a, b), left.span, ir.PY_INT)
        case _ if left == right:
            return left
        case _:
            return ir.Call("builtins.min", (left, right), left.span)


def larger(left: ir.Expr, right: ir.Expr) -> ir.Expr:
    match left, right:
        case ir.Constant(value=int(a)), ir.Constant(value=int(b)):
            return ir.Constant(max(a, b), left.span, ir.PY_INT)
        case _:
            return ir.Call("builtins.max", (left, right), left.span)
