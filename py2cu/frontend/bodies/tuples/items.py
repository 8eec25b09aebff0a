"""Items of sequences: numbers, parts of arrays, and tuples of items."""

from __future__ import annotations

from typing import TypeAlias

from py2cu import ir
from py2cu.frontend.bodies.views import View
from py2cu.source import Span

Item: TypeAlias = "ir.Expr | View | tuple[Item, ...]"


def as_item(value: ir.Expr) -> Item:
    """A number, or the items of a tuple."""
    return tuple(map(as_item, value.items)) if isinstance(value, ir.Tuple) else value


def as_value(item: Item, span: Span) -> ir.Expr | None:
    """A number or a tuple of numbers; None of what holds a part of an array."""
    if isinstance(item, View):
        return None
    if not isinstance(item, tuple):
        return item
    values = [as_value(each, span) for each in item]
    known = tuple(value for value in values if value is not None)
    return ir.Tuple(known, span) if len(known) == len(values) else None


def lengths(item: Item) -> object:
    """The lengths of nested tuples; None of what holds a part of an array."""
    if isinstance(item, View):
        return None
    if not isinstance(item, tuple):
        return ()
    forms = tuple(map(lengths, item))
    return None if None in forms else forms
