"""Merges branches that compute one value by the same formula: a divergent warp evaluates its expensive part once.

    if x[i] >= 0:                                         exp_value = exp(-x[i] if x[i] >= 0 else x[i])
        y = 1.0 / (1.0 + exp(-x[i]))             →        y = (1.0 if x[i] >= 0 else exp_value) / (1.0 + exp_value)
    else:
        y = exp(x[i]) / (1.0 + exp(x[i]))

Locals that only the branches use, such as `e = exp(-x[i])`, are part of the formula and give its parts their names.
After `if …: return a`, the statements up to the final `return b` are the other branch.

A select replaces each operand that differs. If an operand of one branch is a value that the merged formula computes
anyway, the select uses that value. Conditional expressions count as branches.

No bit changes: every operation of the merged formula occurs in both branches, its operands are those of the taken
branch, and C++ evaluates only the selected operand. So no load, division or call is speculated. `MergedFormula` keeps
products beside the sums with which compilers contract them.

The user's branches stay unless merging pays: the branch may diverge within a warp; a division of floats or a
mathematical function is merged; neither branch keeps such an operation of its own; and there are at most two selects.
"""

from __future__ import annotations

from collections import Counter
from itertools import chain

from py2cu import ir
from py2cu.analysis.account import elided_in
from py2cu.analysis.effects import is_collective
from py2cu.analysis.range_rules import is_float
from py2cu.diagnostics import Reporter
from py2cu.ir.names import names_in_scope
from py2cu.ir.rewrite import rebuild_statements, with_fields
from py2cu.ir.saved_values import SavedValues
from py2cu.ir.substitution import substitute
from py2cu.ir.visit import all_expressions, assigned_names, expressions, names_in, statements, walk
from py2cu.passes.simplify.formulas import MergedFormula, Values, is_alike, is_product, products_of

_Target = ir.Assign | ir.Store | ir.Return


