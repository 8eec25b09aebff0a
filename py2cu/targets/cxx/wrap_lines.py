"""Breaks long lines of C++ as clang-format does: after a comma or an operator, before `?` and `:`.

In: one line of code without a comment. Out: lines of at most 120 columns, as far as the text has places to break.
Continuation lines are aligned behind the innermost open bracket, or behind the `=` of an assignment. The left side of
an assignment is broken only if nothing else can be.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

COLUMNS: Final = 120
_TOKEN: Final = re.compile(
    r'"(?:\\.|[^"\\])*"|(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<comma>[,;] )|(?P<ternary> )(?=[?:] )'
    r"| (?P<operator>\|\||&&|==|!=|[<>]=?|<<|>>|[-+*/%&|^]) | (?P<assign>[-+*/%&|^]?=|<<=|>>=) "
)
_RANK: Final = {"||": 2, "&&": 3, "|": 4, "^": 5, "&": 6, "==": 7, "!=": 7, "<<": 9, ">>": 9, "+": 10, "-": 10}


@dataclass(frozen=True, slots=True)
class _Break:
    """A place where a line may end: how tightly the text binds there, and where it goes on."""

    rank: int
    end: int  # of the first line
    start: int  # of the text on the next line
    columns: tuple[int, ...]  # at which text continues, outside brackets and in each open one

    @property
    def depth(self) -> int:
        return len(self.columns) - 1

    @property
    def indent(self) -> int:
        """Behind the innermost bracket that is not itself past the end of a line."""
        return next((column for column in reversed(self.columns) if column < COLUMNS), self.columns[0])


def wrap_line(text: str, hang: int = 4) -> list[str]:
    """`text` on as many lines as it needs; text outside brackets continues `hang` columns further in."""
    return _wrapped(text, (_margin(text) + hang,))


def _margin(text: str) -> int:
    return len(text) - len(text.lstrip())


def _wrapped(text: str, columns: tuple[int, ...]) -> list[str]:
    """Wrap `text`, which starts inside open brackets; `columns` are the columns at which it continues."""
    lines: list[str] = []
    while len(text) > COLUMNS:
        fitting = _fitting(text, columns)
        if not fitting:
            break
        target = text.find(" = ", 0, COLUMNS)
        best = min(fitting, key=lambda place: (place.end < target, place.depth, place.rank, -place.end))
        lines.append(text[: best.end])
        text, columns = " " * best.indent + text[best.start :], best.columns
    return [*lines, text]


def _fitting(text: str, columns: tuple[int, ...]) -> list[_Break]:
    """The breaks that let the first line fit; the first break if none does."""
    fitting: list[_Break] = []
    for place in _breaks(text, columns):
        is_last = place.end > COLUMNS
        if place.indent < place.start and not (is_last and fitting):
            fitting.append(place)
        if is_last and fitting:
            break
    return fitting


def _breaks(text: str, opened: tuple[int, ...]) -> Iterator[_Break]:
    columns = [*opened]
    for token in _TOKEN.finditer(text, _margin(text)):
        depth = len(columns) - 1
        if token["open"]:
            columns.append(token.end())
        elif token["close"] and depth:
            columns.pop()
        elif token["comma"]:
            yield _Break(0, token.end() - 1, token.end(), (*columns,))
        elif token["ternary"]:
            yield _Break(1, token.start(), token.end(), (*columns,))
        elif token["operator"]:
            yield _Break(_RANK.get(token["operator"], 11), token.end() - 1, token.end(), (*columns,))
        elif token["assign"] and not depth:
            columns[0] = token.end()
