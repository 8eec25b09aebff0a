"""What a simulation reports: findings, and the errors that end it.

In: a message, the line of the user's code and the thread that caused it. Out: `Finding`, `SimulationError` and
`TooManyOperations`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final

from py2cu.diagnostics import Py2cuError

ThreadId = tuple[tuple[int, int, int], tuple[int, int, int]]  # blockIdx and threadIdx, each x, y, z
NOWHERE: Final[ThreadId] = ((0, 0, 0), (0, 0, 0))


@dataclass(frozen=True, slots=True)
class Finding:
    """Something legal in Python whose effect the compiled kernel does not guarantee, seen at run time.

    `is_open`: the compiled kernel may continue with any value, so later results are not compared. `is_bug`: in
    addition, the kernel is wrong for any arguments: a race, a barrier that some threads miss. `keeps_value`: a race in
    which every write stores the value that is already there.
    """

    message: str
    line: int
    place: ThreadId
    is_open: bool = False
    file: str = ""  # if it is not the kernel's file
    is_bug: bool = False
    keeps_value: bool = False

    def __str__(self) -> str:
        block, thread = self.place
        where = f"{os.path.basename(self.file)}, line {self.line}" if self.file else f"line {self.line}"
        return f"{where}: {self.message} (block {block}, thread {thread})"


class TooManyOperations(Exception):
    """A launch accesses race-checked arrays more often than its limit allows."""

    def __init__(self, limit: float) -> None:
        super().__init__(f"the launch exceeds the limit of {limit:,} array accesses that a check may simulate")


class SimulationError(Py2cuError):
    """The kernel's Python raised in one thread; `__cause__` is what it raised."""

    def __init__(self, kernel: str, message: str, place: ThreadId, line: int) -> None:
        self.kernel, self.message, self.place, self.line = kernel, message, place, line
        block, thread = place
        super().__init__(f"`{kernel}`, line {line}, block {block}, thread {thread}: {message}")

    def __reduce__(self) -> tuple[type[SimulationError], tuple[str, str, ThreadId, int]]:
        return type(self), (self.kernel, self.message, self.place, self.line)
