"""Runs passes in order, and shows the result of each to observers.

In: a sequence of `Pass`es and a kernel. Out: the kernel after the last one. The IR dump and the tests' `verify` are
observers; without observers, running a pass costs no more than its call.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from py2cu import ir
from py2cu.diagnostics import Reporter
from py2cu.ir.rewrite import with_fields
from py2cu.ir.verify import Stage

Run = Callable[[ir.Kernel, Reporter], ir.Kernel]


@dataclass(frozen=True, slots=True)
class Step:
    """A step of the pipeline: `--dump-ir` selects it by `name`, and it leaves each kernel at `stage`."""

    name: str
    stage: Stage


@dataclass(frozen=True, slots=True)
class Pass(Step):
    """A step for one kernel at a time."""

    run: Run


Observer = Callable[[Step, ir.Kernel | None, ir.Kernel, Reporter], None]
"""Called after a step with the kernel before it, None for the front end, and after it, and the reporter of errors."""

OBSERVERS: Final[list[Observer]] = []


def passes(stage: Stage, *runs: Run) -> tuple[Pass, ...]:
    """Passes named after their functions; each leaves kernels at `stage`."""
    return tuple(Pass(run.__name__, stage, run) for run in runs)


def everywhere(run: Run) -> Run:
    """The pass `run`, applied to a kernel and to each of its device functions."""

    @functools.wraps(run)
    def run_all(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
        functions = tuple(run(f, reporter.within(f.origin)) for f in kernel.functions)
        kernel = run(kernel, reporter)
        return with_fields(kernel, functions=functions)

    return run_all


def run_passes(sequence: Iterable[Pass], kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """`kernel` after all passes of `sequence`."""
    for each in sequence:
        result = each.run(kernel, reporter)
        show(each, kernel, result, reporter)
        kernel = result
    return kernel


def show(step: Step, before: ir.Kernel | None, after: ir.Kernel, reporter: Reporter) -> None:
    """Call every observer."""
    for observe in OBSERVERS:
        observe(step, before, after, reporter)


@contextlib.contextmanager
def observing(observer: Observer) -> Iterator[None]:
    """Calls `observer` after every pass in the `with` block."""
    OBSERVERS.append(observer)
    try:
        yield
    finally:
        OBSERVERS.remove(observer)
