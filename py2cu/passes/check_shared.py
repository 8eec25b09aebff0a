"""Refuses shared arrays of elements that C++ would have to construct.

z = shared(32, np.complex64)     # P408: `__shared__` memory is not constructed, and a complex number has a constructor
"""

from __future__ import annotations

from py2cu.diagnostics import Reporter
from py2cu.dtypes import Kind
from py2cu.ir.kernel import Kernel, Space


def check_shared(kernel: Kernel, reporter: Reporter) -> Kernel:
    """Report such arrays; the kernel is unchanged."""
    for buffer in kernel.buffers:
        if buffer.space is Space.SHARED and buffer.type.dtype.kind is Kind.COMPLEX and not buffer.base:
            message = f"CUDA has no shared arrays of {buffer.type.dtype}"
            reporter.error("P408", message, buffer.span, "share the real and the imaginary parts")
    return kernel
