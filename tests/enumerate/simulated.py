"""What py2cu's simulator makes of a program, compared with CPython.

In: a program that CPython runs, its translation. Out: rows of which the simulator rightly reports nothing, and what it
reports, raises or computes otherwise.
"""

from __future__ import annotations

import ast
import linecache
import math
from collections.abc import Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any, Final

import py2cu.simulator.run
from py2cu import local
from py2cu.ir.abi.signature import Signature
from py2cu.simulator import SimulationError, simulate
from py2cu.simulator.memory.arrays import ArrayView
from py2cu.simulator.state import ThreadState
from py2cu.simulator.values.checked_int import BEYOND_64_BITS
from py2cu.simulator.values.integer_elements import IntElement
from tests.enumerate.arguments import WIDTH, Grid, Rows
from tests.enumerate.expected import Expected
from tests.enumerate.leaves import CONSTANTS
from tests.enumerate.oracle import NAME, functions_alone

FILE: Final = "f.py"
BLOCK: Final = 256
DIFFERS: Final = "differs"
REPORTS: Final = "reports"
RAISES: Final = "raises"
WIDE: Final = f"{REPORTS} {BEYOND_64_BITS}"
OVERFLOWS: Final = f"{RAISES} OverflowError"
WITHOUT_REASON: Final = ", but none does"
FAR: Final = ", beyond 64 bits"
_SIGNED: Final = range(-(2**63), 2**63)


def clean_rows(expected: Expected, signature: Signature) -> tuple[Rows, dict[str, str]]:
    """The rows, and what the simulator says, by kind: the first thread with it.

    A row stays where the simulator may not say so.
    """
    kernel = _kernel(expected.source)
    said: dict[str, str] = {}
    besides: set[tuple[int, int]] = set()
    unreliable: set[tuple[int, int]] = set()
    while (rows := expected.rows(besides)).chosen:
        arguments, reported = rows.in_memory(), dict[int, dict[str, str]]()
        with _watched(reported):
            try:
                simulate(kernel, signature, arguments)
                got = arguments["y"].tolist()
            except SimulationError as error:
                got = None
                kind = f"{RAISES} {type(error.__cause__).__name__}"
                reported.setdefault(error.place[1][0], {})[kind] = error.message
        for thread, row in enumerate(rows.chosen):
            for kind, detail in reported.get(thread, {}).items():
                reason = _reason(kind, expected, thread, row)
                said.setdefault(f"{kind}{reason}", f"{detail} (thread {thread}, row {row})")
            mine, y = (got or [])[thread * WIDTH :][:WIDTH], expected.y(thread, row)
            if got is not None and thread not in reported and mine != y:
                said.setdefault(DIFFERS, f"CPython {y}, simulated {mine} (thread {thread}, row {row})")
        if not reported:
            break
        for thread, kinds in reported.items():
            besides.add((thread, rows.chosen[thread]))
            if not all(is_fault(kind + _reason(kind, expected, thread, rows.chosen[thread])) for kind in kinds):
                unreliable.add((thread, rows.chosen[thread]))
    return expected.rows(unreliable), said


def _reason(kind: str, expected: Expected, thread: int, row: int) -> str:
    """Whether integers of CPython leave 64 bits where the simulator says so."""
    if kind not in (WIDE, OVERFLOWS):
        return ""
    leaves = any(each not in _SIGNED for each in expected.extremes(thread, row))
    if kind == WIDE:
        return "" if leaves else WITHOUT_REASON
    return FAR if leaves else ""


def is_fault(kind: str) -> bool:
    """Whether the simulator may not say so: it differs, it raises within 64 bits, or nothing leaves them."""
    return kind == DIFFERS or kind.endswith(WITHOUT_REASON) or (kind.startswith(RAISES) and not kind.endswith(FAR))


@contextmanager
def _watched(reported: dict[int, dict[str, str]]) -> Iterator[None]:
    """Collects what is reported of each thread, where a `SimulationReport` has the first thread alone."""
    plain, write_back = ThreadState.report_at, py2cu.simulator.run.write_back

    def report_at(self: ThreadState, where: tuple[str, int], about: str, detail: str, **flags: bool) -> None:
        if flags.get("is_open"):
            (block, _, _), (thread, _, _) = self.place
            reported.setdefault(block * BLOCK + thread, {}).setdefault(f"{REPORTS} {about}", detail)
        plain(self, where, about, detail, **flags)

    ThreadState.report_at, py2cu.simulator.run.write_back = report_at, _write_back  # type: ignore
    try:
        yield
    finally:
        ThreadState.report_at, py2cu.simulator.run.write_back = plain, write_back  # type: ignore


def _write_back(view: ArrayView, grid: Grid) -> None:
    """As py2cu's, which needs torch."""
    for position in view.writes:
        value: Any = view.elements[position]
        grid.memory[position] = value.value if isinstance(value, IntElement) else int(value)


def _kernel(source: str) -> FunctionType:
    """The kernel without its decorator, in places that are those of the source, which the simulator looks up."""
    names: dict[str, Any] = {**CONSTANTS, "math": math, "local": local, "__name__": NAME}
    linecache.cache[FILE] = len(source), None, source.splitlines(keepends=True), FILE
    exec(compile(functions_alone(ast.parse(source)), FILE, "exec"), names)
    kernel = names[NAME]
    assert isinstance(kernel, FunctionType)
    return kernel
