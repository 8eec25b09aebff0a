"""Call a kernel for one thread, and run a launch whose threads need not wait for each other, one thread at a time.

In: an instrumented kernel, its launch and its bound arguments. Out: `Execution`, which both runners share;
`run_threads`, the sequential runner; `Restart`, raised where the launch has to run again in another `LaunchMode`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from random import Random
from types import CodeType, TracebackType
from typing import Final, Literal, Protocol, TypeVar

from py2cu.ir.abi.dims import unravel
from py2cu.ir.abi.signature import Signature, evaluate
from py2cu.simulator.findings import SimulationError, ThreadId
from py2cu.simulator.launch import AXES, Launch, Triple, find_limits, places
from py2cu.simulator.memory.happens_before import WARP, BlockClock, ThreadClock
from py2cu.simulator.memory.predication import PredicationTable
from py2cu.simulator.memory.races import RACES
from py2cu.simulator.schedule.debugger import Debugger
from py2cu.simulator.state import THREAD
from py2cu.simulator.values.coordinates import coordinate

T = TypeVar("T")
SPIN_BUDGET: Final = 100_000  # atomics of a thread, about half a second, after which it may be waiting for others
_EAGER_YIELDS: Final = 1000  # how many threads of a permuted order may yield at their first atomic
Arguments = tuple[list[object], dict[str, object]]  # positional, named


@dataclass(frozen=True, slots=True)
class LaunchMode:
    """How a launch runs. `cooperative`: the threads of a block take turns, because a thread may wait for another one.

    `checked_ints`: Python's integers are `CheckedInt`, so that a division error names its operands. `record_returns`:
    the line in which each thread returns is recorded, for findings about barriers.
    """

    cooperative: bool = False
    checked_ints: bool = False
    record_returns: bool = False


class Restart(Exception):
    """The launch has to run again from the beginning, with `need` of its `LaunchMode` set."""

    def __init__(self, need: Literal["cooperative", "checked_ints", "record_returns"]) -> None:
        self.need = need


class Kernel(Protocol):
    """A kernel function that is called thread by thread; `InstrumentedKernel`."""

    @property
    def codes(self) -> Set[CodeType]:
        """The code of the kernel and of the functions that it calls."""

    @property
    def code(self) -> CodeType: ...

    @property
    def call(self) -> Callable[..., object]: ...

    @property
    def reads_launch(self) -> bool: ...

    def set_launch_objects(self, objects: Mapping[str, int]) -> None: ...

    def let_stop(self, stops: bool) -> None: ...


@dataclass(frozen=True, slots=True)
class ThreadSlot:
    """A thread of every block: its position in the block and the launch objects that the kernel sees. Immutable."""

    number: int
    thread: Triple
    objects: dict[str, int]


@functools.lru_cache(maxsize=16)  # a check launches the same block shape many times
def _slots(block: Triple, *, is_plain: bool) -> tuple[ThreadSlot, ...]:
    """The threads of `block`; `is_plain`: the kernel's integers are CPython's `int`."""
    assert is_plain == (THREAD.integer is int)
    return tuple(
        ThreadSlot(number, at, {"threadIdx": coordinate(at), "laneid": THREAD.integer(number % WARP)})
        for number, at in enumerate(places(block))
    )


class Execution:
    """A kernel about to run: the arguments of its calls, and the order of its blocks and threads."""

    def __init__(
        self,
        kernel: Kernel,
        signature: Signature,
        launch: Launch,
        dims: dict[str, int],
        bound: dict[str, object],
        *,
        race_checked: bool = False,
        seed: int | None = None,
        backwards: bool = False,
        focus: ThreadId | None = None,
        stops: bool = True,
    ) -> None:
        self.kernel, self.signature, self.launch, self.dims, self.bound = kernel, signature, launch, dims, bound
        self.race_checked = race_checked
        self.tainted_threads: set[ThreadId] = set()
        self._random = None if seed is None else Random(seed)
        self._eager_yields = 0 if seed is None else _EAGER_YIELDS  # remaining  # rule: order-yields
        self._backwards = backwards
        self._focus, self.has_focus, self._stops = focus, focus is not None, stops
        self._debugger = Debugger(kernel.codes)
        self._axes = [AXES.index(index.axis) for index in signature.indices]
        self._limits = find_limits(signature, dims)
        self.predicated = PredicationTable(signature, dims)
        self.slots = _slots(launch.block, is_plain=THREAD.integer is int)
        self._flat_extents = [evaluate(index.extent, dims) for index in signature.flat_indices]
        leading = (len(self._flat_extents) or len(self._axes)) + len(signature.launch)
        code = kernel.code
        self._positional = code.co_varnames[leading : code.co_argcount]
        sizes = {"blockDim": coordinate(launch.block), "gridDim": coordinate(launch.grid)}
        kernel.set_launch_objects(sizes)
        self._objects: dict[str, int] = dict(sizes)

    def blocks(self) -> Iterator[tuple[int, Triple]]:
        """The number and place of each block, whose launch objects are set."""
        for number, block in self.in_launch_order(enumerate(places(self.launch.grid))):
            self.enter_block(block)
            yield number, block

    def enter_block(self, block: Triple) -> None:
        """Set the launch objects for threads of `block`."""
        here = {"blockIdx": coordinate(block)}
        self.kernel.set_launch_objects(here)
        self._objects |= here

    def in_launch_order(self, items: Iterable[T]) -> Iterable[T]:
        """`items` in order, reversed, or permuted by the seed."""
        if self._random is None:
            return reversed([*items]) if self._backwards else items  # rule: order-reversed
        permuted = [*items]
        self._random.shuffle(permuted)
        return permuted

    def spin_budget(self, initial: int) -> int:
        """The spin budget of a new thread: `initial`, but 0 for half of the threads of a permuted order."""
        if not self._eager_yields or self._random is None or self._random.random() < 0.5:
            return initial
        self._eager_yields -= 1
        return 0

    def index(self, block: Triple, thread: Triple) -> Triple:
        """The thread's global index."""
        (bx, by, bz), (width, height, depth), (x, y, z) = block, self.launch.block, thread
        return bx * width + x, by * height + y, bz * depth + z

    def is_out_of_range(self, index: Triple) -> bool:
        """Whether the thread is out of range, so that a guard returns at once."""
        limits = self._limits
        return limits is not None and not (index[0] < limits[0] and index[1] < limits[1] and index[2] < limits[2])

    def enter(self, place: ThreadId, slot: ThreadSlot) -> None:
        """Set the launch objects for the thread at `place`."""
        THREAD.place = place
        if self.kernel.reads_launch:
            self.kernel.set_launch_objects(slot.objects)

    def apply_debug_focus(self, place: ThreadId) -> None:
        """Let a debugger trace the thread at `place` only if it is the chosen one; without a choice, trace all."""
        if self.has_focus:
            is_chosen = place == self._focus
            self.kernel.let_stop(self._stops and is_chosen)
            self._debugger.listen(is_chosen)

    def leave(self) -> None:
        """End the launch: a debugger traces again."""
        if self.has_focus:
            self._debugger.listen(True)

    def split_arguments(self, bound: dict[str, object]) -> Arguments:
        """Split `bound` into positional and named arguments of the function."""
        named = {name: value for name, value in bound.items() if name not in self._positional}
        return [bound[name] for name in self._positional], named

    def call(self, index: Triple, slot: ThreadSlot, arguments: Arguments) -> None:
        """Run the kernel's Python in the thread that `enter` set.

        Raises:
            SimulationError: the Python raised.
            Restart: the launch has to run again in another mode.
        """
        positional, named = arguments
        if self._flat_extents:
            indices = [*map(THREAD.integer, unravel(index[0], self._flat_extents))]
        else:
            indices = [THREAD.integer(index[axis]) for axis in self._axes]
        here = [slot.objects[name] if name in slot.objects else self._objects[name] for name in self.signature.launch]
        try:
            self.kernel.call(*indices, *here, *positional, **named)
        except Restart:
            raise
        except Exception as error:
            if isinstance(error, ZeroDivisionError) and THREAD.integer is int:  # rule: zero-of-integers
                raise Restart("checked_ints") from error
            message = str(error) if isinstance(error, IndexError) else f"{type(error).__name__}: {error}"
            line = _kernel_line(error.__traceback__, self.kernel.code)
            raise SimulationError(self.signature.name, message, THREAD.place, line) from error


def run_threads(execution: Execution) -> int:
    """Call the kernel once per thread; the number of threads that ran.

    Raises:
        Restart: a thread may wait for another one, so the launch has to run again cooperatively.
    """
    ran = 0
    THREAD.yield_ = _restart_cooperatively
    arguments = execution.split_arguments(execution.bound)
    for number, block in execution.blocks():
        block_clock = BlockClock(number, block)
        for slot in execution.in_launch_order(execution.slots):
            index = execution.index(block, slot.thread)
            if execution.is_out_of_range(index):
                continue
            place = block, slot.thread
            execution.enter(place, slot)
            execution.apply_debug_focus(place)
            THREAD.tainted, THREAD.spin_budget = False, execution.spin_budget(SPIN_BUDGET)
            if execution.race_checked:
                RACES.current = ThreadClock(block_clock, slot.number, slot.thread)
            execution.call(index, slot, arguments)
            if THREAD.tainted:
                execution.tainted_threads.add(place)
            ran += 1
    return ran


def _restart_cooperatively() -> None:
    raise Restart("cooperative")


def _kernel_line(traceback: TracebackType | None, code: CodeType) -> int:
    """The innermost line of the user's file in `traceback`."""
    line = code.co_firstlineno
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == code.co_filename:
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    return line
