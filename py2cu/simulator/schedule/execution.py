"""One call of a kernel for one thread, and a launch whose threads need not wait for each other: one after the other."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from random import Random
from types import CodeType, TracebackType
from typing import Final, TypeVar

from py2cu.diagnostics import Py2cuError
from py2cu.ir.abi.signature import Signature
from py2cu.simulator.debugger import Debugger
from py2cu.simulator.instrument import InstrumentedKernel, coordinate
from py2cu.simulator.launch import AXES, Launch, Triple, find_limits, places
from py2cu.simulator.memory.happens_before import WARP, BlockClock, ThreadClock
from py2cu.simulator.memory.predication import PredicationTable
from py2cu.simulator.state import THREAD, Place

T = TypeVar("T")
PATIENCE: Final = 100_000  # atomics of a thread, half a second, after which it may be that it waits for others
_HASTY: Final = 1000  # threads of a permuted order that let others come between their atomics
Arguments = tuple[list[object], dict[str, object]]  # by place, by name


class SimulationError(Py2cuError):
    """The kernel's Python raised in one thread; `__cause__` is what it raised."""

    def __init__(self, kernel: str, message: str, place: Place, line: int) -> None:
        self.kernel, self.message, self.place, self.line = kernel, message, place, line
        block, thread = place
        super().__init__(f"`{kernel}`, line {line}, block {block}, thread {thread}: {message}")

    def __reduce__(self) -> tuple[type[SimulationError], tuple[str, str, Place, int]]:
        return type(self), (self.kernel, self.message, self.place, self.line)


class TurnsWanted(Exception):
    """A thread may wait for another one of its block, which runs after it."""


class OperandsWanted(Exception):
    """An error is to say what was divided, which Python's own integers do not."""


@dataclass(frozen=True, slots=True)
class ThreadSlot:
    """A thread of every block: where it is in its block, and what the kernel's globals say in it. Nobody changes it."""

    number: int
    thread: Triple
    objects: dict[str, int]


@functools.lru_cache(maxsize=16)  # a check launches the same blocks again and again
def _slots(block: Triple, *, is_plain: bool) -> tuple[ThreadSlot, ...]:
    """The threads of `block`; `is_plain`: the kernel's Python integers are Python's own."""
    assert is_plain == (THREAD.integer is int)
    return tuple(
        ThreadSlot(number, at, {"threadIdx": coordinate(at), "laneid": THREAD.integer(number % WARP)})
        for number, at in enumerate(places(block))
    )


