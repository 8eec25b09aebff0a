"""A simulated thread that takes turns with the others of its block, and what it waits for."""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType
from typing import Any, Final

from greenlet import greenlet

from py2cu.simulator.launch import Triple
from py2cu.simulator.memory.happens_before import BlockClock, ThreadClock, line_of
from py2cu.simulator.memory.predication import ActivePredicates
from py2cu.simulator.schedule.execution import ThreadSlot

_NEXT_PATIENCE: Final = 10  # the spin budget of a thread that has used up its first one: it may go on waiting


class Wait:
    """What a thread waits for, what it brings, and what it gets."""

    __slots__ = ("function", "mask", "place", "result", "value")

    def __init__(self, function: str, mask: int, value: Any, place: tuple[CodeType, int]) -> None:
        self.function, self.mask, self.value = function, mask, value
        self.place = place  # code, and where in it
        self.result: Any = None

    @property
    def where(self) -> tuple[str, int]:
        """File and line."""
        code, instruction = self.place
        return code.co_filename, line_of(code, instruction)

    def is_at(self, other: Wait) -> bool:
        """Whether both wait for the same."""
        return self is other or (self.function == other.function and self.where == other.where)


class Fiber(ThreadClock):
    """A thread that runs in turns."""

    __slots__ = (
        "greenlet",
        "index",
        "is_waiting",
        "next_patience",
        "predicated",
        "return_line",
        "slot",
        "spin_budget",
        "tainted",
        "waiting"
    )  # fmt: skip

    waiting: Wait  # the last that it waited for

    def __init__(
        self,
        team: BlockClock,
        slot: ThreadSlot,
        index: Triple,
        predicated: ActivePredicates,
        patience: int,
        run: Callable[[Fiber], None],
    ) -> None:
        super().__init__(team, slot.number, slot.thread)
        self.slot, self.index, self.predicated = slot, index, predicated
        self.tainted = self.is_waiting = False
        self.spin_budget, self.next_patience = patience, min(patience, _NEXT_PATIENCE)
        self.return_line = 0  # the line in which it returned, where that is noted
        self.greenlet = greenlet(run)

    @property
    def thread(self) -> Triple:
        return self.slot.thread
