"""One row of the table, and the table as Markdown and as records for JSON."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Row:
    """`ratio` is ours by the peer's, in time: below 1, ours is faster. A target is a limit on it, or on `ours`."""

    what: str
    ours: str
    peer: str = "–"
    ratio: float | None = None
    target: str = "–"
    met: bool | None = None

    @property
    def cells(self) -> tuple[str, ...]:
        ratio = "–" if self.ratio is None else f"{self.ratio:.3f}" if self.ratio < 0.1 else f"{self.ratio:.2f}"
        met = {None: "–", True: "yes", False: "NO"}[self.met]
        return (self.what, self.ours, self.peer, ratio, self.target, met)

    def record(self) -> dict[str, object]:
        """The row for JSON."""
        return {
            "name": self.what, "ours": self.ours, "peer": self.peer, "ratio": self.ratio, "target": self.target,
            "met": self.met,
        }  # fmt: skip


@dataclass(frozen=True)
class Times:
    """Seconds of one thing over several rounds: `9.4 us (9.2 us to 9.9 us)`."""

    least: float
    median: float
    greatest: float
    rounds: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Times:
        return cls(min(values), statistics.median(values), max(values), len(values))

    def __str__(self) -> str:
        return f"{seconds(self.median)} ({seconds(self.least)} to {seconds(self.greatest)})"

    def record(self) -> dict[str, object]:
        return asdict(self)


HEAD = ("what", "ours", "peer", "ours / peer", "target", "met")


def render(rows: Iterable[Row]) -> str:
    lines = [HEAD, *(row.cells for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEAD))]
    padded = ([cell.ljust(width) for cell, width in zip(line, widths, strict=True)] for line in lines)
    text = [f"| {' | '.join(line)} |" for line in padded]
    return "\n".join([text[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *text[1:]])


def compare(what: str, ours: float, peer: float, peer_name: str, limit: float | None = None) -> Row:
    """A row of two times in seconds; `limit` bounds their ratio."""
    ratio = ours / peer
    target = "–" if limit is None else f"ratio ≤ {limit:.3g}"
    met = None if limit is None else ratio <= limit
    return Row(what, seconds(ours), f"{peer_name} {seconds(peer)}", ratio, target, met)


def bound(what: str, ours: float, limit: float) -> Row:
    """A row of one time in seconds."""
    return Row(what, seconds(ours), target=f"≤ {seconds(limit)}", met=ours <= limit)


def seconds(value: float) -> str:
    if abs(value) >= 1:
        return f"{value:.2f} s"
    return f"{value * 1e3:.1f} ms" if abs(value) >= 1e-3 else f"{value * 1e6:.1f} us"


def median(measure: Callable[[], float], runs: int) -> float:
    return statistics.median(measure() for _ in range(runs))
