"""Hypothesis at the wheel: the kernel of a number, and the least kernel that fails as it does.

Each kernel is the last example of a test of its own, whose seed follows from the run's and its number. To shrink it
the same test runs again, and fails at that example.
"""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable
from typing import Final

import hypothesis
from hypothesis import HealthCheck, Phase

from tests.fuzz.kernels import kernels

EXAMPLES: Final = 2  # hypothesis begins with the simplest one
_STRIDE: Final = 10**9


class _Fails(Exception):
    """The kernel fails in the way that is being shrunk."""


class _TimeIsUp(BaseException):
    """Hypothesis, which would go on for five minutes, lets this through."""


def generate(seed: int, number: int) -> str:
    """The kernel of this number."""
    drawn: list[str] = []
    _replay(seed, number, drawn.append, (Phase.generate,))
    return drawn[-1]


def shrink(seed: int, number: int, fails: Callable[[str], bool], seconds: float) -> str:
    """The least kernel found within a time that `fails`, as the kernel of this number does."""
    least = generate(seed, number)
    end = time.monotonic() + seconds
    known = functools.cache(fails)
    drawn = 0

    def judge(source: str) -> None:
        nonlocal drawn, least
        drawn += 1
        if time.monotonic() >= end:
            raise _TimeIsUp
        if drawn >= EXAMPLES and (source == least or known(source)):
            least = source
            raise _Fails

    with contextlib.suppress(_Fails, _TimeIsUp):
        _replay(seed, number, judge, (Phase.generate, Phase.shrink))
    return least


def _replay(seed: int, number: int, judge: Callable[[str], None], phases: tuple[Phase, ...]) -> None:
    settings = hypothesis.settings(
        max_examples=EXAMPLES, phases=phases, database=None, deadline=None, print_blob=False,
        verbosity=hypothesis.Verbosity.quiet, suppress_health_check=list(HealthCheck), report_multiple_bugs=False,
    )  # fmt: skip

    @hypothesis.seed(seed * _STRIDE + number)
    @settings
    @hypothesis.given(kernels())
    def example(source: str) -> None:
        judge(source)

    example()
