"""Items of sequences to targets: `(a, *b), row = item`. Parts of arrays are unpacked element by element.

A part whose extent only the launch knows is checked: `assert x.shape[1] == 4`. A starred name takes a tuple.
"""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from py2cu import ir
from py2cu.builtins.casts import INDEX
from py2cu.frontend.bodies.scope import Scope
from py2cu.frontend.bodies.sequences.kinds import Sequence
from py2cu.frontend.bodies.tuples.items import Item, as_value
from py2cu.frontend.bodies.views import View, larger, minus, smaller
from py2cu.frontend.hints.targets import rewrite_names, unpacked_names

Pair = tuple[cst.BaseExpression, "ir.Expr | View"]  # a name or an element, and what it takes


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


def unpack(target: cst.BaseExpression, item: Item, scope: Scope, checks: list[ir.Assert]) -> list[Pair]:
    """Pair each name and element of `target` with its value; none after a diagnostic. Add assertions to `checks`."""
    if not isinstance(target, cst.Tuple | cst.List):
        if isinstance(item, tuple):
            value = _as_tuple(item, target, scope)
            return [] if value is None else [(target, value)]
        return [(target, item)]
    items = _items(item, target, scope, checks)
    parts = None if items is None else distribute(target, items, target, scope)
    if parts is None:
        return []
    return [pair for part, each in parts for pair in unpack(part, each, scope, checks)]


def distribute(
    target: cst.Tuple | cst.List, items: tuple[Item, ...], value: cst.BaseExpression, scope: Scope
) -> list[tuple[cst.BaseExpression, Item]] | None:
    """Each part of `target` with its item, a starred one with a tuple; None, after a diagnostic, if counts differ."""
    parts, count = [element.value for element in target.elements], len(items)
    starred = [at for at, element in enumerate(target.elements) if isinstance(element, cst.StarredElement)]
    if (count < len(parts) - 1) if starred else (count != len(parts)):
        least = f"at least {len(parts) - 1}" if starred else str(len(parts))
        scope.error("P103", f"{count} values for {least} names", value, rewrite_names(parts, count))
        return None
    if starred:
        first, last = starred[0], count - (len(parts) - 1 - starred[0])
        items = (*items[:first], items[first:last], *items[last:])
    return list(zip(parts, items, strict=True))


def _as_tuple(item: tuple[Item, ...], target: cst.BaseExpression, scope: Scope) -> ir.Expr | None:
    """A tuple for one name: of numbers, and of tuples of them."""
    value = as_value(item, scope.span_of(target))
    if value is None:
        what = "one name takes a number, a part of an array, or a tuple of numbers"
        scope.error("P103", what, target, f"unpack it: `{unpacked_names(target, len(item))}`")
    return value


def _items(item: Item, target: cst.Tuple | cst.List, scope: Scope, checks: list[ir.Assert]) -> tuple[Item, ...] | None:
    """The items of a tuple or of a part of an array; None after a diagnostic."""
    span, count = scope.span_of(target), len(target.elements)
    match item:
        case tuple():
            return item
        case View():
            length = known_extent(item, scope)
            if length is None and any(isinstance(element, cst.StarredElement) for element in target.elements):
                scope.error("P103", "`*` needs a known number of values", target, "write the extent in the annotation")
                return None
            places = [ir.Constant(place, span, ir.PY_INT) for place in range(count if length is None else length)]
            if length is None:
                has_count = ir.Compare("==", item.extent(0), ir.Constant(count, span, ir.PY_INT), span)
                checks.append(ir.Assert(has_count, (f"{count} values are unpacked",), "", span))
            return tuple(item.at((place,)) if item.rank > 1 else item.load((place,), span) for place in places)
        case _:
            names = [element.value for element in target.elements]
            scope.error("P103", "a number cannot be unpacked", target, rewrite_names(names, 1))
            return None


def known_extent(view: View, scope: Scope) -> int | None:
    """The number of items of a part of an array that is no slice, where the annotations say it."""
    extent = view.extent(0)
    is_slice = view.start is not None or not isinstance(extent, ir.Extent | ir.Constant)
    return None if is_slice else known_number(extent, scope)


def known_rounds(sequence: Sequence, scope: Scope) -> int | None:
    """The number of items of a sequence, where the text or the annotations say it."""
    return known_number(sequence.rounds, scope)


def known_number(extent: ir.Expr, scope: Scope) -> int | None:
    """The value of an extent, where the text or the annotations say it."""
    number = dimension(extent, scope)
    return int(number.value) if isinstance(number, ir.Constant) else None


def dimension(extent: ir.Expr, scope: Scope) -> ir.Expr:
    """An extent in terms of the dimensions of the annotations."""
    match extent:
        case ir.Extent(array=array, axis=axis):
            return scope.arrays[array].dims[axis]
        case ir.Call(function=function, args=(number,)) if function == INDEX:
            return dimension(number, scope)
        case ir.Binary(op="-", left=left, right=right):
            return minus(dimension(left, scope), dimension(right, scope))
        case ir.Call(function="builtins.min", args=(left, right)):
            return smaller(dimension(left, scope), dimension(right, scope))
        case ir.Call(function="builtins.max", args=(left, right)):
            return larger(dimension(left, scope), dimension(right, scope))
        case _:
            return extent
