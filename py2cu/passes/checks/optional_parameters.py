"""Refuses the use of a parameter that may be None outside the branches where it is given.

acc = 0.0 if bias is None else bias[o]      # given
if bias is None: return
acc += bias[o]                              # given: the path without it has returned
acc += mask[o]                              # P411
if scale is None: scale = 1.0
acc *= scale                                # given, or assigned
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from py2cu import ir
from py2cu.diagnostics import Reporter
from py2cu.ir.visit import all_expressions, assigned_names, children, expressions, statements
from py2cu.source import NOWHERE, Span

MAX_OPTIONAL: Final = 6
"""The most arrays that may be None."""


@dataclass(frozen=True, slots=True)
class Known:
    """Facts that hold on every path to a statement: which parameters are not None, and which are not assigned yet."""

    given: frozenset[str]
    original: frozenset[str]

    def __and__(self, other: Known) -> Known:
        return Known(self.given & other.given, self.original & other.original)  # rule: optional-joined

    def where_given(self, names: Iterable[str]) -> Known:
        return replace(self, given=self.given.union(names))

    def where_assigned(self, names: Iterable[str]) -> Known:
        return replace(self, original=self.original.difference(names))


def check_optional_parameters(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """Report uses of parameters where they may be None; the kernel is unchanged."""
    arrays = kernel.optional_arrays
    if len(arrays) > MAX_OPTIONAL:
        what = f"{len(arrays)} arrays may be None, and a kernel has an instance for each choice of them"
        hint = f"at most {MAX_OPTIONAL} may be: make the others parameters that every call gives"
        reporter.error("P411", what, arrays[MAX_OPTIONAL].span, hint)
    optional = frozenset(p.name for p in kernel.optional_parameters)
    if optional:
        assigned = [*assigned_names(kernel.body)]
        values = {s.name: s.value for s in statements(kernel.body) if isinstance(s, ir.Assign)}
        parameters = {p.name for p in kernel.parameters}
        # rule: optional-once
        once = {name: value for name, value in values.items() if assigned.count(name) == 1 and name not in parameters}
        tested = frozenset(node.parameter for node in all_expressions(kernel.body) if isinstance(node, ir.IsGiven))
        flow = _Flow(kernel, optional, tested, once, reporter)
        flow.block(kernel.body, Known(frozenset(), optional))
    return kernel


@dataclass(frozen=True, slots=True)
class _Flow:
    """Tracks through a body which parameters are not None; the kernel compares those in `tested` with None.

    `once` maps each local that is assigned in only one statement to its value.
    """

    kernel: ir.Kernel
    optional: frozenset[str]
    tested: frozenset[str]
    once: dict[str, ir.Expr]
    reporter: Reporter

    def block(self, block: ir.Block, known: Known) -> Known | None:
        """What is known after `block`; None if its end is never reached."""
        is_reached = True
        for stmt in block:
            after = self.statement(stmt, known)
            is_reached &= after is not None
            known = known if after is None else after
        return known if is_reached else None

    def statement(self, stmt: ir.Stmt, known: Known) -> Known | None:
        if isinstance(stmt, ir.For | ir.While):
            return self.loop(stmt, known)
        for expr in expressions(stmt):
            self.check(expr, stmt.span, known)
        match stmt:
            case ir.If(test=test, body=body, orelse=orelse):
                where_true = self.block(body, known.where_given(self.implied(test, True)))
                where_false = self.block(orelse, known.where_given(self.implied(test, False)))
                if where_true is None or where_false is None:
                    return where_false if where_true is None else where_true
                return where_true & where_false  # rule: optional-both
            case ir.Assign(name=name) if name in self.optional:
                return known.where_given([name]).where_assigned([name])  # rule: optional-tested
            case ir.Assign(name=name, value=ir.Constant(named=ir.NamedConstant(name=named, array=array))) if array:
                if name == named:  # `W = 16 // x.itemsize`  # rule: optional-itemsize
                    self.use(array, stmt.value.span, known, is_viewed=True)
            case ir.Return() | ir.Break() | ir.Continue() | ir.Assert(test=ir.Constant(value=False)):
                return None
            case ir.Assert(test=test):
                return known.where_given(self.implied(test, True))
            case ir.Store(array=array):
                self.use(array, stmt.span, known, is_stored=True)
            case ir.Alloc(array=array):
                self.use(array, stmt.span, known, is_viewed=True)
                declared = self.kernel.array_decl(array)
                for extent in declared.type.dims if declared is not None else ():
                    self.check(extent, stmt.span, known)
            case ir.Comment(array=array) if array:
                self.use(array, stmt.span, known)
        return known

    def loop(self, stmt: ir.For | ir.While, known: Known) -> Known:
        """What is known after a loop, whose body may run again after its assignments, or not at all."""
        if isinstance(stmt, ir.For):
            for expr in expressions(stmt):
                self.check(expr, stmt.span, known)
        known = known.where_assigned(assigned_names((stmt,)))  # rule: optional-in-loop
        if isinstance(stmt, ir.For):
            self.block(stmt.body, known.where_given({stmt.var} & self.optional))
            self.block(stmt.orelse, known)
        else:
            self.check(stmt.test, stmt.span, known)
            self.block(stmt.body, known.where_given(self.implied(stmt.test, True)))
            self.block(stmt.orelse, known.where_given(self.implied(stmt.test, False)))
        return known

    def check(self, expr: ir.Expr, around: Span, known: Known) -> None:
        """Report the uses in `expr`, of which `and`, `or` and `if` may skip a part; `around` is the place around it."""
        span = around if expr.span == NOWHERE else expr.span
        match expr:
            case ir.BoolOp(op=op, left=left, right=right):
                self.check(left, span, known)
                self.check(right, span, known.where_given(self.implied(left, op == "and")))
                return
            case ir.Select(test=test, then=then, orelse=orelse):
                self.check(test, span, known)
                self.check(then, span, known.where_given(self.implied(test, True)))
                self.check(orelse, span, known.where_given(self.implied(test, False)))
                return
            case ir.Load(array=name) | ir.Atomic(array=name) | ir.ArrayName(id=name) | ir.Extent(array=name):
                self.use(name, span, known)
            case ir.IsDtype(array=name):
                self.use(name, span, known)
            case ir.Name(id=name) if name in self.optional:
                self.use(name, span, known)
            case ir.IsGiven(parameter=name) if name not in known.original:
                what = f"`{name}` may have been assigned before this test, which asks whether the call gives it"
                hint = f"keep the answer before the assignment: `is_given = {name} is not None`"
                self.reporter.error("P411", what, span, hint)
        for child in children(expr):
            self.check(child, span, known)

    def use(self, used: str, span: Span, known: Known, *, is_stored: bool = False, is_viewed: bool = False) -> None:
        name = self.kernel.base_array(used)
        if name in self.optional and name not in known.given:
            use = "index its elements" if is_viewed else "use it"  # no branch has a view
            hint = f"{use} where it is given: `if {name} is not None:`"
            if is_stored and name not in self.tested:
                hint += ", or take it without None: a call may leave out any output"
            self.reporter.error("P411", f"`{name}` may be None here", span, hint)

    def implied(self, test: ir.Expr, outcome: bool) -> frozenset[str]:
        """The parameters that are given where `test` has this outcome."""
        match test:
            case ir.IsGiven(parameter=parameter) if outcome:
                return frozenset([parameter])
            case ir.Name(id=name) if name in self.once:
                others = {other: value for other, value in self.once.items() if other != name}  # `a = a` ends here
                return replace(self, once=others).implied(self.once[name], outcome)
            case ir.Unary(op="not", operand=operand):
                return self.implied(operand, not outcome)
            case ir.BoolOp(op=op, left=left, right=right):
                if (op == "and") is outcome:  # both sides were evaluated and had the outcome
                    return self.implied(left, outcome) | self.implied(right, outcome)
                behind = self.implied(left, not outcome) | self.implied(right, outcome)
                return self.implied(left, outcome) & behind  # rule: optional-and
            case _:
                return frozenset()
