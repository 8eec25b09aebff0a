"""Merges branches that compute one value by the same formula: a divergent warp evaluates its expensive part once.

    if x[i] >= 0:                                         exp_value = exp(-x[i] if x[i] >= 0 else x[i])
        y = 1.0 / (1.0 + exp(-x[i]))             →        y = (1.0 if x[i] >= 0 else exp_value) / (1.0 + exp_value)
    else:
        y = exp(x[i]) / (1.0 + exp(x[i]))

A select replaces each operand that differs. If an operand of one branch is a value that the merged formula computes
anyway, the select uses that value. Conditional expressions count as branches.

No bit changes: every operation of the merged formula occurs in both branches, its operands are those of the taken
branch, and C++ evaluates only the selected operand. So no load, division or call is speculated. `MergedFormula` keeps
products beside the sums with which compilers contract them.

The user's branches stay unless merging pays: the branch may diverge within a warp; a division of floats or a
mathematical function is merged; neither branch keeps such an operation of its own; and there are at most two selects.
"""

from __future__ import annotations

from py2cu import ir
from py2cu.analysis.account import elided_in
from py2cu.analysis.effects import is_collective
from py2cu.analysis.range_rules import is_float
from py2cu.diagnostics import Reporter
from py2cu.ir.names import names_in_scope
from py2cu.ir.rewrite import rebuild_statements, with_fields
from py2cu.ir.saved_values import SavedValues
from py2cu.ir.visit import assigned_names, walk
from py2cu.passes.simplify.formulas import MergedFormula, is_alike, is_product, products_of

_Target = ir.Assign | ir.Store | ir.Return


def merge_branches(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """Merge the branches of a kernel or a device function."""
    merging = _Merging(kernel)
    body = rebuild_statements(kernel.body, merging.statement)
    locals_, elided = kernel.locals + tuple(merging.saved.locals), kernel.elided + tuple(merging.elided)
    return with_fields(kernel, body=body, locals=locals_, elided=elided) if body is not kernel.body else kernel


class _Merging:
    """Merges the branches of one function."""

    def __init__(self, kernel: ir.Kernel) -> None:
        self.saved = SavedValues(names_in_scope(kernel))
        self.elided: list[ir.Elided] = []
        self._products = products_of(kernel)
        known = kernel.template_values if kernel.key else {*kernel.dims, *(p.name for p in kernel.parameters)}
        self._uniform = known.difference(assigned_names(kernel.body))

    def statement(self, stmt: ir.Stmt) -> ir.Block:
        target = _joined(stmt) if isinstance(stmt, ir.If) else stmt
        if not isinstance(target, _Target) or target.value is None:
            return (stmt,)
        value = self.value(target.value, is_stored=isinstance(target, ir.Store))
        if value is target.value:
            return (stmt,)
        if isinstance(stmt, ir.If):
            self.elided += elided_in(stmt.orelse, ir.Elision.MERGED)
        return self.saved.ahead_of(with_fields(target, value=value))

    def value(self, value: ir.Expr, *, is_stored: bool) -> ir.Expr:
        """`value` with its branches merged; itself, if it has none, or if merging them does not pay."""
        match value:
            case ir.Convert(value=inner):
                return with_fields(value, value=self.value(inner, is_stored=is_stored))
            case ir.Select(test=test, then=then, orelse=orelse) if self.may_merge(value):
                formula = MergedFormula(test, self._products)
                merged = formula.merge(then, orelse)
                if not formula.pays or (is_product(merged, self._products) and not is_stored):  # rule: merge-result
                    return value
                return formula.with_locals(merged, self.saved)
            case _:
                return value

    def may_merge(self, choice: ir.Select) -> bool:
        """True for a select of floats without side effects whose test may differ between the threads of a warp."""
        if not is_float(choice.type) or choice.then.type != choice.orelse.type:
            return False
        if any(isinstance(part, ir.DeviceCall | ir.Atomic) or is_collective(part) for part in walk(choice)):
            return False
        test = walk(choice.test)
        # rule: merge-test
        if any(isinstance(part, ir.Binary) and is_float(part.type) for part in test):
            return False  # products of the test would join the basic block of the formula's sums
        names = {part.id for part in test if isinstance(part, ir.Name)}
        # rule: merge-uniform
        return not names <= self._uniform or any(isinstance(part, ir.Load | ir.LaunchIndex) for part in test)


def _joined(stmt: ir.If) -> ir.Stmt:
    """An `if` whose branches assign one target, as one assignment of a select; any other `if` itself."""
    sides = [[each for each in block if not _is_remark(each)] for block in (stmt.body, stmt.orelse)]
    one: _Target
    match sides:
        case [[ir.Assign(augmented=False) as one], [ir.Assign(augmented=False) as other]] if one.name == other.name:
            then, orelse = one.value, other.value
        case [[ir.Store(augmented=False) as one], [ir.Store(augmented=False) as other]] if (
            one.array == other.array and all(map(is_alike, one.indices, other.indices))
        ):
            then, orelse = one.value, other.value
        case [[ir.Return(value=then) as one], [ir.Return(value=orelse)]] if then is not None and orelse is not None:
            pass
        case _:
            return stmt
    value = ir.Select(stmt.test, then, orelse, one.span, then.type)
    inside = (each.trivia for each in (stmt, *stmt.body, *stmt.orelse))
    remarks = (remark for trivia in inside for remark in (*trivia.above, trivia.beside) if remark)
    blank = tuple(line for line in stmt.trivia.above[:1] if not line)
    return with_fields(one, value=value, trivia=ir.Trivia(above=(*blank, *remarks)))


def _is_remark(stmt: ir.Stmt) -> bool:
    return isinstance(stmt, ir.Comment) and not stmt.array
