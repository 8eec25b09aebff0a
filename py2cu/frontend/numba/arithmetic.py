"""Notes where Numba computes in a wider type than py2cu, so that results may differ: double, or 64-bit integers.

    total = 0.                      Numba: double, which `+=` keeps; py2cu: what the elements are that it adds
    out[i] = 1. / (1. + x[i])       Numba: in double, rounded once; py2cu: each step in float32
    out[i] = (a[i] + b[i]) // 2     Numba: in int64; py2cu: in int32, which wraps

In: a kernel as it is read. Out: a note for each number that widens what is computed from it, with the cast under which
all agree. One operation that is rounded at once has none: it gives the same bits, and so do sums of integers that are
stored in their own type.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Final

from py2cu import builtins, ir
from py2cu.analysis.promotion import constant_type, join, represents
from py2cu.builtins import Rule
from py2cu.diagnostics import Reporter
from py2cu.dtypes import BOOL, F32, F64, I32, I64, DType, Kind
from py2cu.ir.rewrite import with_fields
from py2cu.ir.visit import children, expressions, statements

_ROUNDS: Final = 8  # until the locals of a function keep their types; each round can only widen them
_DEPTH: Final = 16  # of calls that are followed
_BITWISE: Final = frozenset(["&", "|", "^"])
_WRAPPING: Final = frozenset(["+", "-", "*", "<<"]) | _BITWISE  # the low bits of their results need no others
_ROUNDED_ALIKE: Final = frozenset(["+", "-", "*", "/"])  # in double and then to float32, as in float32


class State(IntEnum):
    """How a value in Numba differs from ours."""

    SAME = 0
    WIDER = 1  # one step in a wider type: the same once it is stored in ours
    DIFFERENT = 2


Cause = tuple[ir.Expr, str]  # a number that widens what is computed from it, and the type that py2cu computes in


@dataclass(frozen=True, slots=True)
class _Value:
    """A number: its type here and in Numba, and what widens it there."""

    ours: ir.ScalarType
    theirs: DType
    state: State = State.SAME
    causes: tuple[Cause, ...] = ()


def note_arithmetic(kernel: ir.Kernel, reporter: Reporter) -> None:
    """Report the numbers that Numba computes in a wider type."""
    noted: set[tuple[str, int, int]] = set()
    functions = {function.key: function for function in kernel.functions}
    parameters = {p.name: _known(p.type) for p in kernel.parameters if not isinstance(p.type, ir.ArrayType)}
    _Noter(kernel, functions, reporter, noted, dict(parameters)).run(reports=True)


def _known(type_: ir.Type) -> _Value | None:
    """A number as a parameter has it: Python's numbers are double and int64 in Numba."""
    match type_:
        case ir.ElementType(dtype=dtype) if dtype.variable is None:
            return _Value(type_, dtype)
        case ir.PythonType(kind=kind) if kind in _OF_KIND:
            return _Value(type_, _OF_KIND[kind])
    return None


_OF_KIND: Final = {Kind.BOOL: BOOL, Kind.INT: I64, Kind.FLOAT: F64}


def _scales(expr: ir.Binary[ir.Expr]) -> bool:
    """True for a product with a power of two, and a quotient by one, which are exact."""
    match expr:
        case ir.Binary(op="*" | "/", right=ir.Constant(value=bool() | int() | float() as number)):
            return math.isfinite(number) and abs(math.frexp(number)[0]) == 0.5
    return False


def _united(causes: Iterable[tuple[Cause, ...]]) -> tuple[Cause, ...]:
    """The causes of several values, each once."""
    return tuple({(c[0].span.line, c[0].span.column): c for group in causes for c in group}.values())


def _told(causes: tuple[Cause, ...], ours: ir.ScalarType) -> tuple[Cause, ...]:
    """The causes with the type that py2cu computes in, where it was not known yet."""
    return tuple((expr, dtype or str(ours)) for expr, dtype in causes)


