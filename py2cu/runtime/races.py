"""Data races: two threads at one element, one of them writing, with nothing between that orders them.

In: every access to an array of a launch, told by `WatchedArray`. Out: a finding at the later of the two. An element
keeps its last write and two reads by different threads, so that an access costs the same however many there were; two
reads suffice, since whoever writes is another thread than one of them. Two writes of the same value are no race: CUDA
promises that the value arrives.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Final

from py2cu.dtypes import DType
from py2cu.runtime.arrays import ArrayView, UnwrittenArray
from py2cu.runtime.journal import THREAD
from py2cu.runtime.order import Access, Known, is_ordered

READ: Final = "read"
WRITE: Final = "written"
ATOMIC: Final = "updated atomically"


class WatchedArray(ArrayView):
    """An array whose accesses are held against those of other threads."""

    __slots__ = ("_published", "_readers", "_writers")
    is_shared: ClassVar[bool] = False

    def __init__(self, name: str, shape: Iterable[int], dtype: DType, values: Iterable[float | bool]) -> None:
        super().__init__(name, shape, dtype, values)
        self._writers: dict[int, Access] = {}
        self._readers: dict[int, tuple[Access, Access | None]] = {}
        self._published: dict[int, Known] = {}

    def __getitem__(self, index: Any) -> Any:
        return self.load(self._position(index), sys._getframe(1).f_lineno)

    def load(self, position: int, line: int, /) -> Any:
        value = super().load(position, line)
        access = _access(line, value, READ)
        last = self._writers.get(position)
        if last is not None and not is_ordered(last, access.by):
            self._tell(position, last, access)
        first, second = self._readers.get(position, (None, None))
        if first is None or is_ordered(first, access.by):
            self._readers[position] = access, second
        else:
            self._readers[position] = first, access
        return value

    def store(self, position: int, value: Any, line: int) -> None:
        super().store(position, value, line)
        self._changed(position, _access(line, self._values[position], WRITE))

    def update(self, position: int, change: Callable[[Any], Any], line: int) -> Any:
        old = super().update(position, change, line)
        access = _access(line, self._values[position], ATOMIC)
        self._changed(position, access)
        access.by.hand_on(self._published.setdefault(position, {}))
        return old

    def _changed(self, position: int, access: Access) -> None:
        access.by.is_dirty |= not self.is_shared
        last = self._writers.get(position)
        if last is not None and not is_ordered(last, access.by) and not _agree(last, access):
            self._tell(position, last, access)
        for reader in self._readers.pop(position, ()):
            if reader is not None and not is_ordered(reader, access.by):
                self._tell(position, reader, access)
        self._writers[position] = access

    def _tell(self, position: int, before: Access, now: Access) -> None:
        same_block = before.by.team is now.by.team
        block, thread = before.by.place
        who = f"thread {thread}" if same_block else f"block {block}, thread {thread}"
        missing = "no barrier orders them" if same_block else "nothing orders blocks"
        kinds = {before.kind, now.kind}
        missing = "a plain access and an atomic one" if ATOMIC in kinds and len(kinds) > 1 else missing
        detail = (
            f"{self.spell(position)} is {now.kind} here ({now.value}), and {before.kind} in line {before.line} "
            f"({before.value}) by {who}; {missing}"
        )
        THREAD.note(f"a race on `{self.name}`", detail, is_bug=True)


class WatchedUnwritten(WatchedArray, UnwrittenArray):
    """The same of an output."""

    __slots__ = ()


def _access(line: int, value: object, kind: str) -> Access:
    me = THREAD.member
    return Access(me, me.team.epoch, me.clock, line, value, kind)


def _agree(one: Access, other: Access) -> bool:
    """Two writes that leave the same, whichever is last."""
    if one.kind is not other.kind:
        return False
    return one.kind is ATOMIC or _same(one.value, other.value)


def _same(one: Any, other: Any) -> bool:
    both_nan = isinstance(one, float) and isinstance(other, float) and math.isnan(one) and math.isnan(other)
    return both_nan or bool(one == other)
