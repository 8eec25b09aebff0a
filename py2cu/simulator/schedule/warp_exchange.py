"""What lanes of a warp that meet give each other: shuffles, votes, matches, reductions.

In: the lanes that met in one function, each with what it brought. Out: `exchange`, each lane's result. Values pass as
they are, with their dtype. Who reads a lane that did not come keeps its own value, in doubt, and a finding says so.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any, Final

from py2cu.simulator.memory.happens_before import WARP, synchronize
from py2cu.simulator.schedule.fiber import Fiber
from py2cu.simulator.state import THREAD
from py2cu.simulator.values.checked_int import CheckedInt

Lanes = Mapping[int, Fiber]


def exchange(function: str, lanes: Lanes) -> None:
    """Give each of `lanes`, which wait in `function`, its result."""
    if function in _SOURCES:
        _shuffle(function, lanes)
        return
    brought = {lane: runner.waiting.value for lane, runner in lanes.items()}
    if function == "syncwarp":
        synchronize(lanes.values())
    elif function == "match_any_sync":
        for runner in lanes.values():
            mine = runner.waiting.value
            runner.waiting.result = _bits(lane for lane, value in brought.items() if value == mine)
    else:
        result = _VOTES[function](brought) if function in _VOTES else reduce(REDUCTIONS[function], brought.values())
        for runner in lanes.values():
            runner.waiting.result = result
    if any(runner.tainted for runner in lanes.values()):
        for runner in lanes.values():
            runner.tainted = True


def _bits(lanes: Any) -> CheckedInt:
    return CheckedInt(sum(1 << lane for lane in lanes))


_VOTES: Final[dict[str, Callable[[Mapping[int, Any]], object]]] = {
    "activemask": _bits,
    "ballot_sync": lambda brought: _bits(lane for lane, value in brought.items() if value),
    "any_sync": lambda brought: any(map(bool, brought.values())),
    "all_sync": lambda brought: all(map(bool, brought.values())),
}


REDUCTIONS: Final[dict[str, Callable[[Any, Any], object]]] = {
    "reduce_add_sync": operator.add, "reduce_min_sync": min, "reduce_max_sync": max,
    "reduce_and_sync": operator.and_, "reduce_or_sync": operator.or_, "reduce_xor_sync": operator.xor,
}  # fmt: skip


def _shuffle(function: str, lanes: Lanes) -> None:
    for lane, runner in lanes.items():
        value, argument, width = runner.waiting.value
        source = _SOURCES[function](lane, int(argument), int(width))
        giver = lanes.get(source)
        if giver is None:
            THREAD.place = runner.place
            about = f"`{function}` reads a lane that takes no part"
            THREAD.report_at(runner.waiting.where, about, f"lane {lane} reads lane {source}", is_bug=True)
            runner.waiting.result, runner.tainted = value, True
        else:
            runner.waiting.result = giver.waiting.value[0]
            runner.tainted |= giver.tainted


def _from_lane(lane: int, argument: int, width: int) -> int:
    return lane & ~(width - 1) | argument & (width - 1)


def _from_below(lane: int, argument: int, width: int) -> int:
    source = lane - argument
    return source if source >= lane & ~(width - 1) else lane


def _from_above(lane: int, argument: int, width: int) -> int:
    source = lane + argument
    return source if source <= lane | (width - 1) else lane


def _across(lane: int, argument: int, width: int) -> int:
    """Groups of lanes before this one's can be read, later ones not."""
    source = (lane ^ argument) % WARP
    return source if source <= lane | (width - 1) else lane


_SOURCES: Final[dict[str, Callable[[int, int, int], int]]] = {
    "shfl_sync": _from_lane, "shfl_up_sync": _from_below, "shfl_down_sync": _from_above, "shfl_xor_sync": _across,
}  # fmt: skip
