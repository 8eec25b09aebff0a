"""Refuses the use of an array that may be None outside the branches where it is given.

acc = 0.0 if bias is None else bias[o]      # given
if bias is None: return
acc += bias[o]                              # given: the path without it has returned
acc += mask[o]                              # P411
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from py2cu import ir
from py2cu.diagnostics import Reporter
from py2cu.ir.visit import all_expressions, assigned_names, children, expressions, statements
from py2cu.source import NOWHERE, Span

Given = frozenset[str]
"""The optional arrays that are not None on every path to a place. No kernel rebinds an array, so this only grows."""

MAX_OPTIONAL: Final = 6


def check_optional_arrays(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """Report uses of arrays where they may be None; the kernel is unchanged."""
    optional = kernel.optional_arrays
    if len(optional) > MAX_OPTIONAL:
        what = f"{len(optional)} arrays may be None, and a kernel has an instance for each choice of them"
        hint = f"at most {MAX_OPTIONAL} may be: make the others parameters that every call gives"
        reporter.error("P411", what, optional[MAX_OPTIONAL].span, hint)
    if optional:
        assigned = [*assigned_names(kernel.body)]
        values = {s.name: s.value for s in statements(kernel.body) if isinstance(s, ir.Assign)}
        once = {name: value for name, value in values.items() if assigned.count(name) == 1}
        tested = frozenset(node.array for node in all_expressions(kernel.body) if isinstance(node, ir.IsGiven))
        flow = _Flow(kernel, frozenset(p.name for p in optional), tested, once, reporter)
        flow.block(kernel.body, frozenset())
    return kernel


@dataclass(frozen=True, slots=True)
class _Flow:
    """Follows which arrays are given; `tested` are those that the kernel compares with None.

    `once` has the values of locals that are assigned in one place.
    """

    kernel: ir.Kernel
    optional: frozenset[str]
    tested: frozenset[str]
    once: dict[str, ir.Expr]
    reporter: Reporter

    def block(self, block: ir.Block, given: Given) -> Given | None:
        """The arrays given after `block`; None if its end is never reached."""
        is_reached = True
        for stmt in block:
            after = self.statement(stmt, given)
            is_reached &= after is not None
            given = given if after is None else after
        return given if is_reached else None

    def statement(self, stmt: ir.Stmt, given: Given) -> Given | None:
        for expr in expressions(stmt):
            self.check(expr, stmt.span, given)
        match stmt:
            case ir.If(test=test, body=body, orelse=orelse):
                where_true = self.block(body, given | self.implied(test, True))
                where_false = self.block(orelse, given | self.implied(test, False))
                if where_true is None or where_false is None:
                    return where_false if where_true is None else where_true
                return where_true & where_false
            case ir.For(body=body, orelse=orelse):
                self.block(body, given)
                self.block(orelse, given)
            case ir.While(test=test, body=body, orelse=orelse):
                self.block(body, given | self.implied(test, True))
                self.block(orelse, given | self.implied(test, False))
            case ir.Assert(test=test):
                return given | self.implied(test, True)
            case ir.Store(array=array):
                self.use(array, stmt.span, given, is_stored=True)
            case ir.Alloc(array=array):
                self.use(array, stmt.span, given)
                declared = self.kernel.array_decl(array)
                for extent in declared.type.dims if declared is not None else ():
                    self.check(extent, stmt.span, given)
            case ir.Comment(array=array) if array:
                self.use(array, stmt.span, given)
            case ir.Return() | ir.Break() | ir.Continue():
                return None
        return given

    def check(self, expr: ir.Expr, around: Span, given: Given) -> None:
        """Report the uses in `expr`, of which `and`, `or` and `if` may skip a part; `around` is the place around it."""
        span = around if expr.span == NOWHERE else expr.span
        match expr:
            case ir.BoolOp(op=op, left=left, right=right):
                self.check(left, span, given)
                self.check(right, span, given | self.implied(left, op == "and"))
                return
            case ir.Select(test=test, then=then, orelse=orelse):
                self.check(test, span, given)
                self.check(then, span, given | self.implied(test, True))
                self.check(orelse, span, given | self.implied(test, False))
                return
            case ir.Load(array=array) | ir.Atomic(array=array) | ir.ArrayName(id=array) | ir.Extent(array=array):
                self.use(array, span, given)
        for child in children(expr):
            self.check(child, span, given)

    def use(self, array: str, span: Span, given: Given, *, is_stored: bool = False) -> None:
        name = self.kernel.base_array(array)
        if name in self.optional and name not in given:
            hint = f"use it where it is given: `if {name} is not None:`"
            if is_stored and name not in self.tested:
                hint += ", or take it without None: a call may leave out any output"
            self.reporter.error("P411", f"`{name}` may be None here", span, hint)

    def implied(self, test: ir.Expr, outcome: bool) -> Given:
        """The arrays that are given where `test` has this outcome."""
        match test:
            case ir.IsGiven(array=array) if outcome:
                return frozenset([array])
            case ir.Name(id=name) if name in self.once:
                return self.implied(self.once[name], outcome)
            case ir.Unary(op="not", operand=operand):
                return self.implied(operand, not outcome)
            case ir.BoolOp(op=op, left=left, right=right):
                if (op == "and") is outcome:  # both sides were evaluated and had the outcome
                    return self.implied(left, outcome) | self.implied(right, outcome)
                behind = self.implied(left, not outcome) | self.implied(right, outcome)
                return self.implied(left, outcome) & behind
            case _:
                return frozenset()
