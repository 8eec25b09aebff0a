"""Refuses calls with effects where C++ would evaluate an expression in another order than Python, or twice.

    out[j] = put(x, i) + x[i]      P409: C++ may read x[i] before `put` writes to it; Python reads it afterwards
    while 0 < put(x, i) < 5: …     P409: C++ writes the chain as `0 < put(x, i) && put(x, i) < 5`

Python evaluates operands from left to right. C++ keeps that order between statements and around `&&`, `||` and `?:`.
"""

from __future__ import annotations

from typing import Final

from py2cu import ir
from py2cu.analysis.effects import has_barrier
from py2cu.analysis.evaluation_order import functions_with_effects, unordered_calls, unordered_waits
from py2cu.diagnostics import Reporter
from py2cu.ir.visit import expressions, statements, walk
from py2cu.source import Span

_EFFECTS: Final = "this call has effects that an operand beside it may observe"
_WAITS: Final = "this call waits for other threads, which may change what an operand beside it reads"


def check_order(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """Report calls with effects that an operand beside them may observe; the kernel is unchanged."""
    effectful, waits = functions_with_effects(kernel), has_barrier(kernel)
    for caller in (kernel, *kernel.functions) if effectful or waits else ():
        inner = reporter.within(caller.origin)
        found = [(call, _EFFECTS) for stmt in statements(caller.body) for call in unordered_calls(stmt, effectful)]
        found += [(call, _WAITS) for call in (unordered_waits(caller, kernel.functions) if waits else ())]
        for call, what in found:
            hint = (
                f"assign its result in a statement before or after this one: `result = {inner.file.quote(call.span)}`"
            )
            inner.error("P409", f"{what}: C++ leaves their order open", call.span, hint)
    return kernel


def check_once(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """Report calls with effects that the C++ text would make twice; the kernel is unchanged.

    `evaluate_once` has saved the operands that a statement always evaluates in locals. Tests of loops and conditional
    operands remain.
    """
    effectful = functions_with_effects(kernel)
    for caller in (kernel, *kernel.functions) if effectful else ():
        inner = reporter.within(caller.origin)
        for stmt in statements(caller.body):
            seen: set[Span] = set()
            for node in (node for expr in expressions(stmt) for node in walk(expr)):
                if isinstance(node, ir.DeviceCall) and node.function in effectful:  # rule: call-made-once
                    if node.span in seen:
                        message = "this call has effects, and C++ would evaluate it twice here, Python once"
                        call = inner.file.quote(node.span)
                        hint = f"assign its result in a statement before this one: `result = {call}`"
                        inner.error("P409", message, node.span, hint)
                    seen.add(node.span)
    return kernel
