"""Detect data races: two unordered accesses to one element by different threads, at least one of them a write.

In: every access to an array of a launch, reported by `RaceCheckedArray`. Out: a finding at the later of two accesses.
For each element the detector keeps the last write, and two reads and two atomic updates by different threads. Two
suffice, since a writer differs from at least one of the two threads; so the cost of an access is constant. Two writes
of the same value are no race: CUDA promises that the element has this value. A race of a read with a write that changes
no bit of the element is a finding of its own kind, since the reader sees the same value in any order.

Atomic updates of an element are ordered. A thread that uses an atomic's result acquires all earlier updates of that
element: the last block to increment a counter may reset it with a plain write. An element whose updates do not commute,
such as exchanges of different values, depends on the order of threads.
"""

from __future__ import annotations

import dis
import functools
import math
import sys
from collections.abc import Callable, Iterable
from types import CodeType, FrameType
from typing import Any, ClassVar, Final

from py2cu.dtypes import DType
from py2cu.simulator.findings import TooManyOperations
from py2cu.simulator.memory.arrays import ArrayView, UnwrittenArray
from py2cu.simulator.memory.happens_before import Access, ThreadClock, VectorClock, is_ordered
from py2cu.simulator.state import THREAD, LaunchState
from py2cu.simulator.values.complex_elements import ComplexElement
from py2cu.simulator.values.uncertain_bits import raw_value

READ: Final = "read"
WRITE: Final = "written"
REWRITE: Final = "written unchanged"
ATOMIC: Final = "updated atomically"

Pair = tuple[Access, Access | None]


class RaceDetector(LaunchState):
    """The clock of the running thread, in a launch whose accesses are checked."""

    __slots__ = ("current",)
    current: ThreadClock


RACES: Final = RaceDetector()


class RaceCheckedArray(ArrayView):
    """An array whose accesses are checked for races."""

    __slots__ = (
        "_atomics",
        "_before_write",
        "_changed_atomically",
        "_changers",
        "_last_operations",
        "_order_dependent",
        "_published",
        "_readers",
        "_writers",
    )
    is_shared: ClassVar[bool] = False
    starts_unwritten: ClassVar[bool] = False

    def __init__(self, name: str, shape: Iterable[int], dtype: DType, values: Iterable[float | bool]) -> None:
        super().__init__(name, shape, dtype, values)
        self._writers: dict[int, Access] = {}
        self._changers: dict[int, Access] = {}  # the last write that changed the value, if later writes kept it
        self._readers: dict[int, Pair] = {}
        self._atomics: dict[int, Pair] = {}
        self._before_write: dict[int, tuple[Access | None, ...]] = {}  # reads and updates before the last writes
        self._last_operations: dict[int, tuple[Access, ...]] = {}  # the last two updates with different operations
        self._order_dependent: set[int] = set()  # threads change it in ways that do not commute
        self._changed_atomically: set[int] = set()  # an atomic has changed the element
        self._published: dict[int | tuple[int, int], VectorClock] = {}  # by position, and by position and block

    def __getitem__(self, index: Any) -> Any:
        return self.get(index, sys._getframe(1))

    def load(self, position: int, frame: FrameType, /) -> Any:
        value = super().load(position, frame)
        access = _access(frame, value, READ)
        last = self._writers.get(position)
        if last is not None and not is_ordered(last, access.by):
            changer = self._changers.get(position) if last.kind is REWRITE else None
            is_changed = changer is not None and not is_ordered(changer, access.by)
            # rule: race-changer
            self._report_race(position, changer if changer is not None and is_changed else last, access)
        if position in self._atomics:
            self._check_against(position, self._atomics[position], access)
        _remember(self._readers, position, access)
        return value

    def store(self, position: int, value: Any, frame: FrameType, /) -> None:
        # rule: race-unwritten
        old = None if self.starts_unwritten and position not in self.writes else self._values[position]
        super().store(position, value, frame)
        new = self._values[position]
        keeps = old is not None and _keeps(old, new) and not THREAD.tainted and position not in self._uncertain
        access = _access(frame, new, REWRITE if keeps else WRITE)
        access.by.has_unfenced_writes |= not self.is_shared
        last = self._writers.get(position)
        earlier = self._since_change(position, last, access)
        if last is not None and not is_ordered(last, access.by):
            if not _is_same_value(last.value, access.value):  # rule: same-value-stored
                self._report_race(position, last, access)
            # The accesses before `last` may race with this write, too: nothing orders the two writes.
            earlier = earlier or self._before_write.get(position, ())  # rule: order-earlier
        self._check_against(position, earlier, access)
        self._writers[position] = access
        self._before_write[position] = earlier

    def _since_change(self, position: int, last: Access | None, now: Access) -> tuple[Access | None, ...]:
        """The reads and updates that the write `now` may race with.

        If `now` keeps the value, they are kept, because a later write that changes the value may race with them, too.
        """
        if now.kind is REWRITE:  # rule: race-kept
            if last is not None and last.kind is WRITE:
                self._changers[position] = last
            return *self._readers.get(position, ()), *self._atomics.get(position, ())
        return *self._readers.pop(position, ()), *self._atomics.pop(position, ())

    def update(self, position: int, change: Callable[[Any], Any], frame: FrameType, operation: object = None) -> Any:
        old = super().update(position, change, frame, operation)
        access = _access(frame, self._values[position], ATOMIC)
        last = self._writers.get(position)
        if last is not None and not is_ordered(last, access.by):
            self._report_race(position, last, access)
        self._check_against(position, self._readers.get(position, ()), access)
        if _is_result_used(frame.f_code, frame.f_lasti):  # rule: result-used
            self._atomics[position] = access, None
        else:
            _remember(self._atomics, position, access)
        if operation is not None:
            self._mark_order_dependent(position, _access(frame, operation, ATOMIC))
        in_block = position, access.by.block.number
        access.by.release(self._published.setdefault(position, {}), self._published.setdefault(in_block, {}))
        return old

    def _mark_order_dependent(self, position: int, access: Access) -> None:
        """Accept any value of an element that unordered threads change by operations that do not commute.

        `access.value` is the name of the operation, or the new element of an exchange or a compare-and-swap. A
        compare-and-swap that fails leaves the element unchanged.
        """
        operation, earlier = access.value, self._last_operations.get(position, ())
        others = [other for other in earlier if not _is_same_value(other.value, operation)]
        self._last_operations[position] = access, *others[:1]
        if all(is_ordered(other, access.by) for other in earlier):
            self._order_dependent.discard(position)
        elif not all(is_ordered(other, access.by) for other in others):  # rule: order-of-others
            self._order_dependent.add(position)
        if isinstance(operation, str) or self._values[position] is operation:
            self._changed_atomically.add(position)
        if position in self._order_dependent and position in self._changed_atomically:  # rule: order-atomic
            self.writes[position] = self.writes[position]._replace(error=math.inf)

    def _check_against(self, position: int, earlier: tuple[Access | None, ...], access: Access) -> None:
        """Report a race between `access` and each unordered access in `earlier`."""
        for other in earlier:
            if other is not None and not is_ordered(other, access.by):
                self._report_race(position, other, access)

    def _report_race(self, position: int, before: Access, now: Access) -> None:
        same_block = before.by.block is now.by.block
        block, thread = before.by.place
        other = f"thread {thread}" if same_block else f"block {block}, thread {thread}"
        missing = "no barrier orders them" if same_block else "no synchronization orders the blocks"
        kinds = {before.kind, now.kind}
        # Where the values differ, another write has changed the element.
        # rule: race-keeps-value
        keeps_value = kinds == {READ, REWRITE} and _is_same_value(before.value, now.value)
        missing = "only one of the accesses is atomic" if ATOMIC in kinds and len(kinds) > 1 else missing
        verbs = [WRITE if access.kind is REWRITE else access.kind for access in (now, before)]
        detail = (
            f"{self.spell(position)} is {verbs[0]} here ({now.value}), and {verbs[1]} in line {before.line} "
            f"({before.value}) by {other}; {missing}"
        )
        about = f"a race on `{self.name}`"
        if keeps_value:
            about = f"{about} whose write keeps the value"
        THREAD.report(about, detail, is_bug=not keeps_value, keeps_value=keeps_value)


