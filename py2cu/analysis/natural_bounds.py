"""Bounds of Python integers that are surely not negative: how far a mask, a constant or an unsigned element lets them
grow.

    key = seed & MASK            at most 2**32 - 1
    product = key * 0xD2511F53   at most (2**32 - 1) * 0xD2511F53: beyond an int64, and within a uint64
    key = product >> 32          at most 0xD2511F52, also where a loop brings it back to the first line

In: a typed kernel. Out: `NaturalBounds`, by expression. `Ranges` bounds the integers that indices and extents are
computed from, one range a local; this analysis knows nothing of these, and follows the order of the statements, loops
to a fixpoint, and calls with the bounds of their arguments.
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

Most = int | None  # the greatest value; None: it may be negative, or nothing is known
Fact = Most | tuple[Most, ...]  # of a number, or of the items of a tuple
_Scope = dict[str, Fact]

UINT64_MAX: Final = 2**64 - 1
_ROUNDS: Final = 8  # of a loop; a bound that still grows then is none
_ENDLESS: Final = 2**256


class NaturalBounds:
    """The bounds of the expressions of a kernel and of its device functions, on all paths together."""

    def __init__(self, kernel: ir.Kernel) -> None:
        self._functions = {function.key: function for function in kernel.functions}
        self._recursive = in_recursive_scc(kernel.functions)
        self._known: dict[int, Most] = {}
        self._done: dict[tuple[str, tuple[Fact, ...]], Fact] = {}
        self._changed: list[_Scope] = []  # for each loop around, what its body assigns
        self._returned: list[Fact] = []
        self._run(kernel, {})
        for key in self._recursive:
            self._run(self._functions[key], {})

    def of(self, expr: ir.Expr) -> Most:
        """The greatest value of a Python integer of the kernel; None if it may be negative, or is not known."""
        return self._known.get(id(expr))

    # --- statements ---

    def _run(self, function: ir.Kernel, arguments: _Scope) -> Fact:
        """The result of `function` for arguments with these bounds."""
        outer, self._changed, self._returned = (self._changed, self._returned), [], []
        names = [*(p.name for p in function.parameters), *(index.name for index in function.indices)]
        self._block(function.body, dict.fromkeys([*names, *function.dims]) | arguments)
        results = self._returned
        self._changed, self._returned = outer
        return _joined(results) if results else None

    def _block(self, block: ir.Block, scope: _Scope) -> None:
        for stmt in block:
            facts = [self._fact(expr, scope) for expr in expressions(stmt)] if not isinstance(stmt, ir.While) else []
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

    def _assign(self, name: str, fact: Fact, scope: _Scope) -> None:
        scope[name] = fact
        for changed in self._changed:
            changed[name] = _joined([fact, changed[name]]) if name in changed else fact

    def _loop(self, loop: ir.For | ir.While, counter: _Scope, scope: _Scope) -> None:
        """Iterate to what holds at the start of every round; it also holds behind the loop."""
        for name, fact in counter.items():
            self._assign(name, fact, scope)
        for round_ in itertools.count():
            if isinstance(loop, ir.While):
                self._fact(loop.test, scope)
            self._changed.append({})
            self._block(loop.body, dict(scope))
            changed = self._changed.pop()
            after = {name: _joined([fact, scope[name]]) if name in scope else fact for name, fact in changed.items()}
            grown = {name: fact for name, fact in after.items() if name not in scope or scope[name] != fact}
            if not grown:
                break
            scope |= grown if round_ < _ROUNDS else dict.fromkeys(grown)
        self._block(loop.orelse, scope)

    @staticmethod
    def _counter(start: ir.Expr, stop: ir.Expr, step: ir.Expr) -> Most:
        """The greatest value of a loop's variable whose bounds are constants."""
        match start, stop, step:
            case (
                ir.Constant(value=int(first)),
                ir.Constant(value=int(end)),
                ir.Constant(value=int(by)),
            ) if first >= 0 and by > 0:
                return max(first, end) + by
            case _:
                return None

    # --- expressions ---

    def _fact(self, expr: ir.Expr, scope: _Scope) -> Fact:
        """The bound of `expr`, or of each of its items; what is in it becomes known."""
        match expr:
            case ir.Tuple(items=items):
                return tuple(self._most(item, scope) for item in items)
            case ir.Name(id=name) if isinstance(expr.type, ir.TupleType):
                return scope.get(name)
            case ir.DeviceCall(type=ir.TupleType()):
                return self._call(expr, scope)
            case _:
                return self._most(expr, scope)

    def _most(self, expr: ir.Expr, scope: _Scope) -> Most:
        most = self._of(expr, scope)
        most = None if most is not None and most > _ENDLESS else most
        key = id(expr)
        if key in self._known:
            known = self._known[key]
            self._known[key] = None if known is None or most is None else max(known, most)
        else:
            self._known[key] = most
        return most

    def _of(self, expr: ir.Expr, scope: _Scope) -> Most:
        match expr:
            case ir.TupleItem(value=value, at=at):
                items = self._fact(value, scope)
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

    def _call(self, call: ir.DeviceCall, scope: _Scope) -> Fact:
        """The bound of a call's result; the body of the function is followed with these arguments."""
        function = self._functions[call.function]
        facts = tuple(None if isinstance(arg, ir.ArrayName) else self._fact(arg, scope) for arg in call.args)
        if call.function in self._recursive:
            return None
        if (call.function, facts) not in self._done:
            names = (parameter.name for parameter in function.parameters)
            self._done[call.function, facts] = self._run(function, dict(zip(names, facts, strict=True)))
        return self._done[call.function, facts]


def _joined(facts: Sequence[Fact]) -> Fact:
    """The bound on several paths."""
    first = facts[0]
    if isinstance(first, tuple):
        tuples = [fact if isinstance(fact, tuple) else (None,) * len(first) for fact in facts]
        return tuple(map(_most_of, zip(*tuples, strict=True)))
    return _most_of([None if isinstance(fact, tuple) else fact for fact in facts])


def _most_of(parts: Sequence[Most]) -> Most:
    known = [part for part in parts if part is not None]
    return max(known) if len(known) == len(parts) else None


def _of_element(type_: ir.ElementType) -> Most:
    """The greatest value of an unsigned element that an int64 holds."""
    dtype = type_.dtype
    is_natural = dtype.kind is Kind.BOOL or (dtype.kind is Kind.INT and not dtype.signed and dtype.bits < 64)
    return int(dtype.high) if is_natural and dtype.variable is None else None


def _of_operation(op: str, a: Most, b: Most) -> Most:
    """The greatest result of an operator on integers with these bounds."""
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
