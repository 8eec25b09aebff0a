"""Parameters that are tuples: each of their numbers is a parameter of its own.

In: the name of a tuple, or tuples of the names of numbers. Out: names for the numbers; what the body sees as the tuple.
"""

from __future__ import annotations

from collections.abc import Mapping

import libcst as cst

from py2cu import ir
from py2cu.frontend.bodies.scope import Scope
from py2cu.frontend.names.syntax import assigned_names
from py2cu.ir.names import free_name


def number_names(name: str, count: int, taken: set[str]) -> tuple[str, ...]:
    """`name_0`, `name_1` and so on, but none of `taken`, which they join."""
    numbers = tuple(free_name(f"{name}_{place}", taken) for place in range(count))
    taken.update(numbers)
    return numbers


def bind_tuples(function: cst.FunctionDef, tuples: Mapping[str, ir.Expr], scope: Scope) -> ir.Block:
    """Names of tuples stand for their numbers; one that the function assigns is a local from the start."""
    if not tuples:
        return ()
    assigned = set(assigned_names(function.body.body))
    scope.bound.update({name: value for name, value in tuples.items() if name not in assigned})
    span = scope.span_of(function.name)
    return tuple(scope.assign(name, value, span) for name, value in tuples.items() if name in assigned)
