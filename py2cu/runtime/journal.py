"""What the thread that is being simulated has to tell: who it is, whether its results are certain, what was odd.

In: `place` and `start` from the simulator; `doubt` and `note` from elements and arrays. Out: `Finding`s, each message
once a line, with the first thread that caused it. There is one `THREAD`, since CPython runs one at a time.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from types import FrameType
from typing import Final

Place = tuple[tuple[int, int, int], tuple[int, int, int]]  # blockIdx and threadIdx, each x, y, z
NOWHERE: Final[Place] = ((0, 0, 0), (0, 0, 0))
_RUNTIME: Final = os.path.dirname(__file__) + os.sep


@dataclass(frozen=True, slots=True)
class Finding:
    """Something legal in Python that the compiled kernel does not promise, seen at run time.

    `is_open`: the compiled kernel may go on with anything, so that nothing after it can be compared.
    """

    message: str
    line: int
    place: Place
    is_open: bool = False
    file: str = ""  # where it is not the kernel's own

    def __str__(self) -> str:
        block, thread = self.place
        where = f"{os.path.basename(self.file)}, line {self.line}" if self.file else f"line {self.line}"
        return f"{where}: {self.message} (block {block}, thread {thread})"


class Journal:
    """The state of the running thread and the findings of its launch."""

    __slots__ = ("_findings", "doubt", "home", "place")

    def __init__(self) -> None:
        self.home = ""  # the kernel's file
        self.doubt = False  # what the thread stores from here on may be anything
        self.place = NOWHERE
        self._findings: dict[tuple[str, str, int], Finding] = {}

    def start(self, home: str = "") -> None:
        """A launch of a kernel of the file `home` begins."""
        self.home, self.doubt, self.place, self._findings = home, False, NOWHERE, {}

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(self._findings.values())

    def note(self, about: str, detail: str, *, is_open: bool = False) -> None:
        """Keep a finding; `about` is the same for every thread, `detail` is the first one's."""
        file, line = kernel_place()
        file = file if self.home and file != self.home else ""
        self._findings.setdefault((about, file, line), Finding(f"{about}: {detail}", line, self.place, is_open, file))


def kernel_line() -> int:
    """The line of the user's code that runs."""
    return kernel_place()[1]


def kernel_place() -> tuple[str, int]:
    """File and line of the user's code that runs: the innermost outside the simulator."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_RUNTIME):
        frame = frame.f_back
    return (frame.f_code.co_filename, frame.f_lineno) if frame is not None else ("", 0)


THREAD: Final = Journal()
