"""Collective builtins: shuffles, votes and reductions of a warp, votes of a block, and a thread's lane.

CUDA's functions have the same names behind two underscores. All lanes of a mask call them together, and votes of a
block are barriers (`analysis/effects.py`).
"""

from __future__ import annotations

from typing import Final

from py2cu.builtins.registry import Builtin, Rule

WARP_SIZE: Final = 32
FULL_MASK: Final = 0xFFFFFFFF
LANE: Final = "py2cu.laneid"
LANE_HELPER: Final = "lane_id"  # its C++ helper
CONSTANTS: Final = dict.fromkeys(("py2cu.warpSize", "py2cu.vocabulary.warpSize", "numba.cuda.warpsize"), WARP_SIZE)
_SHUFFLES: Final = {"": "lane", "_up": "delta", "_down": "delta", "_xor": "lanes"}
_REDUCTIONS: Final = tuple(f"reduce_{op}_sync" for op in ("add", "min", "max", "and", "or", "xor"))


def _row(
    name: str, rule: Rule, parameters: str, result: str | None = None, helper: str = "", least: int | None = None
) -> Builtin:
    """A row; `least` is the least number of arguments, if some are optional."""
    named = tuple(parameters.split())
    arity = (len(named) if least is None else least, len(named))
    names = tuple(f"{library}.{name}" for library in ("py2cu", "py2cu.vocabulary", "numba.cuda"))
    return Builtin(names, rule, arity, helper=helper, parameters=named, result=result)


ROWS: Final = (
    *(
        _row(f"shfl{suffix}_sync", Rule.SHUFFLE, f"mask value {lane} width", least=3)
        for suffix, lane in _SHUFFLES.items()
    ),
    _row("ballot_sync", Rule.VOTE, "mask predicate", "int"),
    _row("any_sync", Rule.VOTE, "mask predicate", "bool"),
    _row("all_sync", Rule.VOTE, "mask predicate", "bool"),
    _row("match_any_sync", Rule.MATCH, "mask value", "int"),
    *(_row(name, Rule.REDUCE, "mask value", helper=name) for name in _REDUCTIONS),
    _row("syncthreads_count", Rule.VOTE, "predicate", "int"),
    _row("syncthreads_and", Rule.VOTE, "predicate", "bool"),
    _row("syncthreads_or", Rule.VOTE, "predicate", "bool"),
    _row("activemask", Rule.VOTE, "", "int"),
    _row("laneid", Rule.VOTE, "", "int", helper=LANE_HELPER),
)
