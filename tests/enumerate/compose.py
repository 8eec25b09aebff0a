"""Composes the rows: every program of the enumeration, and the fixed sample of them.

`programs()` lists them without their text; `Program.source` writes it. The order is fixed: triples, pairs, joins.

A triple is an outer row, one of its places, and the row that stands there. It comes twice: plainly, and with a leaf
that acts among leaves that show what ran before. A pair is a row with two leaves. Where a program has further places,
they take leaves by an orthogonal array: over the rows of a table, any two places meet all pairs of leaves.
"""

from __future__ import annotations

import ast
import functools
import itertools
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tests.enumerate.forms import DISPLAYS, EXPRESSIONS, Form
from tests.enumerate.joins import JOINS, OBSERVERS
from tests.enumerate.leaves import MASKS, NUMBERS, TEST, Leaf, helpers_of, leaves_of, lines_of
from tests.enumerate.statements import STATEMENTS

PRIME: Final = 29
"""The levels of the orthogonal array: at least as many as there are leaves of a kind."""
TRIPLES: Final = "triples"
PAIRS: Final = "pairs"
MEETINGS: Final = "joins"
SHARES: Final = {TRIPLES: 0.65, PAIRS: 0.25, MEETINGS: 0.10}
"""Of the sample."""
_LARGE: Final = re.compile(r"\b(9223372036854775808|0xFF51AFD7ED558CCD)\b")
OUTER: Final = (*EXPRESSIONS, *DISPLAYS, *STATEMENTS)
HEAD: Final = """\
import math
from jaxtyping import Int32, Int64
from torch import Tensor
from py2cu import Index, kernel, local

MASK = 2**64 - 1
"""
DEFINITION: Final = """\
@kernel
def f(
    i: Index["n"],
    x: Int64[Tensor, "n"],
    z: Int32[Tensor, "n 4"],
    w: Int64[Tensor, "m"],
    y: Int64[Tensor, "n 8"],
):
"""
MEETING: Final = (
    ("h", "i"),
    ("t", "g"),
    ("((int(x[i]) & 0xFFFFFFFF) << 32)", "t"),
    ("1", "h"),
    ("g", "-1"),
    ("i", "(int(x[i]) & 0xFFFFFFFFFFFFFFFF)"),
    ("bump(y, i)", "h"),
    ("g", "h"),
    ("h", "bump(y, i)"),
    ("t", "i"),
    ("2147483648", "g"),
)
"""The leaves of joins: naturals that meet other integers."""


@dataclass(frozen=True, slots=True)
class Program:
    """One program: its rows, and the number by which its other leaves are chosen."""

    stratum: str
    rows: tuple[str, ...]
    number: int
    acts: bool = False

    @property
    def key(self) -> str:
        """Its name: the rows, and which leaves stand in it."""
        rows = " / ".join(map(_in_one_line, self.rows))
        return f"{self.stratum}: {rows} #{self.number}{' acts' if self.acts else ''}"

    @property
    def source(self) -> str:
        """Its kernel."""
        return _WRITERS[self.stratum](self)


@functools.cache
def _in_one_line(row: str) -> str:
    return re.sub(r"\s*\n\s*", "; ", row)


def write(body: str) -> str:
    """The file of a kernel with this body."""
    lines = [*lines_of(body), *body.splitlines()]
    if _LARGE.search(body):
        lines.append(MASKS)
    functions = "".join(f"\n\n{text}\n" for text in helpers_of(body))
    return f"{HEAD}{functions}\n\n{DEFINITION}" + "".join(f"    {line}\n" for line in lines)


# --- text ---------------------------------------------------------------------------------------------------------


@functools.cache
def operand(text: str) -> str:
    """`text` as an operand: in parentheses where it needs them."""
    node = ast.parse(text, mode="eval").body
    if isinstance(node, ast.Call | ast.Name | ast.Subscript | ast.List | ast.Constant):
        return text
    return text if _is_parenthesised(text) else f"({text})"


def _is_parenthesised(text: str) -> bool:
    """Whether the first parenthesis closes at the end."""
    depths = itertools.accumulate((c == "(") - (c == ")") for c in text)
    return text[0] == "(" and 0 not in [*depths][:-1]


def fill(template: str, operands: Mapping[str, str]) -> str:
    return re.sub(r"\{(\w)\}", lambda place: operand(operands[place[1]]), template)


def observed(body: str, *, is_typed: bool, has_value: bool, observer: Form = OBSERVERS[0]) -> str:
    """`body` with lines that store its `v`: an element or a truth value as an integer."""
    if not has_value:
        return body
    seen = observer.template
    if is_typed:
        seen = re.sub(r"\bv\b", "int(v)", seen)
    return f"{body}\n{seen}"


# --- leaves -------------------------------------------------------------------------------------------------------


