"""The conditions of C++ text: in Python's strings, and in the templates."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

Span = tuple[int, int]

_TESTS: Final = re.compile(r"\b(?:if|while) \(")
_CHOICES: Final = re.compile(r"(?:\breturn|[^=!<>]=) ([^;?]+?) \?")
_CONNECTIVES: Final = re.compile(r" (?:&&|\|\|) ")


def conditions(text: str) -> list[Span]:
    """The tests of `if`, `while` and `?:` from left to right, then the operands of their `&&` and `||`."""
    choices = [(_opening(text, *match.span(1)), match.end(1)) for match in _CHOICES.finditer(text)]
    tests = [(match.end(), _closing(text, match.end())) for match in _TESTS.finditer(text)]
    whole = sorted(choices + tests)
    return [*whole, *(operand for span in whole for operand in _operands(text, span))]


def _opening(text: str, start: int, end: int) -> int:
    """The start of the condition that ends at `end`, behind a bracket that is still open there."""
    depth = 0
    for at in range(end - 1, start - 1, -1):
        depth += {")": 1, "(": -1}.get(text[at], 0)
        if depth < 0:
            return at + 1
    return start


def _closing(text: str, at: int) -> int:
    """The place of the bracket that closes the one before `at`."""
    depth = 1
    while depth and at < len(text):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        at += 1
    return at - 1


def _operands(text: str, span: Span) -> Iterator[Span]:
    start, end = span
    cuts = [m.span() for m in _CONNECTIVES.finditer(text, start, end) if _depth(text[start : m.start()]) == 0]
    if cuts:
        starts, ends = [start, *(after for _, after in cuts)], [*(before for before, _ in cuts), end]
        yield from zip(starts, ends, strict=True)


def _depth(text: str) -> int:
    return text.count("(") - text.count(")")
