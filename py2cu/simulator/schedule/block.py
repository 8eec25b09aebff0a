"""A launch whose threads wait for each other: every block's threads as greenlets, which take turns where they wait.

One OS thread runs them all. A thread runs until it waits (`Block.wait`) or returns; when none of a block can go on,
what they wait for is let go: first lanes that vote on who is here, then lanes of warps, then the barrier. Where that is
the grid's, the other blocks run before. What CUDA leaves undefined, lanes, threads or blocks that are missed, is a
finding, and the others go on without them: nothing hangs.
"""

from __future__ import annotations

import enum
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from types import CodeType, FrameType
from typing import Any, Final

from greenlet import getcurrent, greenlet

from py2cu.ir.abi.signature import Signature, evaluate
from py2cu.ir.types import ArrayType
from py2cu.simulator.memory.happens_before import BlockClock
from py2cu.simulator.memory.predication import PREDICATION, as_past_end
from py2cu.simulator.memory.races import RACES
from py2cu.simulator.memory.shared import SharedMemory
from py2cu.simulator.schedule.execution import Execution, Restart
from py2cu.simulator.schedule.fiber import Fiber, Wait
from py2cu.simulator.schedule.livelock import frames_of
from py2cu.simulator.schedule.warp_exchange import exchange
from py2cu.simulator.state import THREAD, LaunchState, kernel_frame
from py2cu.simulator.values.checked_int import CheckedInt

Meeting = tuple[int, str, int]  # a warp, the function that its lanes wait in, their mask
PATIENCE: Final = 100  # atomics and fences of a thread, after which it may be that it waits for others
_GRID_BARRIER: Final = "syncgrid"
_ANYWHERE: Final = -1  # the mask of `activemask`
_VOTES: Final[dict[str, Callable[[list[bool]], object]]] = {
    "syncthreads_count": lambda holds: CheckedInt(sum(holds)), "syncthreads_and": all, "syncthreads_or": any,
}  # fmt: skip


class BlockState(enum.Enum):
    """How far a block has come: to its end, to the grid's barrier, or to where it can go on, and better does after
    others.
    """

    FINISHED = enum.auto()
    AT_GRID_BARRIER = enum.auto()
    RUNNABLE = enum.auto()


class Scheduler(LaunchState):
    """The block and the thread that run, in a launch whose threads wait for each other."""

    __slots__ = ("block", "fiber")
    block: Block
    fiber: Fiber


SCHEDULER: Final = Scheduler()