def _level(number: int, column: int) -> int:
    """The entry of an orthogonal array of strength two in the row `number`."""
    return (number + column * (number // PRIME)) % PRIME


def choose(places: Sequence[str], number: int, acts: bool) -> list[Leaf]:
    """A leaf for each place. Where one acts, the others show, every second time, what ran before it."""
    chosen = []
    actor = number % len([*filter(_takes_values, places)]) if acts and any(map(_takes_values, places)) else -1
    at = 0
    for column, place in enumerate(places):
        leaves = leaves_of(place)
        if acts and _takes_values(place):
            if at == actor:
                leaves = tuple(leaf for leaf in leaves if leaf.acts)
            elif (number // 2) % 2:
                leaves = tuple(leaf for leaf in leaves if leaf.shows)
            else:
                leaves = tuple(leaf for leaf in leaves if not leaf.acts)
            at += 1
        elif _takes_values(place):
            leaves = tuple(leaf for leaf in leaves if not leaf.acts)
        chosen.append(leaves[_level(number, column) % len(leaves)])
    return chosen


def _takes_values(place: str) -> bool:
    return place != TEST


# --- programs -----------------------------------------------------------------------------------------------------


def _triple(program: Program) -> str:
    """An outer row with an inner one in a place."""
    outer, inner = _FORMS[program.rows[0]], _FORMS[program.rows[2]]
    place = program.rows[1]
    others = [each for each in outer.places if each != place]
    leaves = choose([*inner.places, *others], program.number, program.acts)
    inside = dict(zip(inner.places, (leaf.text for leaf in leaves), strict=False))
    outside = dict(zip(others, (leaf.text for leaf in leaves[len(inner.places) :]), strict=True))
    text = fill(outer.template, {**outside, place: fill(inner.template, inside)})
    is_typed = outer.is_typed or inner.is_typed or any(leaf.is_typed for leaf in leaves)
    return write(_finished(outer, text, is_typed))


def _finished(outer: Form, text: str, is_typed: bool) -> str:
    """A statement as it is, an expression as the value of `v`, a sequence by its numbers; and `v` observed."""
    if outer in STATEMENTS:
        return observed(text, is_typed=is_typed, has_value=outer.has_value)
    if outer in DISPLAYS:
        return observed(f"r = {text}\nv = r[0] ^ r[1]", is_typed=is_typed, has_value=True)
    return observed(f"v = {text}", is_typed=is_typed, has_value=True)


def _pair(program: Program) -> str:
    """A row with a pair of leaves, whose numbers the program's number holds."""
    form = _FORMS[program.rows[0]]
    pair = program.rows[1]
    counts = [len(leaves_of(place)) for place in pair]
    at = program.number
    chosen = {}
    for place, count in zip(pair, counts, strict=True):
        at, level = divmod(at, count)
        chosen[place] = leaves_of(place)[level]
    others = [place for place in form.places if place not in pair]
    chosen |= dict(zip(others, choose(others, program.number, acts=False), strict=True))
    is_typed = form.is_typed or any(leaf.is_typed for leaf in chosen.values())
    text = fill(form.template, {place: leaf.text for place, leaf in chosen.items()})
    return write(_finished(form, text, is_typed))


def _meeting(program: Program) -> str:
    """The inner join's result in the first place of the outer join."""
    outer, inner, observer = (_FORMS[row] for row in program.rows)
    a, b = MEETING[program.number % len(MEETING)]
    tests = [leaf.text for leaf in leaves_of(TEST)]
    test = tests[program.number // 3 % len(tests)]
    first = fill(inner.template, {"a": a, "b": b, "k": test})
    renamed = re.sub(r"\b([vqr]|inner)\b", r"\g<1>1", first)
    other = MEETING[(program.number + 4) % len(MEETING)][1]
    text = fill(outer.template, {"a": "v1", "b": other, "k": tests[program.number // 7 % len(tests)]})
    return write(observed(f"{renamed}\n{text}", is_typed=False, has_value=True, observer=observer))


_WRITERS: Final = {TRIPLES: _triple, PAIRS: _pair, MEETINGS: _meeting}
_FORMS: Final = {form.template: form for form in (*OUTER, *JOINS, *OBSERVERS)}
assert len(_FORMS) == len(OUTER) + len(JOINS) + len(OBSERVERS), "two rows are one"


def programs() -> Iterator[Program]:
    """All programs, in order."""
    yield from _triples()
    yield from _pairs()
    numbers = itertools.count()
    for outer, inner, observer in itertools.product(JOINS, JOINS, OBSERVERS):
        yield Program(MEETINGS, (outer.template, inner.template, observer.template), next(numbers))


def _triples() -> Iterator[Program]:
    numbers = itertools.count()
    for outer in OUTER:
        for place in outer.places:
            if place == TEST:
                continue
            for inner in EXPRESSIONS if place in NUMBERS else DISPLAYS:
                number = next(numbers)
                for acts in (False, True):
                    yield Program(TRIPLES, (outer.template, place, inner.template), number, acts)


def _pairs() -> Iterator[Program]:
    for form in OUTER:
        places = [*filter(_takes_values, form.places)]
        for pair in itertools.combinations(places, min(2, len(places))):
            count = 1
            for place in pair:
                count *= len(leaves_of(place))
            for number in range(count):
                yield Program(PAIRS, (form.template, "".join(pair)), number)


def sample(size: int) -> list[Program]:
    """The fixed sample of this size: of each stratum its share, by a hash of the names; triples first."""
    chosen: list[Program] = []
    strata: dict[str, list[Program]] = {stratum: [] for stratum in SHARES}
    for program in programs():
        strata[program.stratum].append(program)
    left, shares = size, 1.0
    for stratum, share in SHARES.items():
        count = min(round(left * share / shares), len(strata[stratum]))
        ordered = sorted(strata[stratum], key=lambda program: (zlib.crc32(program.key.encode()), program.key))
        chosen += ordered[:count]
        left, shares = left - count, shares - share
    return chosen
