"""Run a kernel's own Python, thread by thread: the oracle of `check`, and what a debugger steps through.

In: the Python function, its `Signature` and every argument by name. Out: the tensors written in place, and a
`SimulationReport` that says who wrote what. Blocks and threads run in order, x fastest; a launch whose size is zero
runs nothing. The function's code is the user's, so breakpoints hold.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import FunctionType
from typing import Any, Final

from py2cu.dtypes import Kind
from py2cu.ir.abi.parameters import Role
from py2cu.ir.abi.signature import Signature, evaluate
from py2cu.ir.types import ArrayType, ElementType, Name
from py2cu.simulator.deadline import TooLong, deadline
from py2cu.simulator.instrument import InstrumentedKernel
from py2cu.simulator.launch import Launch, plan_launch
from py2cu.simulator.memory.arrays import ArrayView, UnwrittenArray, Write
from py2cu.simulator.memory.races import RaceCheckedArray, WatchedUnwritten
from py2cu.simulator.schedule.block import ReturnLinesWanted, run_blocks
from py2cu.simulator.schedule.collectives import works_together
from py2cu.simulator.schedule.execution import Execution, OperandsWanted, SimulationError, TurnsWanted, run_threads
from py2cu.simulator.state import THREAD, Finding, Place, exclusive
from py2cu.simulator.values.checked_int import CheckedInt
from py2cu.simulator.values.family import PyComplex, PyFloat, element_class
from py2cu.simulator.values.integer_choice import choose_int_class

Index = int | tuple[int, ...]
__all__ = ["SimulationError", "SimulationReport", "SimulationWarning", "bind_dims", "simulate"]


class SimulationWarning(UserWarning):
    """What `k.simulate` noticed: the text of a `Finding`."""


@dataclass(frozen=True, slots=True)
class SimulationReport:
    """What a simulated launch did: its shape, the last write to each element (by flat index), and what was odd.

    `in_doubt`: the arrays of which compiled threads may write other elements, where a path hung on what Python leaves
    open. `updates`: there were atomics, whose results may hang on the order of threads. `operations`: accesses to
    arrays, where the launch was sanitized.
    """

    kernel: str
    launch: Launch
    threads: int
    writes: Mapping[str, Mapping[int, Write]]
    findings: tuple[Finding, ...]
    tainted: frozenset[str] = frozenset()
    updates: bool = False
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
    After `seconds` of processor time, where given, or so many `operations` (accesses to arrays, of a sanitized launch),
    the thread that runs counts as one that raised. `stops`: `breakpoint()` is heeded.
    `contracts`: the errors of the writes allow for multiply-adds that are rounded once. `sanitize`: races are found.
    `seed` permutes the order of blocks, and of threads between barriers and between their atomics; without one
    `backwards` reverses it. `break_at`: the one block and thread in which breakpoints stop.

    One simulation runs at a time: a second OS thread waits. One that begins at a breakpoint of another runs at once.

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
        raise ValueError(f"`{signature.name}` is to be given its outputs: {', '.join(missing)}")
    focus = None if break_at is None else launch.debug_focus(break_at)

    def attempt(*, notes_returns: bool, tells: bool, in_turns: bool) -> SimulationReport:
        home = function.__code__.co_filename
        THREAD.start(home, signature.negative_indices, signature.allocs, contracts=contracts, limit=operations)
        THREAD.integer = CheckedInt if tells else choose_int_class(signature, dims, launch)
        views = _make_views(signature, arguments, watched=sanitize)
        try:
            bound = _bind(signature, arguments, dims, views)
            rebound = InstrumentedKernel(function, stops=stops, predicated=signature.has_barrier)
            execution = Execution(
                rebound, signature, launch, dims, bound,
                watched=sanitize, seed=seed, backwards=backwards, focus=focus, stops=stops,
            )  # fmt: skip
            with deadline(seconds):
                try:
                    run = partial(run_blocks, record_returns=notes_returns) if in_turns else run_threads
                    threads = run(execution)
                finally:
                    execution.leave()
        except (ReturnLinesWanted, OperandsWanted, TurnsWanted):
            views.clear()  # nothing of this attempt is to be seen
            raise
        except TooLong as error:  # between two threads
            line = function.__code__.co_firstlineno
            raise SimulationError(signature.name, str(error), THREAD.place, line) from error
        finally:
            for name, view in views.items():
                view.flush(arguments[name])
        doubtful = execution.tainted_arrays
        writes = {name: _with_doubt(view.writes, doubtful) for name, view in views.items()}
        found, in_doubt = THREAD.findings, frozenset(writes if doubtful else ())
        return SimulationReport(
            signature.name, launch, threads, writes, found, in_doubt, THREAD.updates, THREAD.operations
        )

    notes_returns = tells = False
    in_turns = signature.shared is not None or signature.barrier is not None or works_together(function)
    with exclusive(), _collector_paused():
        while True:
            try:
                return attempt(notes_returns=notes_returns, tells=tells, in_turns=in_turns)
            except ReturnLinesWanted:
                notes_returns = True
            except OperandsWanted:
                tells = True
            except TurnsWanted:
                in_turns = True


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Without the cycle collector: every access makes objects that it would go through, and with them all of torch's.

    A simulation within another one, or beside it, leaves it paused for the outer one.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _with_doubt(writes: Mapping[int, Write], doubtful: Collection[Place]) -> Mapping[int, Write]:
    """On another path a thread may write again what it wrote before its doubt."""
    if not doubtful:
        return writes
    return {at: write._replace(error=math.inf) if write.place in doubtful else write for at, write in writes.items()}


# --- arguments ----------------------------------------------------------------------------------------------------


def bind_dims(signature: Signature, arguments: Mapping[str, Any]) -> dict[str, int]:
    """The value of every dimension name and integer parameter, from shapes and scalars; outputs may be absent.

    Raises:
        ValueError: a shape that contradicts another, or an argument that is missing.
    """
    dims = {p.name: int(arguments[p.name]) for p in signature.parameters if _is_integer(arguments.get(p.name))}
    for dim in signature.dims:
        if dim.array is not None and dim.array in arguments:
            dims.setdefault(dim.name, int(arguments[dim.array].shape[dim.axis]) // dim.divisor)
    for parameter in signature.arrays:
        if parameter.name not in arguments and parameter.role is not Role.OUTPUT:
            raise ValueError(f"`{signature.name}` needs the array `{parameter.name}`")
    for parameter in (p for p in signature.arrays if p.name in arguments):
        _check_shape(parameter.name, parameter.type, tuple(arguments[parameter.name].shape), dims)
    return dims


def _is_integer(value: object) -> bool:
    return isinstance(value, int)


def _check_shape(name: str, type_: object, shape: tuple[int, ...], dims: dict[str, int]) -> None:
    """Hold one array's shape against its annotation; a name that only this array has is learnt from it."""
    assert isinstance(type_, ArrayType)
    if len(shape) != len(type_.dims):
        raise ValueError(f"`{name}` has {len(shape)} dimensions, its annotation {len(type_.dims)}")
    for axis, (extent, dim) in enumerate(zip(shape, type_.dims, strict=True)):
        if isinstance(dim, Name):
            dims.setdefault(dim.id, extent)
        expected = evaluate(dim, dims)
        if expected != extent:
            raise ValueError(f"axis {axis} of `{name}` has extent {extent}, expected {expected}")


