"""Upper bounds of Python integers that cannot be negative, by abstract interpretation.

Bounds start from masks, constants and unsigned elements:

    key = seed & MASK            at most 2**32 - 1
    product = key * 0xD2511F53   at most (2**32 - 1) * 0xD2511F53: beyond an int64, and within a uint64
    key = product >> 32          at most 0xD2511F52, also in a loop around these lines

In: a typed kernel. Out: `NaturalBounds`. The analysis is flow-sensitive: it interprets statements in order, loops to a
fixpoint, and each call with the bounds of its arguments. `Ranges` is not: it keeps one range for each local. The types
of emitted integers depend on the ranges of `Ranges`, which is why this analysis does not refine them. It has no bounds
for indices and extents.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Final

from py2cu import ir
from py2cu.analysis.call_graph import in_recursive_scc
from py2cu.builtins import ROWS, Bound
from py2cu.dtypes import Kind
from py2cu.ir.names import list_elements
from py2cu.ir.visit import children, expressions

UpperBound = int | None
"""The greatest value of an integer; None if the integer may be negative, or has no known bound."""
Bounds = UpperBound | tuple[UpperBound, ...]
"""The upper bound of a number, or one for each item of a tuple."""
_Scope = dict[str, Bounds]

UINT64_MAX: Final = 2**64 - 1
_ROUNDS: Final = 8  # of a loop's fixpoint iteration; a bound that still grows then is dropped
_ENDLESS: Final = 2**256  # greater bounds are dropped


class NaturalBounds:
    """Upper bounds of the expressions of a kernel and of its device functions, each joined over all paths and calls."""

    def __init__(self, kernel: ir.Kernel) -> None:
        self._functions = {function.key: function for function in kernel.functions}
        self._recursive = in_recursive_scc(kernel.functions)
        self._by_id: dict[int, UpperBound] = {}
        self._results: dict[tuple[str, tuple[Bounds, ...]], Bounds] = {}
        self._assigned: list[_Scope] = []  # for each surrounding loop, the bounds that its body assigns
        self._returned: list[Bounds] = []
        self._run(kernel, {})
        for key in self._recursive:
            self._run(self._functions[key], {})

    def of(self, expr: ir.Expr) -> UpperBound:
        """The upper bound of a Python integer of the kernel."""
        return self._by_id.get(id(expr))

    # --- statements ---

    def _run(self, function: ir.Kernel, arguments: _Scope) -> Bounds:
        """Interpret `function` for arguments with these bounds; the bounds of its result."""
        outer, self._assigned, self._returned = (self._assigned, self._returned), [], []
        names = [*(p.name for p in function.parameters), *(index.name for index in function.indices)]
        self._block(function.body, dict.fromkeys([*names, *function.dims]) | arguments)
        results = self._returned
        self._assigned, self._returned = outer
        return _joined(results) if results else None

    def _block(self, block: ir.Block, scope: _Scope) -> None:
        for stmt in block:
            facts = [self._bounds(expr, scope) for expr in expressions(stmt)] if not isinstance(stmt, ir.While) else []
            match stmt:
                case ir.Assign(name=name):
                    self._assign(name, facts[0], scope)
                case ir.Store(array=array):
                    elements = list_elements(array)
                    self._assign(elements, _joined([facts[-1], scope.get(elements, 0)]), scope)
                case ir.Return(value=value) if value is not None:
                    self._returned.append(facts[0])
                case ir.If(body=body, orelse=orelse):
                    otherwise = dict(scope)
                    self._block(body, scope)
                    self._block(orelse, otherwise)
                    scope |= {name: _joined([scope[name], otherwise[name]]) for name in scope.keys() & otherwise.keys()}
                    scope |= {name: fact for name, fact in otherwise.items() if name not in scope}
                case ir.For(var=var, start=start, stop=stop, step=step):
                    ends = self._counter(start, stop, step)
                    self._loop(stmt, {var: ends}, scope)
                case ir.While():
                    self._loop(stmt, {}, scope)

    def _assign(self, name: str, bounds: Bounds, scope: _Scope) -> None:
        scope[name] = bounds
        for assigned in self._assigned:
            assigned[name] = _joined([bounds, assigned[name]]) if name in assigned else bounds

    def _loop(self, loop: ir.For | ir.While, counter: _Scope, scope: _Scope) -> None:
        """Iterate to bounds that hold at the start of every iteration, and therefore after the loop."""
        for name, fact in counter.items():
            self._assign(name, fact, scope)
        for round_ in itertools.count():
            if isinstance(loop, ir.While):
                self._bounds(loop.test, scope)
            self._assigned.append({})
            self._block(loop.body, dict(scope))
            changed = self._assigned.pop()
            after = {name: _joined([fact, scope[name]]) if name in scope else fact for name, fact in changed.items()}
            grown = {name: fact for name, fact in after.items() if name not in scope or scope[name] != fact}
            if not grown:
                break
            scope |= grown if round_ < _ROUNDS else dict.fromkeys(grown)
        self._block(loop.orelse, scope)

    @staticmethod
    def _counter(start: ir.Expr, stop: ir.Expr, step: ir.Expr) -> UpperBound:
        """The greatest value of a loop's variable whose bounds are constants."""
        match start, stop, step:
            case (
                ir.Constant(value=int(first)),
                ir.Constant(value=int(end)),
                ir.Constant(value=int(by)),
            ) if first >= 0 and by > 0:
                return max(first, end - 1)
            case _:
                return None

    # --- expressions ---

    def _bounds(self, expr: ir.Expr, scope: _Scope) -> Bounds:
        """The bound of `expr`, or of each item of a tuple; records the bounds of its operands, too."""
        match expr:
            case ir.Tuple(items=items):
                return tuple(self._most(item, scope) for item in items)
            case ir.Name(id=name) if isinstance(expr.type, ir.TupleType):
                return scope.get(name)
            case ir.DeviceCall(type=ir.TupleType()):
                return self._call(expr, scope)
            case _:
                return self._most(expr, scope)

    def _most(self, expr: ir.Expr, scope: _Scope) -> UpperBound:
        most = self._of(expr, scope)
        most = None if most is not None and most > _ENDLESS else most
        key = id(expr)
        if key in self._by_id:
            known = self._by_id[key]
            self._by_id[key] = None if known is None or most is None else max(known, most)
        else:
            self._by_id[key] = most
        return most

    def _of(self, expr: ir.Expr, scope: _Scope) -> UpperBound:
        match expr:
            case ir.TupleItem(value=value, at=at):
                items = self._bounds(value, scope)
                return items[at] if isinstance(items, tuple) else None
            case ir.DeviceCall():
                result = self._call(expr, scope)
                return None if isinstance(result, tuple) else result
        parts = [self._most(part, scope) for part in children(expr)]
        match expr:
            case ir.Constant(value=int(number)):
                return int(number) if number >= 0 else None
            case ir.Name(id=name):
                fact = scope.get(name)
                return None if isinstance(fact, tuple) else fact
            case ir.Load(array=array, type=ir.PythonType()):
                fact = scope.get(list_elements(array))
                return None if isinstance(fact, tuple) else fact
            case ir.Convert(value=value, type=ir.PythonType(kind=Kind.INT)):
                return _of_element(value.type) if isinstance(value.type, ir.ElementType) else parts[0]
            case ir.Compare() | ir.Unary(op="not"):
                return 1
            case ir.Binary(op=">>" | "//" as op, right=ir.Constant(value=int(by))) if parts[0] is not None and by > 0:
                return parts[0] >> by if op == ">>" else parts[0] // by
            case ir.Binary(op=op, type=ir.PythonType(kind=Kind.INT)):
                return _of_operation(op, *parts)
            case ir.Select(type=ir.PythonType()):
                return _most_of(parts[1:])
            case ir.BoolOp(type=ir.PythonType()):
                return _most_of(parts)
            case ir.Call(function=function, type=ir.PythonType()) if function in ROWS:
                match ROWS[function].range:
                    case Bound.GREATEST | Bound.LEAST | Bound.MAGNITUDE:
                        return _most_of(parts)
        return None

    def _call(self, call: ir.DeviceCall, scope: _Scope) -> Bounds:
        """The bounds of a call's result; interprets the function for these arguments, unless it is recursive."""
        function = self._functions[call.function]
        facts = tuple(None if isinstance(arg, ir.ArrayName) else self._bounds(arg, scope) for arg in call.args)
        if call.function in self._recursive:
            return None
        if (call.function, facts) not in self._results:
            names = (parameter.name for parameter in function.parameters)
            self._results[call.function, facts] = self._run(function, dict(zip(names, facts, strict=True)))
        return self._results[call.function, facts]


