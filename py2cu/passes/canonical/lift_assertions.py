"""Lifts calls that may fail an assertion out of expressions whose order C++ leaves open.

    out[i] = dot(x, i) + dot(y, i)        result = dot(x, i)
                                    →     result2 = dot(y, i)
                                          out[i] = result + result2

A function that asserts, and neither writes nor prints, changes nothing that other operands read. Its call may run
before the statement, where C++ would otherwise read elements that the assertion guards. `check_order` refuses what
remains: calls in operands that may stay unevaluated, and beside calls that write or print.
"""

from __future__ import annotations

from dataclasses import dataclass

from py2cu import ir
from py2cu.analysis.evaluation_order import asserting_functions, functions_with_effects, unordered_calls
from py2cu.diagnostics import Reporter
from py2cu.ir.names import names_in_scope
from py2cu.ir.rewrite import map_children, map_expressions, rebuild_statements, with_fields
from py2cu.ir.saved_values import SavedValues
from py2cu.ir.visit import always_evaluated, expressions, walk
from py2cu.source import Span


def lift_assertions(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """The kernel and its device functions with such calls in locals."""
    asserting = asserting_functions(kernel)
    if not asserting:
        return kernel
    effectful = functions_with_effects(kernel)

    def lifted(caller: ir.Kernel) -> ir.Kernel:
        lifting = _Lifting(effectful, asserting, SavedValues(names_in_scope(caller)))
        body = rebuild_statements(caller.body, lifting.statement)
        return with_fields(caller, body=body, locals=caller.locals + tuple(lifting.saved.locals))

    return with_fields(lifted(kernel), functions=tuple(map(lifted, kernel.functions)))


@dataclass(slots=True)
class _Lifting:
    """Lifts calls out of the statements of one function."""

    effectful: frozenset[str]
    asserting: frozenset[str]
    saved: SavedValues

    def statement(self, stmt: ir.Stmt) -> ir.Block:
        calls = self.calls(stmt)
        if not calls or next(unordered_calls(stmt, self.effectful), None) is None:
            return (stmt,)
        names: dict[Span, ir.Name] = {}
        for call in calls:
            names[call.span] = self.saved.save(map_children(call, lambda arg: _replaced(arg, names)), "result")
        return self.saved.ahead_of(_replaced_in(stmt, names))

    def calls(self, stmt: ir.Stmt) -> list[ir.DeviceCall]:
        """The calls to lift in Python's order, each once; none where one of them must stay."""
        if isinstance(stmt, ir.While):
            return []
        operands = expressions(stmt)
        if isinstance(stmt, ir.Store) and not stmt.augmented:
            operands = (stmt.value, *stmt.indices)
        found = {n.span: n for operand in operands for n in always_evaluated(operand) if self.has_effects(n)}
        every = {node.span for operand in operands for node in walk(operand) if self.has_effects(node)}
        calls = [node for node in found.values() if isinstance(node, ir.DeviceCall)]
        root = operands[0] if isinstance(stmt, ir.ExprStmt | ir.Assign | ir.Return) and operands else None
        may_move = all(
            call.function in self.asserting and isinstance(call.type, ir.ElementType | ir.PythonType) for call in calls
        )
        if every != found.keys() or not may_move:  # rule: lifted-calls
            return []
        return calls[:-1] if root is not None and self.has_effects(root) else calls

    def has_effects(self, node: ir.Expr) -> bool:
        return isinstance(node, ir.DeviceCall) and node.function in self.effectful


def _replaced(expr: ir.Expr, names: dict[Span, ir.Name]) -> ir.Expr:
    """`expr` with `names` in place of the calls at their spans."""
    if isinstance(expr, ir.DeviceCall) and expr.span in names:
        return names[expr.span]
    return map_children(expr, lambda child: _replaced(child, names))


def _replaced_in(stmt: ir.Stmt, names: dict[Span, ir.Name]) -> ir.Stmt:
    stmt = map_expressions(stmt, lambda expr: _replaced(expr, names))
    return with_fields(stmt, chained=False) if isinstance(stmt, ir.If) else stmt
