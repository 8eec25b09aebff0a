"""The leaves of the enumeration: what stands in an operand's place, a row each, and the functions that they call."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import Final

NUMBERS: Final = "abcde"  # the names of operand places that take a number
SEQUENCES: Final = "sp"
TEST: Final = "k"

ALL_BITS: Final = "0xFFFFFFFFFFFFFFFF"
CONSTANTS: Final = {"MASK": 2**64 - 1}
"""Of the module of each kernel."""
CHOSEN: Final = "((1, 2) if bump(y, i) > 3 else (3, 4))"
LINES: Final = {
    "t": "t = int(x[i])",
    "h": "h = int(x[i]) & MASK",
    "g": "g = (int(x[i]) & 0xFFFFFFFF) << 32",
    "l": "l = [int(x[i]), i + 1, 4]",
    "o": "o = (int(x[i]), i)",
    "u": "u = 5",
}  # of names that stand in front of the body where it names them, in this order


@dataclass(frozen=True, slots=True)
class Leaf:
    """An operand. `acts`: it writes `y` or a local. `shows`: its value depends on what ran before.

    `is_typed`: an element or a truth value, whose kind an operation may pass on.
    """

    what: str
    text: str
    acts: bool = False
    shows: bool = False
    is_typed: bool = False


NUMBER_LEAVES: Final = (
    Leaf("an element", "x[i]", is_typed=True),
    Leaf("a local", "t"),
    Leaf("an element as a Python integer", "int(x[i])"),
    Leaf("an index", "i"),
    Leaf("zero", "0"),
    Leaf("one", "1"),
    Leaf("minus one", "-1"),
    Leaf("2**31", "2147483648"),
    Leaf("2**63", "9223372036854775808"),
    Leaf("64 bits inline", f"(int(x[i]) & {ALL_BITS})"),
    Leaf("64 bits in a local", "h"),
    Leaf("high bits inline", "((int(x[i]) & 0xFFFFFFFF) << 32)"),
    Leaf("high bits in a local", "g"),
    Leaf("a truth value", "(i < 2)", is_typed=True),
    Leaf("a call that writes", "bump(y, i)", acts=True),
    Leaf("an item of a call's tuple", "two(y, i)[0]", acts=True),
    Leaf("the end of a slice", "w[:3][-1]", is_typed=True),
    Leaf("the end of a row's slice", "z[i, 1:][-1]", is_typed=True),
    Leaf("an item of a list", "l[1]"),
    Leaf("an item of a tuple chosen by a call", f"{CHOSEN}[0]", acts=True),
    Leaf("a walrus", "(u := i + 4)", acts=True),
    Leaf("a sum that writes", "sum(put(y, i, 0, q + 5) for q in range(3))", acts=True),
    Leaf("a sum with a walrus", "sum((u := u + 1) * q for q in range(3))", acts=True),
    Leaf("an element that is written", "int(y[i, 0])", shows=True),
    Leaf("a local that is changed", "u", shows=True),
)
SEQUENCE_LEAVES: Final = (
    Leaf("a list", "l"),
    Leaf("a display of a list", "[t, i]"),
    Leaf("a tuple in a local", "o"),
    Leaf("a tuple", "(i, 3)"),
    Leaf("a slice", "w[:3]", is_typed=True),
    Leaf("a row's slice", "z[i, 1:]", is_typed=True),
    Leaf("a call's tuple", "two(y, i)", acts=True),
    Leaf("a tuple chosen by a call", CHOSEN, acts=True),
    Leaf("a tuple of calls", "(bump(y, i), bump(y, i))", acts=True),
    Leaf("a tuple of what is written", "(int(y[i, 0]), u)", shows=True),
)
TEST_LEAVES: Final = (
    Leaf("of the index", "i > 1"),
    Leaf("of an element", "x[i] > 0"),
    Leaf("never", "i < 0"),
    Leaf("always", "i < 1000"),
    Leaf("of a local", "t > 1"),
)


def leaves_of(place: str) -> tuple[Leaf, ...]:
    """The leaves that an operand place takes."""
    return NUMBER_LEAVES if place in NUMBERS else SEQUENCE_LEAVES if place in SEQUENCES else TEST_LEAVES


HELPERS: Final = {
    "count": "def count(y, i):\n    y[i, 0] += 1\n    return y[i, 0]",
    "bump": "def bump(y, i):\n    y[i, 0] = y[i, 0] * 3 + 1\n    return int(y[i, 0])",
    "put": "def put(y, i, k, v):\n    y[i, k] = v\n    return v",
    "two": "def two(y, i):\n    y[i, 0] = y[i, 0] * 2 + 3\n    return int(y[i, 0]), 7",
    "pair": "def pair(y, i, v):\n    y[i, 0] = y[i, 0] * 2 + 1\n    return v, int(y[i, 0])",
    "first": "def first(a, s):\n    return a ^ s[0]",
    "second": "def second(a, b):\n    return a * 2 - b",
    "late": "def late(a, b=5):\n    return a ^ b",
    "last": "def last(r):\n    return r[-1]",
    "mix": f"def mix(p):\n    p = (p ^ (p >> 33)) * 0xFF51AFD7ED558CCD & {ALL_BITS}\n    return p",
    "same": "def same(p):\n    return p",
    "pick": "def pick(a, b, k):\n    if k:\n        return a\n    return b",
    "down": "def down(a, b, k):\n    if k <= 0:\n        return a\n    return down(b, a, k - 1)",
    "swap": "def swap(a, b):\n    return b, a",
    "order": "def order(a, b):\n    if b < a:\n        return b, a\n    return a, b",
    "folded": "def folded(a, b):\n    for _ in range(3):\n        a = (a * 31 + b) & MASK\n    return a",
}


@functools.cache
def helpers_of(body: str) -> tuple[str, ...]:
    """The functions that `body` calls."""
    return tuple(text for name, text in HELPERS.items() if re.search(rf"\b{name}\(", body))


MASKS: Final = f"y[i, 7] = (i & {ALL_BITS}) >> 60"
"""A last line for kernels with constants from 2**63 on, which only functions have that mask with one."""


def lines_of(body: str) -> list[str]:
    """The lines that define the locals that `body` reads and the leaves name."""
    return [line for name, line in LINES.items() if re.search(rf"\b{name}\b", body)]
