"""Long lists of parameters of which a sample runs by default or in CI, and the rest by hand."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def sampled(items: Iterable[Any], one_in: int) -> list[Any]:
    """`items`: every `one_in`-th runs by default; the rest is slow and, but for every fourth place, a proof, too."""
    slow = {place: [pytest.mark.slow, *([pytest.mark.proof] if place % 4 else [])] for place in range(1, one_in)}
    runs: dict[int, list[Any]] = {0: [], **slow}
    return [pytest.param(item, marks=runs[place % one_in]) for place, item in enumerate(items)]


def proofs(items: Iterable[Any], one_in: int | None = None) -> list[Any]:
    """`items`, marked as proofs: all, or all but every `one_in`-th."""
    return [
        pytest.param(item, marks=[pytest.mark.proof] if one_in is None or place % one_in else [])
        for place, item in enumerate(items)
    ]
