"""A `float` parameter that only ever meets float32 elements is passed to the kernel as one.

    y[i] = Convert(a, float32) * x[i]     →     y[i] = a * x[i]      with `float a` in the kernel's signature

The launcher still takes a double and rounds it once, which is what every use would have done.
"""

from __future__ import annotations

from dataclasses import replace

from py2cu.diagnostics import Reporter
from py2cu.ir.nodes import Convert, Expr, Name
from py2cu.ir.statements import Assign, Kernel
from py2cu.ir.types import PY_FLOAT, ElementType
from py2cu.ir.visit import all_expressions, rebuild_block, statements


def narrow_parameters(kernel: Kernel, reporter: Reporter) -> Kernel:
    """The kernel with `narrowed` naming such parameters and their element type."""
    assigned = {stmt.name for stmt in statements(kernel.body) if isinstance(stmt, Assign)}
    narrowed: dict[str, ElementType] = {}
    for parameter in kernel.parameters:
        if parameter.type == PY_FLOAT and parameter.name not in assigned:
            type_ = _only_type(kernel, parameter.name)
            if type_ is not None:
                narrowed[parameter.name] = type_

    def narrow(expr: Expr) -> Expr:
        match expr:
            case Convert(value=Name(id=name)) if name in narrowed:
                return replace(expr.value, type=narrowed[name])
            case _:
                return expr

    return replace(kernel, body=rebuild_block(kernel.body, narrow), narrowed=tuple(narrowed.items()))


def _only_type(kernel: Kernel, name: str) -> ElementType | None:
    """The one element type that every use of `name` converts it to."""
    nodes = tuple(all_expressions(kernel.body))
    uses = sum(isinstance(node, Name) and node.id == name for node in nodes)
    found = [node.type for node in nodes if isinstance(node, Convert) and node.value == Name(name, type=PY_FLOAT)]
    types = {type_ for type_ in found if isinstance(type_, ElementType)}
    return types.pop() if len(types) == 1 and len(found) == uses else None
