"""The state of the running thread, and the findings of its launch.

In: the place of the thread; constant negative indices and array names by line, from the translator; `tainted` and
`report` from elements and arrays. Out: `THREAD`, with its `Finding`s: each message once for each line, with the first
thread that caused it. One simulation runs at a time: `exclusive` makes simulations in other OS threads wait.
"""

from __future__ import annotations

import functools
import itertools
import linecache
import math
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from types import CodeType, FrameType
from typing import Final

from py2cu.ir.abi.parameters import NegativeIndex
from py2cu.simulator.findings import NOWHERE, Finding
from py2cu.source import Span

_RUNTIME: Final = os.path.dirname(__file__) + os.sep


class LaunchState:
    """State of the launch that runs; a launch that begins at a breakpoint of this one leaves it unchanged."""

    __slots__: tuple[str, ...] = ()

    @contextmanager
    def restored(self) -> Iterator[None]:
        """Restore every field after the body."""
        before = {name: getattr(self, name) for name in self.__slots__ if hasattr(self, name)}
        try:
            yield
        finally:
            for name, value in before.items():
                setattr(self, name, value)


class ThreadState(LaunchState):
    """The state of the running thread and the findings of its launch."""

    __slots__ = (
        "_allocs",
        "_findings",
        "_natural_places",
        "_negative_indices",
        "contracts",
        "has_atomics",
        "integer",
        "kernel_file",
        "operation_limit",
        "operations",
        "place",
        "spin_budget",
        "tainted",
        "yield_",
    )  # fmt: skip

    yield_: Callable[[], None]  # called when the spin budget is used up

    def __init__(self) -> None:
        self.kernel_file = ""
        self.tainted = False  # the compiled thread may have other values or take another path from here on
        self.contracts = True  # a multiply-add may be contracted, that is, rounded once
        self.integer: type[int] = int  # the class of the kernel's Python integers
        self.place = NOWHERE
        self.spin_budget = math.inf  # how many more atomics and fences until the thread yields
        self.has_atomics = False  # an atomic has run, so results may depend on the order of threads
        self.operations = 0  # accesses to race-checked arrays so far
        self.operation_limit = math.inf  # above which the launch ends
        self._findings: dict[tuple[str, str, int], Finding] = {}
        self._negative_indices: frozenset[NegativeIndex] = frozenset()
        self._natural_places: frozenset[Span] = frozenset()
        self._allocs: dict[int, list[str]] = {}

    def start(
        self,
        kernel_file: str = "",
        negative_indices: Iterable[NegativeIndex] = (),
        allocs: Iterable[tuple[int, str]] = (),
        natural_places: Iterable[Span] = (),
        *,
        contracts: bool = True,
        operation_limit: float = math.inf,
    ) -> None:
        """Begin a launch of a kernel of `kernel_file`; `operation_limit` bounds its accesses to race-checked arrays."""
        self.kernel_file, self.contracts = kernel_file, contracts
        self.tainted, self.place, self._findings = False, NOWHERE, {}
        self.has_atomics, self.spin_budget = False, math.inf
        self.operations, self.operation_limit = 0, operation_limit
        self._negative_indices, self._allocs = frozenset(negative_indices), {}
        self._natural_places = frozenset(natural_places)
        for line, name in allocs:
            self._allocs.setdefault(line, []).append(name)

    def count_atomic(self) -> None:
        """Record that an atomic runs, and yield if there were many."""
        self.has_atomics = True
        self.spend_spin_budget()

    def spend_spin_budget(self) -> None:
        """Count an atomic or a fence, and yield if there were many: the thread may be waiting for another one."""
        self.spin_budget -= 1
        if self.spin_budget < 0:
            self.yield_()

    def is_constant_negative_index(self, axis: int, index: int) -> bool:
        """Whether the running line has this negative index as a constant, which the compiled kernel supports."""
        return NegativeIndex(kernel_line(), axis, index) in self._negative_indices

    @property
    def takes_uint64(self) -> bool:
        """Whether the compiled kernel computes the Python integer of the running operation modulo 2**64."""
        return bool(self._natural_places) and _running_span(kernel_frame()) in self._natural_places

    def array_names(self) -> list[str]:
        """The names of the arrays that the running line makes."""
        return self._allocs.get(kernel_line(), [])

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(self._findings.values())

    def report(
        self, about: str, detail: str, *, is_open: bool = False, is_bug: bool = False, keeps_value: bool = False
    ) -> None:
        """Record a finding, once for each `about` and line. `detail` is that of the first thread.

        The flags are those of `Finding`.
        """
        self.report_at(kernel_place(), about, detail, is_open=is_open, is_bug=is_bug, keeps_value=keeps_value)

    def report_at(
        self,
        where: tuple[str, int],
        about: str,
        detail: str,
        *,
        is_open: bool = False,
        is_bug: bool = False,
        keeps_value: bool = False,
    ) -> None:
        """Record a finding at the file and line `where`."""
        file, line = where
        file = file if self.kernel_file and file != self.kernel_file else ""
        finding = Finding(f"{about}: {detail}", line, self.place, is_open or is_bug, file, is_bug, keeps_value)
        self._findings.setdefault((about, file, line), finding)


def kernel_line() -> int:
    """The line of the user's code that is running."""
    return kernel_place()[1]


def kernel_place() -> tuple[str, int]:
    """The file and line of the user's code that is running."""
    frame = kernel_frame()
    return frame.f_code.co_filename, frame.f_lineno


def _running_span(frame: FrameType) -> Span | None:
    """The expression that `frame` computes; None if its code has no columns."""
    return _span_at(frame.f_code, frame.f_lasti)


@functools.lru_cache(maxsize=256)
def _span_at(code: CodeType, offset: int) -> Span | None:
    line, end_line, *columns = next(itertools.islice(code.co_positions(), offset // 2, None))
    if line is None or end_line is None or None in columns:
        return None
    ends = zip((line, end_line), columns, strict=True)
    # Python counts bytes of UTF-8.
    # rule: integer-place
    start, end = (len(linecache.getline(code.co_filename, at).encode()[:column].decode()) for at, column in ends)
    return Span(line, start, end_line, end)


def kernel_frame() -> FrameType:
    """The innermost frame outside the simulator: the user's code that is running."""
    frame = sys._getframe(1)
    while not is_user_frame(frame) and frame.f_back is not None:
        frame = frame.f_back
    return frame


def is_user_frame(frame: FrameType) -> bool:
    """True for the user's code, false for the simulator's."""
    return not frame.f_code.co_filename.startswith(_RUNTIME)


THREAD: Final = ThreadState()
_running = threading.RLock()


@contextmanager
def exclusive(*states: LaunchState) -> Iterator[None]:
    """Run one simulation at a time: a simulation in another OS thread waits until this one ends.

    A simulation that begins inside this one, at a breakpoint, runs at once; every one of `states` is restored after it.
    """
    with _running, ExitStack() as stack:
        for state in states:  # rule: simulation-state
            stack.enter_context(state.restored())
        yield


def _replace_lock() -> None:
    """Replace the lock in a forked child: if another thread held it, that thread does not exist in the child."""
    global _running
    if _running.acquire(blocking=False):
        _running.release()
    else:
        _running = threading.RLock()


os.register_at_fork(after_in_child=_replace_lock)  # rule: simulation-fork
