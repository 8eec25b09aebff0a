"""Refuses kernels without effect, which lack the line that stores their result.

In: a kernel with roles. Out: the same kernel; an error if it writes no array, and prints and asserts nothing.
"""

from __future__ import annotations

from py2cu import ir
from py2cu.diagnostics import Reporter
from py2cu.ir.abi.parameters import Role
from py2cu.ir.visit import statements


def check_effect(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """Report a kernel that does nothing which its caller sees."""
    writes = any(p.role is not Role.INPUT for p in kernel.arrays)
    says = kernel.arrays and any(isinstance(stmt, ir.Print | ir.Assert) for stmt in statements(kernel.body))
    if not (writes or says or reporter.failed):
        reporter.error("P407", f"`{kernel.name}` writes no array, so it has no effect", kernel.span, "store its result")
    return kernel
