"""Infers the role of every array: input, output or both.

out[i] = x[i]       x: input; out: output, since it is only written and x fixes its shape
out[i] = seed * i   out: factory, since it is only written and the call's numbers fix its shape
y[i] += x[i]        y: inout, since it is read
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from py2cu import ir
from py2cu.analysis.signatures import determined_dims
from py2cu.diagnostics import Reporter
from py2cu.ir.abi.parameters import Parameter, Role
from py2cu.ir.rewrite import with_fields
from py2cu.ir.visit import all_expressions, names_in, statements


def infer_roles(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """The kernel with each parameter's `Role`."""
    all_stored = accessed_arrays(kernel, stored_arrays)
    parameters = {p.name for p in kernel.parameters}
    stored, loaded = all_stored[kernel.key] & parameters, accessed_arrays(kernel, _loaded)[kernel.key]
    for function in (kernel, *kernel.functions):
        _refuse_stores_to_tables(function, all_stored[function.key], reporter)
    functions = tuple(_with_roles(function, all_stored[function.key]) for function in kernel.functions)
    kernel = with_fields(kernel, functions=functions)
    inits = {name for name, _ in kernel.inits}
    for parameter in kernel.arrays:
        if parameter.name in inits and parameter.name not in stored and not reporter.failed:  # rule: refused-init
            what = f"`init` fills arrays that the kernel writes, and `{parameter.name}` is only read"
            reporter.error("P106", what, parameter.span, f"leave `{parameter.name}` out of `init`")
    optional = {p.name for p in kernel.optional_arrays}
    allocatable = {name for name in stored - optional - kernel.passed if name not in loaded or name in inits}
    allocated = _with_known_shape(kernel, allocatable)
    # An op runs on the device of a tensor. Without one, a call in Python allocates on torch's default device.
    names_device = any(p.name not in allocated and not p.may_be_none for p in kernel.arrays)

    def role(parameter: Parameter) -> Role:
        if parameter.name in allocated:
            return Role.OUTPUT if names_device else Role.FACTORY
        return Role.INOUT if parameter.name in stored | kernel.passed else Role.INPUT  # rule: role-of-instances

    return with_fields(kernel, parameters=tuple(replace(p, role=role(p)) for p in kernel.parameters))


def _with_known_shape(kernel: ir.Kernel, allocatable: set[str]) -> set[str]:
    """The arrays of `allocatable` whose dimensions follow from what the caller passes.

    The caller passes the integer parameters and every array that is not in the result.
    """
    while True:
        passed = [p for p in kernel.arrays if p.name not in allocatable and not p.may_be_none]
        known = determined_dims(passed, (p.name for p in kernel.parameters if p.type == ir.PY_INT))
        variables = {p.type.dtype.variable for p in passed if isinstance(p.type, ir.ArrayType)} | {None}
        remaining = {
            name
            for name in allocatable
            if all(set(names_in(dim)) <= known for dim in kernel.array_type(name).dims)
            and kernel.array_type(name).dtype.variable in variables
        }
        if remaining == allocatable:
            return allocatable
        allocatable = remaining


def _refuse_stores_to_tables(function: ir.Kernel, stored: set[str], reporter: Reporter) -> None:
    """Report the arrays in constant memory that `function`, or one that it calls, stores to."""
    for table in function.array_decls:
        if table.space is ir.Space.CONSTANT and table.name in stored:
            what = f"`{table.name}` lies in constant memory, and cannot be changed"
            reporter.within(function.origin).error("P203", what, table.span, "copy it into a `local` array")


def _with_roles(function: ir.Kernel, stored: set[str]) -> ir.Kernel:
    """A device function with its roles; it allocates no arrays, so none is an output."""
    parameters = (replace(p, role=Role.INOUT if p.name in stored else Role.INPUT) for p in function.parameters)
    return with_fields(function, parameters=tuple(parameters))


def stored_arrays(caller: ir.Kernel) -> set[str]:
    """The arrays that `caller` itself writes; of a view, the array that it is of."""
    updated = {caller.base_array(node.array) for node in all_expressions(caller.body) if isinstance(node, ir.Atomic)}
    # rule: view-stored
    return updated | {caller.base_array(stmt.array) for stmt in statements(caller.body) if isinstance(stmt, ir.Store)}


def _loaded(caller: ir.Kernel) -> set[str]:
    return {caller.base_array(n.array) for n in all_expressions(caller.body) if isinstance(n, ir.Load | ir.Atomic)}


def accessed_arrays(kernel: ir.Kernel, accessed_by: Callable[[ir.Kernel], set[str]]) -> dict[str, set[str]]:
    """By key ("" for the kernel), the arrays that each function accesses, itself or in a callee.

    A function comes before its callers, so that one round is enough unless functions call each other in a ring.
    """
    callers = {caller.key: caller for caller in (*kernel.functions, kernel)}
    accessed = {key: accessed_by(caller) for key, caller in callers.items()}
    if not kernel.functions:
        return accessed
    while True:
        before = {key: len(names) for key, names in accessed.items()}
        for key, caller in callers.items():
            for node in all_expressions(caller.body):
                if isinstance(node, ir.DeviceCall):
                    pairs = zip(callers[node.function].parameters, node.args, strict=True)
                    inner = accessed[node.function]
                    # rule: recursion-accesses
                    accessed[key] |= {arg.id for p, arg in pairs if isinstance(arg, ir.ArrayName) and p.name in inner}
        if before == {key: len(names) for key, names in accessed.items()}:
            return accessed
