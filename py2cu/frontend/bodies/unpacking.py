"""Items of sequences to targets: `(a, b), row = item`. Parts of arrays are unpacked element by element.

A part whose extent only the launch knows is checked: `assert x.shape[1] == 4`.
"""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from py2cu import ir
from py2cu.frontend.bodies.scope import Scope
from py2cu.frontend.bodies.sequences import Item, Sequence
from py2cu.frontend.bodies.views import View

Bound = tuple[cst.BaseExpression, "ir.Expr | View"]  # a name or an element, and what it takes


def bind(
    target: cst.BaseExpression,
    item: Item,
    scope: Scope,
    assign: Callable[[cst.BaseExpression, ir.Expr | View], ir.Block],
) -> ir.Block:
    """The assignments of `item` to `target`, by `assign`; some are left out after a diagnostic."""
    checks: list[ir.Assert] = []
    pairs = unpack(target, item, scope, checks)
    return (*checks, *(stmt for part, value in pairs for stmt in assign(part, value)))


def unpack(target: cst.BaseExpression, item: Item, scope: Scope, checks: list[ir.Assert]) -> list[Bound]:
    """Every name and element in `target` with what it takes; none after a diagnostic. `checks` get the assertions."""
    if not isinstance(target, cst.Tuple | cst.List):
        if isinstance(item, tuple):
            value = _as_tuple(item, target, scope)
            return [] if value is None else [(target, value)]
        return [(target, item)]
    if any(isinstance(element, cst.StarredElement) for element in target.elements):
        scope.error("P103", "`*` is not supported in a kernel", target, "write a name for each value")
        return []
    parts = [element.value for element in target.elements]
    items = _items(item, len(parts), target, scope, checks)
    if items is None:
        return []
    return [pair for part, each in zip(parts, items, strict=True) for pair in unpack(part, each, scope, checks)]


def _as_tuple(item: tuple[Item, ...], target: cst.BaseExpression, scope: Scope) -> ir.Expr | None:
    """A tuple for one name: of numbers alone."""
    numbers = tuple(each for each in item if not isinstance(each, tuple | View))
    if len(numbers) == len(item):
        return ir.Tuple(numbers, scope.span_of(target))
    scope.error("P103", "one name takes a number, a part of an array, or a tuple of numbers", target, "unpack it")
    return None


def _items(
    item: Item, count: int, target: cst.Tuple | cst.List, scope: Scope, checks: list[ir.Assert]
) -> tuple[Item, ...] | None:
    """The `count` items of a tuple or of a part of an array; None after a diagnostic."""
    span = scope.span_of(target)
    match item:
        case tuple():
            length: int | None = len(item)
            items = item
        case View():
            length = known_extent(item, scope)
            places = [ir.Constant(place, span, ir.PY_INT) for place in range(count)]
            items = tuple(
                item.at((place,)) if item.rank > 1 else ir.Load(item.array, item.indices((place,)), span)
                for place in places
            )
            if length is None:
                has_count = ir.Compare("==", item.extent(0), ir.Constant(count, span, ir.PY_INT), span)
                checks.append(ir.Assert(has_count, f"{count} values are unpacked", "", span))
        case _:
            scope.error("P103", "a number cannot be unpacked", target, "write one name")
            return None
    if length is not None and length != count:
        scope.error("P103", f"{length} values for {count} names", target, "as many names as values")
        return None
    return items


def known_extent(view: View, scope: Scope) -> int | None:
    """The number of items of a part of an array, where the annotations say it."""
    return _known(view.extent(0), scope)


def known_rounds(sequence: Sequence, scope: Scope) -> int | None:
    """The number of items of a sequence, where the text or the annotations say it."""
    return _known(sequence.rounds, scope)


def _known(extent: ir.Expr, scope: Scope) -> int | None:
    if isinstance(extent, ir.Extent):
        extent = scope.arrays[extent.array].dims[extent.axis]
    return int(extent.value) if isinstance(extent, ir.Constant) else None