class Execution:
    """A kernel about to be run: what its calls take, and in which order its blocks and threads come."""

    def __init__(
        self,
        rebound: InstrumentedKernel,
        signature: Signature,
        launch: Launch,
        dims: dict[str, int],
        bound: dict[str, object],
        *,
        watched: bool = False,
        seed: int | None = None,
        backwards: bool = False,
        focus: Place | None = None,
        stops: bool = True,
    ) -> None:
        self.rebound, self.signature, self.launch, self.dims, self.bound = rebound, signature, launch, dims, bound
        self.watched = watched
        self.tainted_arrays: set[Place] = set()
        self._random = None if seed is None else Random(seed)
        self._hasty = 0 if seed is None else _HASTY  # so many more
        self._backwards = backwards
        self._focus, self.has_focus, self._stops = focus, focus is not None, stops
        self._debugger = Debugger(rebound.codes)
        self._axes = [AXES.index(index.axis) for index in signature.indices]
        self._limits = find_limits(signature, dims)
        self.predicated = PredicationTable(signature, dims)
        self.slots = _slots(launch.block, is_plain=THREAD.integer is int)
        leading = len(self._axes) + len(signature.launch)
        code = rebound.code
        self._places = code.co_varnames[leading : code.co_argcount]
        sizes = {"blockDim": coordinate(launch.block), "gridDim": coordinate(launch.grid)}
        rebound.place(sizes)
        self._objects: dict[str, int] = dict(sizes)

    def blocks(self) -> Iterator[tuple[int, Triple]]:
        """Each block's number and place; the launch objects are set to it."""
        for number, block in self.in_launch_order(enumerate(places(self.launch.grid))):
            self.enter_block(block)
            yield number, block

    def enter_block(self, block: Triple) -> None:
        """Threads of `block` run next."""
        here = {"blockIdx": coordinate(block)}
        self.rebound.place(here)
        self._objects |= here

    def in_launch_order(self, items: Iterable[T]) -> Iterable[T]:
        """`items` as they come, backwards, or permuted by the seed."""
        if self._random is None:
            return reversed([*items]) if self._backwards else items
        permuted = [*items]
        self._random.shuffle(permuted)
        return permuted

    def spin_budget(self, usual: int) -> int:
        """How many atomics and fences a thread that begins may run: none, for every other of a permuted order."""
        if not self._hasty or self._random is None or self._random.random() < 0.5:
            return usual
        self._hasty -= 1
        return 0

    def index(self, block: Triple, thread: Triple) -> Triple:
        """The thread's global index."""
        (bx, by, bz), (width, height, depth), (x, y, z) = block, self.launch.block, thread
        return bx * width + x, by * height + y, bz * depth + z

    def is_past_end(self, index: Triple) -> bool:
        """Whether a guard lets the thread do nothing."""
        limits = self._limits
        return limits is not None and not (index[0] < limits[0] and index[1] < limits[1] and index[2] < limits[2])

    def enter(self, place: Place, slot: ThreadSlot) -> None:
        """The thread at `place` runs next."""
        THREAD.place = place
        if self.rebound.is_asked:
            self.rebound.place(slot.objects)

    def apply_debug_focus(self, place: Place) -> None:
        """A debugger traces on in the chosen thread alone, where one is chosen."""
        if self.has_focus:
            is_chosen = place == self._focus
            self.rebound.let_stop(self._stops and is_chosen)
            self._debugger.listen(is_chosen)

    def leave(self) -> None:
        """The launch is over."""
        if self.has_focus:
            self._debugger.listen(True)

    def split_arguments(self, bound: dict[str, object]) -> Arguments:
        """`bound` as the function takes it, by place and by name."""
        named = {name: value for name, value in bound.items() if name not in self._places}
        return [bound[name] for name in self._places], named

    def call(self, index: Triple, slot: ThreadSlot, arguments: Arguments) -> None:
        """Run the kernel's Python in the thread that was entered.

        Raises:
            SimulationError: it raised.
            OperandsWanted: run it again, from the beginning, with integers that tell of themselves.
            TurnsWanted: the same, in turns.
        """
        positional, named = arguments
        indices = [THREAD.integer(index[axis]) for axis in self._axes]
        here = [slot.objects[name] if name in slot.objects else self._objects[name] for name in self.signature.launch]
        try:
            self.rebound.call(*indices, *here, *positional, **named)
        except TurnsWanted:
            raise
        except Exception as error:
            if isinstance(error, ZeroDivisionError) and THREAD.integer is int:
                raise OperandsWanted from error
            message = str(error) if isinstance(error, IndexError) else f"{type(error).__name__}: {error}"
            line = _kernel_line(error.__traceback__, self.rebound.code)
            raise SimulationError(self.signature.name, message, THREAD.place, line) from error


def run_threads(execution: Execution) -> int:
    """Call the kernel once per thread; how many ran.

    Raises:
        TurnsWanted: run it by blocks, from the beginning.
    """
    ran = 0
    THREAD.yield_ = _want_turns
    arguments = execution.split_arguments(execution.bound)
    for number, block in execution.blocks():
        team = BlockClock(number, block)
        for slot in execution.in_launch_order(execution.slots):
            index = execution.index(block, slot.thread)
            if execution.is_past_end(index):
                continue
            place = block, slot.thread
            execution.enter(place, slot)
            execution.apply_debug_focus(place)
            THREAD.tainted, THREAD.spin_budget = False, execution.spin_budget(PATIENCE)
            if execution.watched:
                THREAD.member = ThreadClock(team, slot.number, slot.thread)
            execution.call(index, slot, arguments)
            if THREAD.tainted:
                execution.tainted_arrays.add(place)
            ran += 1
    return ran


def _want_turns() -> None:
    raise TurnsWanted


def _kernel_line(traceback: TracebackType | None, code: CodeType) -> int:
    """The innermost line of the user's file in `traceback`."""
    line = code.co_firstlineno
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == code.co_filename:
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    return line
