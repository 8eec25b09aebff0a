"""Which device functions have effects, and whose calls stand where C++ leaves the order of evaluation open."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from py2cu import ir
from py2cu.analysis.call_graph import functions_with
from py2cu.analysis.effects import footprint_of_function, waiting_functions
from py2cu.ir.visit import children, expressions, statements, walk


def functions_with_effects(kernel: ir.Kernel) -> frozenset[str]:
    """The keys of the device functions that write, print or assert."""
    functions = {function.key: function for function in kernel.functions}
    return frozenset(key for key in functions if footprint_of_function(key, functions).acts)


def asserting_functions(kernel: ir.Kernel) -> frozenset[str]:
    """The keys of the device functions that assert, and neither write nor print nor wait for other threads."""
    functions = {function.key: function for function in kernel.functions}
    writing = {key for key in functions if footprint_of_function(key, functions).stores}
    printing = functions_with(kernel, lambda function: any(isinstance(s, ir.Print) for s in statements(function.body)))
    return functions_with_effects(kernel) - writing - printing - waiting_functions(kernel)


def unordered_calls(stmt: ir.Stmt, effectful: frozenset[str]) -> Iterator[ir.DeviceCall]:
    """The calls of `effectful` functions in `stmt` that an operand may observe, where C++ leaves their order open."""
    operands = _Operands(effectful)
    match stmt:
        case ir.Store(indices=indices, value=value):  # C++ too evaluates the right side first
            yield from operands.unsequenced(indices)
            yield from operands.expression(value)
        case ir.ExprStmt(call=call):
            yield from operands.expression(call)
        case _:
            yield from operands.unsequenced(expressions(stmt))


@dataclass(frozen=True, slots=True)
class _Operands:
    """Finds calls of `effectful` functions among operands."""

    effectful: frozenset[str]

    def expression(self, expr: ir.Expr) -> Iterator[ir.DeviceCall]:
        """The calls in the operands of `expr`, recursively."""
        if isinstance(expr, ir.BoolOp | ir.Select):
            for child in children(expr):
                yield from self.expression(child)
        else:
            yield from self.unsequenced(children(expr))

    def unsequenced(self, operands: Sequence[ir.Expr]) -> Iterator[ir.DeviceCall]:
        """The calls in operands whose evaluation order C++ leaves open."""
        for operand in operands:
            yield from self.expression(operand)
            calls = (n for n in walk(operand) if isinstance(n, ir.DeviceCall) and n.function in self.effectful)
            call = next(calls, None)
            if call is not None and any(self.may_observe(other) for other in operands if other is not operand):
                yield call

    def may_observe(self, expr: ir.Expr) -> bool:
        """True if `expr` may observe the effects of another call: it reads an array, or has effects itself."""
        return any(
            isinstance(node, ir.Load | ir.ArrayName)
            or (isinstance(node, ir.DeviceCall) and node.function in self.effectful)
            for node in walk(expr)
        )
