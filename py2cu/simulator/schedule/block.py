"""The threads of one block as fibers (greenlets), which take turns where they wait for each other.

One OS thread runs all fibers. A fiber runs until it waits (`Block.wait`), yields or returns. When no fiber of a block
is runnable, the block releases waiters: first the lanes in `activemask`, then lanes of other warp functions, then the
barrier. At the grid's barrier, the other blocks run first. Lanes, threads or blocks that are missing at a
synchronization are undefined in CUDA: they are a finding, and the others continue without them, so nothing hangs.
"""

from __future__ import annotations

import enum
import sys
from collections import Counter
from collections.abc import Iterable
from types import CodeType, FrameType
from typing import Any, Final

from greenlet import getcurrent, greenlet

from py2cu.builtins import ROWS, Rule, ThreadScope
from py2cu.builtins.sync import GRID_BARRIER
from py2cu.ir.abi.signature import Signature, evaluate
from py2cu.ir.types import ArrayType
from py2cu.simulator.memory.happens_before import BlockClock
from py2cu.simulator.memory.predication import PREDICATION, as_predicated
from py2cu.simulator.memory.races import RACES
from py2cu.simulator.memory.shared import SharedMemory
from py2cu.simulator.schedule.execution import Execution, Restart
from py2cu.simulator.schedule.fiber import Fiber, Wait
from py2cu.simulator.schedule.livelock import frames_of
from py2cu.simulator.schedule.warp_exchange import exchange, vote
from py2cu.simulator.state import THREAD, LaunchState, kernel_frame

ExchangeKey = tuple[int, str, int]  # a warp, the function in which its lanes wait, their mask
SPIN_BUDGET: Final = 100  # atomics and fences of a thread, after which it yields: it may be waiting for others
_GRID_BARRIER: Final = ROWS[GRID_BARRIER].name
_ACTIVE_LANES: Final = -1  # stands for a mask: whichever lanes reach the same line
_VOTES: Final = {
    row.name: row for row in ROWS.values() if row.rule is Rule.VOTE and row.effects.together is ThreadScope.BLOCK
}


class BlockState(enum.Enum):
    """Whether a block has finished, waits at the grid's barrier, or can run.

    A runnable block has spinning threads, so other blocks should run first.
    """

    FINISHED = enum.auto()
    AT_GRID_BARRIER = enum.auto()
    RUNNABLE = enum.auto()


class Scheduler(LaunchState):
    """The block and the thread that run, in a launch whose threads wait for each other."""

    __slots__ = ("block", "dynamic_bytes", "fiber")
    block: Block
    dynamic_bytes: int  # of shared memory, where the launch says how many
    fiber: Fiber


SCHEDULER: Final = Scheduler()


