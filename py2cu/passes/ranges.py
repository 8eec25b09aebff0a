"""What values an expression can take: an interval, and for integers how far it reaches in terms of the launch.

Not a pass but the analysis behind `choose_widths` and `lower_semantics`. Flow-insensitive: a local has the union of the
ranges of all its assignments. `reach` bounds the magnitude by a polynomial in dimensions, integer arguments and grid
sizes; None means that nothing bounds it.
"""

from __future__ import annotations

import math
from typing import Final, assert_never

from py2cu.dtypes import Kind
from py2cu.ir.extents import Binary, Constant, Name
from py2cu.ir.intervals import ANYTHING, Range, Reach, constant, larger, natural, plus, times
from py2cu.ir.nodes import (
    ArrayName,
    BoolOp,
    Call,
    Compare,
    Convert,
    Expr,
    Extent,
    Invoke,
    LaunchIndex,
    Load,
    Select,
    Unary,
)
from py2cu.ir.statements import Assign, For, Kernel
from py2cu.ir.types import PY_INT, ElementType, PythonType, Type, kind_of
from py2cu.ir.visit import statements

INT_MAX: Final = 2**31 - 1
_ROUNDS: Final = 4  # after this many, what still grows has no bound


class Ranges:
    """The ranges of one typed kernel's expressions."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.names: dict[str, Range] = {name: natural({(name,): 1}) for name in kernel.dims}
        self.names |= dict(kernel.given)
        self.results = {function.key: function.returned for function in kernel.functions}
        for index in kernel.indices:
            below = plus(self.of(index.extent).reach, {(): -1})
            self.names[index.name] = Range(0, math.inf, below)
        for parameter in kernel.parameters:
            if parameter.type == PY_INT and parameter.name not in self.names:
                self.names[parameter.name] = Range(reach={(parameter.name,): 1})
            elif isinstance(parameter.type, ElementType) and parameter.name not in self.names:
                self.names[parameter.name] = of_type(parameter.type)
        self._iterate()

    def _iterate(self) -> None:
        for round_ in range(_ROUNDS + 1):
            before = dict(self.names)
            for stmt in statements(self.kernel.body):
                match stmt:
                    case Assign(name=name, value=value):
                        self._widen(name, self.of(value), round_)
                    case For(var=var):
                        self._widen(var, self.of_loop(stmt), round_)
            if before == self.names:
                break

    def _widen(self, name: str, found: Range, round_: int) -> None:
        if name not in self.names:
            self.names[name] = found
            return
        old = self.names[name]
        new = old.union(found)
        if round_ >= _ROUNDS - 1 and new != old:
            low = old.low if new.low >= old.low else -math.inf
            high = old.high if new.high <= old.high else math.inf
            new = Range(low, high, old.reach if new.reach == old.reach else None)
        self.names[name] = new

    def of_loop(self, loop: For) -> Range:
        """The values of a loop's variable."""
        start, stop, step = self.of(loop.start), self.of(loop.stop), self.of(loop.step)
        reach = larger(start.reach, stop.reach)
        if step.low > 0:
            return Range(start.low, max(start.low, stop.high - 1), reach)
        return Range(min(start.low, stop.low + 1), max(start.high, stop.high), reach)

    def of(self, expr: Expr) -> Range:
        """The values of `expr`."""
        found = self._of(expr)
        limit = of_type(expr.type)
        if found.low < limit.low or found.high > limit.high:
            return limit  # it wraps
        return found

    def unwrapped(self, expr: Expr) -> Range:
        """The values of `expr` were it not cut to its type."""
        return self._of(expr)

    def _of(self, expr: Expr) -> Range:
        match expr:
            case Constant(value=value):
                return constant(float(value)) if isinstance(value, float) else Range(value, value, {(): abs(value)})
            case Name(id=name):
                return self.names.get(name, of_type(expr.type))
            case LaunchIndex(object="blockIdx", axis=axis):
                return natural({(f"gridDim.{axis}",): 1, (): -1})
            case LaunchIndex(object="threadIdx", axis=axis):
                return natural({(f"blockDim.{axis}",): 1, (): -1}, 1023)
            case LaunchIndex(object=launched, axis=axis):
                return Range(1, math.inf, {(f"{launched}.{axis}",): 1})
            case Load():
                return of_type(expr.type)
            case Unary(op="-", operand=operand):
                inner = self.of(operand)
                return Range(-inner.high, -inner.low, inner.reach)
            case Unary(op="+", operand=operand):
                return self.of(operand)
            case Compare() | Unary(op="not"):
                return Range(0, 1, {(): 1})
            case BoolOp(left=left, right=right):
                return self.of(left).union(self.of(right))
            case Select(then=then, orelse=orelse):
                return self.of(then).union(self.of(orelse))
            case Convert(value=value, type=type_):
                return self._convert(self.of(value), value.type, type_)
            case Binary():
                return self._binary(expr)
            case Call():
                return self._call(expr)
            case Invoke(function=function):
                return self.results.get(function) or of_type(expr.type)
            case Unary() | Extent() | ArrayName():
                return of_type(expr.type)
            case _:
                assert_never(expr)

    def _convert(self, value: Range, source: Type, target: Type) -> Range:
        if isinstance(source, ElementType | PythonType) and isinstance(target, ElementType | PythonType):
            truncates = kind_of(source) is Kind.FLOAT and kind_of(target) is Kind.INT
            if truncates and math.isfinite(value.low) and math.isfinite(value.high):
                low, high = math.trunc(value.low), math.trunc(value.high)
                return Range(low, high, {(): max(abs(low), abs(high))})
            if truncates:
                return Range(0 if value.low > -1 else -math.inf)
        return value

    def _binary(self, expr: Binary) -> Range:
        a, b = self.of(expr.left), self.of(expr.right)
        is_float = isinstance(expr.type, ElementType | PythonType) and kind_of(expr.type) is Kind.FLOAT
        match expr.op:
            case "+":
                return Range(a.low + b.low, a.high + b.high, plus(a.reach, b.reach))
            case "-":
                apart = larger(a.reach, b.reach) if a.is_natural and b.is_natural else plus(a.reach, b.reach)
                return Range(a.low - b.high, a.high - b.low, apart)
            case "*":
                corners = [_product(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
                return Range(min(corners), max(corners), times(a.reach, b.reach))
            case "//" if not is_float:
                low = 0 if a.is_natural and b.is_natural else -math.inf
                return Range(low, a.high if low == 0 else math.inf, a.reach)
            case "%" if not is_float:
                low = 0 if b.is_natural else -math.inf
                reach = a.reach if a.is_natural and b.is_natural and b.reach is None else b.reach
                return Range(low, b.high if b.is_natural else math.inf, reach)
            case "&" if a.is_natural or b.is_natural:
                known = a if a.is_natural else b
                return Range(0, known.high, known.reach)
            case ">>" if a.is_natural:
                return Range(0, a.high, a.reach)
            case "/" if a.is_natural and b.low > 0:
                return Range(0, a.high / b.low)
            case _:
                return of_type(expr.type)

    def _call(self, expr: Call) -> Range:
        args = [self.of(arg) for arg in expr.args]
        match expr.function:
            case "builtins.abs":
                return Range(0, max(abs(args[0].low), abs(args[0].high)), args[0].reach)
            case "builtins.min":
                reaches = (
                    [arg.reach for arg in args if arg.reach is not None] if all(a.is_natural for a in args) else []
                )
                reach = reaches[0] if reaches else self._all_reach(args)
                return Range(min(arg.low for arg in args), min(arg.high for arg in args), reach)
            case "builtins.max":
                return Range(max(arg.low for arg in args), max(arg.high for arg in args), self._all_reach(args))
            case "math.sqrt" | "math.exp" | "math.exp2" | "math.fabs" | "math.hypot":
                return Range(0, math.inf)
            case _:
                return of_type(expr.type)

    @staticmethod
    def _all_reach(args: list[Range]) -> Reach | None:
        reach = args[0].reach
        for arg in args[1:]:
            reach = larger(reach, arg.reach)
        return reach


def of_type(type_: Type) -> Range:
    """All that a value of this type can be."""
    match type_:
        case ElementType(dtype=dtype) if dtype.kind < Kind.FLOAT:
            return Range(dtype.low, dtype.high, {(): int(max(-dtype.low, dtype.high))} if dtype.bits < 64 else None)
        case PythonType(kind=Kind.BOOL):
            return Range(0, 1, {(): 1})
        case _:
            return ANYTHING


def _product(a: float, b: float) -> float:
    return 0.0 if a == 0 or b == 0 else a * b
