"""Tuple parameters: a scalar parameter for each number, and the tuple of these in the body.

In: the name of a tuple; the numbers of tuples. Out: names of scalar parameters; assignments at the start of the body.
"""

from __future__ import annotations

from collections.abc import Mapping

import libcst as cst

from py2cu import ir
from py2cu.frontend.bodies.scope import Scope
from py2cu.frontend.names.syntax import assigned_names
from py2cu.ir.names import free_name


def number_names(name: str, count: int, taken: set[str]) -> tuple[str, ...]:
    """`name_0`, `name_1` and so on, distinct from `taken`, to which they are added."""
    numbers = tuple(free_name(f"{name}_{place}", taken) for place in range(count))
    taken.update(numbers)
    return numbers


def bind_tuples(function: cst.FunctionDef, tuples: Mapping[str, ir.Expr], scope: Scope) -> ir.Block:
    """Bind each name to its tuple. If the function assigns the name, the tuple is first assigned to a local."""
    if not tuples:
        return ()
    assigned = set(assigned_names(function.body.body))
    scope.bindings.update({name: value for name, value in tuples.items() if name not in assigned})
    span = scope.span_of(function.name)
    return tuple(scope.assign(name, value, span) for name, value in tuples.items() if name in assigned)