class Block:
    """The threads of one block."""

    def __init__(self, execution: Execution, team: BlockClock, *, record_returns: bool) -> None:
        self.team = team
        self.memory = SharedMemory(watched=execution.watched)
        self._execution = execution
        self._notes_returns = record_returns
        own = _block_parameters(execution, self.memory)
        bound = execution.bound | own
        past_end = {name: as_past_end(value) for name, value in bound.items()}
        self._arguments = execution.split_arguments(bound), execution.split_arguments(past_end)
        self._barriers: dict[tuple[CodeType, int], Wait] = {}  # what all bring nothing to is the same for all
        self._pending_exchanges: dict[Meeting, dict[int, Fiber]] = {}
        self._resumable: list[Fiber] = []  # can go on, having met
        self._spinning: list[Fiber] = []  # can go on, and better do after others
        self._hub = getcurrent()
        self._runners = [
            Fiber(team, slot, index, execution.predicated.of(index), execution.spin_budget(PATIENCE), self.start)
            for slot in execution.slots
            for index in [execution.index(team.place, slot.thread)]
            if execution.signature.has_barrier or not execution.is_past_end(index)
        ]
        self._present: Counter[int] = Counter()  # of each warp, the lanes that the block has, as bits
        for runner in self._runners:
            self._present[runner.warp] |= 1 << runner.lane
        self._ready = self._runners
        self.stand = BlockState.RUNNABLE

    def __len__(self) -> int:
        return len(self._runners)

    @property
    def threads(self) -> list[greenlet]:
        return [runner.greenlet for runner in self._runners]

    def advance(self) -> BlockState:
        """Run the threads as far as they go."""
        SCHEDULER.block = self
        self._execution.enter_block(self.team.place)
        self.stand = BlockState.FINISHED
        while self._ready:
            for runner in self._execution.in_launch_order(self._ready):
                self._resume(runner)
            self._ready, self._resumable = self._resumable, []
            if not self._ready and self._spinning:
                self._ready, self._spinning = self._spinning, []
                self.stand = BlockState.RUNNABLE
                return self.stand
            self._ready = self._ready or self._release_waiters()
        self._execution.tainted_arrays.update(runner.place for runner in self._runners if runner.tainted)
        return self.stand

    def stop(self) -> None:
        """End threads that have not returned."""
        for runner in self._runners:
            runner.greenlet.throw()

    # --- threads ---

    def start(self, runner: Fiber) -> None:
        """What a greenlet runs."""
        self._execution.apply_debug_focus(runner.place)
        if self._notes_returns:
            sys.setprofile(self._note_return)
        self._execution.call(runner.index, runner.slot, self._arguments[bool(runner.predicated)])

    def _note_return(self, frame: FrameType, event: str, _: object) -> None:
        if event == "return" and frame.f_code is self._execution.kernel.code:
            SCHEDULER.fiber.return_line = frame.f_lineno

    def _resume(self, runner: Fiber) -> None:
        self._execution.enter(runner.place, runner.slot)
        RACES.current = SCHEDULER.fiber = runner
        THREAD.tainted, THREAD.spin_budget = runner.tainted, runner.spin_budget
        PREDICATION.active = runner.predicated
        THREAD.yield_ = self.yield_
        runner.greenlet.switch(runner)
        runner.tainted, runner.spin_budget = THREAD.tainted, THREAD.spin_budget

    def wait(self, function: str, value: Any = None) -> Any:
        """The running thread waits in a barrier, which the user's line calls by one function of the simulator."""
        frame = sys._getframe(2)
        place = frame.f_code, frame.f_lasti
        if value is not None:
            return self._pause(Wait(function, 0, value, place))
        waiting = self._barriers.get(place)
        if waiting is None or waiting.function != function:
            waiting = self._barriers[place] = Wait(function, 0, None, place)
        return self._pause(waiting)

    def wait_for_lanes(self, function: str, mask: int, value: Any = None) -> Any:
        """The running thread waits in a warp function for the lanes of `mask`."""
        me = SCHEDULER.fiber
        frame = kernel_frame()
        if mask != _ANYWHERE and not mask >> me.lane & 1:
            about = f"the mask of `{function}` lacks the lane that calls it"
            where = frame.f_code.co_filename, frame.f_lineno
            THREAD.report_at(where, about, f"lane {me.lane}, mask {mask:#x}", is_bug=True)
            mask = 1 << me.lane
        # Lanes vote on who is here line by line.
        key = me.warp, function, mask if mask != _ANYWHERE else -frame.f_lineno
        lanes = self._pending_exchanges.setdefault(key, {})
        lanes[me.lane] = me
        me.waiting = Wait(function, mask, value, (frame.f_code, frame.f_lasti))
        if len(lanes) == (mask & self._present[me.warp]).bit_count():
            me.tainted = THREAD.tainted
            self._resumable += self._exchange(key)
            THREAD.tainted = me.tainted
        return self._pause(me.waiting)

    def wait_for_active_lanes(self) -> Any:
        """The running thread waits in `activemask` for the lanes that come to the same line."""
        return self.wait_for_lanes("activemask", _ANYWHERE)

    def yield_(self) -> None:
        """The running thread goes on when others have had their turn: it may spin on what they are to do."""
        me = SCHEDULER.fiber
        THREAD.spin_budget = me.next_patience
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

    def _exchange(self, key: Meeting) -> list[Fiber]:
        """The lanes that meet in `key` get their results."""
        lanes = dict(sorted(self._pending_exchanges.pop(key).items()))
        exchange(key[1], lanes)
        return [*lanes.values()]

    def _release_waiters(self) -> list[Fiber]:
        """No thread can go on: those that can go on now. None: all have returned."""
        active = [key for key in self._pending_exchanges if key[1] == "activemask"]
        keys = active or [*self._pending_exchanges]
        if not keys:
            return self._end_barrier()
        for key in keys if not active else ():
            self._report_missing_lanes(key)
        return [runner for key in keys for runner in self._exchange(key)]

    def _report_missing_lanes(self, key: Meeting) -> None:
        warp, function, mask = key
        lanes = self._pending_exchanges[key]
        first = lanes[min(lanes)]
        named = (runner for runner in self._runners if runner.warp == warp and mask >> runner.lane & 1)
        other = next(runner for runner in named if runner.lane not in lanes)
        about = f"the mask of `{function}` names lanes that do not come"
        detail = f"mask {mask:#x}, thread {first.thread} is here, {self._whereabouts(other)}"
        THREAD.place = first.place
        THREAD.report_at(first.waiting.where, about, detail, is_bug=True)

    def _end_barrier(self) -> list[Fiber]:
        """All that have not returned are at a barrier, which ends; the grid's ends when the other blocks are there."""
        here = self._waiting()
        if not here:
            return []
        awaited = {runner.waiting for runner in here}
        if len(awaited) > 1 or len(here) < len(self._runners):
            self._report_divergent_barrier(here[0])
        functions = {waiting.function for waiting in awaited}
        if functions == {_GRID_BARRIER}:
            self.stand = BlockState.AT_GRID_BARRIER
            return []
        if not functions.isdisjoint(_VOTES):
            _vote(here)
        if self._execution.watched:
            self.team.barrier(self._runners)
        return here

    def _report_divergent_barrier(self, first: Fiber) -> None:
        """Report the first thread that does not wait where `first` does, if there is one."""
        at = first.waiting
        other = next((r for r in self._runners if not (r.is_waiting and r.waiting.is_at(at))), None)
        if other is not None:
            about = f"`{at.function}` is not reached by all threads of its block"
            THREAD.place = first.place
            detail = f"thread {first.thread} waits here, {self._whereabouts(other)}"
            THREAD.report_at(at.where, about, detail, is_bug=True)

    def pass_grid(self) -> None:
        """All blocks are at the grid's barrier, which ends."""
        self.team.meet_grid(self._runners)
        self._ready = self._waiting()
        self.stand = BlockState.RUNNABLE

    def note_missing(self, blocks: Iterable[Block]) -> None:
        """Report the first of `blocks` that is not at the grid's barrier where this one is."""
        first, *_ = self._waiting()
        about = f"`{_GRID_BARRIER}` is not reached by all blocks of the grid"
        for block in blocks:
            other = next(iter(block._waiting()), block._runners[0])
            if not other.is_waiting or other.waiting.where != first.waiting.where:
                THREAD.place = first.place
                detail = f"block {self.team.place} waits here, in block {block.team.place} {block._whereabouts(other)}"
                THREAD.report_at(first.waiting.where, about, detail, is_bug=True)
                return

    def note_spinning(self) -> None:
        """Report the first thread that spins, and so does for ever."""
        first = self._ready[0]
        frame = next(frames_of(first.greenlet))
        where = frame.f_code.co_filename, frame.f_lineno
        THREAD.place = first.place
        left = "no thread changes what it waits for"
        THREAD.report_at(where, "threads wait for ever", f"thread {first.thread} spins here, and {left}", is_bug=True)

    def _waiting(self) -> list[Fiber]:
        return [runner for runner in self._runners if runner.is_waiting]

    def _whereabouts(self, runner: Fiber) -> str:
        if runner.is_waiting:
            return f"thread {runner.thread} waits in `{runner.waiting.function}` in line {runner.waiting.where[1]}"
        if not self._notes_returns:
            raise Restart("record_returns")
        return f"thread {runner.thread} has returned in line {runner.return_line}"


def _vote(here: list[Fiber]) -> None:
    """Those that wait in a function that counts get its result."""
    holds = [bool(runner.waiting.value) for runner in here]
    results = {function: count(holds) for function, count in _VOTES.items()}
    in_doubt = any(runner.tainted for runner in here if runner.waiting.function in results)
    for runner in here:
        runner.waiting.result = results.get(runner.waiting.function)
        runner.tainted |= in_doubt


class BlockBarrier:
    """What a parameter annotated as `threading.Barrier` is: the block's."""

    def __init__(self, name: str) -> None:
        self._function = f"{name}.wait"

    def wait(self) -> None:
        SCHEDULER.block.wait(self._function)


def _block_parameters(execution: Execution, memory: SharedMemory) -> dict[str, object]:
    """The parameters that every block has its own of."""
    signature: Signature = execution.signature
    made: dict[str, object] = {}
    if signature.shared is not None:
        parameter = signature.shared
        assert isinstance(parameter.type, ArrayType)
        extents = tuple(evaluate(extent, execution.dims) for extent in parameter.type.dims)
        made[parameter.name] = memory.make(parameter.name, extents, parameter.type.dtype)
    if signature.barrier is not None:
        made[signature.barrier] = BlockBarrier(signature.barrier)
    return made
