"""Fibers: simulated threads that take turns in one OS thread, each with the `Wait` that it is suspended in.

In: a thread's clock, position and active predicates. Out: `Fiber`, whose greenlet the block resumes.
"""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType
from typing import Any, Final

from greenlet import greenlet

from py2cu.simulator.launch import Triple
from py2cu.simulator.memory.happens_before import BlockClock, ThreadClock, line_of
from py2cu.simulator.memory.predication import ActivePredicates
from py2cu.simulator.schedule.execution import ThreadSlot

_NEXT_SPIN_BUDGET: Final = 10  # the spin budget of a thread that has used up its first one: it may go on waiting


class Wait:
    """A thread's wait: the function, the value that the thread brings, and the result that it gets."""

    __slots__ = ("function", "mask", "place", "result", "value")

    def __init__(self, function: str, mask: int, value: Any, place: tuple[CodeType, int]) -> None:
        self.function, self.mask, self.value = function, mask, value
        self.place = place  # code and offset
        self.result: Any = None

    @property
    def where(self) -> tuple[str, int]:
        """The file and line of the call."""
        code, instruction = self.place
        return code.co_filename, line_of(code, instruction)

    def is_at(self, other: Wait) -> bool:
        """Whether both threads wait in the same function at the same line."""
        return self is other or (self.function == other.function and self.where == other.where)


class Fiber(ThreadClock):
    """A thread of a block as a greenlet."""

    __slots__ = (
        "greenlet",
        "index",
        "is_waiting",
        "next_spin_budget",
        "predicated",
        "return_line",
        "slot",
        "spin_budget",
        "tainted",
        "waiting"
    )  # fmt: skip

    waiting: Wait  # the last one

    def __init__(
        self,
        block: BlockClock,
        slot: ThreadSlot,
        index: Triple,
        predicated: ActivePredicates,
        spin_budget: int,
        run: Callable[[Fiber], None],
    ) -> None:
        super().__init__(block, slot.number, slot.thread)
        self.slot, self.index, self.predicated = slot, index, predicated
        self.tainted = self.is_waiting = False
        self.spin_budget, self.next_spin_budget = spin_budget, min(spin_budget, _NEXT_SPIN_BUDGET)
        self.return_line = 0  # where it returned, if the launch records that
        self.greenlet = greenlet(run)

    @property
    def thread(self) -> Triple:
        return self.slot.thread
