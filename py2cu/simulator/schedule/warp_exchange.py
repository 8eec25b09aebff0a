"""Exchanges between the lanes of a warp: shuffles, votes, matches, reductions.

In: the lanes that wait in one function, each with its value. Out: `exchange`, which gives each lane its result. Values
keep their dtype. A lane that reads an absent lane keeps its own value, is tainted, and is reported.
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
    values = {lane: fiber.waiting.value for lane, fiber in lanes.items()}
    if function == "syncwarp":
        synchronize(lanes.values())
    elif function == "match_any_sync":
        for fiber in lanes.values():
            mine = fiber.waiting.value
            fiber.waiting.result = _bits(lane for lane, value in values.items() if value == mine)
    else:
        result = _VOTES[function](values) if function in _VOTES else reduce(REDUCTIONS[function], values.values())
        for fiber in lanes.values():
            fiber.waiting.result = result
    if any(fiber.tainted for fiber in lanes.values()):
        for fiber in lanes.values():
            fiber.tainted = True


def _bits(lanes: Any) -> CheckedInt:
    return CheckedInt(sum(1 << lane for lane in lanes))


_VOTES: Final[dict[str, Callable[[Mapping[int, Any]], object]]] = {
    "activemask": _bits,
    "ballot_sync": lambda values: _bits(lane for lane, value in values.items() if value),
    "any_sync": lambda values: any(map(bool, values.values())),
    "all_sync": lambda values: all(map(bool, values.values())),
}


REDUCTIONS: Final[dict[str, Callable[[Any, Any], object]]] = {
    "reduce_add_sync": operator.add, "reduce_min_sync": min, "reduce_max_sync": max,
    "reduce_and_sync": operator.and_, "reduce_or_sync": operator.or_, "reduce_xor_sync": operator.xor,
}  # fmt: skip


def _shuffle(function: str, lanes: Lanes) -> None:
    for lane, fiber in lanes.items():
        value, argument, width = fiber.waiting.value
        source = _SOURCES[function](lane, int(argument), int(width))
        source_fiber = lanes.get(source)
        if source_fiber is None:
            THREAD.place = fiber.place
            about = f"`{function}` reads a lane that takes no part"
            THREAD.report_at(fiber.waiting.where, about, f"lane {lane} reads lane {source}", is_bug=True)
            fiber.waiting.result, fiber.tainted = value, True
        else:
            fiber.waiting.result = source_fiber.waiting.value[0]
            fiber.tainted |= source_fiber.tainted


def _from_lane(lane: int, argument: int, width: int) -> int:
    return lane & ~(width - 1) | argument & (width - 1)


def _from_below(lane: int, argument: int, width: int) -> int:
    source = lane - argument
    return source if source >= lane & ~(width - 1) else lane


def _from_above(lane: int, argument: int, width: int) -> int:
    source = lane + argument
    return source if source <= lane | (width - 1) else lane


def _across(lane: int, argument: int, width: int) -> int:
    """Lanes in an earlier group can be read, lanes in a later one cannot."""
    source = (lane ^ argument) % WARP
    return source if source <= lane | (width - 1) else lane


_SOURCES: Final[dict[str, Callable[[int, int, int], int]]] = {
    "shfl_sync": _from_lane, "shfl_up_sync": _from_below, "shfl_down_sync": _from_above, "shfl_xor_sync": _across,
}  # fmt: skip