def _is_whole(value: _Value) -> bool:
    return value.theirs.kind is not Kind.FLOAT


def _words(ours: str, text: str) -> tuple[str, str]:
    """The message and the hint for the number `text`, which py2cu computes in the type `ours`."""
    if "float" in ours:
        what = f"Numba computes in double because of this, py2cu in {ours}: results may differ"
        return what, f"write `np.{ours}({text})` for {ours} everywhere, or `np.float64({text})` for double"
    what = f"Numba computes this in 64 bits, py2cu in {ours}, which wraps: results may differ"
    return what, f"write `int(…)` around the elements for 64 bits, or `np.{ours}({text})` to wrap everywhere"


def _promoted(left: DType, right: DType, op: str) -> DType | None:
    """The type in which Numba computes `left op right`: at least 64 bits for integers, and double where float32 does
    not hold all of an integer type.
    """
    kinds = {left.kind, right.kind}
    if kinds <= {Kind.BOOL, Kind.INT}:
        return F64 if op == "/" else I64
    if not kinds <= {Kind.BOOL, Kind.INT, Kind.FLOAT}:
        return None
    whole = [dtype for dtype in (left, right) if dtype.kind is not Kind.FLOAT]
    if F64 in (left, right) or any(dtype.bits > (16 if dtype.signed else 8) for dtype in whole):
        return F64
    return max((dtype for dtype in (left, right) if dtype.kind is Kind.FLOAT), key=lambda dtype: dtype.bits)


