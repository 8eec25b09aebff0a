"""Long lists of parameters of which a sample runs by default or in CI, and the rest by hand."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def sampled(items: Iterable[Any], one_in: int) -> list[Any]:
    """`items`: every `one_in`-th runs by default; of the rest, every second one is slow, and the others are a proof."""
    runs = {0: []} | {place: [pytest.mark.proof if place % 2 else pytest.mark.slow] for place in range(1, one_in)}
    return [pytest.param(item, marks=runs[place % one_in]) for place, item in enumerate(items)]


def proofs(items: Iterable[Any], one_in: int) -> list[Any]:
    """`items`, all but every `one_in`-th marked as a proof."""
    return [pytest.param(item, marks=[pytest.mark.proof] if place % one_in else []) for place, item in enumerate(items)]
