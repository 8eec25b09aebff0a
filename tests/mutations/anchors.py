"""Finds anchored source and changes it: the comment `# rule: NAME` stands beside a line, or alone above it.

An anchor holds what starts on its line: a statement without its suites or, within brackets, the elements that start
there. If nothing starts on the line, as beside a closing bracket, the anchor holds what ends there. In a template the
comment is `{# rule: NAME #}`, alone above a line of C++.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from tests.mutations.operators import OPERATORS, Place

_COMMENT: Final = re.compile(r"(?:#|\{#) rule: ([a-z0-9-]+)(?: #\})?$")


@dataclass(frozen=True)
class Anchor:
    """A name, and the line of source that it holds, counted from 1."""

    name: str
    path: Path
    line: int


@dataclass(frozen=True)
class Mutation:
    """The anchored source, changed by an operator at a place: one of `cases` must fail."""

    rule: str
    anchor: str
    operator: str
    number: int | None
    code: str
    cases: tuple[str, ...]

    def __str__(self) -> str:
        number = "" if self.number is None else f" {self.number}"
        return f"{self.anchor}: {self.operator}{number}{f': {self.code}' if self.code else ''}"


class Source(Protocol):
    """A file with an anchor: the nodes that an operator may change, and what has become of them."""

    @property
    def roots(self) -> Sequence[Place]: ...

    @property
    def text(self) -> str:
        """The whole file."""

    @property
    def head(self) -> str:
        """The anchored statement without its suites, or the anchored line."""


def find_anchors(root: Path) -> list[Anchor]:
    """The anchors of the package and of the templates."""
    anchors = []
    for path in [*sorted((root / "py2cu").rglob("*.py")), *sorted((root / "templates").rglob("*.j2"))]:
        lines = path.read_text(encoding="utf-8").splitlines()
        for at, line in enumerate(lines):
            if match := _COMMENT.search(line):
                held = at if line[: match.start()].strip() else _next_code(lines, at)
                anchors.append(Anchor(match[1], path.relative_to(root), held + 1))
    return anchors


def _next_code(lines: Sequence[str], at: int) -> int:
    """The first line behind comments."""
    return next(n for n in range(at + 1, len(lines)) if lines[n].strip() and not lines[n].lstrip().startswith("#"))


def open_source(text: str, anchor: Anchor) -> Source:
    return PythonSource(text, anchor.line) if anchor.path.suffix == ".py" else TemplateSource(text, anchor.line)


def change(source: Source, mutation: Mutation) -> None:
    """Mutate a source that was opened anew; raises `ValueError` where the mutation does not apply."""
    operator = OPERATORS[mutation.operator]
    places = operator.places(source.roots)
    number = min(places, default=0) if mutation.number is None else mutation.number
    if number not in places:
        raise ValueError(f"`{mutation}` has no place {number}, only {sorted(places)}")
    operator.change(places[number], mutation.code)


def mutated(text: str, anchor: Anchor, mutation: Mutation) -> str:
    """The text of the anchor's file with the mutation."""
    source = open_source(text, anchor)
    change(source, mutation)
    return source.text


def offers(text: str, anchor: Anchor) -> Iterator[tuple[str, str]]:
    """Every mutation of an anchor, and the head of the statement that it makes."""
    for name, operator in OPERATORS.items():
        numbers = [*operator.places(open_source(text, anchor).roots)]
        for number in numbers:
            source = open_source(text, anchor)
            place = operator.places(source.roots)[number]
            offer = name if number == numbers[0] else f"{name} {number}"
            if operator.takes_code:
                yield f"{offer}: ...", f"in place of {ast.unparse(place.node)}"
            else:
                operator.change(place, "")
                yield offer, source.head


class TemplateSource:
    """A template: the anchored line is a string of C++."""

    def __init__(self, text: str, line: int) -> None:
        *self._before, own = text.splitlines(keepends=True)[:line]
        self._after = text.splitlines(keepends=True)[line:]
        self.roots = (Place(None, ast.Expr(ast.Constant(own)), "value"),)

    @property
    def text(self) -> str:
        return "".join([*self._before, self.roots[0].node.value, *self._after])

    @property
    def head(self) -> str:
        return self.roots[0].node.value.strip()


class PythonSource:
    """A module: the anchored nodes of its syntax tree."""

    def __init__(self, text: str, line: int) -> None:
        self._tree = ast.parse(text)
        self.roots = roots_on(self._tree, line)
        self._statement = _statement(self.roots[0])

    @property
    def text(self) -> str:
        return ast.unparse(self._tree) + "\n"

    @property
    def head(self) -> str:
        if not self._statement.exists:
            return ""
        node = copy.copy(self._statement.node)
        for suite in _suites(self._statement):
            setattr(node, suite.field, [])
        return ast.unparse(node).strip()


def roots_on(tree: ast.Module, line: int) -> tuple[Place, ...]:
    """The outermost nodes that start on a line, or else the outermost ones that end there."""
    top = [Place(None, tree, "body", at) for at in range(len(tree.body))]
    roots = tuple(_outermost(top, line, _starts)) or tuple(_outermost(top, line, _ends))
    if not roots:
        raise ValueError(f"nothing starts or ends on line {line}")
    return roots


def _outermost(places: Sequence[Place], line: int, fits: Callable[[Place, int], bool]) -> Iterator[Place]:
    for place in places:
        if fits(place, line):
            yield place
        elif _first_line(place.node) <= line <= getattr(place.node, "end_lineno", line):
            yield from _outermost([*place.below(), *_suites(place)], line, fits)


def _suites(place: Place) -> Iterator[Place]:
    for field in ("body", "cases", "handlers", "orelse", "finalbody"):
        suite = getattr(place.node, field, None)
        for at in range(len(suite) if isinstance(suite, list) else 0):
            yield Place(place, place.node, field, at)


def _statement(place: Place) -> Place:
    while not isinstance(place.node, ast.stmt | ast.match_case | ast.ExceptHandler) and place.owner is not None:
        place = place.owner
    return place


def _first_line(node: ast.AST) -> int:
    """The first line of a node, with its decorators."""
    return min([each.lineno for each in getattr(node, "decorator_list", ())], default=getattr(node, "lineno", 0))


def _starts(place: Place, line: int) -> bool:
    match place.node:
        case ast.match_case(pattern=first) | ast.comprehension(target=first):
            return first.lineno == line
    return getattr(place.node, "lineno", None) == line


def _ends(place: Place, line: int) -> bool:
    """True on the last line of a node; of its head if it has a suite."""
    last = max((getattr(part.node, "end_lineno", 0) for part in place.below()), default=0)
    match place.node:
        case ast.stmt(body=[first, *_]) | ast.ExceptHandler(body=[first, *_]) | ast.match_case(body=[first, *_]):
            return last <= line < first.lineno and line >= getattr(place.node, "lineno", last)
        case ast.comprehension():
            return last == line
    return getattr(place.node, "end_lineno", None) == line
