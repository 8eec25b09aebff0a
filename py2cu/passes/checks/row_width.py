"""Refuses views whose rows are wider than the 16 bytes that a thread loads or stores at once.

x4 = x.view(-1, 4)      x: Float64      P410: a row has 32 bytes, and an access has 16 at most
"""

from __future__ import annotations

from py2cu import ir
from py2cu.diagnostics import Reporter


def check_row_widths(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """Report views with such rows; the kernel is unchanged."""
    for decl in kernel.array_decls:
        if decl.row_bytes > ir.ROW_BYTES:  # rule: row-too-wide
            most = ir.ROW_BYTES * decl.vector_width // decl.row_bytes
            what = f"a row of {decl.vector_width} {decl.type.dtype} has {decl.row_bytes} bytes"
            message = f"{what}, and one access has {ir.ROW_BYTES} at most"
            hint = f"`{decl.base}.view(-1, {most})`" if most > 1 else f"index the elements of `{decl.base}`"
            reporter.error("P410", message, decl.span, hint)
    return kernel
