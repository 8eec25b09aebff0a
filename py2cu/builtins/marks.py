"""Marks that change nothing in Python: `device` of functions, `unroll` of loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from py2cu.builtins.public import public

F = TypeVar("F", bound=Callable[..., Any])
UNROLL: Final = "py2cu.unroll"


@public
def device(function: F) -> F:
    """Mark a device function. The mark is optional: every plain function that a kernel calls is a device function."""
    return function


@public
def unroll(counts: range, by: int | None = None) -> range:
    """Ask the C++ compiler to unroll the loop over `counts`: completely, or `by` iterations at a time.

        for k in unroll(range(n), 4): ...

    Args:
        counts: a `range`.
        by: a constant.

    Returns:
        `counts` itself.
    """
    return counts
