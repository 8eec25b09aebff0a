"""Notes how many elements each thread of an index kernel computes, and why it is one (`py2cu translate --notes`)."""

from __future__ import annotations

from py2cu import ir
from py2cu.analysis.packs import Obstacle, find_packs
from py2cu.diagnostics import Reporter


def note_packs(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """Report the form of a lowered kernel for CUDA as a note; the kernel is unchanged."""
    if kernel.indices:
        match find_packs(kernel):
            case Obstacle(reason=reason, span=span):
                hint = (
                    "a thread gets 16 bytes where it stores the element of its index, on every path, and nothing else"
                )
                reporter.note("P706", f"`{kernel.name}` computes one element a thread: {reason}", span, hint)
            case packs:
                how = "where rows are multiples of that" if packs.is_whole else "and one by one at the end"
                hint = "`@kernel(coarsen=1)` keeps one element a thread"
                reporter.note("P706", f"`{kernel.name}` computes 16 bytes a thread, {how}", packs.index.span, hint)
    return kernel
