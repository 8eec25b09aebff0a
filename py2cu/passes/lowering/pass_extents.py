"""Adds the extents that a device function uses to its parameters, and the arguments to every call.

def blur(x, r, c): … x[r, c + 1] …      float blur(const float* x, index_t r, index_t c, index_t x_size1)
blur(image, i, j)                       blur(image, i, j, w)
"""

from __future__ import annotations

from dataclasses import replace

from py2cu import ir
from py2cu.analysis.call_graph import in_recursive_scc
from py2cu.analysis.ranges import Ranges
from py2cu.diagnostics import Reporter
from py2cu.ir.abi.parameters import Parameter
from py2cu.ir.rewrite import rebuild_block, with_fields
from py2cu.ir.visit import all_expressions, assigned_names, statements, walk
from py2cu.passes.lowering.integer_widths import extent_type, typed_extent


def pass_extents(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """The kernel with functions that take only the parameters and extents they use; recursive functions take all."""
    if not kernel.functions:
        return kernel
    rewritten: dict[str, ir.Kernel] = {}
    recursive = in_recursive_scc(kernel.functions)
    with_calls = _parameters_with_calls(kernel)
    for function in kernel.functions:
        function = _with_arguments(function, rewritten, kernel)
        rewritten[function.key] = _with_used_parameters(function, with_calls[function.key], function.key in recursive)
    return replace(_with_arguments(kernel, rewritten, kernel), functions=tuple(rewritten.values()))


def _parameters_with_calls(kernel: ir.Kernel) -> dict[str, set[str]]:
    """By function, the parameters with calls in their arguments: these may have side effects, used or not."""
    functions = {function.key: function for function in kernel.functions}
    names_by_function: dict[str, set[str]] = {key: set() for key in functions}
    for caller in (kernel, *kernel.functions):
        for call in (node for node in all_expressions(caller.body) if isinstance(node, ir.DeviceCall)):
            arguments = caller.bind(call, functions[call.function])
            names_by_function[call.function] |= {
                n for n, arg in arguments.items() if any(isinstance(e, ir.DeviceCall) for e in walk(arg))
            }
    return names_by_function


def _with_used_parameters(function: ir.Kernel, with_calls: set[str], all_of_them: bool) -> ir.Kernel:
    nodes = tuple(all_expressions(function.body))
    used = {node.id for node in nodes if isinstance(node, ir.Name | ir.ArrayName)}
    used |= {node.array for node in nodes if isinstance(node, ir.Load | ir.Atomic)}
    used |= {stmt.array for stmt in statements(function.body) if isinstance(stmt, ir.Store)}
    used |= set(assigned_names(function.body))
    # rule: unused-parameter
    used_parameters = tuple(p for p in function.parameters if all_of_them or p.name in used | with_calls)
    extents = tuple(Parameter(n, extent_type(function, n)) for n in function.dims if all_of_them or n in used)
    arrays = {p.name for p in used_parameters}
    strides = tuple(stride for stride in function.strides if stride.array in arrays)
    return with_fields(function, parameters=used_parameters + extents, strides=strides)


def _with_arguments(caller: ir.Kernel, rewritten: dict[str, ir.Kernel], kernel: ir.Kernel) -> ir.Kernel:
    """`caller` with every argument that the functions take."""
    before = {function.key: function for function in kernel.functions}

    def change(expr: ir.Expr) -> ir.Expr:
        if not isinstance(expr, ir.DeviceCall):
            return expr
        function = before[expr.function]
        arguments = caller.bind(expr, function)
        extents = {name: typed_extent(caller, arguments[name], lambda: Ranges(caller)) for name in function.dims}
        arguments |= extents
        parameters = rewritten[expr.function].parameters if expr.function in rewritten else None
        names = [p.name for p in parameters] if parameters is not None else list(arguments)
        return replace(expr, args=tuple(arguments[name] for name in names))

    return with_fields(caller, body=rebuild_block(caller.body, change))
