"""Notes indices that may be negative at run time: Python counts them from the end, compiled code does not.

    x[i - 1]                    P414, unless a test around it, `if i > 0`, shows that it is not negative
    x[(i - 1) % x.shape[0]]     wraps in both

In: a typed kernel. Out: a note for each such index. Constants are no case: `x[-1]` is the last element in both.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from py2cu import ir
from py2cu.analysis.argument_ranges import functions_with_ranges
from py2cu.analysis.call_graph import reachable_functions
from py2cu.analysis.constant_values import constant_value
from py2cu.analysis.ranges import Ranges
from py2cu.diagnostics import Reporter
from py2cu.ir.rewrite import rebuild_block, with_fields
from py2cu.ir.visit import assigned_names, blocks, children, expressions

_NEGATED: Final = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
_TURNED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
Facts = Mapping[object, float]  # the least value of integers, and of differences of two, where a test shows one


def note_negative_indices(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """Report the indices that nothing shows to be zero or more; the kernel is unchanged."""
    computed, *others = map(_computed, (kernel, *reachable_functions(kernel)))
    functions = functions_with_ranges(with_fields(computed, functions=tuple(others)))
    for caller in (computed, *functions):
        local = reporter.within(caller.origin)
        _Noter(caller, Ranges(with_fields(caller, functions=functions)), local).look_at(caller.body, {})
    return kernel


def _computed(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel with the values of constant expressions of integers: `N // 2 - 1` is 3."""

    def change(expr: ir.Expr) -> ir.Expr:
        value = constant_value(expr)
        return expr if value is None else ir.Constant(value, expr.span, expr.type)

    return with_fields(kernel, body=rebuild_block(kernel.body, change))