def _joined(facts: Sequence[Bounds]) -> Bounds:
    """The bounds of a value that comes from one of several paths."""
    first = facts[0]
    if isinstance(first, tuple):
        tuples = [fact if isinstance(fact, tuple) else (None,) * len(first) for fact in facts]
        return tuple(map(_most_of, zip(*tuples, strict=True)))
    return _most_of([None if isinstance(fact, tuple) else fact for fact in facts])


def _most_of(parts: Sequence[UpperBound]) -> UpperBound:
    known = [part for part in parts if part is not None]
    return max(known) if len(known) == len(parts) else None


def _of_element(type_: ir.ElementType) -> UpperBound:
    """The greatest value of an unsigned element of fewer than 64 bits; None of other elements."""
    dtype = type_.dtype
    is_natural = dtype.kind is Kind.BOOL or (dtype.kind is Kind.INT and not dtype.signed and dtype.bits < 64)
    return int(dtype.high) if is_natural and dtype.variable is None else None


def _of_operation(op: str, a: UpperBound, b: UpperBound) -> UpperBound:
    """The upper bound of an operator's result on integers with these bounds."""
    if op == "&":
        return min((side for side in (a, b) if side is not None), default=None)
    if op == "%" and b is not None:
        return max(b - 1, 0)
    if a is None or b is None:
        return None
    match op:
        case "+":
            return a + b
        case "*":
            return a * b
        case "|" | "^":
            return (1 << max(a.bit_length(), b.bit_length())) - 1
        case "<<":
            return a << b if b <= 64 else None
        case ">>" | "//":
            return a
        case _:
            return None
