"""A later cell of the notebook that a kernel stands in, which redefines what the kernel has been translated from.

In: the lines of a kernel and of its functions. Out: the lines of that cell: constants, tables and functions that the
kernel mentions, with other values and bodies of the same types.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from tests.fuzz.expressions import CLASSES, CONSTANTS, TABLES
from tests.fuzz.writer import Writer

CELL: Final = "# %%"  # the line between two cells
_OTHER: Final = {"FULL": "0x7F", "WIDE": "0xFFFFFFFFFF", "RATE": "-0.375", "ON": "False", "TURN": "0.8 + 0.6j",
    "SIDE": "1", **{name: repr(table[::-1]) for name, table in TABLES.items()},
}  # fmt: skip
_OTHER_CLASSES: Final = {
    "Gate": ["class Gate(IntEnum):", "    LAST = 0", "    FIRST = 2"],
    "Option": ["class Option(IntFlag):", "    ALL = auto()", "    ONE = 2"],
    "Kind": ["class Kind(Enum):", "    HALF = -1.5"],
    "Config": ["class Config:", "    RATE = 2.5", "    SIDE = 4"],
}
assert _OTHER.keys() == {*CONSTANTS, *TABLES}
assert _OTHER_CLASSES.keys() == CLASSES.keys()


def later_cell(w: Writer, lines: Sequence[str]) -> list[str]:
    """A cell that redefines one or more names in `lines`; none where they mention nothing that can be redefined."""
    mentioned = set(re.findall(r"\w+", "\n".join(lines)))
    definitions = [[f"{name} = {value}"] for name, value in _OTHER.items() if name in mentioned]
    definitions += [text for name, text in _OTHER_CLASSES.items() if name in mentioned]
    definitions += [list(function.later) for function in w.functions if function.later]
    if not definitions:
        return []
    first = w.pick(range(len(definitions)))
    chosen = [each for place, each in enumerate(definitions) if place == first or not w.chance(3)]
    return [CELL, *(line for each in chosen for line in each), ""]
