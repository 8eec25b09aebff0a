"""Lowers operators: those that C++ computes otherwise become a helper, a cast or another expression.

    i // w              i / w                    where neither can be negative
    a // b              floor_div(a, b)          elsewhere
    x[i] + y[i]         wrapping_add(x, y)       int32 and int64 elements, where the sum may overflow
    (x[i] - m) ** 2     square(x[i] - m)         and the other powers that torch computes without `pow`

`calls.py` and `conversions.py` do the same for calls and conversions. A helper is a small function that the target
emits above the kernel; `Kernel.helpers` lists the helpers in use.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import chain

from py2cu import ir
from py2cu.analysis.account import elided_in
from py2cu.analysis.ranges import Ranges
from py2cu.builtins.atomics import ATOMICS, atomic_helper
from py2cu.diagnostics import Reporter
from py2cu.dtypes import I16, I32, DType, Kind
from py2cu.ir.intervals import Interval
from py2cu.ir.operators import OPERATORS
from py2cu.ir.rewrite import rebuild, rebuild_block, with_fields
from py2cu.ir.visit import names_in, walk
from py2cu.passes.lowering.calls import CallLowering
from py2cu.passes.lowering.conversions import ConversionLowering, is_generic, nonzero, strip_wrap, to_signed, wrapping
from py2cu.passes.lowering.required_helpers import RequiredHelpers
from py2cu.passes.lowering.widen_halves import constant_exponent


def lower_semantics(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """The kernel with C's operators, and with the helpers that it needs."""
    lowering = _Lowering(Ranges(kernel))
    body = rebuild_block(kernel.body, lowering.expression, lowering.statement)
    decls = tuple(_with_c_extents(decl, lowering.ranges, reporter) for decl in kernel.array_decls)
    helpers, elided = kernel.helpers + lowering.helpers.names, kernel.elided + tuple(lowering.elided)
    return with_fields(kernel, body=body, array_decls=decls, helpers=helpers, elided=elided)


def _with_c_extents(decl: ir.ArrayDecl, ranges: Ranges, reporter: Reporter) -> ir.ArrayDecl:
    """The array with its extents in C's operators; the C++ compiler computes them and can call no helper there."""
    if decl.is_flat:
        return decl
    lowering = _Lowering(ranges)
    dims = tuple(rebuild(extent, lowering.expression) for extent in decl.type.dims)
    if lowering.helpers.names:
        message = f"the shape of `{decl.name}` divides a number that may be negative"
        reporter.error("P408", message, decl.span, _rounded_up(decl.type.dims))
    return replace(decl, type=replace(decl.type, dims=tuple(map(ir.as_extent, dims))))


def _rounded_up(dims: Iterable[ir.DimExpr]) -> str:
    """A hint: the quotient with its dividend rounded up, which is never negative."""
    for node in chain.from_iterable(map(walk, dims)):
        match node:
            case ir.Binary(op="//", left=left, right=ir.Constant(value=by)) if len({*names_in(left)}) == 1:
                return f"add before you divide: `({next(iter(names_in(left)))} + {by - 1}) // {by}`"
    return "add before you divide: `(… + 31) // 32`"


