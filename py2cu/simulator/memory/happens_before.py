"""Which accesses of a launch are ordered: the clocks of its blocks and threads.

In: what orders threads as it happens, `Team` and `Member` methods called by the simulator. Out: `is_ordered`.

A block has an epoch, which a barrier ends: what one epoch did is ordered before the next, and where the barrier is the
grid's, before whatever follows in any block. A thread has a clock, which
ticks where it fences or meets lanes of its warp, so that part of an epoch can be ordered too. What a thread knows of
others is a `Known`: up to which epoch of a block, or up to which clock of a thread, all is ordered before it. An atomic
hands on what the thread's last fence covers, and takes over what earlier atomics on the same element handed on.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import CodeType
from typing import Final, NamedTuple

from py2cu.simulator.findings import Place

WARP: Final = 32

VectorClock = dict[
    int | tuple[int, int], tuple[int, int]
]  # block: (epoch, 0), all before; or block, thread: (epoch, clock)


class Access(NamedTuple):
    """One access to one element."""

    by: ThreadClock
    epoch: int
    clock: int
    code: CodeType
    instruction: int  # where in it, as an offset
    value: object
    kind: str

    @property
    def line(self) -> int:
        """The user's line."""
        return line_of(self.code, self.instruction)


def line_of(code: CodeType, instruction: int) -> int:
    """The line of an instruction, given as an offset: a frame takes its time to say its own."""
    inside = (line for start, end, line in code.co_lines() if start <= instruction < end)
    return next(inside) or code.co_firstlineno


class BlockClock:
    """A block."""

    __slots__ = ("epoch", "fenced_epoch", "grid_epoch", "known", "number", "place")

    def __init__(self, number: int, place: tuple[int, int, int]) -> None:
        self.number, self.place = number, place
        self.epoch = 0
        self.fenced_epoch = 0  # the epochs before it are fenced
        self.grid_epoch = 0  # the epochs before it are ordered before what any block does now
        self.known: VectorClock = {}

    def barrier(self, members: Iterable[ThreadClock]) -> None:
        """All `members` are at a barrier."""
        self.epoch += 1
        if not any(member.has_unfenced_writes for member in members):
            self.fenced_epoch = self.epoch
        for member in members:
            if member.known:
                _join(self.known, member.known)
                member.known = {}
            member.has_unfenced_writes = False

    def meet_grid(self, members: Iterable[ThreadClock]) -> None:
        """All `members`, and those of the other blocks, are at the grid's barrier."""
        self.barrier(members)
        self.grid_epoch = self.epoch


class ThreadClock:
    """A thread of a block."""

    __slots__ = (
        "clock",
        "fenced",
        "fenced_in_block",
        "has_unfenced_writes",
        "known",
        "lane",
        "number",
        "place",
        "team",
        "warp",
    )

    def __init__(self, team: BlockClock, number: int, thread: tuple[int, int, int]) -> None:
        self.team, self.number = team, number
        self.place: Place = team.place, thread
        self.warp, self.lane = divmod(number, WARP)
        self.clock = 0
        self.known: VectorClock = {}
        self.fenced: VectorClock = {}  # what its last fence covers
        self.fenced_in_block: VectorClock = {}  # the same of fences that hold in its block alone
        self.has_unfenced_writes = False  # it wrote since its last fence

    def fence(self, *, in_block: bool) -> None:
        """`threadfence`, or `threadfence_block`: what is before it can be handed on."""
        self.fenced_in_block = self._past()
        self.clock += 1
        if not in_block:
            self.fenced = self.fenced_in_block
            self.has_unfenced_writes = False

    def release(self, published: VectorClock, in_block: VectorClock) -> None:
        """An atomic on an element of which `published` is known to all, and `in_block` in the thread's block."""
        _join(self.known, published)
        _join(self.known, in_block)
        _join(published, self.fenced)
        _join(in_block, self.fenced_in_block)
        if self.team.fenced_epoch:
            _join(published, self.team.known)
            _join(published, {self.team.number: (self.team.fenced_epoch, 0)})

    def _past(self) -> VectorClock:
        block, epoch = self.team.number, self.team.epoch
        return self.team.known | self.known | {block: (epoch, 0), (block, self.number): (epoch, self.clock)}


def synchronize(members: Iterable[ThreadClock]) -> None:
    """`syncwarp`: what each of `members` did before is ordered before what any of them does after."""
    joined: VectorClock = {}
    for member in members:
        _join(joined, member.known)
        _join(joined, {(member.team.number, member.number): (member.team.epoch, member.clock)})
    for member in members:
        member.known = dict(joined)
        member.clock += 1


def is_ordered(access: Access, now: ThreadClock) -> bool:
    """True where `access` is before whatever `now` does."""
    by = access.by
    if by is now:
        return True
    team = by.team
    if access.epoch < team.grid_epoch or (team is now.team and access.epoch < team.epoch):
        return True
    return _knows(now.known, access, by) or _knows(now.team.known, access, by)


def _knows(known: VectorClock, access: Access, by: ThreadClock) -> bool:
    if not known:
        return False
    block, at = by.team.number, (access.epoch, access.clock)
    return known.get(block, (0, 0))[0] > access.epoch or known.get((block, by.number), (-1, 0)) >= at


def _join(into: VectorClock, other: VectorClock) -> None:
    for key, at in other.items():
        if into.get(key, (-1, 0)) < at:
            into[key] = at
