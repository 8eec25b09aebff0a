"""The kinds of sequences: parts of arrays, ranges, tuples, tables, and `enumerate`, `zip` and `reversed` of them.

A `Sequence` has a number of items, and an item at each index. An item is a number, a part of an array, or a tuple of
items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from py2cu import ir
from py2cu.frontend.bodies.sequences.ranges import ONE
from py2cu.frontend.bodies.tuples.items import Item, lengths
from py2cu.frontend.bodies.tuples.values import select_number
from py2cu.frontend.bodies.views import View, minus, plus, smaller
from py2cu.frontend.names.constants import Constants, Real
from py2cu.source import Span


class Sequence(Protocol):
    """Items in order. `rounds` is how many, or a number below one where there are none."""

    @property
    def rounds(self) -> ir.Expr: ...

    def item(self, at: ir.Expr) -> Item:
        """The item at an index from zero to `rounds`."""


@dataclass(frozen=True, slots=True)
class Elements:
    """The elements of a part of an array, or the parts under its first axis."""

    view: View
    span: Span  # of the expression that Python evaluates for each

    @property
    def rounds(self) -> ir.Expr:
        return self.view.extent(0)

    def item(self, at: ir.Expr) -> Item:
        if self.view.rank > 1:
            return self.view.at((at,))
        return self.view.load((at,), self.span)


@dataclass(frozen=True, slots=True)
class Display:
    """A tuple or a list of run-time values that the kernel's text writes out."""

    items: tuple[Item, ...]
    span: Span

    @property
    def rounds(self) -> ir.Expr:
        return ir.Constant(len(self.items), self.span, ir.PY_INT)

    def item(self, at: ir.Expr) -> Item:
        if isinstance(at, ir.Constant) and self.items:
            return self.items[int(at.value)]
        return self._select(self.items, at) if self.items else ir.Constant(0, self.span, ir.PY_INT)

    def _select(self, items: tuple[Item, ...], at: ir.Expr) -> Item:
        """The number that `at` selects; of tuples, one by one."""
        if isinstance(items[0], tuple):
            rows = [item for item in items if isinstance(item, tuple)]
            return tuple(self._select(column, at) for column in zip(*rows, strict=True))
        numbers = tuple(item for item in items if not isinstance(item, tuple | View))
        return select_number(numbers, at, self.span)

    @property
    def is_uniform(self) -> bool:
        """True where a run-time index can choose: numbers, or tuples of equal form."""
        forms = {lengths(item) for item in self.items}
        return len(forms) == 1 and None not in forms


@dataclass(frozen=True, slots=True)
class Table:
    """A tuple of constants. `place` puts it into constant memory, where a run-time index takes an item."""

    values: Constants
    span: Span
    place: Callable[[], str]

    @property
    def rounds(self) -> ir.Expr:
        return ir.Constant(len(self.values), self.span, ir.PY_INT)

    def item(self, at: ir.Expr) -> Item:
        if isinstance(at, ir.Constant):
            return constants(self.values[int(at.value)], self.span)
        return self._loads(self.place(), self.values[0], (at,))

    def _loads(self, array: str, item: Constants | Real, indices: tuple[ir.Expr, ...]) -> Item:
        if not isinstance(item, tuple):
            return ir.Load(array, indices, self.span)
        places = (ir.Constant(place, self.span, ir.PY_INT) for place in range(len(item)))
        return tuple(self._loads(array, part, (*indices, place)) for part, place in zip(item, places, strict=True))


def constants(value: Constants | Real, span: Span) -> Item:
    """A constant, or a tuple of them, as an item."""
    return tuple(constants(item, span) for item in value) if isinstance(value, tuple) else ir.Constant(value, span)


@dataclass(frozen=True, slots=True)
class Zip:
    """As many tuples as the shortest of the parts has items; `is_strict` where all have as many."""

    parts: tuple[Sequence, ...]
    is_strict: bool = False

    @property
    def rounds(self) -> ir.Expr:
        first, *others = [part.rounds for part in self.parts[: 1 if self.is_strict else None]]
        for other in others:
            first = smaller(first, other)
        return first

    def item(self, at: ir.Expr) -> Item:
        return tuple(part.item(at) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Enumerate:
    part: Sequence
    start: ir.Expr

    @property
    def rounds(self) -> ir.Expr:
        return self.part.rounds

    def item(self, at: ir.Expr) -> Item:
        return plus(self.start, at), self.part.item(at)


@dataclass(frozen=True, slots=True)
class Reversed:
    part: Sequence

    @property
    def rounds(self) -> ir.Expr:
        return self.part.rounds

    def item(self, at: ir.Expr) -> Item:
        return self.part.item(minus(minus(self.part.rounds, ONE), at))


def displays(sequence: Sequence) -> Iterator[Display]:
    """The tuples and lists of run-time values that `sequence` consists of; loops index them at run time."""
    match sequence:
        case Display():
            yield sequence
        case Zip(parts=parts):
            for part in parts:
                yield from displays(part)
        case Enumerate(part=part) | Reversed(part=part):
            yield from displays(part)
