"""Long lists of parameters of which a sample runs by default, and the rest with the slow tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def sampled(items: Iterable[Any], one_in: int) -> list[Any]:
    """`items`, all but every `one_in`-th marked `slow`."""
    return [pytest.param(item, marks=[pytest.mark.slow] if place % one_in else []) for place, item in enumerate(items)]