class _Lowering:
    def __init__(self, ranges: Ranges) -> None:
        self.ranges = ranges
        self.helpers = RequiredHelpers()
        self.calls = CallLowering(ranges, self.helpers)
        self.conversions = ConversionLowering(ranges, self.helpers)
        self.elided: list[ir.Elided] = []

    def statement(self, stmt: ir.Stmt) -> ir.Block:
        if isinstance(stmt, ir.If) and isinstance(stmt.test, ir.Constant):
            branch = fold_constant_if(stmt, bool(stmt.test.value))
            if branch != (stmt,):
                self.elided += elided_in(stmt.orelse if stmt.test.value else stmt.body, ir.Elision.UNREACHABLE)
            return branch
        if isinstance(stmt, ir.For):
            return (self.loop(stmt),)
        if isinstance(stmt, ir.Store | ir.Assign):
            return (with_fields(stmt, value=strip_wrap(stmt.value)),)
        return (stmt,)

    def loop(self, stmt: ir.For) -> ir.For:
        step = self.ranges.of(stmt.step)
        direction = 1 if step.low > 0 else -1 if step.high < 0 else 0  # rule: range-direction
        if direction == 1 and self.ranges.of(stmt.start).is_natural:  # rule: index-natural
            return with_fields(stmt, direction=direction)
        return with_fields(stmt, direction=direction, stop=to_signed(stmt.stop))  # rule: index-stop

    def expression(self, expr: ir.Expr) -> ir.Expr:
        match expr:
            case ir.Binary():
                return self.binary(expr)
            case ir.Unary(op="-", operand=operand):
                return self.negate(replace(expr, operand=to_signed(operand)))
            case ir.Unary(op="~"):
                return self.invert(replace(expr, operand=to_signed(expr.operand)))
            case ir.Compare(left=left, right=right):
                return self.compare(expr, left, right)
            case ir.Select(test=test, then=then, orelse=orelse):
                test = nonzero(test) if ir.is_complex(test.type) else test
                return replace(expr, test=test, then=to_signed(then), orelse=to_signed(orelse))
            case ir.Call():
                return self.calls.call(expr)
            case ir.Atomic(op=op, array=array):
                if self.ranges.kernel.array_type(array).dtype.c not in ATOMICS[op].functions:
                    self.helpers.require(atomic_helper(op))
                return expr
            case ir.Convert():
                return self.conversions.convert(expr)
            case _:
                return expr

    def binary(self, expr: ir.Binary[ir.Expr]) -> ir.Expr:
        type_ = expr.type
        assert isinstance(type_, ir.ElementType | ir.PythonType)
        if ir.kind_of(type_) is Kind.COMPLEX:
            return self.complex_binary(expr)
        if ir.kind_of(type_) is Kind.FLOAT:
            return self.float_binary(expr)
        if isinstance(type_, ir.ElementType) and may_be_int16(type_.dtype) and (operand := negative_of(expr)):
            return self.negate(ir.Unary("-", operand, expr.span, type_))
        a, b = self.ranges.of(expr.left), self.ranges.of(expr.right)
        match expr.op:
            case "//" | "%":
                if a.is_natural and b.is_natural and not is_generic(type_):  # rule: floor-signed
                    return replace(expr, op=OPERATORS[expr.op].c)
                return self.helper(OPERATORS[expr.op].helper, expr)
            case "**":
                return self.power(expr)
            case ">>":
                return replace(expr, left=to_signed(expr.left))
            case "<<":
                return self.shift(replace(expr, left=to_signed(expr.left)), a, b)
            case "-":
                expr = replace(expr, left=to_signed(expr.left), right=to_signed(expr.right))
            case "+" | "*" | "&" | "|" | "^" if not (a.is_natural and b.is_natural):  # rule: index-mixed
                expr = replace(expr, left=to_signed(expr.left), right=to_signed(expr.right))
        # rule: wrapping
        if isinstance(type_, ir.ElementType) and type_.dtype.kind is Kind.INT and OPERATORS[expr.op].wrapping:
            return self.wrap(expr, type_)
        return expr

    def shift(self, expr: ir.Binary[ir.Expr], a: Interval, b: Interval) -> ir.Expr:
        """C++ leaves a shift of a negative number undefined, and one beyond the sign bit. Python integers do not reach
        that bit; narrow unsigned elements are shifted as `int`.
        """
        expr = replace(expr, right=ir.unconverted(expr.right))  # the count fits any type
        if not isinstance(expr.type, ir.ElementType):
            return expr if a.is_natural else self.helper("wrapping_shift", expr)
        dtype = expr.type.dtype
        if dtype.variable is not None:
            return self.helper("wrapping_shift", expr)
        if dtype.bits < 32 and not dtype.signed:
            return wrapping(expr)
        fits = a.is_natural and b.high < dtype.bits and a.high * 2.0**b.high <= dtype.high
        return expr if fits else self.helper("wrapping_shift", expr)  # rule: wrap-shift

    def wrap(self, expr: ir.Binary[ir.Expr], type_: ir.ElementType) -> ir.Expr:
        """Element arithmetic wraps at its dtype. A cast wraps narrow types, which C computes in `int`; a helper wraps
        where `int` or `int64_t` itself may overflow, which C++ leaves undefined.
        """
        dtype, operator = type_.dtype, OPERATORS[expr.op]
        if dtype.variable is not None:
            return self.helper(operator.elementwise if dtype.variable.is_mixed else operator.wrapping, expr)
        if is_wide_unsigned(dtype):
            return expr
        if not self.may_overflow(expr, dtype):  # rule: wrap-overflow
            return expr
        if dtype.bits == 64 or self.may_overflow(expr, I32) or (dtype is I16 and expr.op in "+-"):
            return self.helper(operator.wrapping, expr)
        return wrapping(replace(expr, left=self.chained(expr.left), right=self.chained(expr.right)))

    def chained(self, operand: ir.Expr) -> ir.Expr:
        """`operand` without its own wrap, if `int` holds its exact value with room to spare."""
        inner = strip_wrap(operand)
        if inner is operand:
            return operand
        range_ = self.ranges.before_wrap(inner)
        return inner if max(abs(range_.low), abs(range_.high)) < 2**15 else operand

    def may_overflow(self, expr: ir.Binary[ir.Expr], dtype: DType) -> bool:
        """True where the result may lie outside `dtype`."""
        a, b = self.ranges.of(expr.left), self.ranges.of(expr.right)
        match expr.op:
            case "+":
                low, high = a.low + b.low, a.high + b.high
            case "-":
                low, high = a.low - b.high, a.high - b.low
            case _:
                low = -max(abs(a.low), abs(a.high)) * max(abs(b.low), abs(b.high))
                high = -low
        return low < dtype.low or high > dtype.high

    def float_binary(self, expr: ir.Binary[ir.Expr]) -> ir.Expr:
        match expr.op:
            case "+" | "-" | "*" if is_mixed(expr.type):
                return self.helper(OPERATORS[expr.op].elementwise, expr)
            case "//" | "%":
                return self.helper(OPERATORS[expr.op].helper, expr)
            case "**":
                return self.float_power(expr)
            case _:
                return expr

    def float_power(self, expr: ir.Binary[ir.Expr]) -> ir.Expr:
        """A power as torch computes it without `pow`; of Python floats only a square."""
        base, exponent = expr.left, constant_exponent(expr.right)
        one = ir.Constant(1.0, expr.span, expr.type, text="1")
        # rule: torch-power
        match exponent if isinstance(expr.type, ir.ElementType) or exponent == 2 else None:
            case 2 | 3 as factors:
                return self.repeated(base, int(factors), expr)
            case 0.5:
                return ir.Call("math.sqrt", (base,), expr.span, expr.type)
            case -1:
                return replace(expr, op="/", left=one, right=base)
            case -2:
                return replace(expr, op="/", left=one, right=self.repeated(base, 2, expr))
            case -0.5:
                root = ir.Call("math.sqrt", (base,), expr.span, expr.type)
                return replace(expr, op="/", left=one, right=root)
            case _:
                return ir.Call("math.pow", (base, expr.right), expr.span, expr.type)

    def repeated(self, base: ir.Expr, factors: int, power: ir.Binary[ir.Expr]) -> ir.Expr:
        """The product of two or three `factors`, each `base`; a helper evaluates an expression once."""
        if not _may_repeat(base):
            name = "square" if factors == 2 else "cube"
            self.helpers.require(name)
            return ir.Call(name, (base,), power.span, power.type)
        product = self.binary(ir.Binary("*", base, base, power.span, power.type))
        return product if factors == 2 else self.binary(ir.Binary("*", product, base, power.span, power.type))

    def complex_binary(self, expr: ir.Binary[ir.Expr]) -> ir.Expr:
        """C++ adjusts infinite products and quotients, Python and torch do not: helpers compute plain formulas."""
        is_square = expr.op == "**" and expr.right == ir.Constant(2, type=ir.PY_INT)
        if is_square and _may_repeat(expr.left):
            expr = replace(expr, op="*", right=expr.left)
        helper = OPERATORS[expr.op].of_complex
        return self.helper(helper, expr) if helper else expr

    def power(self, expr: ir.Binary[ir.Expr]) -> ir.Expr:
        """A whole number to a power that is not negative."""
        match constant_exponent(expr.right), isinstance(expr.type, ir.ElementType):
            case 2, False:
                return self.repeated(expr.left, 2, expr)
            case 2 | 3 as factors, True if _may_repeat(expr.left):
                return self.repeated(expr.left, int(factors), expr)
        return self.helper("int_pow", expr)  # rule: power-of-integers

    def negate(self, expr: ir.Unary) -> ir.Expr:
        type_ = expr.type
        if not isinstance(type_, ir.ElementType) or type_.dtype.kind is not Kind.INT:
            return expr
        if not is_generic(type_):
            stays_in_range = type_.dtype.signed and self.ranges.of(expr.operand).low > type_.dtype.low
            if stays_in_range or is_wide_unsigned(type_.dtype):
                return expr
            if type_.dtype.bits == 8 or not type_.dtype.signed:
                return wrapping(expr)  # rule: wrap-negation
        zero = ir.Constant(0, expr.span, type_)
        return self.helper("wrapping_sub", ir.Binary("-", zero, expr.operand, expr.span, type_))

    @staticmethod
    def invert(expr: ir.Unary) -> ir.Expr:
        """`~` of a bool element is its negation; of an unsigned one it wraps, where C's int turns negative."""
        match expr.type:
            case ir.ElementType(dtype=dtype) if dtype.kind is Kind.BOOL:
                return ir.Unary("not", expr.operand, expr.span, ir.PY_BOOL)
            # rule: wrap-inversion
            case ir.ElementType(dtype=dtype) if dtype.variable or (dtype.bits < 32 and not dtype.signed):
                return wrapping(expr)
            case _:
                return expr

    def compare(self, expr: ir.Compare, left: ir.Expr, right: ir.Expr) -> ir.Expr:
        if self.ranges.of(left).is_natural and self.ranges.of(right).is_natural:
            return expr
        return replace(expr, left=to_signed(left), right=to_signed(right))

    def helper(self, name: str, expr: ir.Binary[ir.Expr]) -> ir.Call:
        self.helpers.require(name)
        return ir.Call(name, (to_signed(expr.left), to_signed(expr.right)), expr.span, expr.type)


