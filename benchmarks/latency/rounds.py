"""Alternating rounds: each measure once a round, and rows of what they gave.

In: measures, which are functions that return seconds, and plans, which say what a row is made of. Out: a row for each
chosen plan. Only the measures that these rows need are run.
"""

from __future__ import annotations

import resource
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import torch

from benchmarks.table import Row, Times

Measure = Callable[[], float]
REPEATS: Final = 300  # calls in one measure; three launches each fit the queue of a GPU, of about a thousand


@dataclass(frozen=True)
class Options:
    """`only`: rows whose name contains all of these. `beside`: a checkout whose calls are timed in the same rounds."""

    rounds: int = 21
    only: Sequence[str] = ()
    beside: Path | None = None


def itself(value: float) -> float:
    return value


@dataclass(frozen=True)
class Plan:
    """A row: `combine` of the measures `ours` of each round, beside the measure `peer`.

    The ratio is the median of the ratios of each round, which holds still where the machine is slower in some rounds.
    A target is a limit on the ratio or on the median in seconds; a row with a limit in seconds has no ratio.
    """

    name: str
    ours: tuple[str, ...]
    peer: str | None = None
    ratio: float | None = None
    seconds: float | None = None
    combine: Callable[..., float] = itself

    @property
    def measures(self) -> set[str]:
        return {*self.ours} | ({self.peer} if self.peer else set())

    def row(self, times: Mapping[str, list[float]]) -> TimedRow:
        ours = [self.combine(*each) for each in zip(*(times[name] for name in self.ours), strict=True)]
        theirs = times[self.peer] if self.peer else []
        ratio = None
        if theirs and self.seconds is None:
            ratio = statistics.median(mine / peers for mine, peers in zip(ours, theirs, strict=True))
        target, met = "–", None
        if self.seconds is not None:
            target, met = f"≤ {self.seconds:g} s", statistics.median(ours) <= self.seconds
        elif self.ratio is not None and ratio is not None:
            target, met = f"ratio ≤ {self.ratio:g}", ratio <= self.ratio
        spread, peer_spread = Times.of(ours), Times.of(theirs) if theirs else None
        peer = f"{self.peer} {peer_spread}" if peer_spread else "–"
        row = self.name, str(spread), peer, ratio, target, met
        return TimedRow(*row, plan=self, times=spread, peer_times=peer_spread)


@dataclass(frozen=True, kw_only=True)
class TimedRow(Row):
    """A row with its numbers: `times` are ours, `peer_times` those of the peer."""

    plan: Plan
    times: Times
    peer_times: Times | None

    def record(self) -> dict[str, object]:
        """The row for JSON; times are in seconds."""
        peer = {"name": self.plan.peer, **self.peer_times.record()} if self.peer_times else None
        return {
            "name": self.what, **self.times.record(), "peer": peer, "ratio": self.ratio,
            "target_ratio": self.plan.ratio, "target_seconds": self.plan.seconds, "met": self.met,
        }  # fmt: skip


def chosen(plans: Iterable[Plan], options: Options) -> list[Plan]:
    return [plan for plan in plans if all(text.casefold() in plan.name.casefold() for text in options.only)]


def measured(plans: list[Plan], measures: Mapping[str, Measure], rounds: int) -> Iterator[TimedRow]:
    needed = {name for plan in plans for name in plan.measures}
    times = alternating({name: measure for name, measure in measures.items() if name in needed}, rounds)
    for plan in plans:
        yield plan.row(times)


def alternating(measures: Mapping[str, Measure], rounds: int) -> dict[str, list[float]]:
    """The seconds of each measure by rounds, after one round that is not counted. Every other round runs backwards."""
    times: dict[str, list[float]] = {name: [] for name in measures}
    for turn in range(rounds + 1):
        for name in reversed([*measures]) if turn % 2 else measures:
            seconds = measures[name]()
            if turn:
                times[name].append(seconds)
    return times


def each(call: Callable[[], object]) -> float:
    """The seconds of one call on the host, over many; a GPU may lag behind, and is waited for afterwards."""
    for _ in range(REPEATS // 10):  # another process may have used the core since
        call()
    start = time.perf_counter()
    for _ in range(REPEATS):
        call()
    seconds = (time.perf_counter() - start) / REPEATS
    synchronize()
    return seconds


def synchronize() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def processor_time() -> float:
    """Seconds of this process and of its children that have ended."""
    uses = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(use.ru_utime + use.ru_stime for use in uses)
