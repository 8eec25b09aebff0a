"""Refuses a dimension that no argument determines, and a default for one that an array's shape determines.

def f(i: Index["m"], x: Float32[Tensor, "n"], …)     # P304: no argument determines m
def f(i: Index["n"], x: Float32[Tensor, "n"], n: int = 8)     # P106
"""

from __future__ import annotations

from py2cu import ir
from py2cu.analysis.signatures import find_dims
from py2cu.diagnostics import Reporter
from py2cu.ir.visit import names_in
from py2cu.source import Span
from py2cu.suggestions import did_you_mean


def check_dimensions(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """Report dimensions that are neither an integer parameter nor an extent of an array; the kernel is unchanged."""
    arrays = {dim.name: dim.array for dim in find_dims(kernel)}
    for parameter in kernel.parameters:
        if parameter.default is not None and parameter.constexpr is None and arrays.get(parameter.name) is not None:
            what = f"`{parameter.name}` is a dimension of `{arrays[parameter.name]}`: its default would never be used"
            reporter.error("P106", what, parameter.default.span, "leave the default out; a call need not pass it")
    for name in kernel.dims:
        if name not in arrays:
            reporter.error(
                "P304", f"the arguments do not determine the dimension `{name}`", _place(kernel, name),
                did_you_mean(name, arrays, f"give an array the extent `{name}`, or add a parameter `{name}: int`"),
            )  # fmt: skip
    return kernel


def _place(kernel: ir.Kernel, name: str) -> Span:
    for index in kernel.indices:
        if name in names_in(index.extent):
            return index.extent.span
    for dim in (*(kernel.size or ()), *kernel.block):
        if name in names_in(dim):
            return dim.span
    return kernel.span
