"""Finds threads that spin for ever: a launch that is again as it was, so that it will be ever after.

In: the blocks of a launch, each time that all their threads have had a turn. Out: whether nothing will change any more.
What is kept to compare with, the places of all threads, their locals and the elements of arrays, is kept anew ever more
rarely, so that threads that spin in rounds of several turns are found, too. Where a thread counts, in a local or in a
`for`, which does not show how far it has come, it is enough that no element changes in very many turns.
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

_SHORT: Final = 8  # turns in which most threads have what they wait for
_LONG: Final = 5_000  # turns in which those have that give the others time


class _Block(Protocol):
    """A block, as it is looked at."""

    memory: SharedMemory

    @property
    def threads(self) -> Iterable[greenlet]: ...


class LivelockDetector:
    """What a launch was like after an earlier turn."""

    def __init__(self, arguments: Iterable[object]) -> None:
        self._arrays = [argument for argument in arguments if isinstance(argument, ArrayView)]
        self._turns = self._unchanged = 0
        self._places: list[list[object]] = []
        self._elements: list[list[object]] = []

    def is_livelocked(self, blocks: Iterable[_Block]) -> bool:
        """True where the arrays, and `blocks`, are again as they were, or the arrays have been for long."""
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
    """The user's frames of a thread that does not have its turn, the innermost first."""
    frame: FrameType | None = thread.gr_frame
    while frame is not None:
        if is_users(frame):
            yield frame
        frame = frame.f_back


def _places(thread: greenlet, common: set[int]) -> Iterator[object]:
    """Where a thread is in the user's code, and its locals there; of arrays that are not `common`, the elements."""
    for frame in frames_of(thread):
        yield frame.f_lasti, {name: _told(value, common) for name, value in frame.f_locals.items()}


def _counts(thread: greenlet) -> bool:
    """True for a thread that is in a `for`."""
    return any(frame.f_lasti in loop for frame in frames_of(thread) for loop in _counted_loops(frame.f_code))


@functools.cache
def _counted_loops(code: CodeType) -> tuple[range, ...]:
    """The instructions of each `for` in `code`, as offsets."""
    heads = (instruction for instruction in dis.get_instructions(code) if instruction.opname == "FOR_ITER")
    return tuple(range(head.offset, head.argval) for head in heads)


def _told(value: object, common: set[int]) -> str:
    """A value as text: elements that are compared ask how exact they are."""
    return repr(value.elements if isinstance(value, ArrayView) and id(value) not in common else value)


def _is_as(array: ArrayView, before: list[object]) -> bool:
    now = array.elements
    return len(now) == len(before) and all(a is b or repr(a) == repr(b) for a, b in zip(now, before, strict=True))
