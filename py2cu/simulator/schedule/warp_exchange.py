"""Exchanges between the lanes of a warp: shuffles, votes, matches, reductions.

In: the lanes that wait in one function, each with its value. Out: `exchange`, which gives each lane its result. Values
keep their dtype. A lane that reads an absent lane keeps its own value, is tainted, and is reported.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Final

from py2cu.builtins import ROWS, Builtin, Rule, ThreadScope
from py2cu.simulator.memory.happens_before import synchronize
from py2cu.simulator.schedule.fiber import Fiber
from py2cu.simulator.state import THREAD
from py2cu.simulator.values.checked_int import CheckedInt
from py2cu.simulator.values.math_functions import compiled

Lanes = Mapping[int, Fiber]


_ROWS: Final = {row.name: row for row in ROWS.values() if row.effects.together is ThreadScope.WARP}


def exchange(function: str, lanes: Lanes) -> None:
    """Give each of `lanes`, which wait in `function`, its result."""
    row = _ROWS[function]
    if row.rule is Rule.SHUFFLE:
        _shuffle(row, lanes)
        return
    values = [fiber.waiting.value for fiber in lanes.values()]
    match row.rule:
        case Rule.SYNC:
            synchronize(lanes.values())
        case Rule.MATCH:
            matches = compiled(row.reference, "value", "lanes", "values")
            for fiber in lanes.values():
                fiber.waiting.result = CheckedInt(matches(fiber.waiting.value, [*lanes], values))
        case Rule.REDUCE:
            _give(lanes, reduce(compiled(row.reference, "a", "b"), values))
        case _:
            _give(lanes, vote(row, [*lanes], [*map(bool, values)]))
    if any(fiber.tainted for fiber in lanes.values()):
        for fiber in lanes.values():
            fiber.tainted = True


def vote(row: Builtin, lanes: list[int], holds: list[bool]) -> object:
    """The result of a vote, of `lanes` or of all threads of a block."""
    result = compiled(row.reference, "lanes", "holds")(lanes, holds)
    return CheckedInt(result) if row.result == "int" else result


def _give(lanes: Lanes, result: object) -> None:
    for fiber in lanes.values():
        fiber.waiting.result = result


def _shuffle(row: Builtin, lanes: Lanes) -> None:
    read_from = compiled(row.reference, "lane", "at", "width")
    for lane, fiber in lanes.items():
        value, argument, width = fiber.waiting.value
        source = read_from(lane, int(argument), int(width))
        source_fiber = lanes.get(source)
        if source_fiber is None:
            THREAD.place = fiber.place
            about = f"`{row.name}` reads a lane that takes no part"
            THREAD.report_at(fiber.waiting.where, about, f"lane {lane} reads lane {source}", is_bug=True)
            fiber.waiting.result, fiber.tainted = value, True
        else:
            fiber.waiting.result = source_fiber.waiting.value[0]
            fiber.tainted |= source_fiber.tainted
