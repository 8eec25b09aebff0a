"""What the thread that is being simulated has to tell: who it is, whether its results are certain, what was odd.

In: `place` and `start` from the simulator, with what the translator knows of the kernel's lines; `doubt` and `note`
from elements and arrays. Out: `Finding`s, each message once a line, with the first thread that caused it. There is one
`THREAD`, since CPython runs one at a time.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Final

from py2cu.ir.extents import FromEnd

if TYPE_CHECKING:
    from py2cu.runtime.order import Member
    from py2cu.runtime.past_end import LeftOutHere
    from py2cu.runtime.run_blocks import Runner

Place = tuple[tuple[int, int, int], tuple[int, int, int]]  # blockIdx and threadIdx, each x, y, z
NOWHERE: Final[Place] = ((0, 0, 0), (0, 0, 0))
_RUNTIME: Final = os.path.dirname(__file__) + os.sep


@dataclass(frozen=True, slots=True)
class Finding:
    """Something legal in Python that the compiled kernel does not promise, seen at run time.

    `is_open`: the compiled kernel may go on with anything, so that nothing after it can be compared. `is_bug`: and that
    is the kernel's own fault, whatever its arguments: a race, a barrier that some threads miss.
    """

    message: str
    line: int
    place: Place
    is_open: bool = False
    file: str = ""  # where it is not the kernel's own
    is_bug: bool = False

    def __str__(self) -> str:
        block, thread = self.place
        where = f"{os.path.basename(self.file)}, line {self.line}" if self.file else f"line {self.line}"
        return f"{where}: {self.message} (block {block}, thread {thread})"


class Journal:
    """The state of the running thread and the findings of its launch."""

    __slots__ = (
        "_findings",
        "_from_end",
        "_reserved",
        "contracts",
        "doubt",
        "home",
        "integer",
        "left_out",
        "let_others",
        "member",
        "patience",
        "place",
        "runner",
        "updates",
    )  # fmt: skip

    member: Member  # what is ordered before the running thread, in a launch whose accesses are watched
    runner: Runner  # the running thread, in a launch whose threads wait for each other
    let_others: Callable[[], None]  # what a thread does that has run out of patience

    def __init__(self) -> None:
        self.home = ""  # the kernel's file
        self.doubt = False  # what the thread stores from here on may be anything
        self.contracts = True  # a multiply-add may be rounded once
        self.integer: type[int] = int  # what the kernel's Python integers are
        self.place = NOWHERE
        self.patience = math.inf  # how many atomics and fences more until others have their turn
        self.updates = False  # an atomic has run: the order of threads may show
        self.left_out: LeftOutHere = {}  # by the thread, which is past the end
        self._findings: dict[tuple[str, str, int], Finding] = {}
        self._from_end: frozenset[FromEnd] = frozenset()
        self._reserved: dict[int, list[str]] = {}

    def start(
        self,
        home: str = "",
        from_end: Iterable[FromEnd] = (),
        reserved: Iterable[tuple[int, str]] = (),
        *,
        contracts: bool = True,
    ) -> None:
        """A launch of a kernel of the file `home` begins."""
        self.home, self.doubt, self.contracts, self.place, self._findings = home, False, contracts, NOWHERE, {}
        self.updates, self.patience = False, math.inf
        self.left_out = {}
        self._from_end, self._reserved = frozenset(from_end), {}
        for line, name in reserved:
            self._reserved.setdefault(line, []).append(name)

    def note_update(self) -> None:
        """An atomic runs."""
        self.updates = True
        self.lose_patience()

    def lose_patience(self) -> None:
        """The running thread has done again what threads do that wait for others."""
        self.patience -= 1
        if self.patience < 0:
            self.let_others()

    def counts_from_end(self, axis: int, index: int) -> bool:
        """True where the line that runs has this negative index as a constant, which compiled code heeds."""
        return FromEnd(kernel_line(), axis, index) in self._from_end

    def reserved_names(self) -> list[str]:
        """The names of the arrays that the line that runs makes."""
        return self._reserved.get(kernel_line(), [])

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(self._findings.values())

    def note(self, about: str, detail: str, *, is_open: bool = False, is_bug: bool = False) -> None:
        """Keep a finding; `about` is the same for every thread, `detail` is the first one's."""
        self.note_at(kernel_place(), about, detail, is_open=is_open, is_bug=is_bug)

    def note_at(
        self, where: tuple[str, int], about: str, detail: str, *, is_open: bool = False, is_bug: bool = False
    ) -> None:
        """The same of a thread that waits, at the file and line `where`."""
        file, line = where
        file = file if self.home and file != self.home else ""
        finding = Finding(f"{about}: {detail}", line, self.place, is_open or is_bug, file, is_bug)
        self._findings.setdefault((about, file, line), finding)


def kernel_line() -> int:
    """The line of the user's code that runs."""
    return kernel_place()[1]


def kernel_place() -> tuple[str, int]:
    """File and line of the user's code that runs."""
    frame = kernel_frame()
    return frame.f_code.co_filename, frame.f_lineno


def kernel_frame() -> FrameType:
    """The user's code that runs: the innermost outside the simulator."""
    frame = sys._getframe(1)
    while not is_users(frame) and frame.f_back is not None:
        frame = frame.f_back
    return frame


def is_users(frame: FrameType) -> bool:
    """True for the user's code, false for the simulator's."""
    return not frame.f_code.co_filename.startswith(_RUNTIME)


THREAD: Final = Journal()
