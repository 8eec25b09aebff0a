"""Whole lists → the elements of one array stored into another.

prev = curr[:]            →   for k in range(n): prev[k] = curr[k]
prev, curr = curr, prev   →   for k in range(n): prev_k = prev[k]; prev[k] = curr[k]; curr[k] = prev_k

`prev = curr` makes `prev` a second name for one list. It is a copy where nothing reads `curr` after it: `curr` is a
list of this block, no later statement of the block has the name, and no part of the list has another one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import libcst as cst

from py2cu import ir
from py2cu.frontend.bodies.scope import Scope
from py2cu.frontend.bodies.sequences.ranges import ONE
from py2cu.frontend.bodies.views import ZERO
from py2cu.frontend.names.syntax import is_named, nodes_in
from py2cu.source import Span

_Indices = tuple[ir.Expr, ...]


def copied_list(node: cst.BaseExpression, scope: Scope) -> str | None:
    """The array of the list that `node` copies: `v[:]`, `v.copy()` or `list(v)`; None for anything else.

    None for a list of lists, too: in Python the copy has the rows of the original.
    """
    match node:
        case cst.Subscript(
            value=cst.Name(value=name), slice=[cst.SubscriptElement(cst.Slice(lower=None, upper=None, step=None))]
        ):
            pass
        case cst.Call(func=cst.Attribute(value=cst.Name(value=name), attr=cst.Name("copy")), args=[]):
            pass
        case cst.Call(func=func, args=[cst.Arg(value=cst.Name(value=name), keyword=None, star="")]) if (
            scope.environment.qualify(func) == "builtins.list"
        ):
            pass
        case _:
            return None
    array = array_of_list(name, scope)
    return array if array is not None and len(scope.arrays[array].dims) == 1 else None


def moved_list(node: cst.BaseExpression, following: Sequence[cst.BaseStatement], scope: Scope) -> str | None:
    """The array of the list that the name `node` stands for, if no statement after this one reads the name; else None.

    `following` are this statement and those behind it in its block.
    """
    if not isinstance(node, cst.Name) or node.value in scope.views.outer:
        return None
    array = array_of_list(node.value, scope)
    has_parts = any(view.array == array and name != node.value for name, view in scope.views.views.items())
    is_read = any(is_named(each, node.value) for statement in following[1:] for each in nodes_in(statement))
    return None if has_parts or is_read else array


def array_of_list(name: str, scope: Scope) -> str | None:
    view = scope.views.named_list(name)
    return None if view is None else view.array


def copy_elements(target: str, source: str, scope: Scope, span: Span) -> ir.Block:
    """The loop that stores each element of `source` into `target`, an array with the same extents."""
    return _each_element(scope, target, span, lambda at: (ir.Store(target, at, ir.Load(source, at, span), span),))


def exchange_elements(sources: Mapping[str, str], scope: Scope, span: Span) -> ir.Block:
    """The loop that stores the elements of several arrays into each other: `sources` gives the source of each target.

    All have the same extents, and each is a target and a source.
    """
    (first, source), *others = sources.items()

    def exchanged(place: _Indices) -> ir.Block:
        saved = {array: ir.Assign(scope.fresh(f"{array}_k"), ir.Load(array, place, span), span) for _, array in others}
        return (
            *saved.values(),
            ir.Store(first, place, ir.Load(source, place, span), span),
            *(ir.Store(target, place, ir.Name(saved[array].name, span), span) for target, array in others),
        )

    return _each_element(scope, first, span, exchanged)


def _each_element(scope: Scope, array: str, span: Span, block: Callable[[_Indices], ir.Block]) -> ir.Block:
    extents = scope.arrays[array].dims
    places = tuple(ir.Name(scope.fresh("k"), span) for _ in extents)
    body = block(places)
    for place, extent in zip(reversed(places), reversed(extents), strict=True):
        body = (ir.For(place.id, ZERO, extent, ONE, body, span),)
    return body
