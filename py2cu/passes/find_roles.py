"""Says of every array whether the kernel reads it, writes it, or makes it.

out[i] = x[i]       x: input; out: output, since it is only written and x fixes its shape
y[i] += x[i]        y: inout, since it is read
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from py2cu.diagnostics import Reporter
from py2cu.ir.extents import Parameter, Role
from py2cu.ir.nodes import ArrayName, Invoke, Load
from py2cu.ir.statements import Assert, Kernel, Print, Store
from py2cu.ir.types import PY_INT, ArrayType
from py2cu.ir.visit import all_expressions, names_in, statements


def find_roles(kernel: Kernel, reporter: Reporter) -> Kernel:
    """The kernel with each parameter's `Role`; a kernel that writes nothing is refused."""
    used = {function.key: function for function in kernel.functions}
    stored, loaded = _stored(kernel, used), _loaded(kernel, used)
    kernel = replace(kernel, functions=tuple(_with_roles(function, used) for function in kernel.functions))
    speaks = kernel.arrays and any(isinstance(stmt, Print | Assert) for stmt in statements(kernel.body))
    if not (stored or speaks or reporter.failed):
        reporter.error("P407", f"`{kernel.name}` writes no array, so it has no effect", kernel.span, "store its result")
    inits = {name for name, _ in kernel.inits}
    makeable = {name for name in stored if name not in loaded or name in inits}
    allocated = _with_known_shape(kernel, makeable)

    def role(parameter: Parameter) -> Role:
        if parameter.name in allocated:
            return Role.OUTPUT
        return Role.INOUT if parameter.name in stored else Role.INPUT

    return replace(kernel, parameters=tuple(replace(p, role=role(p)) for p in kernel.parameters))


def _with_known_shape(kernel: Kernel, makeable: set[str]) -> set[str]:
    """Those arrays whose every dimension an argument tells; one that is not made itself tells dimensions."""
    while True:
        given = [p for p in kernel.arrays if p.name not in makeable]
        told = {name for p in given if isinstance(p.type, ArrayType) for dim in p.type.dims for name in names_in(dim)}
        told |= {p.name for p in kernel.parameters if p.type == PY_INT}
        variables = {p.type.dtype.variable for p in given if isinstance(p.type, ArrayType)} | {None}
        left = {
            name
            for name in makeable
            if all(set(names_in(dim)) <= told for dim in kernel.array_type(name).dims)
            and kernel.array_type(name).dtype.variable in variables
        }
        if left == makeable:
            # Without any array given there is no device to make one on.
            return makeable if given else set()
        makeable = left


def _with_roles(function: Kernel, used: dict[str, Kernel]) -> Kernel:
    """A device function makes no arrays: it reads what it is given, or writes to it."""
    stored = _stored(function, used)
    parameters = (replace(p, role=Role.INOUT if p.name in stored else Role.INPUT) for p in function.parameters)
    return replace(function, parameters=tuple(parameters))


def _stored(caller: Kernel, used: dict[str, Kernel]) -> set[str]:
    """The arrays that `caller` writes to, or the functions that it hands them to."""
    own = {stmt.array for stmt in statements(caller.body) if isinstance(stmt, Store)}
    return own | _handed_over(caller, used, _stored)


def _loaded(caller: Kernel, used: dict[str, Kernel]) -> set[str]:
    own = {node.array for node in all_expressions(caller.body) if isinstance(node, Load)}
    return own | _handed_over(caller, used, _loaded)


def _handed_over(
    caller: Kernel, used: dict[str, Kernel], touched: Callable[[Kernel, dict[str, Kernel]], set[str]]
) -> set[str]:
    """The arrays whose parameter in a called function is among those `touched` there."""
    found: set[str] = set()
    for node in all_expressions(caller.body):
        if isinstance(node, Invoke) and node.function in used:
            function = used[node.function]
            inner = touched(function, {key: value for key, value in used.items() if value is not function})
            pairs = zip(function.parameters, node.args, strict=True)
            found |= {arg.id for p, arg in pairs if p.name in inner and isinstance(arg, ArrayName)}
    return found
