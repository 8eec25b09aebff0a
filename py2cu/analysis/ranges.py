"""Range analysis: an interval for every expression, and for integers a symbolic bound in terms of the launch.

In: a typed kernel. Out: `Ranges`, which `choose_integer_widths` and `lower_semantics` ask. The analysis is
flow-insensitive: a local has the union of the ranges of all its assignments, found by iterating to a fixpoint. `reach`
bounds the magnitude by a polynomial in dimensions, integer and template arguments, and grid sizes; None: unbounded.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Iterator
from typing import Final, assert_never

from py2cu import ir
from py2cu.analysis.range_rules import (
    TRUTH,
    is_float,
    product_of_bounds,
    range_of_binary,
    range_of_call,
    range_of_constant,
    range_of_conversion,
    range_of_sum,
    range_of_type,
    rounded,
)
from py2cu.dtypes import Kind
from py2cu.ir.intervals import Range, SymbolicBound, constant, larger, natural, plus, times
from py2cu.ir.visit import assigned_names, blocks, statements

INT_MAX: Final = 2**31 - 1
FAR: Final = 2**30  # what an `int` holds with much to spare
_NOTHING: Final = Range(0, 0, {})
_ENDLESS: Final = 2**100  # as good as infinite
_ROUNDS: Final = 4  # after this many, what still grows has no bound


class Ranges:
    """The ranges of one typed kernel's expressions."""

    def __init__(self, kernel: ir.Kernel) -> None:
        self.kernel = kernel
        self._kept: dict[int, tuple[ir.Expr, Range]] | None = None
        self.names: dict[str, Range] = {
            name: natural({(name,): 1}) if name in kernel.naturals else Range(reach={(name,): 1})
            for name in kernel.dims
        }
        self.names |= dict(kernel.argument_ranges)
        self.results = {function.key: function.result_ranges for function in kernel.functions}
        assigned = [stmt for stmt in statements(kernel.body) if isinstance(stmt, ir.Assign)]
        count = Counter(stmt.name for stmt in assigned)
        results = [stmt for stmt in assigned if isinstance(stmt.value, ir.DeviceCall) and count[stmt.name] == 1]
        self.tuples = {stmt.name: stmt.value for stmt in results if isinstance(stmt.value.type, ir.TupleType)}
        for index in kernel.indices:
            below = plus(self.of(index.extent).reach, {(): -1})
            self.names[index.name] = Range(0, math.inf, below)
        for parameter in kernel.parameters:
            if parameter.constexpr is not None and parameter.type == ir.PY_INT:
                least = min(parameter.constexpr.values, default=0)
                self.names[parameter.name] = Range(least, parameter.constexpr.most, {(parameter.name,): 1})
            elif parameter.type == ir.PY_INT and parameter.name not in self.names:
                self.names[parameter.name] = Range(reach={(parameter.name,): 1})
            elif parameter.name not in self.names and not isinstance(parameter.type, ir.ArrayType):
                self.names[parameter.name] = range_of_type(parameter.type)
        self._starts = dict(self.names)  # without what loops add to counters
        self._added: dict[str, Range] = {}
        self._iterate()
        self._kept = {}  # from here on no name gets another range: passes ask for every node of a long sum

    def _iterate(self) -> None:
        places = tuple(_with_loops(self.kernel.body, ()))
        growing: set[str] = set()  # counters of loops that run as often as they count
        for round_ in itertools.count():
            before = dict(self.names)
            added: dict[str, Range] = {}
            # Back and forth, as a chain of locals may go either way.
            for stmt, loops in places if round_ < _ROUNDS or round_ % 2 else reversed(places):
                match stmt:
                    case ir.Assign(name=name) if (
                        name not in growing and (step := self._counted(stmt, loops)) is not None
                    ):
                        added[name] = range_of_sum(added.get(name, _NOTHING), step)
                    case ir.Assign(name=name):
                        self._widen(name, self._assigned(stmt, loops), round_)
                    case ir.For(var=var):
                        self._widen(var, self.of_loop(stmt), round_)
            if round_ >= _ROUNDS:
                growing |= {name for name, more in added.items() if more != self._added.get(name)}
            self._added = {name: more for name, more in added.items() if name not in growing}
            for name, more in self._added.items():
                self.names[name] = range_of_sum(self._starts.get(name, _NOTHING), more)
            if before == self.names and growing.isdisjoint(added):
                break

    def _counted(self, stmt: ir.Assign, loops: tuple[ir.For | ir.While, ...]) -> Range | None:
        """What `name += 1` adds in all rounds of the loops around it, where extents of arrays bound their product."""
        match stmt.value:
            case ir.Binary(op="+" | "-" as op, left=ir.Name(id=name), right=ir.Constant(value=int(step))) if (
                name == stmt.name
            ):
                rounds: Range | None = constant(abs(step))
                for loop in loops:
                    rounds = rounds and self._rounds(loop, rounds)
                if rounds is None or stmt.value.type != ir.PY_INT or not self._is_bounded(rounds.reach or {}):
                    return None
                down = (step < 0) is (op == "+") and step != 0
                return Range(-rounds.high, 0, rounds.reach) if down else Range(0, rounds.high, rounds.reach)
            case _:
                return None

    def _assigned(self, stmt: ir.Assign, loops: tuple[ir.For | ir.While, ...]) -> Range:
        """The values that `stmt` gives its name: in `while step < 256: step *= 2` no more than 510.

        Where nothing else in a loop assigns to the name, it still has the value that the loop's test let in.
        """
        values, known = self.of(stmt.value), self.names.get(stmt.name)
        match loops:
            case (*_, ir.While(test=test, body=body)) if (
                known is not None
                and known.union(values) != known
                and stmt.value.type == ir.PY_INT
                and any(each is stmt for each in statements(body))
                and [*assigned_names(body)].count(stmt.name) == 1
            ):
                self.names[stmt.name] = self._let_in(test, stmt.name, known)
                values = self.of(stmt.value)
                self.names[stmt.name] = known
        return values

    def _let_in(self, test: ir.Expr, name: str, known: Range) -> Range:
        """The values of `name`, a whole number, for which `test` may hold."""
        match test:
            case ir.BoolOp(op="and", left=left, right=right):
                return self._let_in(right, name, self._let_in(left, name, known))
            case ir.Compare(op=op, left=ir.Name(id=tested), right=bound) if tested == name and bound.type == ir.PY_INT:
                return _compared(known, op, self.of(bound))
            case _:
                return known

    def _rounds(self, loop: ir.For | ir.While, each: Range) -> Range | None:
        """How often `loop` runs, times `each`; None where nothing bounds it."""
        if isinstance(loop, ir.While):
            return None
        start, stop, step = self.of(loop.start), self.of(loop.stop), self.of(loop.step)
        if not step.low > 0:
            return None
        reach = self.upper(loop.stop) if start.is_natural else plus(stop.reach, start.reach)
        reach = times(reach, each.reach)
        return None if reach is None else Range(0, product_of_bounds(max(0, stop.high - start.low), each.high), reach)

    def _is_bounded(self, reach: SymbolicBound) -> bool:
        """True where every product of dimensions is within the size of an array, which the launcher looks at anyway."""
        return all(any(Counter(term) <= size for size in self.kernel.sizes) for term in reach if term)

    def counts_elements(self, expr: ir.Expr, times: int) -> bool:
        """True for what is at most so many times the elements of an array."""
        reach = self.of(expr).reach
        return reach is not None and self._is_bounded(reach) and sum(map(abs, reach.values())) <= times

    def upper(self, expr: ir.Expr) -> SymbolicBound | None:
        """What `expr` does not exceed where it is positive."""
        match expr:
            case ir.Call(function="builtins.min", args=args):
                bounds = [bound for bound in map(self.upper, args) if bound is not None]
                return min(bounds, key=len) if bounds else None
            case ir.Call(function="builtins.max", args=args):
                return functools.reduce(larger, map(self.upper, args))
            case _:
                return self.of(expr).reach

    def _widen(self, name: str, values: Range, round_: int) -> None:
        old = self._starts.get(name, values)
        new = old.union(values)
        if round_ >= _ROUNDS - 1 and new != old:
            low = old.low if new.low >= old.low else -math.inf
            high = old.high if new.high <= old.high else math.inf
            new = Range(low, high, old.reach if new.reach == old.reach else None)
        self._starts[name] = new
        self.names[name] = range_of_sum(new, self._added[name]) if name in self._added else new

    def of_loop(self, loop: ir.For) -> Range:
        """The values of a loop's variable, and in C the one that ends the loop."""
        start, stop, step = self.of(loop.start), self.of(loop.stop), self.of(loop.step)
        is_upward = start.is_natural and step.low > 0
        reach = self.upper(loop.stop) if is_upward else larger(start.reach, stop.reach)
        if step.reach != {(): 1}:
            reach = plus(reach, step.reach)
        if step.low > 0:
            high = max(start.low, stop.high - 1)
            of_block = isinstance(loop.step, ir.LaunchIndex) and loop.step.object == "blockDim"
            ends = max(start.high, high + (1024 if of_block else step.high))  # in C, with or without a round
            if ends > FAR:
                high = ends
                if not _is_known(reach) or not _is_known(start.reach):
                    reach = larger(reach, start.reach)
            return Range(start.low, high, reach)
        low, high = min(start.low, stop.low + 1), max(start.high, stop.high)
        is_far = low + step.low < -FAR or high + max(step.high, 0) > FAR  # in C
        return Range(low, math.inf if is_far else high, reach)

    def of(self, expr: ir.Expr) -> Range:
        """The values of `expr`."""
        if self._kept is None or not isinstance(expr, ir.Binary | ir.Call):
            return self._of_type(expr)
        known = self._kept.get(id(expr))
        if known is None:
            known = self._kept[id(expr)] = expr, self._of_type(expr)
        return known[1]

    def _of_type(self, expr: ir.Expr) -> Range:
        values = self._of(expr)
        limit = range_of_type(expr.type)
        if values.low < limit.low or values.high > limit.high:
            return limit  # it wraps
        low = values.low if values.low > -_ENDLESS else -math.inf
        high = values.high if values.high < _ENDLESS else math.inf
        return values if (low, high) == (values.low, values.high) else Range(low, high, values.reach)

    def strip_wrap(self, expr: ir.Expr) -> Range:
        """The values of `expr` were it not cut to its type."""
        return self._of(expr)

    def _of(self, expr: ir.Expr) -> Range:
        match expr:
            case ir.Constant(value=value):
                return range_of_constant(value, expr.type)
            case ir.Name(id=name):
                return self.names.get(name, range_of_type(expr.type))
            case ir.LaunchIndex(object="blockIdx", axis=axis):
                return natural({(f"gridDim.{axis}",): 1, (): -1})
            case ir.LaunchIndex(object="threadIdx", axis=axis):
                return natural({(f"blockDim.{axis}",): 1, (): -1}, 1023)
            case ir.LaunchIndex(object=launched, axis=axis):
                return Range(1, math.inf, {(f"{launched}.{axis}",): 1})
            case ir.Load(array=array):
                buffer = self.kernel.array_decl(array)
                if buffer is not None and buffer.values and ir.kind_of(buffer.type.element) is not Kind.FLOAT:
                    return constant(min(buffer.values)).union(constant(max(buffer.values)))
                return range_of_type(expr.type)
            case ir.Unary(op="-", operand=operand):
                inner = self.of(operand)
                return Range(-inner.high, -inner.low, inner.reach)
            case ir.Unary(op="+", operand=operand):
                return self.of(operand)
            case ir.Compare() | ir.Unary(op="not"):
                return TRUTH
            case ir.BoolOp(left=left, right=right):
                return self.of(left).union(self.of(right))
            case ir.Select(then=then, orelse=orelse):
                return self.of(then).union(self.of(orelse))
            case ir.Convert(value=value, type=type_):
                return range_of_conversion(self.of(value), value.type, type_)
            case ir.Binary():
                exact = range_of_binary(expr, self.of(expr.left), self.of(expr.right))
                return rounded(exact, expr.type) if is_float(expr.type) else exact
            case ir.Call():
                return range_of_call(expr, [self.of(arg) for arg in expr.args])
            case ir.TupleItem(value=value, at=at):
                return self.results_of(value)[at]
            case ir.DeviceCall() if not isinstance(expr.type, ir.TupleType):
                return self.results_of(expr)[0]
            case ir.DeviceCall() | ir.Atomic() | ir.Tuple() | ir.Unary() | ir.Extent() | ir.ArrayName():
                return range_of_type(expr.type)
            case _:
                assert_never(expr)

    def results_of(self, value: ir.Expr) -> tuple[Range, ...]:
        """The values of `value`, item by item where it is a tuple."""
        match value:
            case ir.Tuple(items=items):
                return tuple(map(self.of, items))
            case ir.Name(id=name) if name in self.tuples:
                return self.results_of(self.tuples[name])
            case ir.DeviceCall(function=function) if self.results.get(function):
                return self.results[function]
            case (
                ir.Name(type=ir.TupleType(items=types))
                | ir.DeviceCall(type=ir.TupleType(items=types))
                | ir.Load(type=ir.TupleType(items=types))
            ):
                return tuple(map(range_of_type, types))
            case ir.DeviceCall():
                return (range_of_type(value.type),)
            case _:
                return (self.of(value),)


def _with_loops(
    block: ir.Block, loops: tuple[ir.For | ir.While, ...]
) -> Iterator[tuple[ir.Stmt, tuple[ir.For | ir.While, ...]]]:
    """Every statement with the loops around it."""
    for stmt in block:
        yield stmt, loops
        around = (*loops, stmt) if isinstance(stmt, ir.For | ir.While) else loops
        for inner in blocks(stmt):
            is_else = isinstance(stmt, ir.For | ir.While) and inner is stmt.orelse
            yield from _with_loops(inner, loops if is_else else around)


def _compared(known: Range, op: str, bound: Range) -> Range:
    """The whole numbers that may stand in the relation `op` to a `bound`."""
    match op:
        case "<" | "<=":
            reach = bound.reach if known.is_natural and bound.reach is not None else known.reach
            return Range(known.low, bound.high - (op == "<"), reach)
        case ">" | ">=":
            return Range(max(known.low, bound.low + (op == ">")), known.high, known.reach)
        case _:
            return known


def _is_known(reach: SymbolicBound | None) -> bool:
    """True for one that the launcher judges, and for none that is constant."""
    return reach is not None and any(reach) and all(abs(factor) <= INT_MAX for factor in reach.values())
