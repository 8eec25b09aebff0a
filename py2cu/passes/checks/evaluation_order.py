"""Refuses calls with effects where C++ would evaluate an expression in another order than Python, or twice.

    out[j] = put(x, i) + x[i]      P409: C++ may read x[i] before `put` writes to it; Python reads it afterwards
    while 0 < put(x, i) < 5: …     P409: C++ writes the chain as `0 < put(x, i) && put(x, i) < 5`

Python evaluates operands from left to right. C++ keeps that order between statements and around `&&`, `||` and `?:`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from py2cu import ir
from py2cu.analysis.call_graph import functions_with
from py2cu.diagnostics import Reporter
from py2cu.ir.abi.parameters import Role
from py2cu.ir.visit import children, expressions, statements, walk
from py2cu.source import Span


def check_order(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """Report calls with effects that an operand beside them may observe; the kernel is unchanged."""
    acting = acting_functions(kernel)
    for caller in (kernel, *kernel.functions) if acting else ():
        check = _Check(acting, reporter.within(caller.origin))
        for stmt in statements(caller.body):
            match stmt:
                case ir.Store(indices=indices, value=value):  # C++ too evaluates the right side first
                    check.unsequenced(indices)
                    check.expression(value)
                case ir.ExprStmt(call=call):
                    check.expression(call)
                case _:
                    check.unsequenced(expressions(stmt))
    return kernel


def check_once(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """Report calls with effects that the C++ text would make twice; the kernel is unchanged.

    `evaluate_once` has saved the operands that a statement always evaluates in locals. Tests of loops and conditional
    operands remain.
    """
    acting = acting_functions(kernel)
    for caller in (kernel, *kernel.functions) if acting else ():
        inner = reporter.within(caller.origin)
        for stmt in statements(caller.body):
            seen: set[Span] = set()
            for node in (node for expr in expressions(stmt) for node in walk(expr)):
                if isinstance(node, ir.DeviceCall) and node.function in acting:
                    if node.span in seen:
                        message = "this call has effects, and C++ would evaluate it twice here, Python once"
                        call = inner.file.quote(node.span)
                        hint = f"assign its result in a statement before this one: `result = {call}`"
                        inner.error("P409", message, node.span, hint)
                    seen.add(node.span)
    return kernel


def acting_functions(kernel: ir.Kernel) -> frozenset[str]:
    """The keys of the device functions that write, print or assert."""
    return functions_with(kernel, _acts)


def _acts(function: ir.Kernel) -> bool:
    """True for a function that writes, prints or asserts."""
    writes = any(p.is_array and p.role is not Role.INPUT for p in function.parameters)
    return writes or any(isinstance(stmt, ir.Print | ir.Assert) for stmt in statements(function.body))


@dataclass(frozen=True, slots=True)
class _Check:
    acting: frozenset[str]
    reporter: Reporter

    def expression(self, expr: ir.Expr) -> None:
        """Check the operands of `expr`, recursively."""
        if isinstance(expr, ir.BoolOp | ir.Select):
            for child in children(expr):
                self.expression(child)
        else:
            self.unsequenced(children(expr))

    def unsequenced(self, operands: Sequence[ir.Expr]) -> None:
        """Check operands whose evaluation order C++ leaves open."""
        for operand in operands:
            self.expression(operand)
            call = next((node for node in walk(operand) if self.acts(node)), None)
            if call is not None and any(self.may_observe(other) for other in operands if other is not operand):
                message = "this call has effects that an operand beside it may observe: C++ leaves their order open"
                text = self.reporter.file.quote(call.span)
                hint = f"assign its result in a statement before or after this one: `result = {text}`"
                self.reporter.error("P409", message, call.span, hint)

    def acts(self, expr: ir.Expr) -> bool:
        return isinstance(expr, ir.DeviceCall) and expr.function in self.acting

    def may_observe(self, expr: ir.Expr) -> bool:
        """True if `expr` may observe the effects of another call: it reads an array, or has effects itself."""
        return any(isinstance(node, ir.Load | ir.ArrayName) or self.acts(node) for node in walk(expr))
