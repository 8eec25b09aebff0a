"""Sizes of Python integers: upper bounds of those that cannot be negative, by abstract interpretation.

Bounds start from masks, constants and unsigned elements:

    key = seed & MASK            at most 2**32 - 1
    product = key * 0xD2511F53   at most (2**32 - 1) * 0xD2511F53: beyond an int64, and within a uint64
    key = product >> 32          at most 0xD2511F52, also in a loop around these lines
    product + seed               `Sign.MIXED`: only the low 64 bits are known

In: a typed kernel. Out: `NaturalBounds`. The analysis is flow-sensitive: it interprets statements in order, loops and
recursion to a fixpoint, and any other call with the sizes of its arguments. `Ranges`, which decides the types of
emitted integers, keeps one range for each local instead; it says here which indices and extents are natural.
"""

from __future__ import annotations

import enum
import functools
import itertools
from collections.abc import Sequence
from typing import Final

from py2cu import ir
from py2cu.analysis.call_graph import in_recursive_scc
from py2cu.analysis.ranges import Ranges
from py2cu.builtins import ROWS, Bound, Rule
from py2cu.dtypes import Kind
from py2cu.ir.names import list_elements
from py2cu.ir.operators import OPERATORS
from py2cu.ir.visit import children, expressions


class Sign(enum.Enum):
    """What is known of an integer without an upper bound."""

    NATURAL = "at least 0; within an int64, or the simulator reports it"
    SIGNED = "of any sign; within an int64, or the simulator reports it"
    MIXED = "of any sign, and computed from one beyond an int64: only the low 64 bits are known"


Size = int | Sign
"""The greatest value of an integer that cannot be negative, or what is known of an integer without such a bound."""
Sizes = tuple[Size, ...]
"""The size of each item of a tuple; of a number, its size; nothing of a value that no path has computed yet."""
_State = dict[str, Sizes]

INT64_MAX: Final = 2**63 - 1
UINT64_MAX: Final = 2**64 - 1
_ROUNDS: Final = 8  # of a fixpoint iteration; a bound that still grows then is unknown


