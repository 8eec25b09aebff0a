"""Lifts atomic operations out of expressions, so that C++ executes each once and in Python's order.

    s = x[0] + atomic.add(x, 0, 1) + y[i]          value = x[0]
                                             →     old = atomic.add(x, 0, 1)
                                                   s = value + old + y[i]

Operands that Python evaluates before the operation, and that may change afterwards, are saved in locals too; elements
of arrays that the kernel only reads cannot change. The test of a loop may hold one atomic operation, as in `while
atomic.cas(lock, 0, 0, 1) != 0: pass`. Refused: several in such a test, and one in an operand that may stay unevaluated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from py2cu import ir
from py2cu.analysis.effects import is_wait
from py2cu.diagnostics import Reporter
from py2cu.ir.names import names_in_scope
from py2cu.ir.rewrite import map_blocks, map_children, map_expressions, with_fields
from py2cu.ir.saved_values import SavedValues
from py2cu.ir.visit import all_expressions, children, expressions, statements, walk
from py2cu.source import Span


def lift_atomics(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """The kernel with each atomic operation as a statement, or as the whole value of an assignment or `return`."""
    if not any(isinstance(node, ir.Atomic) for node in all_expressions(kernel.body)):
        return kernel
    lifting = _Lifting(reporter, SavedValues(names_in_scope(kernel)), _only_read(kernel))
    return with_fields(kernel, body=lifting.block(kernel.body))


def _only_read(kernel: ir.Kernel) -> frozenset[str]:
    """The arrays that nothing writes; none in a device function, whose parameters may alias."""
    if kernel.key:
        return frozenset()
    nodes = [*all_expressions(kernel.body)]
    written = {stmt.array for stmt in statements(kernel.body) if isinstance(stmt, ir.Store)}
    written |= {node.array for node in nodes if isinstance(node, ir.Atomic)}
    written |= {node.id for node in nodes if isinstance(node, ir.ArrayName)}
    return frozenset(array.name for array in kernel.arrays) - written


@dataclass(slots=True)
class _Lifting:
    """Lifts the atomic operations of one kernel."""

    reporter: Reporter
    saved: SavedValues
    only_read: frozenset[str]
    lifted_by_span: dict[Span, ir.Name] = field(default_factory=dict)  # an expression may hold an operation twice

    def block(self, block: ir.Block) -> ir.Block:
        return tuple(lifted for stmt in block for lifted in self.statement(map_blocks(stmt, self.block)))

    def statement(self, stmt: ir.Stmt) -> ir.Block:
        """The statement after its lifted operations; its blocks are lifted already."""
        if not any(map(_has_atomic, expressions(stmt))):
            return (stmt,)
        self.lifted_by_span = {}
        return self.saved.ahead_of(self.lifted_statement(stmt))

    def lifted_statement(self, stmt: ir.Stmt) -> ir.Stmt:
        match stmt:
            case ir.Assign(value=value):
                return with_fields(stmt, value=self.lift_root(value))
            case ir.Return(value=value) if value is not None:
                return with_fields(stmt, value=self.lift_root(value))
            case ir.ExprStmt(call=call):
                operation = self.with_operands(call)
                assert isinstance(operation, ir.DeviceCall | ir.Atomic)
                return with_fields(stmt, call=operation)
            case ir.Store(augmented=True):
                return self.augmented(stmt)
            case ir.Store(indices=indices, value=value):
                value, *places = self.operands((value, *indices))
                return with_fields(stmt, value=value, indices=tuple(places))
            case ir.If(test=test):
                return with_fields(stmt, test=self.lifted(test), chained=False)
            case ir.For() | ir.Sync() | ir.Print():
                operands = iter(self.operands(expressions(stmt)))
                return map_expressions(stmt, lambda _: next(operands))
            case ir.While(test=test) if self.is_one_atomic(test):
                return stmt
            case ir.While(test=test):
                hint = "move it into the loop: `while True:`, then `if …: break`"
                self.refuse(test, "must be alone in the test of a loop", hint)
                return stmt
            case ir.Assert(test=test, values=values):
                return with_fields(stmt, test=self.lifted(test), values=self.operands(values))
            case _:
                raise AssertionError(f"an atomic operation in {stmt}")

    def is_one_atomic(self, test: ir.Expr) -> bool:
        """True for a test that may stay: one operation, always evaluated, with operands that cannot change."""
        match test:
            case ir.Atomic():
                return not any(map(_has_atomic, children(test)))
            case ir.Compare(left=left, right=right) | ir.Binary(left=left, right=right):
                atomic, other = (left, right) if _has_atomic(left) else (right, left)
                return self.is_one_atomic(atomic) and not (_has_atomic(other) or any(map(self.may_change, walk(other))))
            case ir.Unary(operand=operand):
                return self.is_one_atomic(operand)
            case _:
                return False

    def augmented(self, stmt: ir.Store) -> ir.Stmt:
        """`x[i] += v`: Python looks `x[i]` up, index first, before it evaluates `v`."""
        assert isinstance(stmt.value, ir.Binary) and isinstance(stmt.value.left, ir.Load), stmt
        places = tuple(self.snapshot(index) for index in stmt.indices)  # rule: atomic-places
        old = with_fields(stmt.value.left, indices=places)
        left, right = self.operands((old, stmt.value.right))
        value = with_fields(stmt.value, left=left, right=right)
        return with_fields(stmt, indices=places, value=value, augmented=left is old)

    def lift_root(self, value: ir.Expr) -> ir.Expr:
        """`value` with its operations lifted, unless `value` itself is one."""
        return self.with_operands(value) if isinstance(value, ir.Atomic) else self.lifted(value)

    def lifted(self, expr: ir.Expr) -> ir.Expr:
        """`expr` with locals in place of its atomic operations."""
        match expr:
            case _ if not _has_atomic(expr):
                return expr
            case ir.Atomic(span=span) if span in self.lifted_by_span:  # rule: atomic-lifted
                return self.lifted_by_span[span]
            case ir.Atomic(span=span):
                self.lifted_by_span[span] = result = self.saved.save(self.with_operands(expr), "old")
                return result
            case ir.BoolOp(left=left, right=right):
                left = self.lifted(left)
                return with_fields(expr, left=left, right=self.unconditional(right))
            case ir.Select(test=test, then=then, orelse=orelse):
                test = self.lifted(test)
                return with_fields(expr, test=test, then=self.unconditional(then), orelse=self.unconditional(orelse))
            case _:
                return self.with_operands(expr)

    def unconditional(self, expr: ir.Expr) -> ir.Expr:
        """An operand that may stay unevaluated; an operation in it is refused unless it is lifted already."""
        if any(isinstance(node, ir.Atomic) and node.span not in self.lifted_by_span for node in walk(expr)):
            hint = "write an `if`, with the operation on a line of its own"
            self.refuse(expr, "cannot stand where it may stay unevaluated", hint)
            return expr
        return self.lifted(expr)

    def with_operands(self, expr: ir.Expr) -> ir.Expr:
        operands = iter(self.operands(children(expr)))
        return map_children(expr, lambda _: next(operands))

    def operands(self, operands: Sequence[ir.Expr]) -> tuple[ir.Expr, ...]:
        """The operands, lifted; those that Python evaluates before an operation are saved in locals."""
        last = max((place for place, operand in enumerate(operands) if _has_atomic(operand)), default=-1)
        return tuple(  # rule: atomic-operands
            self.snapshot(operand) if place < last else self.lifted(operand) for place, operand in enumerate(operands)
        )

    def snapshot(self, expr: ir.Expr) -> ir.Expr:
        """The value of `expr` at this point; saved in a local if it may change later."""
        expr = self.lifted(expr)
        return self.saved.save(expr) if any(map(self.may_change, walk(expr))) else expr

    def may_change(self, node: ir.Expr) -> bool:
        """True for a node whose value may differ if it is evaluated later."""
        if isinstance(node, ir.Load):
            return node.array not in self.only_read  # rule: atomic-only-read
        return isinstance(node, ir.DeviceCall) or is_wait(node)

    def refuse(self, expr: ir.Expr, what: str, hint: str) -> None:
        atomic = next(n for n in walk(expr) if isinstance(n, ir.Atomic) and n.span not in self.lifted_by_span)
        self.reporter.error("P502", f"an atomic operation {what}", atomic.span, hint)


def _has_atomic(expr: ir.Expr) -> bool:
    return any(isinstance(node, ir.Atomic) for node in walk(expr))
