"""Run a launch of a kernel's own Python, thread by thread.

In: the Python function, its `Signature` and every argument by name. Out: the tensors, written in place, and a
`SimulationReport` of which thread wrote what. Blocks and threads run in order, x fastest; a launch of size zero runs
nothing. The function keeps its own code, so breakpoints in it work.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from types import FunctionType
from typing import Any

from py2cu.builtins.memory import DYNAMIC_BYTES
from py2cu.collector import collector_paused
from py2cu.ir.abi.dims import bind_dims
from py2cu.ir.abi.signature import Signature
from py2cu.simulator.arguments import bind_arguments, make_views, write_back
from py2cu.simulator.deadline import TooLong, deadline
from py2cu.simulator.findings import Finding, SimulationError, ThreadId
from py2cu.simulator.instrument import InstrumentedKernel
from py2cu.simulator.launch import Launch, plan_launch
from py2cu.simulator.memory.predication import PREDICATION
from py2cu.simulator.memory.races import RACES
from py2cu.simulator.memory.writes import Write
from py2cu.simulator.schedule.block import SCHEDULER
from py2cu.simulator.schedule.collectives import works_together
from py2cu.simulator.schedule.cooperative import run_blocks
from py2cu.simulator.schedule.execution import Execution, LaunchMode, Restart, run_threads
from py2cu.simulator.state import THREAD, exclusive
from py2cu.simulator.values.checked_int import CheckedInt
from py2cu.simulator.values.integer_choice import choose_int_class

Index = int | tuple[int, ...]


class SimulationWarning(UserWarning):
    """A warning of `k.simulate`: the text of a `Finding`."""


@dataclass(frozen=True, slots=True)
class SimulationReport:
    """The result of a simulated launch: its shape, the last write to each element (by flat index), and findings.

    `tainted`: the arrays in which the compiled kernel may write other elements, because a branch depended on a value
    that it does not guarantee. `has_atomics`: atomics ran, so results may depend on the order of threads.
    `operations`: the number of accesses to arrays, if the launch was sanitized.
    """

    kernel: str
    launch: Launch
    threads: int
    writes: Mapping[str, Mapping[int, Write]]
    findings: tuple[Finding, ...]
    tainted: frozenset[str] = frozenset()
    has_atomics: bool = False
    operations: int = 0

    def __str__(self) -> str:
        shape = f"grid {self.launch.grid}, block {self.launch.block}"
        lines = [f"`{self.kernel}`: {self.threads} threads, {shape}"]
        return "\n".join(lines + [f"  {finding}" for finding in self.findings])


def simulate(
    function: Callable[..., object],
    signature: Signature,
    arguments: Mapping[str, Any],
    *,
    grid: int | tuple[int, ...] | None = None,
    block: int | tuple[int, ...] | None = None,
    seconds: float | None = None,
    operations: float = math.inf,
    stops: bool = True,
    contracts: bool = True,
    sanitize: bool = False,
    seed: int | None = None,
    backwards: bool = False,
    break_at: tuple[Index, Index] | None = None,
) -> SimulationReport:
    """Run `function` for every thread of a launch; outputs are among `arguments` and filled in place.

    After `seconds` of processor time, or `operations` accesses to arrays if sanitized, the launch ends with an error.
    `stops`: `breakpoint()` stops. `contracts`: the error bounds of the writes allow for contracted multiply-adds.
    `sanitize`: report races. `seed` permutes the order of blocks, and of threads between barriers and between their
    atomics; without a seed, `backwards` reverses it. `break_at`: the one block and thread in which breakpoints stop.

    One simulation runs at a time: a second OS thread waits. A simulation that begins at a breakpoint runs at once.

    Raises:
        SimulationError: the Python raised: an index out of range, a division by zero, …
        ValueError: arguments that do not fit the signature, a launch of unknown size, a `break_at` outside it.
        TypeError: a `break_at` that is no pair of a block and a thread.
    """
    assert isinstance(function, FunctionType), function
    dims = bind_dims(signature, arguments)
    launch = plan_launch(signature, dims, grid, block)
    missing = [p.name for p in signature.outputs if p.name not in arguments]
    if missing:
        raise ValueError(f"`{signature.name}` needs its outputs among the arguments: {', '.join(missing)}")
    focus = None if break_at is None else launch.debug_focus(break_at)
    simulation = _Simulation(
        function, signature, arguments, dims, launch, focus,
        seconds=seconds, operations=operations, stops=stops, contracts=contracts, sanitize=sanitize, seed=seed,
        backwards=backwards,
    )  # fmt: skip
    has_block_parameters = signature.shared is not None or signature.barrier is not None
    mode = LaunchMode(cooperative=has_block_parameters or works_together(function))
    with exclusive(THREAD, RACES, PREDICATION, SCHEDULER), collector_paused():
        while True:
            try:
                return simulation.run(mode)
            except Restart as restart:  # rule: spin-restart
                mode = replace(mode, **{restart.need: True})


@dataclass(frozen=True, slots=True)
class _Simulation:
    """One call of `simulate`, whose launch runs once or, in another mode, again."""

    function: FunctionType
    signature: Signature
    arguments: Mapping[str, Any]
    dims: dict[str, int]
    launch: Launch
    focus: ThreadId | None
    seconds: float | None
    operations: float
    stops: bool
    contracts: bool
    sanitize: bool
    seed: int | None
    backwards: bool

    def run(self, mode: LaunchMode) -> SimulationReport:
        """Run the launch and write its results to the arguments.

        Raises:
            SimulationError: the Python raised, or the launch took too long.
            Restart: the launch has to run again in another mode; the arguments are unchanged.
        """
        signature, sanitize = self.signature, self.sanitize
        self._start(mode)
        views = make_views(signature, self.arguments, race_checked=sanitize)
        try:
            bound = bind_arguments(signature, self.arguments, self.dims, views)
            if DYNAMIC_BYTES not in self.function.__code__.co_varnames:
                SCHEDULER.dynamic_bytes = int(bound.pop(DYNAMIC_BYTES, 0))  # type: ignore[call-overload]
            execution = self._execution(bound)
            threads = self._run_threads(execution, mode)
        except Restart:
            views.clear()  # the results of this run are discarded
            raise
        finally:
            for name, view in views.items():
                write_back(view, self.arguments[name])
        tainted = execution.tainted_threads
        writes = {name: _with_tainted(view.writes, tainted) for name, view in views.items()}
        return SimulationReport(
            signature.name, self.launch, threads, writes, THREAD.findings, frozenset(writes if tainted else ()),
            THREAD.has_atomics, THREAD.operations,
        )  # fmt: skip

    def _start(self, mode: LaunchMode) -> None:
        """Reset the state of the launch."""
        signature = self.signature
        THREAD.start(
            self.function.__code__.co_filename,
            signature.negative_indices,
            signature.allocs,
            signature.natural_places,
            contracts=self.contracts,
            operation_limit=self.operations,
        )
        THREAD.integer = CheckedInt if mode.checked_ints else choose_int_class(signature, self.dims, self.launch)
        PREDICATION.active = {}

    def _execution(self, bound: dict[str, object]) -> Execution:
        """The kernel, ready to be called for every thread."""
        kernel = InstrumentedKernel(self.function, stops=self.stops, predicated=self.signature.has_barrier)
        return Execution(
            kernel, self.signature, self.launch, self.dims, bound,
            race_checked=self.sanitize, seed=self.seed, backwards=self.backwards, focus=self.focus, stops=self.stops,
        )  # fmt: skip

    def _run_threads(self, execution: Execution, mode: LaunchMode) -> int:
        """Run every thread; the number of threads that ran."""
        try:
            with deadline(self.seconds):
                try:
                    if mode.cooperative:
                        return run_blocks(execution, record_returns=mode.record_returns)
                    return run_threads(execution)
                finally:
                    execution.leave()
        except TooLong as error:  # between two threads
            line = self.function.__code__.co_firstlineno
            raise SimulationError(self.signature.name, str(error), THREAD.place, line) from error


def _with_tainted(writes: Mapping[int, Write], tainted: Collection[ThreadId]) -> Mapping[int, Write]:
    """`writes`, without a bound for the threads in `tainted`: on another path they may overwrite earlier writes."""
    if not tainted:
        return writes
    return {at: write._replace(error=math.inf) if write.place in tainted else write for at, write in writes.items()}