class RaceCheckedUnwritten(RaceCheckedArray, UnwrittenArray):
    """A race-checked output."""

    __slots__ = ()
    starts_unwritten = True


def _access(frame: FrameType, value: object, kind: str) -> Access:
    THREAD.operations += 1
    if THREAD.operations > THREAD.operation_limit:
        raise TooManyOperations(THREAD.operation_limit)  # rule: check-operations
    me = RACES.current
    return Access(me, me.block.epoch, me.clock, frame.f_code, frame.f_lasti, value, kind)


def _remember(table: dict[int, Pair], position: int, access: Access) -> None:
    """Keep `access` beside an access of another thread."""
    first, second = table.get(position, (None, None))
    if first is None or is_ordered(first, access.by):
        table[position] = access, second
    else:
        table[position] = first, access


@functools.cache
def _is_result_used(code: CodeType, call: int) -> bool:
    """False if the result of the call at this offset is discarded."""
    following = next(instruction for instruction in dis.get_instructions(code) if instruction.offset > call)
    return following.opname != "POP_TOP"


def _keeps(old: Any, new: Any) -> bool:
    """Whether storing `new` over `old` changes no bit, in the compiled kernel as well."""
    if isinstance(new, ComplexElement):
        return _keeps(old.real, new.real) and _keeps(old.imag, new.imag)
    before, after = raw_value(old), raw_value(new)
    if before != after:
        return bool(before != before and after != after)
    is_same_zero = before or math.copysign(1.0, before) == math.copysign(1.0, after)
    return bool(is_same_zero and new.error <= old.error)  # rule: race-zero-error


def _is_same_value(one: Any, other: Any) -> bool:
    both_nan = isinstance(one, float) and isinstance(other, float) and math.isnan(one) and math.isnan(other)
    return both_nan or bool(one == other)