def is_mixed(type_: ir.Type) -> bool:
    return isinstance(type_, ir.ElementType) and type_.dtype.variable is not None and type_.dtype.variable.is_mixed


def is_wide_unsigned(dtype: DType) -> bool:
    """True if C's own arithmetic in `dtype` wraps."""
    return not dtype.signed and dtype.bits >= 32


def fold_constant_if(stmt: ir.If, holds: bool) -> ir.Block:
    """The branch that a constant `if` takes. A branch with a jump keeps its `if`: later code would be unreachable."""
    branch = stmt.body if holds else stmt.orelse
    if any(isinstance(inner, ir.Return | ir.Break | ir.Continue) for inner in branch):
        return (stmt,)
    return (ir.Comment(stmt.span, stmt.trivia), *branch) if stmt.trivia != ir.Trivia() else branch


def may_be_int16(dtype: DType) -> bool:
    """True for a dtype that may be int16, negated in 32 bits: see the helpers `wrapping_sub` and `wrapping_add`."""
    return dtype is I16 or (dtype.variable is not None and dtype.kind is Kind.INT and not dtype.variable.is_mixed)


def negative_of(expr: ir.Expr) -> ir.Expr | None:
    """The operand if compilers recognise `expr` as a negation; else None."""
    match expr:
        case (
            ir.Unary("-", operand)
            | ir.Binary("-", ir.Constant(0), operand)
            | ir.Call("wrapping_sub", (ir.Constant(0), operand))
        ):
            return operand
        case ir.Binary("*" | "//", operand, ir.Constant(-1)) | ir.Binary("*", ir.Constant(-1), operand):
            return operand
        case ir.Call("wrapping_mul", (operand, ir.Constant(-1)) | (ir.Constant(-1), operand)):
            return operand
        case _:
            return None


def _may_repeat(expr: ir.Expr) -> bool:
    """True for a name, a launch object, and an element whose index no call computes."""
    is_plain = isinstance(expr, ir.Name | ir.LaunchIndex | ir.Load)
    return is_plain and not any(isinstance(part, ir.DeviceCall) for part in walk(expr))