@dataclass(slots=True)
class _Noter:
    """Follows the types of one function, for arguments of known types."""

    kernel: ir.Kernel
    functions: dict[str, ir.Kernel]
    reporter: Reporter
    noted: set[tuple[str, int, int]]
    names: dict[str, _Value | None]
    depth: int = 0
    reports: bool = False  # in the last round
    results: list[_Value | None] = field(default_factory=list)
    known: dict[object, _Value | None] = field(default_factory=dict)  # results of functions, by their arguments

    def run(self, *, reports: bool) -> _Value | None:
        """Note what differs; the result is what the function returns, None if that is not one number."""
        self.names |= dict.fromkeys((index.name for index in self.kernel.indices), _known(ir.PY_INT))
        for _ in range(_ROUNDS):
            before = dict(self.names)
            self._follow()
            if self.names == before:
                break
        if reports:
            self.reports = True
            self._follow()
        return self._joined(self.results) if self.results else None

    def _follow(self) -> None:
        self.results = []
        for stmt in statements(self.kernel.body):
            match stmt:
                case ir.Assign(name=name, value=value):
                    self._assign(name, self.of(value))
                case ir.For(var=name, start=start, stop=stop, step=step):
                    for bound in (start, stop, step):
                        self._use(self.of(bound))
                    self._assign(name, _Value(ir.PY_INT, I32 if isinstance(stop, ir.Constant) else I64))
                case ir.Store(array=array, indices=indices, value=value):
                    for index in indices:
                        self.of(index)
                    self._store(self.kernel.array_type(array).dtype, self.of(value))
                case ir.Return(value=value) if value is not None:
                    self.results.append(self.of(value))
                case _:
                    for expr in expressions(stmt):
                        self.of(expr)

    def _assign(self, name: str, value: _Value | None) -> None:
        if value is not None and value.state is State.WIDER and value.theirs.kind is Kind.FLOAT:
            value = replace(value, state=State.DIFFERENT)  # the local rounds, Numba's does not
        self.names[name] = self._joined([self.names[name], value]) if name in self.names else value

    def _joined(self, values: list[_Value | None]) -> _Value | None:
        """The value of a local that is assigned several times, as far as it is known."""
        known = [value for value in values if value is not None]
        result = known[0] if known else None
        for value in known[1:]:
            assert result is not None
            ours = join(result.ours, value.ours)
            theirs = result.theirs if result.theirs is value.theirs else _promoted(result.theirs, value.theirs, "+")
            if ours is None or theirs is None:
                return None
            is_wide = theirs is F64
            causes = _united(each.causes for each in (result, value) if each.state or (is_wide and each.theirs is F64))
            result = _Value(ours, theirs, max(result.state, value.state), causes)
        return result

    def _store(self, dtype: DType, value: _Value | None) -> None:
        if value is None or value.state is State.SAME or dtype.kind is Kind.COMPLEX:
            return
        fits = ir.ElementType(dtype) == value.ours
        if value.state is State.DIFFERENT or not fits:  # once stored, one step has the same bits
            self._note(value)

    def _use(self, value: _Value | None) -> None:
        """Note a value whose digits decide something: a comparison, a conversion to an integer."""
        if value is not None and value.state is not State.SAME:
            self._note(value)

    def _note(self, value: _Value) -> None:
        for cause, ours in value.causes if self.reports else ():
            place = (self.reporter.file.name, cause.span.line, cause.span.column)
            if place not in self.noted:
                self.noted.add(place)
                quote = self.reporter.file.quote
                text = quote(cause.span)
                if isinstance(cause, ir.Binary) and f"{cause.op}=" in text:  # rule: noted-statement
                    text = f"{quote(cause.left.span)} {cause.op} {quote(cause.right.span)}"
                what, hint = _words(ours or str(value.ours), text)
                self.reporter.note("P314", what, cause.span, hint)

    def of(self, expr: ir.Expr) -> _Value | None:
        """The value of an expression; None if it is no real number, or of a type that is not known."""
        match expr:
            case ir.Constant(value=bool() | int() | float() as number):
                is_written = not self.reporter.file.quote(expr.span).endswith(")")  # rule: noted-number
                type_ = constant_type(number)
                return _Value(type_, _OF_KIND[type_.kind], causes=((expr, ""),)) if is_written else _Value(type_, BOOL)
            case ir.Name(id=name):
                return self.names.get(name)
            case ir.LaunchIndex() | ir.Extent():
                return _known(ir.PY_INT)
            case ir.Load(array=array, indices=indices):
                for index in indices:
                    self.of(index)
                return _known(self.kernel.array_type(array).element)
            case ir.Binary(op=op, left=left, right=right):
                return self._binary(expr, op, self.of(left), self.of(right))
            case ir.Unary(op="-" | "+" | "~", operand=operand):
                return self.of(operand)
            case ir.Compare(left=left, right=right):
                self._compare((self.of(left), left), (self.of(right), right))
                return _known(ir.PY_BOOL)
            case ir.Select(test=test, then=then, orelse=orelse):
                self.of(test)
                return self._joined([self.of(then), self.of(orelse)])
            case ir.Call(function=function, args=args):
                return self._call(expr, function, [self.of(arg) for arg in args])
            case ir.Atomic(array=array, indices=indices, values=values):
                for index in indices:
                    self.of(index)
                dtype = self.kernel.array_type(array).dtype
                for value in values:
                    self._store(dtype, self.of(value))
                return _known(ir.ElementType(dtype))
            case ir.TupleItem(value=ir.Name(id=name)):
                return self.names.get(name)
            case ir.Tuple(items=items):
                return self._joined([self.of(item) for item in items])
            case ir.DeviceCall(function=key, args=args):
                return self._device_call(key, args)
            case _:
                for operand in children(expr):
                    self.of(operand)
                return _known(ir.PY_BOOL) if isinstance(expr, ir.BoolOp | ir.Unary) else None

    def _binary(self, expr: ir.Binary[ir.Expr], op: str, left: _Value | None, right: _Value | None) -> _Value | None:
        if left is None or right is None or (ours := join(left.ours, right.ours)) is None:
            return None
        theirs = _promoted(left.theirs, right.theirs, op)
        if theirs is None:
            return None
        if op == "/" and ir.kind_of(ours) is not Kind.FLOAT:
            ours = ir.ElementType(F32) if isinstance(ours, ir.ElementType) else ir.PY_FLOAT
        if theirs.kind is Kind.INT and op not in _WRAPPING:
            self._compare((left, expr.left), (right, expr if op == ">>" else expr.right))  # a count meets no element
        pairs = (left, expr.left), (right, expr.right)
        state, causes = max(left.state, right.state), _united(value.causes for value, _ in pairs if value.state)
        if op == "**" and left.theirs is F32 and isinstance(expr.right, ir.Constant) and _is_whole(right):
            return _Value(ours, F32, state, causes)  # Numba multiplies
        if not self._is_wider(ours, theirs):
            is_wide = state is not State.SAME and theirs.kind is Kind.FLOAT  # it was not rounded in Numba
            return _Value(ours, theirs, State.DIFFERENT if is_wide else state, causes)
        if theirs.kind is Kind.INT:
            is_small = isinstance(expr.right, ir.Constant) and abs(expr.right.value) < 2**10
            is_step = op in "+-" and isinstance(ours, ir.ElementType) and ours.dtype.signed and is_small
            if is_step or op in _BITWISE or op == ">>":
                return _Value(ours, theirs, state, causes)
            return _Value(ours, theirs, max(state, State.WIDER), ((expr, str(ours)),))  # in 64 bits there
        if _scales(expr) and left.theirs is F32:
            return _Value(
                ours, theirs, state, _united(value.causes or ((each, str(ours)),) for value, each in pairs[1:])
            )
        widening = [pair for pair in pairs if pair[0].theirs is F64 or pair[0].theirs.kind is not Kind.FLOAT]
        is_alike = state is State.SAME and op in _ROUNDED_ALIKE and ours == ir.ElementType(F32)
        is_alike = is_alike and all(self._is_exact(value, each) for value, each in pairs)
        causes = _united(value.causes or ((each, str(ours)),) for value, each in widening)
        return _Value(ours, theirs, State.WIDER if is_alike else State.DIFFERENT, _told(causes, ours))

    def _is_wider(self, ours: ir.ScalarType, theirs: DType) -> bool:
        """Whether Numba's type holds more than ours."""
        return isinstance(ours, ir.ElementType) and ours.dtype.bits < theirs.bits and theirs.kind >= ours.dtype.kind

    def _is_exact(self, value: _Value, expr: ir.Expr) -> bool:
        """Whether float32 holds the operand as it is."""
        match expr:
            case ir.Constant(value=bool() | int() | float() as number):
                return represents(F32, number)
            case ir.Binary() if _scales(expr):
                return value.state is State.SAME
        is_large = isinstance(value.ours, ir.ElementType) and _is_whole(value) and value.ours.dtype.bits > 16
        return value.theirs is not F64 and not is_large

    def _compare(self, left: tuple[_Value | None, ir.Expr], right: tuple[_Value | None, ir.Expr]) -> None:
        for (value, expr), (other, _) in ((left, right), (right, left)):
            self._use(value)
            if value is None or other is None or not isinstance(other.ours, ir.ElementType):
                continue
            dtype = other.ours.dtype  # to which py2cu rounds floats and wraps integers
            is_rounded = value.ours == ir.PY_FLOAT and dtype is F32 and not self._is_exact(value, expr)
            is_cut = value.ours == ir.PY_INT and value.theirs is I64 and isinstance(expr, ir.Name | ir.Extent)
            if is_rounded or (is_cut and dtype.kind is Kind.INT and dtype.bits < 32):  # rule: noted-cut
                self._note(_Value(other.ours, F64, State.DIFFERENT, _told(value.causes or ((expr, ""),), other.ours)))

    def _call(self, expr: ir.Call, function: str, args: list[_Value | None]) -> _Value | None:
        row = builtins.ROWS.get(function)
        if row is None or not args or args[0] is None:
            return None
        first = args[0]
        match row.rule:
            case Rule.CAST if isinstance(row.result, DType):
                target = ir.ElementType(row.result)
                if first.state is State.DIFFERENT or (first.state is State.WIDER and first.ours != target):
                    self._note(first)
                return _known(target)
            case Rule.CAST | Rule.INTEGRAL:
                self._use(first)
                kinds = {"float": ir.PY_FLOAT, "bool": ir.PY_BOOL}
                return _known(kinds.get(str(row.result), ir.PY_INT) if row.rule is Rule.CAST else ir.PY_INT)
            case Rule.FLOAT:
                return self._function(expr, args)
            case Rule.MAGNITUDE | Rule.ROUNDED | Rule.CHOICE | Rule.SAME:
                value = self._chosen(self._joined(args), [*zip(args, expr.args, strict=True)])
                if row.rule is Rule.ROUNDED or (value is not None and _is_whole(value)):
                    self._use(value)
                return value
            case Rule.SHUFFLE if len(args) > 1:
                return args[1]
            case _:
                return None

    def _chosen(self, value: _Value | None, args: list[tuple[_Value | None, ir.Expr]]) -> _Value | None:
        """`min` or `max` of `args` in Numba's type, where ours rounds some: the same once it is stored in ours."""
        if value is None or not (value.theirs.kind is Kind.FLOAT and self._is_wider(value.ours, value.theirs)):
            return value
        inexact = [arg.causes or ((each, ""),) for arg, each in args if arg and not self._is_exact(arg, each)]
        state = max(value.state, State.WIDER if inexact else State.SAME)  # rule: noted-choice
        return replace(value, state=state, causes=_told(_united([value.causes, *inexact]), value.ours))

    def _function(self, expr: ir.Call, args: list[_Value | None]) -> _Value | None:
        """`math.f`: with an integer or a double Numba computes it in double, of elements we do in float32."""
        value = self._joined(args)
        if value is None:
            return None
        ours: ir.ScalarType = value.ours
        if ir.kind_of(ours) is not Kind.FLOAT:
            ours = ir.ElementType(F32) if isinstance(value.ours, ir.ElementType) else ir.PY_FLOAT
        theirs = F32 if all(arg is None or arg.theirs is F32 for arg in args) else F64
        if not self._is_wider(ours, theirs):
            return _Value(ours, theirs, value.state, value.causes)
        wide = [(arg, each) for arg, each in zip(args, expr.args, strict=True) if arg and arg.theirs is not F32]
        causes = _united(arg.causes or ((each, ""),) for arg, each in wide)
        return _Value(ours, theirs, State.DIFFERENT, _told(causes, ours))

    def _device_call(self, key: str, args: tuple[ir.Expr, ...]) -> _Value | None:
        values = [None if isinstance(arg, ir.ArrayName) else self.of(arg) for arg in args]
        function = self.functions.get(key)
        if function is None or self.depth == _DEPTH:
            return None
        arrays = [self.kernel.array_type(arg.id).dtype for arg in args if isinstance(arg, ir.ArrayName)]
        memo = key, self.reports, *arrays, *((v.ours, v.theirs, v.state) if v else None for v in values)
        if memo in self.known:
            return self.known[memo]
        self.known[memo] = None  # of a recursive call
        names = {p.name: value for p, value in zip(function.parameters, values, strict=True)}
        inner = _Noter(
            _with_arrays(function, self.kernel, args), self.functions, self.reporter.within(function.origin),
            self.noted, names, self.depth + 1, known=self.known,
        )  # fmt: skip
        self.known[memo] = inner.run(reports=self.reports)
        return self.known[memo]


def _with_arrays(function: ir.Kernel, caller: ir.Kernel, args: tuple[ir.Expr, ...]) -> ir.Kernel:
    """`function` with the element types of the arrays that a call passes."""
    parameters = tuple(
        replace(p, type=replace(p.type, dtype=caller.array_type(arg.id).dtype))
        if isinstance(arg, ir.ArrayName) and isinstance(p.type, ir.ArrayType)
        else p
        for p, arg in zip(function.parameters, args, strict=True)
    )
    return with_fields(function, parameters=parameters)