class NaturalBounds:
    """Sizes of the expressions of a kernel and of its device functions, each joined over all paths and calls."""

    def __init__(self, kernel: ir.Kernel) -> None:
        self._functions = {function.key: function for function in kernel.functions}
        self._recursive = in_recursive_scc(kernel.functions)
        self._recursion: _State = {}  # of the parameters and the result of each recursive function that is called
        self._ranges: dict[str, Ranges] = {}
        for round_ in itertools.count():
            before = dict(self._recursion)
            self._by_id: dict[int, Size] = {}
            self._results: dict[tuple[str, tuple[Sizes, ...], bool], Sizes] = {}
            self._is_final = True  # else sizes may still grow, and are not recorded
            self._assigned: list[_State] = []  # for each surrounding loop, the sizes that its body assigns
            self._returned: Sizes = ()
            self._function = kernel  # the one that is interpreted
            self._run(kernel, {})
            for key in self._recursive.intersection(before):
                function = self._functions[key]
                arguments = {p.name: before[f"{key}.{p.name}"] for p in function.parameters}
                result = self._run(function, arguments)
                self._recursion = _merged(self._recursion, {key: result})
            if self._recursion == before:
                break
            self._recursion = _advanced({}, before, self._recursion, round_)

    def of(self, expr: ir.Expr) -> Size:
        """The size of a Python integer of the kernel."""
        return self._by_id.get(id(expr), Sign.SIGNED)

    # --- statements ---

    def _run(self, function: ir.Kernel, arguments: _State) -> Sizes:
        """Interpret `function` for arguments of these sizes; the size of its result."""
        outer = self._function, self._assigned, self._returned
        self._function, self._assigned, self._returned = function, [], ()
        names = [*(p.name for p in function.parameters), *(index.name for index in function.indices), *function.dims]
        self._block(function.body, dict.fromkeys(names, (Sign.SIGNED,)) | arguments)
        result = self._returned
        self._function, self._assigned, self._returned = outer
        return result

    def _block(self, block: ir.Block, scope: _State) -> None:
        for stmt in block:
            sizes = [self._sizes(expr, scope) for expr in expressions(stmt)] if not isinstance(stmt, ir.While) else []
            match stmt:
                case ir.Assign(name=name):
                    self._assign(name, sizes[0], scope)
                case ir.Store(array=array):
                    elements = list_elements(array)
                    self._assign(elements, _joined(sizes[-1], scope.get(elements, ())), scope)
                case ir.Return(value=value) if value is not None:
                    self._returned = _joined(self._returned, sizes[0])
                case ir.If(body=body, orelse=orelse):
                    otherwise = dict(scope)
                    self._block(body, scope)
                    self._block(orelse, otherwise)
                    scope |= _merged(scope, otherwise)  # rule: natural-after-branch
                case ir.For():
                    (start,), (stop,), (step,) = sizes
                    counter: Size = Sign.NATURAL if is_natural(start) and is_natural(step) else Sign.SIGNED
                    if counter is Sign.NATURAL and isinstance(start, int) and isinstance(stop, int):
                        counter = max(start, stop - 1)  # rule: natural-counter
                    self._loop(stmt, counter, scope)
                case ir.While():
                    self._loop(stmt, 0, scope)

    def _assign(self, name: str, sizes: Sizes, scope: _State) -> None:
        scope[name] = sizes
        for assigned in self._assigned:
            assigned[name] = _joined(sizes, assigned.get(name, ()))  # rule: natural-assigned

    def _loop(self, loop: ir.For | ir.While, counter: Size, scope: _State) -> None:
        """Iterate to sizes that hold at the start of every iteration, and therefore after the loop."""
        entry, is_final, self._is_final = dict(scope), self._is_final, False
        for round_ in itertools.count():
            before, after = dict(scope), _merged(scope, self._iterate(loop, counter, dict(scope)))
            if after == before:
                break
            scope |= _advanced(entry, before, after, round_)
        self._is_final = is_final
        if is_final:
            self._iterate(loop, counter, dict(scope))
        self._block(loop.orelse, scope)

    def _iterate(self, loop: ir.For | ir.While, counter: Size, scope: _State) -> _State:
        """Interpret one iteration; the sizes that it assigns."""
        self._assigned.append({})
        if isinstance(loop, ir.While):
            self._sizes(loop.test, scope)
        else:
            self._assign(loop.var, (counter,), scope)
        self._block(loop.body, scope)
        return self._assigned.pop()

    # --- expressions ---

    def _sizes(self, expr: ir.Expr, scope: _State) -> Sizes:
        """The size of `expr`, or of each item of a tuple; records those of its operands, too."""
        match expr:
            case ir.Tuple(items=items):
                return tuple(self._size(item, scope) for item in items)
            case ir.DeviceCall(type=ir.TupleType()):
                return self._call(expr, scope)
            case ir.Name(id=name, type=ir.TupleType()):
                return scope[name]
            case _:
                return (self._size(expr, scope),)

    def _size(self, expr: ir.Expr, scope: _State) -> Size:
        size = self._of(expr, scope)
        if size is Sign.SIGNED and expr.type == ir.PY_INT and self._is_natural(expr):  # rule: natural-signed
            size = Sign.NATURAL
        if self._is_final:
            self._by_id[id(expr)] = _join(size, self._by_id.get(id(expr), 0))  # rule: natural-joined
        return size

    def _is_natural(self, expr: ir.Expr) -> bool:
        """True if `Ranges` excludes that an integer of the interpreted function is negative."""
        key = self._function.key
        if key not in self._ranges:
            self._ranges[key] = Ranges(self._function)
        return self._ranges[key].of(expr).is_natural

    def _of(self, expr: ir.Expr, scope: _State) -> Size:
        match expr:
            case ir.TupleItem(value=value, at=at):
                return (*self._sizes(value, scope), *[0] * at, 0)[at]
            case ir.DeviceCall():
                return (*self._call(expr, scope), 0)[0]
        parts = [self._size(part, scope) for part in children(expr)]
        match expr:
            case ir.Constant(value=int(number)):
                return int(number) if number >= 0 else Sign.SIGNED
            case _ if expr.type != ir.PY_INT:
                return 1 if expr.type == ir.PY_BOOL else Sign.SIGNED
            case ir.Name(id=name):
                return (*scope.get(name, ()), Sign.SIGNED)[0]
            case ir.Load(array=array):
                return (*scope.get(list_elements(array), ()), Sign.SIGNED)[0]
            case ir.Convert(value=value):
                return _of_element(value.type) if isinstance(value.type, ir.ElementType) else parts[0]
            case ir.Unary(op="+"):
                return parts[0]
            case ir.Binary(op=">>" | "//" as op, right=ir.Constant(value=int(by))) if (
                isinstance(parts[0], int) and by > 0
            ):
                return int(OPERATORS[op].compute(parts[0], by))
            case ir.Binary(op=op):
                return _of_operation(op, *parts)
            case ir.Select():
                return _join(*parts[1:])
            case ir.BoolOp():
                return _join(*parts)
            case ir.Call(function=function) if function in ROWS:
                row = ROWS[function]
                if row.range is Bound.LEAST and all(map(is_natural, parts)):
                    return min(parts, key=_greatest)
                if row.of_integers or row.range is Bound.MAGNITUDE:  # rule: natural-of-function
                    return functools.reduce(_join, parts)
                if row.rule is Rule.BITS:
                    return 64
        return _unbounded(parts)

    def _call(self, call: ir.DeviceCall, scope: _State) -> Sizes:
        """The size of a call's result; interprets the function for these arguments, unless it is recursive."""
        key, function = call.function, self._functions[call.function]
        sizes = tuple((Sign.SIGNED,) if isinstance(arg, ir.ArrayName) else self._sizes(arg, scope) for arg in call.args)
        if key in self._recursive:
            called = {f"{key}.{p.name}": size for p, size in zip(function.parameters, sizes, strict=True)}
            self._recursion = _merged(self._recursion, {key: (), **called})  # rule: natural-recursive
            return self._recursion[key]
        if (key, sizes, self._is_final) not in self._results:
            arguments = {p.name: size for p, size in zip(function.parameters, sizes, strict=True)}
            self._results[key, sizes, self._is_final] = self._run(function, arguments)
        return self._results[key, sizes, self._is_final]


