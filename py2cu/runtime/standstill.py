"""Finds threads that spin for ever: a launch that is again as it was, so that it will be ever after.

In: the blocks of a launch, each time that all their threads have had a turn. Out: whether nothing will change any more.
What is kept to compare with, the places of all threads, their locals and the elements of arrays, is kept anew ever more
rarely, so that threads that spin in rounds of several turns are found, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import FrameType
from typing import Final, Protocol

from greenlet import greenlet

from py2cu.runtime.arrays import ArrayView
from py2cu.runtime.journal import is_users
from py2cu.runtime.shared import SharedMemory

_SHORT: Final = 8  # turns in which most threads have what they wait for


class _Block(Protocol):
    """A block, as it is looked at."""

    memory: SharedMemory

    @property
    def threads(self) -> Iterable[greenlet]: ...


class Standstill:
    """What a launch was like after an earlier turn."""

    def __init__(self, arguments: Iterable[object]) -> None:
        self._arrays = [argument for argument in arguments if isinstance(argument, ArrayView)]
        self._turns = 0
        self._places: list[list[object]] = []
        self._elements: list[list[object]] = []

    def is_reached(self, blocks: Iterable[_Block]) -> bool:
        """True where the arrays, and `blocks`, are again as they were."""
        self._turns += 1
        if self._turns < _SHORT:
            return False
        arrays = [*self._arrays, *(array for block in blocks for array in block.memory.arrays)]
        common = set(map(id, arrays))
        places = [list(_places(thread, common)) for block in blocks for thread in block.threads]
        if places == self._places and all(map(_is_as, arrays, self._elements)):
            return True
        if self._turns.bit_count() == 1:
            self._places, self._elements = places, [list(array.elements) for array in arrays]
        return False


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


def _told(value: object, common: set[int]) -> str:
    """A value as text: elements that are compared ask how exact they are."""
    return repr(value.elements if isinstance(value, ArrayView) and id(value) not in common else value)


def _is_as(array: ArrayView, before: list[object]) -> bool:
    return all(now is then or repr(now) == repr(then) for now, then in zip(array.elements, before, strict=True))
