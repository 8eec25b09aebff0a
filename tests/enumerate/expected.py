"""What CPython makes of a program: the rows of `y` behind each thread, for the rows with which it raises nothing."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field
from types import FunctionType
from typing import Final

from tests.enumerate import oracle
from tests.enumerate.arguments import THREADS, WIDTH, Rows, candidates, of_thread
from tests.enumerate.compose import DEFINITION

GUARD: Final = "    if i < 1:\n        return\n"
"""In front of a body that raises in thread 0 with every row: then the others are compared."""


@dataclass(slots=True)
class Expected:
    """A program, perhaps guarded, and what is known of it."""

    source: str
    kernel: FunctionType
    _known: dict[tuple[int, int], list[int] | None] = field(default_factory=dict)

    def y(self, thread: int, row: int) -> list[int] | None:
        """The thread's elements of `y` behind it; None where Python raises, or the oracle leaves them open."""
        if (thread, row) not in self._known:
            self._known[thread, row] = self._run(thread, row)
        return self._known[thread, row]

    def _run(self, thread: int, row: int) -> list[int] | None:
        arguments = of_thread(thread, row)
        try:
            oracle.run(self.kernel, arguments)
        except Exception:
            return None
        y: list[int] = arguments[-1].data[-WIDTH:]
        return y

    def extremes(self, thread: int, row: int) -> tuple[int, int]:
        """The least and the greatest integer that the thread computes."""
        kernel, seen = oracle.watch(self.source)
        oracle.run(kernel, of_thread(thread, row))
        return seen.low, seen.high

    def rows(self, besides: Set[tuple[int, int]] = frozenset()) -> Rows:
        """A row for each thread that raises nothing, up to the first thread that has none."""
        chosen: list[int] = []
        for thread in range(THREADS):
            rows = (row for row in candidates(thread) if (thread, row) not in besides)
            row = next((row for row in rows if self.y(thread, row) is not None), None)
            if row is None:
                break
            chosen.append(row)
        return Rows(tuple(chosen))


def expect(source: str) -> Expected | None:
    """What CPython makes of `source`; None where no thread runs, or it is no Python."""
    try:
        expected = Expected(source, oracle.read(source))
    except SyntaxError:
        return None
    if expected.rows().chosen:
        return expected
    guarded = source.replace(DEFINITION, DEFINITION + GUARD)
    expected = Expected(guarded, oracle.read(guarded))
    return expected if len(expected.rows().chosen) > 1 else None
