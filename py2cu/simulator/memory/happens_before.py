"""Happens-before: which accesses of a launch are ordered, by the clocks of its blocks and threads.

In: synchronization as it happens, by methods of `BlockClock` and `ThreadClock`. Out: `is_ordered`.

A block has an epoch, which a barrier ends: one epoch is ordered before the next and, if the barrier is the grid's,
before everything that follows in any block. A thread has a clock, which advances at fences and at warp exchanges, so
that part of an epoch can be ordered, too. A `VectorClock` says how much of other blocks and threads is ordered before a
thread: up to an epoch of a block, or up to a clock of a thread. An atomic releases everything that the thread's last
fence covers, and acquires everything that earlier atomics on the same element released.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import CodeType
from typing import Final, NamedTuple

from py2cu.simulator.findings import ThreadId

WARP: Final = 32

# A block, or a block and a thread: the (epoch, clock) up to which its accesses are ordered before.
VectorClock = dict[int | tuple[int, int], tuple[int, int]]


class Access(NamedTuple):
    """One access to one element."""

    by: ThreadClock  # of the thread
    epoch: int
    clock: int
    code: CodeType
    instruction: int  # its offset in the code
    value: object
    kind: str

    @property
    def line(self) -> int:
        """The user's line."""
        return line_of(self.code, self.instruction)


def line_of(code: CodeType, instruction: int) -> int:
    """The line of the instruction at an offset. Asking the frame for it at every access would be slow."""
    inside = (line for start, end, line in code.co_lines() if start <= instruction < end)
    return next(inside) or code.co_firstlineno


class BlockClock:
    """The clock of a block."""

    __slots__ = ("epoch", "fenced_epoch", "grid_epoch", "known", "number", "place")

    def __init__(self, number: int, place: tuple[int, int, int]) -> None:
        self.number, self.place = number, place
        self.epoch = 0
        self.fenced_epoch = 0  # all earlier epochs are fenced
        self.grid_epoch = 0  # all earlier epochs are ordered before the current access of any block
        self.known: VectorClock = {}

    def barrier(self, members: Iterable[ThreadClock]) -> None:
        """End an epoch: all `members` are at a barrier."""
        self.epoch += 1
        if not any(member.has_unfenced_writes for member in members):
            self.fenced_epoch = self.epoch
        for member in members:
            if member.known:
                _join(self.known, member.known)
                member.known = {}
            member.has_unfenced_writes = False

    def grid_barrier(self, members: Iterable[ThreadClock]) -> None:
        """End an epoch at the grid's barrier, which the threads of all other blocks have reached, too."""
        self.barrier(members)
        self.grid_epoch = self.epoch


class ThreadClock:
    """The clock of a thread of a block."""

    __slots__ = (
        "block",
        "clock",
        "fenced",
        "fenced_in_block",
        "has_unfenced_writes",
        "known",
        "lane",
        "number",
        "place",
        "warp",
    )

    def __init__(self, block: BlockClock, number: int, thread: tuple[int, int, int]) -> None:
        self.block, self.number = block, number
        self.place: ThreadId = block.place, thread
        self.warp, self.lane = divmod(number, WARP)
        self.clock = 0
        self.known: VectorClock = {}
        self.fenced: VectorClock = {}  # the accesses that its last fence covers
        self.fenced_in_block: VectorClock = {}  # the same, for fences that hold only within its block
        self.has_unfenced_writes = False  # it wrote after its last fence

    def fence(self, *, in_block: bool) -> None:
        """`threadfence` or `threadfence_block`: atomics release the accesses before it."""
        self.fenced_in_block = self._past()
        self.clock += 1
        if not in_block:  # rule: fence-of-block
            self.fenced = self.fenced_in_block
            self.has_unfenced_writes = False

    def release(self, published: VectorClock, in_block: VectorClock) -> None:
        """Acquire and release by an atomic: `published` holds for all threads, `in_block` for those of its block."""
        _join(self.known, published)
        _join(self.known, in_block)
        _join(published, self.fenced)  # rule: released-past
        _join(in_block, self.fenced_in_block)
        if self.block.fenced_epoch:
            _join(published, self.block.known)
            _join(published, {self.block.number: (self.block.fenced_epoch, 0)})

    def _past(self) -> VectorClock:
        block, epoch = self.block.number, self.block.epoch
        return self.block.known | self.known | {block: (epoch, 0), (block, self.number): (epoch, self.clock)}


def synchronize(members: Iterable[ThreadClock]) -> None:
    """`syncwarp`: all earlier accesses of `members` are ordered before all their later ones."""
    joined: VectorClock = {}
    for member in members:
        _join(joined, member.known)
        _join(joined, {(member.block.number, member.number): (member.block.epoch, member.clock)})
    for member in members:
        member.known = dict(joined)
        member.clock += 1


def is_ordered(access: Access, now: ThreadClock) -> bool:
    """Whether `access` is ordered before the next access of `now`."""
    by = access.by
    if by is now:
        return True
    block = by.block
    if access.epoch < block.grid_epoch or (block is now.block and access.epoch < block.epoch):  # rule: order-by-waiting
        return True
    return _covers(now.known, access, by) or _covers(now.block.known, access, by)


def _covers(known: VectorClock, access: Access, by: ThreadClock) -> bool:
    """Whether `known` orders `access`, by the thread `by`, before its owner."""
    if not known:
        return False
    block, at = by.block.number, (access.epoch, access.clock)
    return known.get(block, (0, 0))[0] > access.epoch or known.get((block, by.number), (-1, 0)) >= at


def _join(into: VectorClock, other: VectorClock) -> None:
    for key, at in other.items():
        if into.get(key, (-1, 0)) < at:
            into[key] = at
