"""Detect livelock: the scheduler state repeats while threads spin.

In: the blocks of a launch, each time that all their threads have had a turn. Out: whether nothing will change any more.
The state is the position of every thread, its locals, and the elements of arrays. The state to compare with is recorded
at ever longer intervals, so that threads that spin in rounds of several turns are found, too. A thread that counts, in
a local or in a `for`, never repeats its state; there, no change of any element in very many turns is enough.
"""

from __future__ import annotations

import dis
import functools
from collections.abc import Iterable, Iterator
from types import CodeType, FrameType
from typing import Final, Protocol

from greenlet import greenlet

from py2cu.simulator.memory.arrays import ArrayView
from py2cu.simulator.memory.shared import SharedMemory
from py2cu.simulator.state import is_users

_SHORT: Final = 8  # turns within which most threads get what they wait for
_LONG: Final = 5_000  # turns within which threads with a back-off loop get it


class _Block(Protocol):
    """The part of a block that the detector reads."""

    memory: SharedMemory

    @property
    def threads(self) -> Iterable[greenlet]: ...


class LivelockDetector:
    """The state of a launch after an earlier turn."""

    def __init__(self, arguments: Iterable[object]) -> None:
        self._arrays = [argument for argument in arguments if isinstance(argument, ArrayView)]
        self._turns = self._unchanged = 0
        self._places: list[list[object]] = []
        self._elements: list[list[object]] = []

    def is_livelocked(self, blocks: Iterable[_Block]) -> bool:
        """Whether arrays and `blocks` repeat an earlier state, or no array has changed for very many turns."""
        self._turns += 1
        if self._turns < _SHORT:
            return False
        arrays = [*self._arrays, *(array for block in blocks for array in block.memory.arrays)]
        is_kept = self._turns.bit_count() == 1
        is_same = len(arrays) == len(self._elements) and all(map(_is_as, arrays, self._elements))
        self._unchanged = self._unchanged + 1 if is_same else 0
        if self._unchanged > _LONG:
            return True
        if not is_kept and not is_same:
            return False
        common = set(map(id, arrays))
        threads = [thread for block in blocks for thread in block.threads]
        if is_kept:
            self._places = [list(_places(thread, common)) for thread in threads]
            self._elements = [list(array.elements) for array in arrays]
            return False
        return len(threads) == len(self._places) and not any(
            list(_places(thread, common)) != before or _counts(thread)
            for thread, before in zip(threads, self._places, strict=True)
        )


def frames_of(thread: greenlet) -> Iterator[FrameType]:
    """The user's frames of a suspended thread, the innermost first."""
    frame: FrameType | None = thread.gr_frame
    while frame is not None:
        if is_users(frame):
            yield frame
        frame = frame.f_back


def _places(thread: greenlet, common: set[int]) -> Iterator[object]:
    """The positions of a thread in the user's code, with its locals; for arrays that are not `common`, the elements."""
    for frame in frames_of(thread):
        yield frame.f_lasti, {name: _as_text(value, common) for name, value in frame.f_locals.items()}


def _counts(thread: greenlet) -> bool:
    """Whether a thread is inside a `for`."""
    return any(frame.f_lasti in loop for frame in frames_of(thread) for loop in _counted_loops(frame.f_code))


@functools.cache
def _counted_loops(code: CodeType) -> tuple[range, ...]:
    """The instructions of each `for` in `code`, as offsets."""
    heads = (instruction for instruction in dis.get_instructions(code) if instruction.opname == "FOR_ITER")
    return tuple(range(head.offset, head.argval) for head in heads)


def _as_text(value: object, common: set[int]) -> str:
    """A value as text: comparing elements themselves could taint the thread."""
    return repr(value.elements if isinstance(value, ArrayView) and id(value) not in common else value)


def _is_as(array: ArrayView, before: list[object]) -> bool:
    now = array.elements
    return len(now) == len(before) and all(a is b or repr(a) == repr(b) for a, b in zip(now, before, strict=True))
