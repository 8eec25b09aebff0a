"""Names the strides of arrays that are not contiguous, which the launcher takes behind the dimensions.

x[r, c]             strided: x    →    strides of x: x_stride_0, x_stride_1
norm(x, r)                        →    norm(x, r), where the strides of norm's array are those of x

A device function takes strides for a parameter if one of its callers passes an array that has strides; the other
callers pass the strides of a contiguous array.
"""

from __future__ import annotations

from py2cu import ir
from py2cu.diagnostics import Reporter
from py2cu.ir.abi.parameters import Stride
from py2cu.ir.names import free_name, names_in_scope
from py2cu.ir.rewrite import with_fields
from py2cu.ir.visit import all_expressions


def name_strides(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """The kernel and its device functions with the strides that they take."""
    if not kernel.strided:
        return kernel
    functions = {function.key: function for function in kernel.functions}
    strided: dict[str, set[str]] = {kernel.key: set(kernel.strided), **{key: set() for key in functions}}
    while True:
        before = {key: len(names) for key, names in strided.items()}
        for caller in (kernel, *reversed(kernel.functions)):
            for call in (node for node in all_expressions(caller.body) if isinstance(node, ir.DeviceCall)):
                pairs = zip(functions[call.function].parameters, call.args, strict=True)
                arrays = ((p.name, arg.id) for p, arg in pairs if isinstance(arg, ir.ArrayName))
                # rule: strides-of-call
                strided[call.function] |= {name for name, array in arrays if array in strided[caller.key]}
        if before == {key: len(names) for key, names in strided.items()}:
            break
    named = (_with_strides(function, strided[function.key]) for function in kernel.functions)
    return with_fields(_with_strides(kernel, strided[kernel.key]), functions=tuple(named))


def _with_strides(function: ir.Kernel, strided: set[str]) -> ir.Kernel:
    taken, strides = names_in_scope(function), list[Stride]()
    arrays = (p.name for p in function.parameters if p.name in strided)
    for array in arrays:
        for axis in range(len(function.array_type(array).dims)):
            strides.append(Stride(free_name(f"{array}_stride_{axis}", taken), array, axis))
            taken.add(strides[-1].name)
    return with_fields(function, strides=tuple(strides))
