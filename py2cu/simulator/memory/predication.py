"""Predication: out-of-range threads that must go on, because others wait for them, skip their accesses and calls.

A predicated read gives zero, a predicated write does nothing, a predicated call is skipped.
`passes/guards/predicate_accesses.py` predicates the same accesses and calls in the C++ text.
"""

from __future__ import annotations

import functools
import linecache
import sys
from collections.abc import Callable, Iterator, Mapping
from types import CodeType, FrameType
from typing import Any, Final

from py2cu.dtypes import Kind
from py2cu.ir.abi.parameters import Guard
from py2cu.ir.abi.signature import Signature, evaluate
from py2cu.ir.types import ElementType, TupleType, ValueType, kind_of
from py2cu.simulator.launch import AXES, Triple
from py2cu.simulator.memory.arrays import ArrayView
from py2cu.simulator.memory.rows import Rows
from py2cu.simulator.memory.shared import SharedView
from py2cu.simulator.memory.views import Part, is_partial, iterate, part_at
from py2cu.simulator.state import THREAD, LaunchState
from py2cu.simulator.values.checked_int import CheckedInt
from py2cu.simulator.values.family import PyComplex, PyFloat, element_class

End = tuple[int, int]  # the end of an expression's text: line and column
ActivePredicates = Mapping[End, ValueType | None]
"""The accesses and calls that are predicated off; for a call, the type of its result."""


class Predication(LaunchState):
    """The accesses and calls that are predicated off for the running thread."""

    __slots__ = ("active",)

    def __init__(self) -> None:
        self.active: ActivePredicates = {}


PREDICATION: Final = Predication()


class PredicationTable:
    """The accesses and calls of a launch that are predicated off, for each set of failed guards."""

    def __init__(self, signature: Signature, dims: dict[str, int]) -> None:
        self._items = signature.predicated
        guards = dict.fromkeys(guard for item in self._items for guard in item.guards)
        self._guard_limits = [(guard, AXES.index(guard.axis), evaluate(guard.extent, dims)) for guard in guards]
        self._by_guards: dict[frozenset[Guard], ActivePredicates] = {frozenset(): {}}

    def of(self, index: Triple) -> ActivePredicates:
        """The active predicates of the thread with this global index."""
        past = frozenset(guard for guard, axis, stop in self._guard_limits if index[axis] >= stop)
        if past not in self._by_guards:
            items = (item for item in self._items if not past.isdisjoint(item.guards))  # rule: guard-items
            self._by_guards[past] = {(item.line, item.column): item.result for item in items}
        return self._by_guards[past]


class PredicatedArray:
    """An array of an out-of-range thread; accesses that are not predicated off reach the array itself."""

    def __init__(self, array: ArrayView | SharedView) -> None:
        self._array = array

    def __getattr__(self, name: str) -> Any:
        return getattr(self._array, name)

    def __len__(self) -> int:
        return len(self._array)

    def __iter__(self) -> Iterator[Any]:
        return iterate(self)

    def __getitem__(self, index: Any) -> Any:
        if index.__class__ is slice and isinstance(self._array[index], SharedView):
            return PredicatedArray(self._array[index])
        return self.get(index, sys._getframe(1))

    def get(self, index: Any, frame: FrameType, /) -> Any:
        """The element or the part at `index`, for the user's frame."""
        if is_partial(self._array, index):
            return part_at(_Skipped(self._array) if is_predicated_off(frame) else self, index, PredicatedPart)
        array, position = self.access(index, frame)
        return array.load(position, frame)

    def access(self, index: Any, frame: FrameType, /) -> tuple[ArrayView, int]:
        return scratch_element(self._array) if is_predicated_off(frame) else self._array.locate(index)

    def __setitem__(self, index: Any, value: Any) -> None:
        frame = sys._getframe(1)
        if is_partial(self._array, index):
            if not is_predicated_off(frame):
                self._array.store_part(index, value, frame)
            return
        array, position = scratch_element(self._array) if is_predicated_off(frame) else self._array.locate(index)
        array.store(position, value, frame)

    @property
    def itemsize(self) -> int:
        assert isinstance(self._array, ArrayView)
        return self._array.itemsize

    def view(self, *shape: int) -> PredicatedRows:
        assert isinstance(self._array, ArrayView)
        return PredicatedRows(self._array.view(*shape))  # rule: view-predicated


