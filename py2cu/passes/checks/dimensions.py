"""Refuses a dimension that no argument determines, a default for one that an array's shape determines, and what only an
array that may be None would determine.

def f(i: Index["m"], x: Float32[Tensor, "n"], …)     # P304: no argument determines m
def f(i: Index["n"], x: Float32[Tensor, "n"], n: int = 8)     # P106
"""

from __future__ import annotations

from py2cu import ir
from py2cu.analysis.signatures import find_dims
from py2cu.diagnostics import Reporter
from py2cu.ir.abi.parameters import Parameter
from py2cu.ir.visit import names_in
from py2cu.source import Span
from py2cu.suggestions import did_you_mean


def check_dimensions(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """Report dimensions that are neither an integer parameter nor an extent of an array; the kernel is unchanged."""
    arrays = {dim.name: dim.array for dim in find_dims(kernel)}
    for parameter in kernel.parameters:
        # rule: default-of-dimension
        if parameter.default is not None and parameter.constexpr is None and arrays.get(parameter.name) is not None:
            what = f"`{parameter.name}` is a dimension of `{arrays[parameter.name]}`: its default would never be used"
            reporter.error("P106", what, parameter.default.span, "leave the default out; a call need not pass it")
    _check_optional(kernel, arrays, reporter)
    _check_leading(kernel, reporter)
    for name in kernel.dims:
        if name not in arrays:
            reporter.error(
                "P304", f"the arguments do not determine the dimension `{name}`", _place(kernel, name),
                did_you_mean(name, arrays, f"give an array the extent `{name}`, or add a parameter `{name}: int`"),
            )  # fmt: skip
    return kernel


def _check_optional(kernel: ir.Kernel, arrays: dict[str, str | None], reporter: Reporter) -> None:
    """Report what only an array that may be None would determine: a dimension, a dtype, the device."""
    for array in kernel.optional_arrays:
        own = {name for name, source in arrays.items() if source == array.name}
        for name in sorted(own & _dims_elsewhere(kernel, array)):
            what = f"the dimension `{name}` is unknown where `{array.name}` is None"
            hint = f"give an array that is never None the extent `{name}`, or add a parameter `{name}: int`"
            reporter.error("P304", what, array.span, hint)
    for number in kernel.optional_parameters:
        if not number.is_array and number.name in _dims_elsewhere(kernel, number):
            source = arrays.get(number.name)
            what = f"a dimension of `{source}`" if source else "a dimension that no array determines"
            hint = f"write `{number.name}: int`" + ("; a call need not pass it" if source else "")
            reporter.error("P304", f"`{number.name}` is {what}, and is never None", number.span, hint)
    required = [p for p in kernel.arrays if not p.may_be_none]
    known = {p.type.dtype.variable for p in required if isinstance(p.type, ir.ArrayType)}
    for array in kernel.optional_arrays:
        variable = array.type.dtype.variable if isinstance(array.type, ir.ArrayType) else None
        if not required:
            what = "every array of the kernel may be None, and one must say on which device to run"
            reporter.error("P411", what, array.span, f"leave `= None` of one out, for example of `{array.name}`")
            return
        if variable is not None and variable not in known:
            what = f"the dtype `{variable.annotation}` is unknown where `{array.name}` is None"
            reporter.error("P302", what, array.span, "name it: `Float32[…]`, or annotate another array with it")


def _check_leading(kernel: ir.Kernel, reporter: Reporter) -> None:
    """Report leading dimensions whose name is also that of one extent."""
    types = [(p, p.type) for p in kernel.arrays if isinstance(p.type, ir.ArrayType)]
    leading = {name: type_.leading for _, type_ in types if type_.leading for name in names_in(type_.dims[0])}
    for array, type_ in types:
        single = {name for dim in type_.dims[bool(type_.leading) :] for name in names_in(dim)}
        for name in sorted(single & leading.keys()):
            what = f"`{leading[name]}` are several dimensions, and `{name}` of `{array.name}` is one"
            reporter.error("P304", what, array.span, f"write `{leading[name]}` first, or give one of them another name")


def _dims_elsewhere(kernel: ir.Kernel, array: Parameter) -> set[str]:
    """The names in all extents but those of `array`."""
    types = [p.type for p in kernel.arrays if p is not array] + [declared.type for declared in kernel.array_decls]
    extents = [dim for type_ in types if isinstance(type_, ir.ArrayType) for dim in type_.dims]
    extents += (*(index.extent for index in kernel.indices), *(kernel.size or ()), *kernel.block)
    return {name for extent in extents for name in names_in(extent)}


def _place(kernel: ir.Kernel, name: str) -> Span:
    for index in kernel.indices:
        if name in names_in(index.extent):
            return index.extent.span
    for dim in (*(kernel.size or ()), *kernel.block):
        if name in names_in(dim):
            return dim.span
    return kernel.span
