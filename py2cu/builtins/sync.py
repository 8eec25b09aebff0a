"""Barriers and fences, and votes of a block, which are barriers, too.

The reference of a vote computes with `holds`, the predicates of the threads.
"""

from __future__ import annotations

from typing import Final

from py2cu.builtins.launch import FULL_MASK
from py2cu.builtins.public import PY2CU, builtin
from py2cu.builtins.registry import Effects, Rule, ThreadScope

_OF_BLOCK: Final = Effects(together=ThreadScope.BLOCK, waits=True)
BLOCK_BARRIER: Final = "py2cu.syncthreads"
GRID_BARRIER: Final = "py2cu.syncgrid"  # all blocks have to be resident at once


@builtin(Rule.SYNC, effects=_OF_BLOCK)
def syncthreads() -> None:
    """Wait for all threads of the block; afterwards each sees the earlier writes of the others."""


@builtin(Rule.VOTE, result="int", effects=_OF_BLOCK, reference="sum(holds)", range=(0.0, 1024.0))
def syncthreads_count(predicate: object) -> int:
    """As `syncthreads`; returns the number of threads for which the predicate holds."""


@builtin(Rule.VOTE, result="bool", effects=_OF_BLOCK, reference="all(holds)")
def syncthreads_and(predicate: object) -> bool:
    """As `syncthreads`; returns whether the predicate holds for every thread."""


@builtin(Rule.VOTE, result="bool", effects=_OF_BLOCK, reference="any(holds)")
def syncthreads_or(predicate: object) -> bool:
    """As `syncthreads`; returns whether the predicate holds for at least one thread."""


@builtin(Rule.SYNC, PY2CU, effects=Effects(together=ThreadScope.GRID, waits=True))
def syncgrid() -> None:
    """Wait for all threads of the grid; afterwards each sees the earlier writes of the others to global arrays."""


@builtin(Rule.SYNC, effects=Effects(together=ThreadScope.WARP, waits=True))
def syncwarp(mask: int = FULL_MASK) -> None:
    """Wait for the lanes of the mask; afterwards each sees the earlier writes of the others."""


@builtin(Rule.SYNC, effects=Effects(fence=ThreadScope.GRID))
def threadfence() -> None:
    """Order this thread's writes: every thread of the device sees the earlier ones before the later ones."""


@builtin(Rule.SYNC, effects=Effects(fence=ThreadScope.BLOCK))
def threadfence_block() -> None:
    """Order this thread's writes: every thread of the block sees the earlier ones before the later ones."""


@builtin(Rule.SYNC, effects=Effects(fence=ThreadScope.GRID))
def threadfence_system() -> None:
    """Order this thread's writes: the device and the host see the earlier ones before the later ones."""