def is_natural(size: Size) -> bool:
    """True for an integer that cannot be negative."""
    return isinstance(size, int) or size is Sign.NATURAL


def exceeds_int64(size: Size) -> bool:
    """True for an integer that an int64 may not hold."""
    return size is Sign.MIXED or (isinstance(size, int) and size > INT64_MAX)  # rule: natural-exceeds-int64


def _greatest(size: Size) -> int:
    """The greatest value of an integer that cannot be negative."""
    return size if isinstance(size, int) else INT64_MAX


def _unbounded(parts: Sequence[Size]) -> Size:
    """The size of a result that may be negative."""
    return Sign.MIXED if any(map(exceeds_int64, parts)) else Sign.SIGNED  # rule: natural-unbounded


def _join(a: Size, b: Size) -> Size:
    """The size of an integer of one of these sizes."""
    if isinstance(a, int) and isinstance(b, int):
        return max(a, b)
    if not (is_natural(a) and is_natural(b)):
        return _unbounded((a, b))
    return next((size for size in (a, b) if exceeds_int64(size)), Sign.NATURAL)


def _joined(a: Sizes, b: Sizes) -> Sizes:
    """The sizes of a value that comes from one of two paths."""
    return tuple(_join(*sizes) for sizes in itertools.zip_longest(a, b, fillvalue=0))


def _merged(a: _State, b: _State) -> _State:
    """The sizes after one of two paths."""
    return {name: _joined(a.get(name, ()), b.get(name, ())) for name in {**a, **b}}


def _advanced(entry: _State, before: _State, after: _State, round_: int) -> _State:
    """The sizes for the next round of a fixpoint iteration, whose last round turned `before` to `after`.

    After some rounds it starts again from `entry`, without bounds of what still grows: bounds that were computed from
    those are no longer known. What grows later is unknown altogether.
    """
    if round_ == 0 or round_ % _ROUNDS:
        return after
    kept, unknown = (entry, Sign.NATURAL) if round_ == _ROUNDS else (after, Sign.MIXED)  # rule: natural-rounds
    return {
        name: tuple(
            start if old == new else _join(start, unknown)
            for old, new, start in itertools.zip_longest(before.get(name, ()), sizes, kept.get(name, ()), fillvalue=0)
        )
        for name, sizes in after.items()
    }


def _of_element(type_: ir.ElementType) -> Size:
    """The greatest value of an unsigned element of fewer than 64 bits."""
    dtype = type_.dtype
    is_bounded = dtype.kind is Kind.BOOL or (dtype.kind is Kind.INT and not dtype.signed and dtype.bits < 64)
    return int(dtype.high) if is_bounded and dtype.variable is None else Sign.SIGNED


def _of_operation(op: str, a: Size, b: Size) -> Size:
    """The size of an operator's result on integers of these sizes."""
    naturals = [size for size in (a, b) if is_natural(size)]
    if op == "&" and naturals:
        return min((size for size in naturals if isinstance(size, int)), default=Sign.NATURAL)  # rule: natural-of-mask
    if op == "%" and is_natural(b):
        return max(b - 1, 0) if isinstance(b, int) else b
    if (op == ">>" and is_natural(a)) or (op == "//" and len(naturals) == 2):
        return a
    if op == "-" or len(naturals) < 2:
        return _unbounded((a, b))
    most, other = map(_greatest, naturals)
    if op in ("|", "^"):
        most = (1 << max(most.bit_length(), other.bit_length())) - 1  # rule: natural-bits
    elif op in ("+", "*") or (op == "<<" and other <= 64):
        most = OPERATORS[op].compute(most, other)
    else:
        most = UINT64_MAX + 1
    is_wide = any(map(exceeds_int64, naturals))
    if most <= UINT64_MAX and (is_wide or Sign.NATURAL not in naturals):
        return most
    return Sign.MIXED if is_wide else Sign.NATURAL  # rule: natural-wide-result