@dataclass(frozen=True, slots=True)
class _Noter:
    kernel: ir.Kernel
    ranges: Ranges
    reporter: Reporter
    noted: set[tuple[str, str]] = field(default_factory=set)  # arrays and indices

    def look_at(self, body: ir.Block, facts: Facts) -> None:
        """Look at statements of which `facts` hold before the first one."""
        for stmt in body:
            changed = {*assigned_names((stmt,))}
            if isinstance(stmt, ir.For | ir.While):
                facts = _without(facts, changed)
            if isinstance(stmt, ir.Store):
                self._look_at_index(stmt.array, stmt.indices, facts)
            for expr in expressions(stmt):
                self._look_at_expression(expr, facts)
            match stmt:
                case ir.If(test=test, body=then, orelse=orelse):
                    self.look_at(then, self._where(test, facts, True))
                    self.look_at(orelse, self._where(test, facts, False))
                    if then and isinstance(then[-1], ir.Return | ir.Continue | ir.Break):
                        facts = self._where(test, facts, False)
                case ir.While(test=test, body=inner):
                    self.look_at(inner, self._where(test, facts, True))
                case ir.For(var=var, start=start, stop=stop, step=step, body=inner):
                    least = self._least(start, facts)
                    if self.ranges.of(step).high < 0:
                        least = self._least(stop, facts) + 1
                    self.look_at(inner, {**facts, var: least})
                case _:
                    for inner in blocks(stmt):
                        self.look_at(inner, facts)
            facts = _without(facts, changed)

    def _look_at_expression(self, expr: ir.Expr, facts: Facts) -> None:
        match expr:
            case ir.Load(array=array, indices=indices) | ir.Atomic(array=array, indices=indices):
                self._look_at_index(array, indices, facts)
            case ir.Select(test=test, then=then, orelse=orelse):
                self._look_at_expression(test, facts)
                self._look_at_expression(then, self._where(test, facts, True))
                self._look_at_expression(orelse, self._where(test, facts, False))
                return
            case ir.BoolOp(op=op, left=left, right=right):
                self._look_at_expression(left, facts)
                self._look_at_expression(right, self._where(left, facts, op == "and"))
                return
        for operand in children(expr):
            self._look_at_expression(operand, facts)

    def _look_at_index(self, array: str, indices: tuple[ir.Expr, ...], facts: Facts) -> None:
        if self.kernel.is_list(array):
            return
        for axis, index in enumerate(indices):
            if isinstance(index, ir.Constant) or self._is_natural(index, facts):
                continue
            text = self.reporter.file.quote(index.span)
            if (array, text) in self.noted:
                continue
            self.noted.add((array, text))
            what = f"`{text}` may be negative: Python counts it from the end then, compiled code does not"
            operand = text if text.isidentifier() else f"({text})"
            decl = self.kernel.array_decl(array)
            extent = f"len({array})" if decl is not None and decl.type.weak else f"{array}.shape[{axis}]"
            hint = f"`{operand} % {extent}` wraps in both; `py2cu check` reports negative indices"
            self.reporter.note("P414", what, index.span, hint)

    def _is_natural(self, index: ir.Expr, facts: Facts) -> bool:
        """Whether an index is shown to be zero or more in Python, where differences are signed."""
        match index:
            case ir.Convert(value=value):
                return self._is_natural(value, facts)
            case ir.Binary(op="-", left=left, right=right) if (pair := _pair(left, right)) in facts:
                return facts[pair] >= 0
            case ir.Binary(op="%", right=divisor):
                return self._least(ir.unconverted(divisor), facts) >= 0
            case ir.Binary(op="-", type=ir.ElementType(dtype=dtype)) if not dtype.signed:
                return False
        return self._least(index, facts) >= 0

    def _least(self, expr: ir.Expr, facts: Facts) -> float:
        """The least value of an integer."""
        known = copy.copy(self.ranges)
        known._cache = {}
        known.names = {**self.ranges.names}
        low_extents = dict.fromkeys(self.kernel.dims, 1.0)  # an empty array has no indices
        for name, low in (low_extents | {name: low for name, low in facts.items() if isinstance(name, str)}).items():
            if name in known.names and known.names[name].low < low:
                known.names[name] = replace(known.names[name], low=min(low, known.names[name].high))
        return known.of(expr).low

    def _where(self, test: ir.Expr, facts: Facts, holds: bool) -> Facts:
        """What is known where `test` holds, or where it does not."""
        match test:
            case ir.Unary(op="not", operand=operand):
                return self._where(operand, facts, not holds)
            case ir.BoolOp(op=op, left=left, right=right) if (op == "and") is holds:
                return self._where(right, self._where(left, facts, holds), holds)
            case ir.Compare(op=op, left=left, right=right):
                op = op if holds else _NEGATED[op]
                found = [*self._bounds(op, left, right, facts), *self._bounds(_TURNED[op], right, left, facts)]
                return {**facts, **{name: max(low, facts.get(name, low)) for name, low in found}}
            case _:
                return facts

    def _bounds(self, op: str, left: ir.Expr, right: ir.Expr, facts: Facts) -> Iterator[tuple[object, float]]:
        """The least value of the name in `left`, a name or its sum with a constant, where `left op right`."""
        left, right = ir.unconverted(left), ir.unconverted(right)
        if op == "!=" and isinstance(right, ir.Constant) and right.value == self._least(left, facts):
            op = ">"
        if op not in (">", ">=", "=="):
            return
        low = self._least(right, facts) + (op == ">")
        match left:
            case ir.Name(id=name):
                yield name, low
                if (pair := _pair(left, right)) is not None:
                    yield pair, float(op == ">")
            case ir.Binary(op="+" | "-" as sign, left=ir.Name(id=name), right=ir.Constant(value=int(number))):
                yield name, low - number if sign == "+" else low + number


def _pair(left: ir.Expr, right: ir.Expr) -> tuple[str, str] | None:
    """The names of two operands; None if one of them is no name."""
    match ir.unconverted(left), ir.unconverted(right):
        case ir.Name(id=one), ir.Name(id=other):
            return one, other
    return None


def _without(facts: Facts, names: set[str]) -> Facts:
    return {name: low for name, low in facts.items() if names.isdisjoint(name if isinstance(name, tuple) else (name,))}