def _make_views(signature: Signature, arguments: Mapping[str, Any], *, watched: bool) -> dict[str, ArrayView]:
    plain, unwritten = (RaceCheckedArray, WatchedUnwritten) if watched else (ArrayView, UnwrittenArray)
    initialised = {name for name, _ in signature.inits}
    views: dict[str, ArrayView] = {}
    for parameter in signature.parameters:
        name, type_ = parameter.name, parameter.type
        if isinstance(type_, ArrayType):
            is_unwritten = parameter.role is Role.OUTPUT and name not in initialised
            view = unwritten if is_unwritten else plain
            tensor = arguments[name]
            views[name] = view(name, tensor.shape, type_.dtype, tensor.flatten().tolist())
    return views


_PYTHON_NUMBERS: Final[dict[Kind, Callable[[Any], object]]] = {
    Kind.BOOL: bool,
    Kind.INT: lambda value: THREAD.integer(value),
    Kind.FLOAT: PyFloat.convert,
    Kind.COMPLEX: PyComplex.convert,
}


def _bind(
    signature: Signature, arguments: Mapping[str, Any], dims: Mapping[str, int], views: Mapping[str, ArrayView]
) -> dict[str, object]:
    """What each parameter of the Python function is: views, elements, Python numbers."""
    bound: dict[str, object] = {}
    for parameter in signature.parameters:
        name, type_ = parameter.name, parameter.type
        if isinstance(type_, ArrayType):
            bound[name] = views[name]
            continue
        if name not in arguments and name not in dims:
            raise ValueError(f"`{signature.name}` needs the argument `{name}`")
        value: Any = arguments[name] if name in arguments else dims[name]
        if type(value).__module__ == "numpy":
            value = value.item()
        if isinstance(type_, ElementType):
            if type_.dtype.kind is Kind.INT and not type_.dtype.holds(value):  # as a compiled kernel says it
                raise ValueError(f"{signature.name}: `{name}` = {value} does not fit {type_.dtype}")
            bound[name] = element_class(type_.dtype).convert(value)
        else:
            bound[name] = _PYTHON_NUMBERS[type_.kind](value)
    return bound