class Block:
    """The fibers of one block, and what they wait for."""

    def __init__(self, execution: Execution, clock: BlockClock, *, record_returns: bool) -> None:
        self.clock = clock
        self.memory = SharedMemory(race_checked=execution.race_checked)
        self._execution = execution
        self._records_returns = record_returns
        block_parameters = _block_parameters(execution, self.memory)
        bound = execution.bound | block_parameters
        out_of_range = {name: as_predicated(value) for name, value in bound.items()}
        self._arguments = execution.split_arguments(bound), execution.split_arguments(out_of_range)
        self._barriers: dict[tuple[CodeType, int], Wait] = {}  # shared by all threads, since no value is exchanged
        self._pending_exchanges: dict[ExchangeKey, dict[int, Fiber]] = {}
        self._resumable: list[Fiber] = []  # released by an exchange or a barrier
        self._spinning: list[Fiber] = []  # yielded while spinning; others run first
        self._hub = getcurrent()  # the greenlet that schedules the fibers
        self._fibers = [
            Fiber(clock, slot, index, execution.predicated.of(index), execution.spin_budget(SPIN_BUDGET), self.start)
            for slot in execution.slots
            for index in [execution.index(clock.place, slot.thread)]
            if execution.signature.has_barrier or not execution.is_out_of_range(index)
        ]
        self._present: Counter[int] = Counter()  # by warp: the lanes that exist, as bits
        for fiber in self._fibers:
            self._present[fiber.warp] |= 1 << fiber.lane
        self._ready = self._fibers
        self.state = BlockState.RUNNABLE

    def __len__(self) -> int:
        return len(self._fibers)

    @property
    def threads(self) -> list[greenlet]:
        return [fiber.greenlet for fiber in self._fibers]

    def advance(self) -> BlockState:
        """Run the fibers until all have finished, wait at the grid's barrier, or spin."""
        SCHEDULER.block = self
        self._execution.enter_block(self.clock.place)
        self.state = BlockState.FINISHED
        while self._ready:
            for fiber in self._execution.in_launch_order(self._ready):
                self._resume(fiber)
            self._ready, self._resumable = self._resumable, []
            if not self._ready and self._spinning:
                self._ready, self._spinning = self._spinning, []
                self.state = BlockState.RUNNABLE
                return self.state
            self._ready = self._ready or self._release_waiters()
        self._execution.tainted_threads.update(fiber.place for fiber in self._fibers if fiber.tainted)
        return self.state

    def stop(self) -> None:
        """End the fibers of threads that have not returned."""
        for fiber in self._fibers:
            fiber.greenlet.throw()

    # --- threads ---

    def start(self, fiber: Fiber) -> None:
        """Run one thread of the kernel; the body of its greenlet."""
        self._execution.apply_debug_focus(fiber.place)
        if self._records_returns:
            sys.setprofile(self._record_return)
        self._execution.call(fiber.index, fiber.slot, self._arguments[bool(fiber.predicated)])

    def _record_return(self, frame: FrameType, event: str, _: object) -> None:
        if event == "return" and frame.f_code is self._execution.kernel.code:
            SCHEDULER.fiber.return_line = frame.f_lineno

    def _resume(self, fiber: Fiber) -> None:
        self._execution.enter(fiber.place, fiber.slot)
        RACES.current = SCHEDULER.fiber = fiber
        THREAD.tainted, THREAD.spin_budget = fiber.tainted, fiber.spin_budget
        PREDICATION.active = fiber.predicated
        THREAD.yield_ = self.yield_
        fiber.greenlet.switch(fiber)
        fiber.tainted, fiber.spin_budget = THREAD.tainted, THREAD.spin_budget

    def wait(self, function: str, value: Any = None) -> Any:
        """Make the running thread wait at a barrier, called by a function that the user's line calls."""
        frame = sys._getframe(2)
        place = frame.f_code, frame.f_lasti
        if value is not None:
            return self._pause(Wait(function, 0, value, place))
        waiting = self._barriers.get(place)
        if waiting is None or waiting.function != function:
            waiting = self._barriers[place] = Wait(function, 0, None, place)
        return self._pause(waiting)

    def wait_for_lanes(self, function: str, mask: int, value: Any = None) -> Any:
        """Make the running thread wait in a warp function for the lanes of `mask`."""
        me = SCHEDULER.fiber
        frame = kernel_frame()
        if mask != _ACTIVE_LANES and not mask >> me.lane & 1:
            about = f"the mask of `{function}` lacks the lane that calls it"
            where = frame.f_code.co_filename, frame.f_lineno
            THREAD.report_at(where, about, f"lane {me.lane}, mask {mask:#x}", is_bug=True)
            mask = 1 << me.lane
        # Active lanes have no mask: those at one line count, whose negative number takes the place of the mask.
        key = me.warp, function, mask if mask != _ACTIVE_LANES else -frame.f_lineno
        lanes = self._pending_exchanges.setdefault(key, {})
        lanes[me.lane] = me
        me.waiting = Wait(function, mask, value, (frame.f_code, frame.f_lasti))
        if len(lanes) == (mask & self._present[me.warp]).bit_count():
            me.tainted = THREAD.tainted
            self._resumable += self._exchange(key)
            THREAD.tainted = me.tainted
        return self._pause(me.waiting)

    def wait_for_active_lanes(self, function: str) -> Any:
        """Make the running thread wait in `function` for the lanes that reach the same line."""
        return self.wait_for_lanes(function, _ACTIVE_LANES)

    def yield_(self) -> None:
        """Suspend the running thread until the others have run: it may be spinning on their progress."""
        me = SCHEDULER.fiber
        THREAD.spin_budget = me.next_spin_budget
        self._spinning.append(me)
        self._hub.switch()
        self._execution.apply_debug_focus(me.place)

    def _pause(self, waiting: Wait) -> Any:
        me = SCHEDULER.fiber
        me.waiting, me.is_waiting = waiting, True
        self._hub.switch()
        if self._execution.has_focus:
            self._execution.apply_debug_focus(me.place)
        me.is_waiting = False
        return waiting.result

    # --- what they wait for ---

    def _exchange(self, key: ExchangeKey) -> list[Fiber]:
        """Complete the exchange `key`; its lanes, which have their results."""
        lanes = dict(sorted(self._pending_exchanges.pop(key).items()))
        exchange(key[1], lanes)
        return [*lanes.values()]

    def _release_waiters(self) -> list[Fiber]:
        """Release waiters, since no fiber is runnable; the released fibers, none if all have returned."""
        active = [key for key in self._pending_exchanges if key[2] < 0]
        keys = active or [*self._pending_exchanges]
        if not keys:
            return self._end_barrier()
        for key in keys if not active else ():
            self._report_missing_lanes(key)
        return [fiber for key in keys for fiber in self._exchange(key)]

    def _report_missing_lanes(self, key: ExchangeKey) -> None:
        warp, function, mask = key
        lanes = self._pending_exchanges[key]
        first = lanes[min(lanes)]
        named = (fiber for fiber in self._fibers if fiber.warp == warp and mask >> fiber.lane & 1)
        other = next(fiber for fiber in named if fiber.lane not in lanes)
        about = f"the mask of `{function}` names lanes that do not call it"
        detail = f"mask {mask:#x}, thread {first.thread} waits here, {self._whereabouts(other)}"
        THREAD.place = first.place
        THREAD.report_at(first.waiting.where, about, detail, is_bug=True)

    def _end_barrier(self) -> list[Fiber]:
        """End the barrier of all unfinished threads; the grid's barrier stays until the other blocks arrive."""
        here = self._waiting()
        if not here:
            return []
        awaited = {fiber.waiting for fiber in here}
        if len(awaited) > 1 or len(here) < len(self._fibers):
            self._report_divergent_barrier(here[0])
        functions = {waiting.function for waiting in awaited}
        if functions == {_GRID_BARRIER}:  # rule: meeting-of-blocks
            self.state = BlockState.AT_GRID_BARRIER
            return []
        if not functions.isdisjoint(_VOTES):
            _vote(here)
        if self._execution.race_checked:
            self.clock.barrier(self._fibers)
        return here

    def _report_divergent_barrier(self, first: Fiber) -> None:
        """Report the first thread, if any, that does not wait where `first` does."""
        at = first.waiting
        other = next((fiber for fiber in self._fibers if not (fiber.is_waiting and fiber.waiting.is_at(at))), None)
        if other is not None:
            about = f"`{at.function}` is not reached by all threads of its block"
            THREAD.place = first.place
            detail = f"thread {first.thread} waits here, {self._whereabouts(other)}"
            THREAD.report_at(at.where, about, detail, is_bug=True)

    def pass_grid_barrier(self) -> None:
        """Release this block from the grid's barrier, which all blocks have reached."""
        self.clock.grid_barrier(self._fibers)
        self._ready = self._waiting()
        self.state = BlockState.RUNNABLE

    def report_missing_blocks(self, blocks: Iterable[Block]) -> None:
        """Report the first of `blocks` that does not wait at the grid's barrier where this block does."""
        first, *_ = self._waiting()
        about = f"`{_GRID_BARRIER}` is not reached by all blocks of the grid"
        for block in blocks:
            other = next(iter(block._waiting()), block._fibers[0])
            if not other.is_waiting or other.waiting.where != first.waiting.where:
                THREAD.place = first.place
                where = f"in block {block.clock.place} {block._whereabouts(other)}"
                detail = f"block {self.clock.place} waits here, {where}"
                THREAD.report_at(first.waiting.where, about, detail, is_bug=True)
                return

    def report_livelock(self) -> None:
        """Report the first spinning thread, of a livelocked launch."""
        first = self._ready[0]
        frame = next(frames_of(first.greenlet))
        where = frame.f_code.co_filename, frame.f_lineno
        THREAD.place = first.place
        detail = f"thread {first.thread} spins here on a value that no thread changes any more"
        THREAD.report_at(where, "livelock", detail, is_bug=True)

    def _waiting(self) -> list[Fiber]:
        return [fiber for fiber in self._fibers if fiber.is_waiting]

    def _whereabouts(self, fiber: Fiber) -> str:
        """Where a thread waits or has returned, as text.

        Raises:
            Restart: it has returned, and the launch does not record where.
        """
        if fiber.is_waiting:
            return f"thread {fiber.thread} waits in `{fiber.waiting.function}` in line {fiber.waiting.where[1]}"
        if not self._records_returns:
            raise Restart("record_returns")
        return f"thread {fiber.thread} has returned in line {fiber.return_line}"


