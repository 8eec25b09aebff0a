"""Saves operands in locals that Python evaluates once and the C++ text would evaluate twice.

    y = 0.1 < exp(x) < 2             value = exp(x)
                              →      y = 0.1 < value and value < 2
    y = exp(x) or 1                  value = exp(x)
                                     y = value if value else 1

Only operands that the statement surely evaluates are saved: not the later operands of `and`, `or` and a conditional
expression, nor the test of a loop or an `elif`. Those are evaluated twice, which nothing observes: `check_once` refuses
calls with effects there. Names, constants, plain elements and sums of indices are never saved.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from py2cu import ir
from py2cu.analysis.account import elided_calls
from py2cu.analysis.effects import commute, footprint
from py2cu.diagnostics import Reporter
from py2cu.dtypes import Kind
from py2cu.ir.names import names_in_scope
from py2cu.ir.rewrite import map_all, map_children, rebuild_block, rebuild_statements, with_fields
from py2cu.ir.saved_values import SavedValues
from py2cu.ir.visit import all_expressions, is_duplicable, walk


def evaluate_once(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """The kernel, and its device functions, with operands saved in locals that C++ would evaluate twice."""
    by_key = {function.key: function for function in kernel.functions}
    functions = tuple(_evaluated_once(function, by_key) for function in kernel.functions)
    return with_fields(_evaluated_once(kernel, by_key), functions=functions)


def _evaluated_once(kernel: ir.Kernel, functions: Mapping[str, ir.Kernel]) -> ir.Kernel:
    if not any(isinstance(expr, ir.BoolOp | ir.DeviceCall) for expr in all_expressions(kernel.body)):
        return kernel
    lifting = _Lifting(SavedValues(names_in_scope(kernel)), functions)
    body = rebuild_block(rebuild_statements(kernel.body, lifting.statement), lifting.as_select)
    locals_, elided = kernel.locals + tuple(lifting.saved.locals), kernel.elided + tuple(lifting.elided)
    return with_fields(kernel, body=body, locals=locals_, elided=elided)


@dataclass(slots=True)
class _Lifting:
    saved: SavedValues
    functions: Mapping[str, ir.Kernel]
    elided: list[ir.Elided] = field(default_factory=list)  # calls in operands that a constant leaves out

    def statement(self, stmt: ir.Stmt) -> ir.Block:
        match stmt:
            case ir.Assign(value=value):
                stmt = with_fields(stmt, value=self.lift(value))
            case ir.Store(value=value):
                stmt = self.store(with_fields(stmt, value=self.lift(value)))
            case ir.If(test=test, chained=False):
                stmt = with_fields(stmt, test=self.lift_test(test))
            case ir.Assert(test=test, values=values):
                stmt = with_fields(stmt, test=self.lift_test(test), values=map_all(values, self.lift))
            case ir.Print(values=values):
                stmt = with_fields(stmt, values=map_all(values, self.lift))
            case ir.Return(value=value) if value is not None:
                stmt = with_fields(stmt, value=self.lift(value))
        return self.saved.ahead_of(stmt)

    def store(self, stmt: ir.Store) -> ir.Store:
        """The store with its indices lifted. Python computes the value first; g++ may not, if it changes an index."""
        before, mark = self.saved.before, len(self.saved.before)
        indices = map_all(stmt.indices, self.lift)
        behind = before[mark:]
        value = footprint((), [stmt.value], self.functions)
        place = footprint(tuple(behind), indices, self.functions)
        if not (stmt.augmented or commute(value, place)):
            del before[mark:]
            stmt = with_fields(stmt, value=self.saved.save(stmt.value))
            before += behind
        return with_fields(stmt, indices=indices)

    def lift(self, expr: ir.Expr) -> ir.Expr:
        """`expr` with locals for the operands that it always evaluates and needs twice."""
        match expr:
            case ir.BoolOp(left=left) if _is_choice(expr):
                left = self.lift(left)
                value = ir.unconverted(left)
                # rule: chain-left
                return replace(expr, left=left if is_duplicable(value) else _with_core(left, self.saved.save(value)))
            case ir.BoolOp():
                return self.lift_test(expr)
            case ir.Select(test=test):
                return replace(expr, test=self.lift_test(test))
            case _:
                return map_children(expr, self.lift)

    def lift_test(self, expr: ir.Expr) -> ir.Expr:
        """Like `lift`, where only the truth of `expr` counts: C's `&&` and `||` evaluate their operands once."""
        match expr:
            case ir.BoolOp(left=ir.Compare() as first, right=ir.Compare() as second) if _is_chain(first, second):
                return self.chain(expr, first, second)
            case ir.BoolOp(left=left):
                return replace(expr, left=self.lift_test(left))
            case _:
                return self.lift(expr)

    def chain(self, expr: ir.BoolOp, first: ir.Compare, second: ir.Compare) -> ir.Expr:
        """`a < b < c`, which is `a < b and b < c` by now."""
        first = replace(first, left=self.lift(first.left), right=self.lift(first.right))
        middle = ir.unconverted(first.right)
        if is_duplicable(middle) or _is_index_sum(middle):  # rule: chain-middle
            return replace(expr, left=first)
        local = self.saved.save(middle)
        return replace(
            expr,
            left=replace(first, right=_with_core(first.right, local)),
            right=replace(second, left=_with_core(second.left, local)),
        )

    def as_select(self, expr: ir.Expr) -> ir.Expr:
        """`a or b` as `a if a else b`; the test is `a` before its conversion to the common type."""
        if not (isinstance(expr, ir.BoolOp) and _is_choice(expr)):  # rule: choice
            return expr
        then, orelse = (expr.right, expr.left) if expr.op == "and" else (expr.left, expr.right)  # rule: choice-branches
        test = ir.unconverted(expr.left)  # rule: choice-test
        if isinstance(test, ir.Constant):
            self.elided += elided_calls(walk(orelse if test.value else then), ir.Elision.UNREACHABLE)
            return then if test.value else orelse
        return ir.Select(test, then, orelse, expr.span, expr.type)


def _is_chain(first: ir.Compare, second: ir.Compare) -> bool:
    """True for the comparisons of `a < b < c`: one span (guards have none, hence the second test), one middle."""
    return first.span == second.span and ir.unconverted(first.right) == ir.unconverted(second.left)  # rule: chain-right


def _is_choice(expr: ir.BoolOp) -> bool:
    """True for `and` and `or` whose result is an operand, not a truth value."""
    return isinstance(expr.type, ir.ElementType | ir.PythonType) and ir.kind_of(expr.type) is not Kind.BOOL


def _is_index_sum(expr: ir.Expr) -> bool:
    """True for `r + y - 1` of Python integers, which is easier to read than a local."""
    match expr:
        case ir.Binary(op="+" | "-" | "*", left=left, right=right) if expr.type == ir.PY_INT:
            return _is_index_sum(left) and _is_index_sum(right)
        case _:
            return is_duplicable(expr)


def _with_core(operand: ir.Expr, core: ir.Expr) -> ir.Expr:
    return replace(operand, value=core) if isinstance(operand, ir.Convert) and not operand.explicit else core
