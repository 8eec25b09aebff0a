"""Interval analysis: an interval for every expression, and for integers a symbolic bound in terms of the launch.

In: a typed kernel. Out: `Ranges`, which `choose_integer_widths` and `lower_semantics` query. The analysis is
flow-insensitive: a local has the union of the ranges of all its assignments, found by iterating to a fixpoint. `bound`
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
from py2cu.builtins import ROWS, Bound
from py2cu.dtypes import Kind
from py2cu.ir.intervals import Interval, SymbolicBound, constant, larger, natural, plus, times
from py2cu.ir.names import list_elements
from py2cu.ir.visit import assigned_names, blocks, statements

INT_MAX: Final = 2**31 - 1
FAR: Final = 2**30  # well within the range of `int`
_NOTHING: Final = Interval(0, 0, {})
_ENDLESS: Final = 2**100  # bounds beyond it count as infinite
_ROUNDS: Final = 4  # of the fixpoint iteration; a range that still grows then is unbounded


class Ranges:
    """The ranges of one typed kernel's expressions."""

    def __init__(self, kernel: ir.Kernel) -> None:
        self.kernel = kernel
        self._cache: dict[int, tuple[ir.Expr, Interval]] | None = None
        self.names: dict[str, Interval] = {
            name: natural({(name,): 1}) if name in kernel.naturals else Interval(bound={(name,): 1})
            for name in kernel.dims
        }
        self.names |= dict(kernel.argument_ranges)
        self.results = {function.key: function.result_ranges for function in kernel.functions}
        assigned = [stmt for stmt in statements(kernel.body) if isinstance(stmt, ir.Assign)]
        count = Counter(stmt.name for stmt in assigned)
        results = [stmt for stmt in assigned if isinstance(stmt.value, ir.DeviceCall) and count[stmt.name] == 1]
        self.tuples = {stmt.name: stmt.value for stmt in results if isinstance(stmt.value.type, ir.TupleType)}
        for index in kernel.indices:
            below = plus(self.of(index.extent).bound, {(): -1})
            self.names[index.name] = Interval(0, math.inf, below)
        for parameter in kernel.parameters:
            if parameter.constexpr is not None and parameter.type == ir.PY_INT:
                least = min(parameter.constexpr.values, default=0)
                self.names[parameter.name] = Interval(least, parameter.constexpr.most, {(parameter.name,): 1})
            elif parameter.type == ir.PY_INT and parameter.name not in self.names:
                self.names[parameter.name] = Interval(bound={(parameter.name,): 1})
            elif parameter.name not in self.names and not isinstance(parameter.type, ir.ArrayType):  # rule: range-known
                self.names[parameter.name] = range_of_type(parameter.type)
        self._base_ranges = dict(self.names)  # without the increments of counters in loops
        self._increments: dict[str, Interval] = {}
        self._iterate()
        self._cache = {}  # the ranges of names are final now, and passes query every node of long sums

    def _iterate(self) -> None:
        places = tuple(_with_loops(self.kernel.body, ()))
        growing: set[str] = set()  # counters that bound the loops which increment them
        for round_ in itertools.count():
            before = dict(self.names)
            added: dict[str, Interval] = {}
            # Alternate the direction: a chain of assignments may run forwards or backwards.
            for stmt, loops in places if round_ < _ROUNDS or round_ % 2 else reversed(places):
                match stmt:
                    case ir.Assign(name=name) if (
                        name not in growing and (step := self._total_increment(stmt, loops)) is not None
                    ):
                        added[name] = range_of_sum(added.get(name, _NOTHING), step)
                    case ir.Assign(name=name):
                        self._widen(name, self._assigned_range(stmt, loops), round_)
                    case ir.Store(array=array, value=value) if self.kernel.is_list(array):
                        self._widen(list_elements(array), self.of(value), round_)
                    case ir.For(var=var):
                        self._widen(var, self.of_loop(stmt), round_)
            if round_ >= _ROUNDS:
                growing |= {name for name, increment in added.items() if increment != self._increments.get(name)}
            self._increments = {name: increment for name, increment in added.items() if name not in growing}
            for name, increment in self._increments.items():
                self.names[name] = range_of_sum(self._base_ranges.get(name, _NOTHING), increment)
            if before == self.names and growing.isdisjoint(added):
                break

    def _total_increment(self, stmt: ir.Assign, loops: tuple[ir.For | ir.While, ...]) -> Interval | None:
        """The sum of all increments `name += 1` in the loops around it; None unless extents of arrays bound it."""
        match stmt.value:
            case ir.Binary(op="+" | "-" as op, left=ir.Name(id=name), right=ir.Constant(value=int(step))) if (
                name == stmt.name
            ):
                total: Interval | None = constant(abs(step))
                for loop in loops:
                    total = total and self._rounds(loop, total)
                if total is None or stmt.value.type != ir.PY_INT or not self._is_bounded(total.bound or {}):
                    return None
                down = (step < 0) is (op == "+") and step != 0
                return Interval(-total.high, 0, total.bound) if down else Interval(0, total.high, total.bound)
            case _:
                return None

    def _assigned_range(self, stmt: ir.Assign, loops: tuple[ir.For | ir.While, ...]) -> Interval:
        """The range of the value that `stmt` assigns in these loops.

        If `stmt` alone assigns the name in a `while` loop, the old value of the name satisfies the test of the loop. In
        `while step < 256: step *= 2`, for example, the assigned value is at most 510.
        """
        values, known = self.of(stmt.value), self.names.get(stmt.name)
        match loops:
            case (*_, ir.While(test=test, body=body)) if (
                known is not None
                and known.union(values) != known
                and stmt.value.type == ir.PY_INT
                and any(each is stmt for each in statements(body))
                and [*assigned_names(body)].count(stmt.name) == 1  # rule: range-assigned-once
            ):
                self.names[stmt.name] = self._narrow_by_test(test, stmt.name, known)
                values = self.of(stmt.value)
                self.names[stmt.name] = known
        return values

    def _narrow_by_test(self, test: ir.Expr, name: str, known: Interval) -> Interval:
        """The range of the integer `name` where `test` may hold; `known` is its range before the test."""
        match test:
            case ir.BoolOp(op="and", left=left, right=right):
                return self._narrow_by_test(right, name, self._narrow_by_test(left, name, known))
            case ir.Compare(op=op, left=ir.Name(id=tested), right=bound) if tested == name and bound.type == ir.PY_INT:
                return _narrow(known, op, self.of(bound))
            case _:
                return known

    def _rounds(self, loop: ir.For | ir.While, each: Interval) -> Interval | None:
        """The number of iterations of `loop` times `each`; None if it is unbounded."""
        if isinstance(loop, ir.While):
            return None
        start, stop, step = self.of(loop.start), self.of(loop.stop), self.of(loop.step)
        if not step.low > 0:
            return None
        bound = self.upper(loop.stop) if start.is_natural else plus(stop.bound, start.bound)
        bound = times(bound, each.bound)
        most = product_of_bounds(max(0, stop.high - start.low), each.high)
        return None if bound is None else Interval(0, most, bound)

    def _is_bounded(self, bound: SymbolicBound) -> bool:
        """True if every term is a product of extents of one array, whose size the launcher checks anyway."""
        return all(any(Counter(term) <= size for size in self.kernel.sizes) for term in bound if term)

    def counts_elements(self, expr: ir.Expr, times: int) -> bool:
        """True if `expr` is at most `times` the number of elements of an array."""
        bound = self.of(expr).bound
        return bound is not None and self._is_bounded(bound) and sum(map(abs, bound.values())) <= times

    def upper(self, expr: ir.Expr) -> SymbolicBound | None:
        """A symbolic upper bound of `expr` where it is positive."""
        match expr:
            case ir.Call(function=function, args=args) if function in ROWS and ROWS[function].range is Bound.LEAST:
                bounds = [bound for bound in map(self.upper, args) if bound is not None]
                return min(bounds, key=len) if bounds else None
            case ir.Call(function=function, args=args) if function in ROWS and ROWS[function].range is Bound.GREATEST:
                return functools.reduce(larger, map(self.upper, args))
            case _:
                return self.of(expr).bound

    def _widen(self, name: str, values: Interval, round_: int) -> None:
        old = self._base_ranges.get(name, values)
        new = old.union(values)
        if round_ >= _ROUNDS - 1 and new != old:
            low = old.low if new.low >= old.low else -math.inf
            high = old.high if new.high <= old.high else math.inf
            new = Interval(low, high, old.bound if new.bound == old.bound else None)
        self._base_ranges[name] = new
        self.names[name] = range_of_sum(new, self._increments[name]) if name in self._increments else new

    def of_loop(self, loop: ir.For) -> Interval:
        """The range of a loop's variable, including the final value that C's counter reaches."""
        start, stop, step = self.of(loop.start), self.of(loop.stop), self.of(loop.step)
        is_upward = start.is_natural and step.low > 0
        bound = self.upper(loop.stop) if is_upward else larger(start.bound, stop.bound)
        if step.bound != {(): 1}:
            bound = plus(bound, step.bound)
        if step.low > 0:
            high = max(start.low, stop.high - 1)
            of_block = isinstance(loop.step, ir.LaunchIndex) and loop.step.object == "blockDim"
            ends = max(start.high, high + (1024 if of_block else step.high))  # the final value in C
            if ends > FAR:
                high = ends
                if not _is_launch_checked(bound) or not _is_launch_checked(start.bound):
                    bound = larger(bound, start.bound)
            return Interval(start.low, high, bound)
        low, high = min(start.low, stop.low + 1), max(start.high, stop.high)
        is_far = low + step.low < -FAR or high + max(step.high, 0) > FAR  # the final value in C
        return Interval(low, math.inf if is_far else high, bound)  # rule: range-of-loop

    def of(self, expr: ir.Expr) -> Interval:
        """The range of `expr`."""
        if self._cache is None or not isinstance(expr, ir.Binary | ir.Call):
            return self._limited_to_type(expr)
        known = self._cache.get(id(expr))
        if known is None:
            known = self._cache[id(expr)] = expr, self._limited_to_type(expr)
        return known[1]

    def _limited_to_type(self, expr: ir.Expr) -> Interval:
        values = self._of(expr)
        limit = range_of_type(expr.type)
        if values.low < limit.low or values.high > limit.high:
            return limit  # it wraps
        low = values.low if values.low > -_ENDLESS else -math.inf
        high = values.high if values.high < _ENDLESS else math.inf
        # rule: range-cut
        return values if (low, high) == (values.low, values.high) else Interval(low, high, values.bound)

    def before_wrap(self, expr: ir.Expr) -> Interval:
        """The range of `expr` before it wraps to its type."""
        return self._of(expr)

    def _of(self, expr: ir.Expr) -> Interval:
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
                return Interval(1, math.inf, {(f"{launched}.{axis}",): 1})
            case ir.Load(array=array):
                decl = self.kernel.array_decl(array)
                if decl is not None and decl.is_list:
                    return self.names.get(list_elements(array), range_of_type(expr.type))
                if decl is not None and decl.values and ir.kind_of(decl.type.element) is not Kind.FLOAT:
                    return constant(min(decl.values)).union(constant(max(decl.values)))
                return range_of_type(expr.type)
            case ir.Unary(op="-", operand=operand):
                inner = self.of(operand)
                return Interval(-inner.high, -inner.low, inner.bound)
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
            case ir.IsDtype() | ir.IsGiven():
                return range_of_type(expr.type)
            case _:
                assert_never(expr)

    def results_of(self, value: ir.Expr) -> tuple[Interval, ...]:
        """The range of `value`, or of each item of a tuple."""
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
            yield from _with_loops(inner, loops if is_else else around)  # rule: range-in-else


def _narrow(known: Interval, op: str, other: Interval) -> Interval:
    """The integers of `known` that may be in the relation `op` to a value of `other`."""
    match op:
        case "<" | "<=":
            bound = other.bound if known.is_natural and other.bound is not None else known.bound  # rule: range-narrowed
            return Interval(known.low, other.high - (op == "<"), bound)
        case ">" | ">=":
            return Interval(max(known.low, other.low + (op == ">")), known.high, known.bound)
        case _:
            return known


def _is_launch_checked(bound: SymbolicBound | None) -> bool:
    """True for a bound that the launcher checks: symbolic, with factors that fit `int`."""
    return bound is not None and any(bound) and all(abs(factor) <= INT_MAX for factor in bound.values())
