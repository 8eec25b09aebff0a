"""Refuses views whose rows are wider than the 16 bytes that a thread loads or stores at once.

x4 = x.view(-1, 4)      x: Float64      P410: a row has 32 bytes, and an access has 16 at most
"""

from __future__ import annotations

from typing import Final

from py2cu import ir
from py2cu.diagnostics import Reporter

MAX_BYTES: Final = 16


def check_row_widths(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """Report views with such rows; the kernel is unchanged."""
    for buffer in kernel.array_decls:
        if buffer.row_bytes > MAX_BYTES:
            most = MAX_BYTES * buffer.vector_width // buffer.row_bytes
            what = f"a row of {buffer.vector_width} {buffer.type.dtype} has {buffer.row_bytes} bytes"
            message = f"{what}, and one access has {MAX_BYTES} at most"
            hint = f"`{buffer.base}.view(-1, {most})`" if most > 1 else f"index the elements of `{buffer.base}`"
            reporter.error("P410", message, buffer.span, hint)
    return kernel
