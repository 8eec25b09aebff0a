"""Detect livelock: the scheduler state repeats while threads spin.

In: the blocks of a launch, after each turn of all their threads. Out: whether the launch is livelocked. The state is
the position of every thread, its locals, and the elements of arrays. Checkpoints of the state are recorded at ever
longer intervals (Brent's algorithm), which detects cycles of any number of turns. A thread that counts, in a local or
in a `for`, never repeats its state; such a launch is livelocked if no element changes in very many turns.
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
from py2cu.simulator.state import is_user_frame

_MIN_TURNS: Final = 8  # before the first comparison: most waits end within these
_MAX_UNCHANGED: Final = 5_000  # turns without a change of any element; enough for threads with a back-off loop


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
        self._thread_states: list[list[object]] = []
        self._elements: list[list[object]] = []

    def is_livelocked(self, blocks: Iterable[_Block]) -> bool:
        """Whether arrays and `blocks` repeat an earlier state, or no array has changed for very many turns."""
        self._turns += 1
        if self._turns < _MIN_TURNS:
            return False
        arrays = [*self._arrays, *(array for block in blocks for array in block.memory.arrays)]
        is_checkpoint = self._turns.bit_count() == 1
        # rule: spin-arrays
        is_unchanged = len(arrays) == len(self._elements) and all(map(_has_elements, arrays, self._elements))
        self._unchanged = self._unchanged + 1 if is_unchanged else 0
        if self._unchanged > _MAX_UNCHANGED:
            return True
        if not is_checkpoint and not is_unchanged:
            return False
        compared = set(map(id, arrays))
        threads = [thread for block in blocks for thread in block.threads]
        if is_checkpoint:
            self._thread_states = [list(_thread_state(thread, compared)) for thread in threads]
            self._elements = [list(array.elements) for array in arrays]
            return False
        return len(threads) == len(self._thread_states) and not any(
            list(_thread_state(thread, compared)) != before or _counts(thread)  # rule: spin-state
            for thread, before in zip(threads, self._thread_states, strict=True)
        )


def frames_of(thread: greenlet) -> Iterator[FrameType]:
    """The user's frames of a suspended thread, the innermost first."""
    frame: FrameType | None = thread.gr_frame
    while frame is not None:
        if is_user_frame(frame):
            yield frame
        frame = frame.f_back


def _thread_state(thread: greenlet, compared: set[int]) -> Iterator[object]:
    """The position and the locals of each frame of a thread; arrays in `compared`, by id, are left out."""
    for frame in frames_of(thread):
        yield frame.f_lasti, {name: _as_text(value, compared) for name, value in frame.f_locals.items()}


def _counts(thread: greenlet) -> bool:
    """Whether a thread is inside a `for`."""
    return any(frame.f_lasti in loop for frame in frames_of(thread) for loop in _counted_loops(frame.f_code))


@functools.cache
def _counted_loops(code: CodeType) -> tuple[range, ...]:
    """The instructions of each `for` in `code`, as offsets."""
    heads = (instruction for instruction in dis.get_instructions(code) if instruction.opname == "FOR_ITER")
    return tuple(range(head.offset, head.argval) for head in heads)


def _as_text(value: object, compared: set[int]) -> str:
    """A value as text: comparing elements themselves could taint the thread."""
    # rule: spin-locals
    return repr(value.elements if isinstance(value, ArrayView) and id(value) not in compared else value)


def _has_elements(array: ArrayView, before: list[object]) -> bool:
    """Whether the elements of `array` are those in `before`."""
    now = array.elements
    return len(now) == len(before) and all(a is b or repr(a) == repr(b) for a, b in zip(now, before, strict=True))