def _vote(here: list[Fiber]) -> None:
    """Give the threads that wait in `syncthreads_count` and the like their result."""
    holds = [bool(fiber.waiting.value) for fiber in here]
    results = {function: vote(row, [], holds) for function, row in _VOTES.items()}
    is_tainted = any(fiber.tainted for fiber in here if fiber.waiting.function in results)
    for fiber in here:
        fiber.waiting.result = results.get(fiber.waiting.function)
        fiber.tainted |= is_tainted


class BlockBarrier:
    """The value of a parameter annotated as `threading.Barrier`: the barrier of the block."""

    def __init__(self, name: str) -> None:
        self._function = f"{name}.wait"

    def wait(self) -> None:
        SCHEDULER.block.wait(self._function)


def _block_parameters(execution: Execution, memory: SharedMemory) -> dict[str, object]:
    """The arguments that differ between blocks: dynamic shared memory and the barrier."""
    signature: Signature = execution.signature
    parameters: dict[str, object] = {}
    if signature.shared is not None:
        parameter = signature.shared
        assert isinstance(parameter.type, ArrayType)
        extents = tuple(evaluate(extent, execution.dims) for extent in parameter.type.dims)
        parameters[parameter.name] = memory.make(parameter.name, extents, parameter.type.dtype)
    if signature.barrier is not None:
        parameters[signature.barrier] = BlockBarrier(signature.barrier)
    return parameters
