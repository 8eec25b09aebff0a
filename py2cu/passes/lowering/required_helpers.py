"""Collects the names of the helper functions that a kernel calls, each behind the helpers that it calls itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from py2cu import ir
from py2cu.builtins import intrinsics
from py2cu.builtins.atomics import ATOMICS
from py2cu.ir.rewrite import rebuild_block, with_fields

# Helpers that call other helpers.
_NEEDS: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys((f"atomic_{op.rstrip('_')}" for op in ATOMICS), ("atomic_update",)),
    **{row.name: ("in_rounding",) for row in intrinsics.ROWS if row.name.endswith(("_rd", "_ru", "_rz"))},
    **dict.fromkeys(("erfinv", "erfcinv", "normcdfinv"), ("normal_quantile",)),
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


def with_helper(kernel: ir.Kernel, helper: str, change: Callable[[ir.Expr], ir.Expr]) -> ir.Kernel:
    """The kernel with every expression as `change` makes it, which puts calls of `helper` in the place of some."""
    body = rebuild_block(kernel.body, change)
    if body == kernel.body:
        return kernel
    return with_fields(kernel, body=body, helpers=tuple(dict.fromkeys((*kernel.helpers, helper))))
