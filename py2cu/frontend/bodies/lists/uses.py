"""Refusals of what Python does with lists and a local array cannot."""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from py2cu import ir
from py2cu.frontend.bodies.parts import is_list_part
from py2cu.frontend.bodies.scope import Scope
from py2cu.frontend.bodies.views import View
from py2cu.frontend.names.syntax import nodes_in, source_text
from py2cu.ir.visit import all_expressions, assigned_names, statements


def refuses_arguments(call: cst.Call, arguments: Iterable[object], scope: Scope) -> bool:
    """True, after a diagnostic, for a call that passes a list to a device function."""
    passes_list = any(isinstance(value, cst.BaseExpression) and is_list_part(value, scope) for value in arguments)
    if passes_list:
        what, hint = "functions do not take lists in a kernel", "pass `local(4, np.float32)`, or the elements"
        scope.error("P105", what, call, hint)
    return passes_list


def refuse_method(call: cst.Call, name: str, scope: Scope) -> None:
    hint = "its length is constant, `len(…)`: make it as long as it gets, and count in an integer"
    scope.error("P105", f"a list has no `.{name}` in a kernel", call, hint)


def refuses_exchange(part: View, node: cst.BaseExpression, assigned: frozenset[str], scope: Scope) -> bool:
    """True, after a diagnostic, for a list whose name takes another list while its elements are used."""
    name = scope.views.lists.get(part.array)
    if name in assigned:
        what = f"the loop runs over the list that `{name}` is before it, and the loop assigns another one"
        scope.error("P203", what, node, "use another name for the new list")
    return name in assigned


def refuse_changed_items(node: cst.BaseExpression, start: ir.Block, body: ir.Block, scope: Scope) -> None:
    """Report a loop over a list comprehension whose body changes what the comprehension reads.

    Python makes the list before the loop. `start`, which begins each round, computes the item of the round.
    """
    if not start or (comprehension := _comprehension(node)) is None:
        return
    written = {stmt.array for stmt in statements(body) if isinstance(stmt, ir.Store)}
    written |= {each.array for each in all_expressions(body) if isinstance(each, ir.Atomic)}
    written |= {each.id for each in all_expressions(body) if isinstance(each, ir.ArrayName)}  # by a function
    changed = {*map(scope.base_array, written), *assigned_names(body)}
    for each in all_expressions(start):
        match each:
            case ir.Load(array=name) | ir.ArrayName(id=name) | ir.Name(id=name) if scope.base_array(name) in changed:
                what = f"Python makes this list before the loop, which changes `{scope.base_array(name)}`"
                hint = f"name the list before the loop: `items = {source_text(comprehension)}`"
                scope.error("P203", what, comprehension, hint)
                return


def _comprehension(node: cst.BaseExpression) -> cst.ListComp | None:
    """The first list comprehension in `node`."""
    return next((each for each in nodes_in(node) if isinstance(each, cst.ListComp)), None)
