"""Where a thread is, as Numba says it: `cuda.grid(2)`, `bid, tid = cuda.blockIdx, cuda.threadIdx`.

In: a call, or a function's body. Out: the place as IR; the launch object of each such name, and whether a statement
only gives such names. A name counts that is assigned once and read by its axes: a bare object is the number on x, which
is a local as any other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

import libcst as cst

from py2cu import ir
from py2cu.frontend.declarations.array_extents import assignments_to_names
from py2cu.frontend.names.environment import Environment
from py2cu.frontend.names.syntax import Statement, flatten, nodes_in
from py2cu.source import Span

_AXES = ("x", "y", "z")


def read_position(call: cst.Call, objects: Sequence[str], environment: Environment, span: Span) -> ir.Expr | None:
    """`cuda.grid(2)`: a number for each of the first axes, a tuple of several; None for other arguments."""
    match call.args:
        case [cst.Arg(value=value, star="")] if type(count := environment.constant(value)) is int and (
            1 <= count <= ir.MAX_AXES
        ):
            numbers: list[ir.Expr] = []
            for axis in _AXES[:count]:
                factor, other, *added = (ir.LaunchIndex(name, axis, span) for name in objects)
                product = ir.Binary("*", factor, other, span)
                numbers.append(ir.Binary("+", product, added[0], span) if added else product)
            return ir.Tuple(tuple(numbers), span) if count > 1 else numbers[0]
        case _:
            return None


def launch_aliases(
    body: Iterable[Statement], once: Collection[str], launch_object: Callable[[cst.BaseExpression], str | None]
) -> dict[str, str]:
    """By name, the launch object that a statement of `body` assigns to it; `once` are the names that one assigns."""
    statements = tuple(body)
    found: dict[str, str] = {}
    for statement in flatten(statements):
        pairs = [(target.value, value) for target, value in assignments_to_names((statement,))]
        if not all(isinstance(value, cst.Name | cst.Attribute) for _, value in pairs):
            continue
        objects = {name: launch_object(value) for name, value in pairs}
        if all(launched is not None and name in once for name, launched in objects.items()):
            found |= {name: launched for name, launched in objects.items() if launched is not None}
    by_axis = {
        node.value.value
        for statement in (statements if found else ())
        for node in nodes_in(statement)
        if isinstance(node, cst.Attribute) and isinstance(node.value, cst.Name) and node.attr.value in _AXES
    }
    return {name: launched for name, launched in found.items() if name in by_axis}


def gives_aliases(statement: cst.Assign, aliases: Collection[str]) -> bool:
    """Whether the statement does nothing but give launch objects other names."""
    names = [target.value for target, _ in assignments_to_names((statement,))]
    return bool(names) and all(name in aliases for name in names)
