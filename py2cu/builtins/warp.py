"""Collectives of a warp: shuffles, votes, matches and reductions. All lanes of a mask call them together.

CUDA's functions have the same names behind two underscores.
"""

from __future__ import annotations

from typing import Any, Final

from py2cu.builtins.launch import WARP_SIZE
from py2cu.builtins.public import builtin
from py2cu.builtins.registry import Effects, Rule, Scope

_WAITS: Final = Effects(together=Scope.WARP, waits=True)


@builtin(Rule.SHUFFLE, effects=_WAITS)
def shfl_sync(mask: int, value: Any, lane: int, width: int = WARP_SIZE) -> Any:
    """The `value` of lane `lane`; the lanes of the mask call it together."""


@builtin(Rule.SHUFFLE, effects=_WAITS)
def shfl_up_sync(mask: int, value: Any, delta: int, width: int = WARP_SIZE) -> Any:
    """The `value` of the lane `delta` below; the lowest lanes get their own `value`."""


@builtin(Rule.SHUFFLE, effects=_WAITS)
def shfl_down_sync(mask: int, value: Any, delta: int, width: int = WARP_SIZE) -> Any:
    """The `value` of the lane `delta` above; the highest lanes get their own `value`."""


@builtin(Rule.SHUFFLE, effects=_WAITS)
def shfl_xor_sync(mask: int, value: Any, lanes: int, width: int = WARP_SIZE) -> Any:
    """The `value` of lane `laneid ^ lanes`."""


@builtin(Rule.VOTE, result="int", effects=_WAITS)
def ballot_sync(mask: int, predicate: object) -> int:
    """A mask of the lanes for which the predicate holds."""


@builtin(Rule.VOTE, result="bool", effects=_WAITS)
def any_sync(mask: int, predicate: object) -> bool:
    """Whether the predicate holds for at least one lane of the mask."""


@builtin(Rule.VOTE, result="bool", effects=_WAITS)
def all_sync(mask: int, predicate: object) -> bool:
    """Whether the predicate holds for every lane of the mask."""


@builtin(Rule.MATCH, result="int", effects=_WAITS)
def match_any_sync(mask: int, value: Any) -> int:
    """A mask of the lanes whose value equals this lane's."""


@builtin(Rule.REDUCE, helper="reduce_add_sync", effects=_WAITS)
def reduce_add_sync(mask: int, value: Any) -> Any:
    """The sum of the lanes' values, int32 or uint32, wrapped to 32 bits."""


@builtin(Rule.REDUCE, helper="reduce_min_sync", effects=_WAITS)
def reduce_min_sync(mask: int, value: Any) -> Any:
    """The minimum of the lanes' values, int32 or uint32."""


@builtin(Rule.REDUCE, helper="reduce_max_sync", effects=_WAITS)
def reduce_max_sync(mask: int, value: Any) -> Any:
    """The maximum of the lanes' values, int32 or uint32."""


@builtin(Rule.REDUCE, helper="reduce_and_sync", effects=_WAITS)
def reduce_and_sync(mask: int, value: Any) -> Any:
    """The bitwise and of the lanes' values, int32 or uint32."""


@builtin(Rule.REDUCE, helper="reduce_or_sync", effects=_WAITS)
def reduce_or_sync(mask: int, value: Any) -> Any:
    """The bitwise or of the lanes' values, int32 or uint32."""


@builtin(Rule.REDUCE, helper="reduce_xor_sync", effects=_WAITS)
def reduce_xor_sync(mask: int, value: Any) -> Any:
    """The bitwise exclusive or of the lanes' values, int32 or uint32."""


@builtin(Rule.VOTE, result="int", effects=Effects(together=Scope.WARP))
def activemask() -> int:
    """A mask of the lanes of the warp that are active at this call."""