class PredicatedPart(Part):
    """A part of a `PredicatedArray`.

    A loop over a part reads elements without an expression for each. It reads zeros if the expression that makes the
    part, `x[i]`, is predicated off.
    """

    __slots__ = ()

    def part(self, index: Any, frame: FrameType) -> Part | None:
        return part_at(_Skipped(self) if is_predicated_off(frame) else self, index, PredicatedPart)


class _Skipped:
    """An array, or a part of one, for a thread whose every access of it is predicated off."""

    def __init__(self, array: Any) -> None:
        self.name, self.dtype, self.extents = array.name, array.dtype, array.extents

    def access(self, *_: object) -> tuple[ArrayView, int]:
        return scratch_element(self)


class PredicatedRows:
    """A `PredicatedArray` viewed in rows."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rows, name)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: Any) -> Any:
        return self.get(index, sys._getframe(1))

    def __setitem__(self, index: Any, value: Any) -> None:
        self.put(index, value, sys._getframe(1))

    def get(self, index: Any, frame: FrameType) -> Any:
        if not is_predicated_off(frame):
            return self._rows.get(index, frame)
        array, position = scratch_element(self._rows)
        zero = array.load(position, frame)
        return zero if self._rows.is_element(index) else (zero,) * int(self._rows.shape[-1])

    def put(self, index: Any, value: Any, frame: FrameType) -> None:
        if not is_predicated_off(frame):
            self._rows.put(index, value, frame)


def scratch_element(array: Any) -> tuple[ArrayView, int]:
    """A zero of the dtype of `array` that no other thread sees, and its position."""
    return ArrayView("nowhere", (1,), array.dtype.dtype, [0]), 0


def as_predicated(argument: object) -> object:
    """An argument of the kernel for an out-of-range thread."""
    return PredicatedArray(argument) if isinstance(argument, ArrayView | SharedView) else argument


def skip_if_predicated(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, skipped where the call is predicated off for the running thread."""

    @functools.wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        frame = sys._getframe(1)
        return _zero(PREDICATION.active[_end(frame)]) if is_predicated_off(frame) else function(*args, **named)

    return call


def is_predicated_off(frame: FrameType) -> bool:
    """Whether the expression that `frame` evaluates is predicated off for the running thread."""
    active = PREDICATION.active
    return bool(active) and frame.f_code.co_filename == THREAD.kernel_file and _end(frame) in active  # rule: predicated


def _end(frame: FrameType) -> End:
    return _ends(frame.f_code)[frame.f_lasti // 2]


@functools.lru_cache(maxsize=64)
def _ends(code: CodeType) -> list[End]:
    """The end of each instruction's text: the line, and the column in characters."""
    ends = []
    for _, line, _, bytes_ in code.co_positions():
        text = linecache.getline(code.co_filename, line or 0)
        column = len(text.encode()[:bytes_].decode(errors="replace")) if text and not text.isascii() else bytes_
        ends.append((line or 0, column or 0))
    return ends


def _zero(type_: ValueType | None) -> Any:
    """The result of a skipped call."""
    match type_:
        case None:
            return None
        case TupleType(items=items):
            return tuple(map(_zero, items))
        case ElementType(dtype=dtype):
            return element_class(dtype).from_stored(0)
        case _:
            return _NUMBERS[kind_of(type_)](0)


_NUMBERS: Final[dict[Kind, Callable[[int], object]]] = {
    Kind.BOOL: bool, Kind.INT: CheckedInt, Kind.FLOAT: PyFloat, Kind.COMPLEX: PyComplex,
}  # fmt: skip
