"""Collectives of a warp: shuffles, votes, matches and reductions. All lanes of a mask call them together.

CUDA's functions have the same names behind two underscores. Numba's masks are int32: they are formulas of these rows.
The reference of a shuffle is the lane that `lane` reads, where `at` is its third argument; a lane above `lane`'s group
of `width` cannot be read. Those of votes and matches compute with `lanes`, and with `holds` or `values` of them. A
reduction combines two values.
"""

from __future__ import annotations

from typing import Any, Final

from py2cu.builtins.launch import FULL_MASK, WARP_SIZE
from py2cu.builtins.public import PY2CU, builtin
from py2cu.builtins.registry import Effects, Rule, ThreadScope

_MASK: Final = (0.0, float(FULL_MASK))
_WAITS: Final = Effects(together=ThreadScope.WARP, waits=True)


@builtin(Rule.SHUFFLE, effects=_WAITS, reference="lane & ~(width - 1) | at & (width - 1)")
def shfl_sync(mask: int, value: Any, lane: int, width: int = WARP_SIZE) -> Any:
    """The `value` of lane `lane`; the lanes of the mask call it together."""


@builtin(Rule.SHUFFLE, effects=_WAITS, reference="lane - at if lane - at >= (lane & ~(width - 1)) else lane")
def shfl_up_sync(mask: int, value: Any, delta: int, width: int = WARP_SIZE) -> Any:
    """The `value` of the lane `delta` below; the lowest lanes get their own `value`."""


# rule: shuffle-lane
@builtin(Rule.SHUFFLE, effects=_WAITS, reference="lane + at if lane + at <= (lane | width - 1) else lane")
def shfl_down_sync(mask: int, value: Any, delta: int, width: int = WARP_SIZE) -> Any:
    """The `value` of the lane `delta` above; the highest lanes get their own `value`."""


@builtin(Rule.SHUFFLE, effects=_WAITS, reference="(lane ^ at) % 32 if (lane ^ at) % 32 <= (lane | width - 1) else lane")
def shfl_xor_sync(mask: int, value: Any, lanes: int, width: int = WARP_SIZE) -> Any:
    """The `value` of lane `laneid ^ lanes`."""


@builtin(
    Rule.VOTE,
    PY2CU,
    result="int",
    effects=_WAITS,
    reference="sum(1 << lane for lane, hold in zip(lanes, holds) if hold)",
    range=_MASK,
)
def ballot_sync(mask: int, predicate: object) -> int:
    """A mask of the lanes for which the predicate holds."""


@builtin(Rule.VOTE, result="bool", effects=_WAITS, reference="any(holds)")
def any_sync(mask: int, predicate: object) -> bool:
    """Whether the predicate holds for at least one lane of the mask."""


@builtin(Rule.VOTE, result="bool", effects=_WAITS, reference="all(holds)")
def all_sync(mask: int, predicate: object) -> bool:
    """Whether the predicate holds for every lane of the mask."""


@builtin(
    Rule.MATCH,
    PY2CU,
    result="int",
    effects=_WAITS,
    reference="sum(1 << lane for lane, other in zip(lanes, values) if other == value)",
    range=_MASK,
)
def match_any_sync(mask: int, value: Any) -> int:
    """A mask of the lanes whose value equals this lane's."""


@builtin(Rule.REDUCE, helper="reduce_add_sync", effects=_WAITS, reference="a + b")
def reduce_add_sync(mask: int, value: Any) -> Any:
    """The sum of the lanes' values, int32 or uint32, wrapped to 32 bits."""


@builtin(Rule.REDUCE, helper="reduce_min_sync", effects=_WAITS, reference="min(a, b)")
def reduce_min_sync(mask: int, value: Any) -> Any:
    """The minimum of the lanes' values, int32 or uint32."""


@builtin(Rule.REDUCE, helper="reduce_max_sync", effects=_WAITS, reference="max(a, b)")
def reduce_max_sync(mask: int, value: Any) -> Any:
    """The maximum of the lanes' values, int32 or uint32."""


@builtin(Rule.REDUCE, helper="reduce_and_sync", effects=_WAITS, reference="a & b")
def reduce_and_sync(mask: int, value: Any) -> Any:
    """The bitwise and of the lanes' values, int32 or uint32."""


@builtin(Rule.REDUCE, helper="reduce_or_sync", effects=_WAITS, reference="a | b")
def reduce_or_sync(mask: int, value: Any) -> Any:
    """The bitwise or of the lanes' values, int32 or uint32."""


@builtin(Rule.REDUCE, helper="reduce_xor_sync", effects=_WAITS, reference="a ^ b")
def reduce_xor_sync(mask: int, value: Any) -> Any:
    """The bitwise exclusive or of the lanes' values, int32 or uint32."""


@builtin(
    Rule.VOTE,
    result="int",
    effects=Effects(together=ThreadScope.WARP),
    reference="sum(1 << lane for lane in lanes)",
    range=_MASK,
)
def activemask() -> int:
    """A mask of the lanes of the warp that are active at this call."""
