"""Infers the role of every array: input, output or both.

out[i] = x[i]       x: input; out: output, since it is only written and x fixes its shape
y[i] += x[i]        y: inout, since it is read
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from py2cu import ir
from py2cu.diagnostics import Reporter
from py2cu.ir.abi.parameters import Parameter, Role
from py2cu.ir.rewrite import with_fields
from py2cu.ir.visit import all_expressions, names_in, statements


def infer_roles(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """The kernel with each parameter's `Role`; a kernel that writes nothing is refused."""
    all_stored = _touched(kernel, _stored)
    parameters = {p.name for p in kernel.parameters}
    stored, loaded = all_stored[kernel.key] & parameters, _touched(kernel, _loaded)[kernel.key]
    functions = tuple(_with_roles(function, all_stored[function.key]) for function in kernel.functions)
    kernel = with_fields(kernel, functions=functions)
    speaks = kernel.arrays and any(isinstance(stmt, ir.Print | ir.Assert) for stmt in statements(kernel.body))
    if not (stored or speaks or reporter.failed):
        reporter.error("P407", f"`{kernel.name}` writes no array, so it has no effect", kernel.span, "store its result")
    inits = {name for name, _ in kernel.inits}
    for parameter in kernel.arrays:
        if parameter.name in inits and parameter.name not in stored and not reporter.failed:
            what = f"`init` fills arrays that the kernel writes, and `{parameter.name}` is only read"
            reporter.error("P106", what, parameter.span, f"leave `{parameter.name}` out of `init`")
    makeable = {name for name in stored if name not in loaded or name in inits}
    allocated = _with_known_shape(kernel, makeable)

    def role(parameter: Parameter) -> Role:
        if parameter.name in allocated:
            return Role.OUTPUT
        return Role.INOUT if parameter.name in stored else Role.INPUT

    return with_fields(kernel, parameters=tuple(replace(p, role=role(p)) for p in kernel.parameters))


def _with_known_shape(kernel: ir.Kernel, makeable: set[str]) -> set[str]:
    """Those arrays whose every dimension an argument tells; one that is not made itself tells dimensions."""
    while True:
        passed = [p for p in kernel.arrays if p.name not in makeable]
        known = {
            name for p in passed if isinstance(p.type, ir.ArrayType) for dim in p.type.dims for name in names_in(dim)
        }
        known |= {p.name for p in kernel.parameters if p.type == ir.PY_INT}
        variables = {p.type.dtype.variable for p in passed if isinstance(p.type, ir.ArrayType)} | {None}
        left = {
            name
            for name in makeable
            if all(set(names_in(dim)) <= known for dim in kernel.array_type(name).dims)
            and kernel.array_type(name).dtype.variable in variables
        }
        if left == makeable:
            # Without any array given there is no device to make one on.
            return makeable if passed else set()
        makeable = left


def _with_roles(function: ir.Kernel, stored: set[str]) -> ir.Kernel:
    """A device function makes no arrays: it reads what it is given, or writes to it."""
    parameters = (replace(p, role=Role.INOUT if p.name in stored else Role.INPUT) for p in function.parameters)
    return with_fields(function, parameters=tuple(parameters))


def _stored(caller: ir.Kernel) -> set[str]:
    changed_ = {caller.base_array(node.array) for node in all_expressions(caller.body) if isinstance(node, ir.Atomic)}
    return changed_ | {caller.base_array(stmt.array) for stmt in statements(caller.body) if isinstance(stmt, ir.Store)}


def _loaded(caller: ir.Kernel) -> set[str]:
    return {
        caller.base_array(node.array) for node in all_expressions(caller.body) if isinstance(node, ir.Load | ir.Atomic)
    }


def _touched(kernel: ir.Kernel, touched_by: Callable[[ir.Kernel], set[str]]) -> dict[str, set[str]]:
    """By key, the arrays that the kernel (its key is empty) and its functions touch, or hand to one that does.

    A function comes before its callers, so that one round is enough unless functions call each other in a ring.
    """
    callers = {caller.key: caller for caller in (*kernel.functions, kernel)}
    touched = {key: touched_by(caller) for key, caller in callers.items()}
    if not kernel.functions:
        return touched
    while True:
        before = {key: len(names) for key, names in touched.items()}
        for key, caller in callers.items():
            for node in all_expressions(caller.body):
                if isinstance(node, ir.DeviceCall):
                    pairs = zip(callers[node.function].parameters, node.args, strict=True)
                    inner = touched[node.function]
                    touched[key] |= {arg.id for p, arg in pairs if isinstance(arg, ir.ArrayName) and p.name in inner}
        if before == {key: len(names) for key, names in touched.items()}:
            return touched
