"""Collects the names of the helper functions that a kernel calls, each behind the helpers that it calls itself."""

from __future__ import annotations

from typing import Final

from py2cu.builtins.atomics import ATOMICS

# Helpers that call other helpers.
_NEEDS: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys((f"atomic_{op.rstrip('_')}" for op in ATOMICS), ("atomic_update",)),
    "complex_pow": ("complex_mul",),
    "gcd": ("wrapping_abs",),
    "lcm": ("wrapping_abs", "gcd"),
}


class RequiredHelpers:
    """The helpers that one kernel requires, in the order in which the emitted text defines them."""

    def __init__(self) -> None:
        self._names: dict[str, None] = {}

    def require(self, helper: str) -> None:
        """Add `helper`, behind those that it calls."""
        self._names.update(dict.fromkeys((*_NEEDS.get(helper, ()), helper)))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._names)
