"""Refuses calls that do something and would stand twice in the C++ text, where Python makes them once.

    while 0 < put(x, i) < 5: …      P409: C's shape of it is `0 < put(x, i) && put(x, i) < 5`

What a statement surely evaluates has come into a local by now; here is the rest: tests of loops, and what may stay
unevaluated.
"""

from __future__ import annotations

from py2cu.diagnostics import Reporter
from py2cu.ir.expressions import DeviceCall
from py2cu.ir.kernels import Kernel
from py2cu.ir.visit import expressions, statements, walk
from py2cu.passes.checks.evaluation_order import acting_functions
from py2cu.source import Span


def check_once(kernel: Kernel, reporter: Reporter) -> Kernel:
    """Report such calls; the kernel is unchanged."""
    acting = acting_functions(kernel)
    for caller in (kernel, *kernel.functions) if acting else ():
        inner = reporter.within(caller.origin)
        for stmt in statements(caller.body):
            seen: set[Span] = set()
            for node in (node for expr in expressions(stmt) for node in walk(expr)):
                if isinstance(node, DeviceCall) and node.function in acting:
                    if node.span in seen:
                        message = (
                            "this call does something, and C++ would make it twice here, where Python makes it once"
                        )
                        inner.error("P409", message, node.span, "assign what it returns on a line of its own before")
                    seen.add(node.span)
    return kernel
