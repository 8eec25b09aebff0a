"""What threads tell each other: shuffles and votes of a warp, votes of a block, and a thread's lane.

CUDA's functions have the same names behind two underscores. All lanes of a mask call them together, and votes of a
block are barriers (`ir/waiting.py`).
"""

from __future__ import annotations

from typing import Final

from py2cu.builtins.registry import Builtin, Rule

WARP_SIZE: Final = 32
FULL_MASK: Final = 0xFFFFFFFF
LANE: Final = "py2cu.laneid"
LANE_HELPER: Final = "lane_id"  # what is called for it in C++
CONSTANTS: Final = dict.fromkeys(("py2cu.warpSize", "py2cu.vocabulary.warpSize", "numba.cuda.warpsize"), WARP_SIZE)
_REDUCTIONS: Final = tuple(f"reduce_{op}_sync" for op in ("add", "min", "max", "and", "or", "xor"))


def _row(name: str, rule: Rule, arity: tuple[int, int], result: str | None = None, helper: str = "") -> Builtin:
    names = tuple(f"{library}.{name}" for library in ("py2cu", "py2cu.vocabulary", "numba.cuda"))
    return Builtin(names, rule, arity, {}, helper, result)


ROWS: Final = (
    *(_row(f"shfl{how}_sync", Rule.SHUFFLE, (3, 4)) for how in ("", "_up", "_down", "_xor")),
    _row("ballot_sync", Rule.VOTE, (2, 2), "int"),
    _row("any_sync", Rule.VOTE, (2, 2), "bool"),
    _row("all_sync", Rule.VOTE, (2, 2), "bool"),
    _row("match_any_sync", Rule.MATCH, (2, 2), "int"),
    *(_row(name, Rule.REDUCE, (2, 2), helper=name) for name in _REDUCTIONS),
    _row("syncthreads_count", Rule.VOTE, (1, 1), "int"),
    _row("syncthreads_and", Rule.VOTE, (1, 1), "bool"),
    _row("syncthreads_or", Rule.VOTE, (1, 1), "bool"),
    _row("activemask", Rule.VOTE, (0, 0), "int"),
    _row("laneid", Rule.VOTE, (0, 0), "int", helper=LANE_HELPER),
)