def merge_branches(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """Merge the branches of a kernel or a device function."""
    merging = _Merging(kernel)
    body = merging.ended(rebuild_statements(kernel.body, merging.statement))
    kept = tuple(local for local in kernel.locals if local[0] not in merging.inlined)
    locals_, elided = kept + tuple(merging.saved.locals), kernel.elided + tuple(merging.elided)
    return with_fields(kernel, body=body, locals=locals_, elided=elided) if body is not kernel.body else kernel


class _Merging:
    """Merges the branches of one function."""

    def __init__(self, kernel: ir.Kernel) -> None:
        self.saved = SavedValues(names_in_scope(kernel))
        self.elided: list[ir.Elided] = []
        self._products = products_of(kernel)
        known = kernel.template_values if kernel.key else {*kernel.dims, *(p.name for p in kernel.parameters)}
        self._uniform = known.difference(assigned_names(kernel.body))
        self.inlined: set[str] = set()  # locals whose assignments are part of a merged formula
        self._locals = dict(kernel.locals)
        self._statements = {id(stmt) for stmt in statements(kernel.body)}
        self._mentions = _mentions(kernel.body)

    def statement(self, stmt: ir.Stmt) -> ir.Block:
        values: Values = {}
        target = self.joined(stmt, values) if isinstance(stmt, ir.If) else stmt
        if not isinstance(target, _Target) or target.value is None:
            return (stmt,)
        value = self.value(target.value, values, is_stored=isinstance(target, ir.Store))
        if value is target.value:
            return (stmt,)
        if isinstance(stmt, ir.If):
            gone = (each for each in (*stmt.body, *stmt.orelse) if each.span != target.span)
            self.elided += elided_in(tuple(gone), ir.Elision.MERGED)
        before = self.saved.ahead_of(with_fields(target, value=value))
        return tuple(with_fields(each, span=target.span) for each in before)  # comments stand above the whole formula

    def ended(self, body: ir.Block) -> ir.Block:
        """Merge `if c: return a` and the statements up to the final `return b`, as the two branches of one `if`."""
        for place, stmt in enumerate(body):
            match stmt:
                case ir.If(body=(*_, ir.Return()), orelse=()) if place + 1 < len(body):
                    merged = self.statement(with_fields(stmt, orelse=body[place + 1 :]))
                    if not isinstance(merged[0], ir.If):
                        return (*body[:place], *merged)
        return body

    def joined(self, stmt: ir.If, values: Values) -> ir.Stmt:
        """An `if` whose branches end in one target, as one assignment of a select; any other `if` itself.

        `values` gets the locals that the branches alone use, with their values.
        """
        mentions = _mentions((*stmt.body, *stmt.orelse))
        total = self._mentions
        own = frozenset(name for name in self._locals if mentions[name] == total[name])  # rule: merge-locals
        then, orelse = (self.without_locals(block, own, values) for block in (stmt.body, stmt.orelse))
        joined = stmt if then is None or orelse is None else _joined(stmt, then, orelse)
        read = {name for expr in expressions(joined) for name in names_in(expr)}
        return stmt if read & values.keys() else joined

    def without_locals(self, block: ir.Block, own: frozenset[str], values: Values) -> ir.Stmt | None:
        """The last statement of a branch, its `own` locals replaced by their values; None if it does anything else."""
        kept = [each for each in block if not _is_remark(each)]
        known: dict[str, ir.Expr] = {}
        for stmt in kept[:-1]:
            if not isinstance(stmt, ir.Assign) or stmt.augmented or stmt.name not in own:
                return None
            if id(stmt) not in self._statements or stmt.value.type != self._locals[stmt.name]:
                return None
            known[stmt.name] = substitute(stmt.value, known)
            values.setdefault(stmt.name, []).append(known[stmt.name])
        last = kept[-1] if kept else None
        if not known:
            return last
        if not isinstance(last, _Target) or last.value is None or id(last) not in self._statements:
            return None
        return with_fields(last, value=substitute(last.value, known))

    def value(self, value: ir.Expr, locals_: Values, *, is_stored: bool) -> ir.Expr:
        """`value` with its branches merged; itself, if it has none, or if merging them does not pay.

        `locals_` are the locals that are part of it.
        """
        match value:
            case ir.Convert(value=inner):
                return with_fields(value, value=self.value(inner, locals_, is_stored=is_stored))
            case ir.Select(test=test, then=then, orelse=orelse) if self.may_merge(value):
                formula = MergedFormula(test, self._products)
                merged = formula.merge(then, orelse)
                if not formula.pays or (is_product(merged, self._products) and not is_stored):  # rule: merge-result
                    return value
                self.inlined |= locals_.keys()
                self.saved.taken -= locals_.keys()
                return formula.with_locals(merged, self.saved, locals_)
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


def _joined(stmt: ir.If, then_branch: ir.Stmt, else_branch: ir.Stmt) -> ir.Stmt:
    """An `if` with these branches that assign one target, as one assignment of a select; any other `if` itself."""
    one: _Target
    match then_branch, else_branch:
        case ir.Assign(augmented=False) as one, ir.Assign(augmented=False) as other if one.name == other.name:
            then, orelse = one.value, other.value
        case ir.Store(augmented=False) as one, ir.Store(augmented=False) as other if one.array == other.array and all(
            map(is_alike, one.indices, other.indices)
        ):
            then, orelse = one.value, other.value
        case ir.Return(value=then) as one, ir.Return(value=orelse) if then is not None and orelse is not None:
            pass
        case _:
            return stmt
    value = ir.Select(stmt.test, then, orelse, one.span, then.type)
    inside = (each.trivia for each in (stmt, *stmt.body, *stmt.orelse))
    remarks = (remark for trivia in inside for remark in (*trivia.above, trivia.beside) if remark)
    blank = tuple(line for line in stmt.trivia.above[:1] if not line)
    return with_fields(one, value=value, trivia=ir.Trivia(above=(*blank, *remarks)))


def _mentions(block: ir.Block) -> Counter[str]:
    """How often each name is read and assigned."""
    read = (part.id for part in all_expressions(block) if isinstance(part, ir.Name))
    return Counter(chain(read, assigned_names(block)))


def _is_remark(stmt: ir.Stmt) -> bool:
    return isinstance(stmt, ir.Comment) and not stmt.array
