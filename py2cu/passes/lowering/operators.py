"""Leaves only what C computes as Python does; what differs becomes a helper, a cast or another shape.

    i // w              i / w                    where neither can be negative
    a // b              floor_div(a, b)          elsewhere
    x[i] + y[i]         wrapping_add(x, y)       int32 and int64 elements, where the sum may overflow
    max(a, b)           python_max(a, b)         floats: CUDA's fmax drops NaN
    int(v)              static_cast<int64_t>(v)

A helper is a small named function that the target writes above the kernel; `helpers` lists those in use.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

from py2cu.analysis.ranges import Ranges
from py2cu.builtins import ROWS, Rule
from py2cu.builtins.atomics import ATOMICS, atomic_helper
from py2cu.diagnostics import Reporter
from py2cu.dtypes import I16, I32, U64, DType, Kind, promote
from py2cu.ir.abi.extents import Binary, Constant, Name
from py2cu.ir.account import elided_in
from py2cu.ir.complex_numbers import of_real
from py2cu.ir.elisions import Elided, Elision
from py2cu.ir.expressions import Atomic, Call, Compare, Convert, Expr, LaunchIndex, Load, Select, Unary, unconverted
from py2cu.ir.intervals import Range
from py2cu.ir.kernels import ArrayDecl, Kernel
from py2cu.ir.statements import Assign, Block, Break, Comment, Continue, For, If, Return, Stmt, Store, Trivia
from py2cu.ir.types import (
    PY_BOOL,
    PY_INT,
    ElementType,
    PythonType,
    ScalarType,
    Type,
    Width,
    is_complex,
    kind_of,
    part_of,
)
from py2cu.ir.visit import rebuild, rebuild_block, walk, with_fields
from py2cu.source import Span

EXTREMA: Final = {  # the helper for floats, and what whole numbers have
    "builtins.min": ("python_min", "builtins.min"),
    "builtins.max": ("python_max", "builtins.max"),
    "torch.minimum": ("nan_min", "builtins.min"),
    "torch.maximum": ("nan_max", "builtins.max"),
}
WRAPPING: Final = {"+": "wrapping_add", "-": "wrapping_sub", "*": "wrapping_mul"}
# Helpers that call others.
NEEDS: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys((f"atomic_{op.rstrip('_')}" for op in ATOMICS), ("atomic_update",)),
    "complex_pow": ("complex_mul",),
    "gcd": ("wrapping_abs",),
    "lcm": ("wrapping_abs", "gcd"),
}
# Where a type variable may stand for whole numbers and for floats.
ELEMENTWISE: Final = {"+": "add_elements", "-": "subtract_elements", "*": "multiply_elements"}


def lower_semantics(kernel: Kernel, reporter: Reporter) -> Kernel:
    """The kernel in C's operators and the helpers that it needs."""
    lowering = _Lowering(Ranges(kernel))
    body = rebuild_block(kernel.body, lowering.expression, lowering.statement)
    buffers = tuple(_with_c_extents(buffer, lowering.ranges, reporter) for buffer in kernel.array_decls)
    helpers, elided = kernel.helpers + tuple(lowering.helpers), kernel.elided + tuple(lowering.elided)
    return with_fields(kernel, body=body, array_decls=buffers, helpers=helpers, elided=elided)


def _with_c_extents(buffer: ArrayDecl, ranges: Ranges, reporter: Reporter) -> ArrayDecl:
    """A buffer whose extents the C++ compiler computes, in C's operators; it calls no helper there."""
    if buffer.is_flat:
        return buffer
    lowering = _Lowering(ranges)
    dims = tuple(rebuild(extent, lowering.expression) for extent in buffer.type.dims)
    if lowering.helpers:
        message = f"the shape of `{buffer.name}` divides a number that may be negative"
        reporter.error("P408", message, buffer.span, "add before you divide: `(TILE + 31) // 32`")
    return replace(buffer, type=replace(buffer.type, dims=dims))


class _Lowering:
    def __init__(self, ranges: Ranges) -> None:
        self.ranges = ranges
        self.helpers: dict[str, None] = {}
        self.elided: list[Elided] = []

    def statement(self, stmt: Stmt) -> Block:
        if isinstance(stmt, If) and isinstance(stmt.test, Constant):
            branch = fold_constant_if(stmt, bool(stmt.test.value))
            if branch != (stmt,):
                self.elided += elided_in(stmt.orelse if stmt.test.value else stmt.body, Elision.UNREACHABLE)
            return branch
        if isinstance(stmt, For):
            return (self.loop(stmt),)
        if isinstance(stmt, Store | Assign):
            return (with_fields(stmt, value=strip_wrap(stmt.value)),)
        return (stmt,)

    def loop(self, stmt: For) -> For:
        step = self.ranges.of(stmt.step)
        direction = 1 if step.low > 0 else -1 if step.high < 0 else 0
        if direction == 1 and self.ranges.of(stmt.start).is_natural:
            return with_fields(stmt, direction=direction)
        return with_fields(stmt, direction=direction, stop=self.to_signed(stmt.stop))

    def expression(self, expr: Expr) -> Expr:
        match expr:
            case Binary():
                return self.binary(expr)
            case Unary(op="-", operand=operand):
                return self.negate(replace(expr, operand=self.to_signed(operand)))
            case Unary(op="~"):
                return self.invert(replace(expr, operand=self.to_signed(expr.operand)))
            case Compare(left=left, right=right):
                return self.compare(expr, left, right)
            case Select(test=test, then=then, orelse=orelse):
                test = nonzero(test) if is_complex(test.type) else test
                return replace(expr, test=test, then=self.to_signed(then), orelse=self.to_signed(orelse))
            case Call():
                return self.call(expr)
            case Atomic(op=op, array=array):
                if self.ranges.kernel.array_type(array).dtype.c not in ATOMICS[op].functions:
                    self.require_helper(atomic_helper(op))
                return expr
            case Convert():
                return self.convert(expr)
            case _:
                return expr

    # --- operators ---

    def binary(self, expr: Binary) -> Expr:
        type_ = expr.type
        assert isinstance(type_, ElementType | PythonType)
        if kind_of(type_) is Kind.COMPLEX:
            return self.complex_binary(expr)
        if kind_of(type_) is Kind.FLOAT:
            return self.float_binary(expr)
        if isinstance(type_, ElementType) and may_be_int16(type_.dtype) and (operand := negative_of(expr)):
            return self.negate(Unary("-", operand, expr.span, type_))
        a, b = self.ranges.of(expr.left), self.ranges.of(expr.right)
        match expr.op:
            case "//" | "%":
                if a.is_natural and b.is_natural and not is_generic(type_):
                    return replace(expr, op="/" if expr.op == "//" else "%")
                return self.helper("floor_div" if expr.op == "//" else "floor_mod", expr)
            case "**":
                return self.power(expr)
            case ">>":
                return replace(expr, left=self.to_signed(expr.left))
            case "<<":
                return self.shift(replace(expr, left=self.to_signed(expr.left)), a, b)
            case "-":
                expr = replace(expr, left=self.to_signed(expr.left), right=self.to_signed(expr.right))
            case "+" | "*" | "&" | "|" | "^" if not (a.is_natural and b.is_natural):
                expr = replace(expr, left=self.to_signed(expr.left), right=self.to_signed(expr.right))
        if isinstance(type_, ElementType) and type_.dtype.kind is Kind.INT and expr.op in WRAPPING:
            return self.wrap(expr, type_)
        return expr

    def shift(self, expr: Binary, a: Range, b: Range) -> Expr:
        """C++ leaves a shift of a negative number undefined, and one beyond the sign bit. Python integers do not reach
        that bit; narrow unsigned elements are shifted as `int`.
        """
        expr = replace(expr, right=unconverted(expr.right))  # by how much fits any type
        if not isinstance(expr.type, ElementType):
            return expr if a.is_natural else self.helper("wrapping_shift", expr)
        dtype = expr.type.dtype
        if dtype.variable is not None:
            return self.helper("wrapping_shift", expr)
        if dtype.bits < 32 and not dtype.signed:
            return wrapping(expr)
        fits = a.is_natural and b.high < dtype.bits and a.high * 2.0**b.high <= dtype.high
        return expr if fits else self.helper("wrapping_shift", expr)

    def wrap(self, expr: Binary, type_: ElementType) -> Expr:
        """Element arithmetic wraps at its dtype, as C's unsigned types do. C computes narrow types in `int`, so a cast
        does; int must not overflow in C++, so where that could happen a helper does.
        """
        dtype = type_.dtype
        if dtype.variable is not None:
            return self.helper((ELEMENTWISE if dtype.variable.is_mixed else WRAPPING)[expr.op], expr)
        if is_wide_unsigned(dtype):
            return expr
        if not self.may_overflow(expr, dtype):
            return expr
        if dtype.bits == 64 or self.may_overflow(expr, I32) or (dtype is I16 and expr.op in "+-"):
            return self.helper(WRAPPING[expr.op], expr)
        return wrapping(replace(expr, left=self.chained(expr.left), right=self.chained(expr.right)))

    def chained(self, operand: Expr) -> Expr:
        """A wrapped operand of a sum need not wrap before it, as long as `int` holds it."""
        inner = strip_wrap(operand)
        if inner is operand:
            return operand
        found = self.ranges.strip_wrap(inner)
        return inner if max(abs(found.low), abs(found.high)) < 2**15 else operand

    def may_overflow(self, expr: Binary, dtype: DType) -> bool:
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

    def float_binary(self, expr: Binary) -> Expr:
        match expr.op:
            case "+" | "-" | "*" if is_mixed(expr.type):
                return self.helper(ELEMENTWISE[expr.op], expr)
            case "//":
                return self.helper("floor_div", expr)
            case "%":
                return self.helper("floor_mod", expr)
            case "**" if (
                not is_generic(expr.type)
                and isinstance(expr.right, Constant)
                and expr.right.value == 2
                and isinstance(expr.left, Name | Load)
            ):
                return Binary("*", expr.left, expr.left, expr.span, expr.type)
            case "**":
                return Call("math.pow", (expr.left, expr.right), expr.span, expr.type)
            case _:
                return expr

    def complex_binary(self, expr: Binary) -> Expr:
        """C++ repairs infinite products and quotients, which Python and torch leave as their formulas make them."""
        match expr.op:
            case "*":
                return self.helper("complex_mul", expr)
            case "/":
                return self.helper("complex_div", expr)
            case "**" if expr.right == Constant(2, type=PY_INT) and isinstance(expr.left, Name | Load):
                return self.helper("complex_mul", replace(expr, right=expr.left))
            case "**":
                return self.helper("complex_pow", expr)
            case _:
                return expr

    def power(self, expr: Binary) -> Expr:
        """A whole number to a power that is not negative."""
        is_square = isinstance(expr.right, Constant) and expr.right.value == 2
        if is_square and isinstance(expr.left, Name | LaunchIndex | Load):
            return self.binary(Binary("*", expr.left, expr.left, expr.span, expr.type))
        return self.helper("int_pow", expr)

    def negate(self, expr: Unary) -> Expr:
        type_ = expr.type
        if not isinstance(type_, ElementType) or type_.dtype.kind is not Kind.INT:
            return expr
        if not is_generic(type_):
            is_kept = type_.dtype.signed and self.ranges.of(expr.operand).low > type_.dtype.low
            if is_kept or is_wide_unsigned(type_.dtype):
                return expr
            if type_.dtype.bits == 8 or not type_.dtype.signed:
                return wrapping(expr)
        zero = Constant(0, expr.span, type_)
        return self.helper("wrapping_sub", Binary("-", zero, expr.operand, expr.span, type_))

    @staticmethod
    def invert(expr: Unary) -> Expr:
        """`~` of a bool element is its negation; of an unsigned one it wraps, where C's int turns negative."""
        match expr.type:
            case ElementType(dtype=dtype) if dtype.kind is Kind.BOOL:
                return Unary("not", expr.operand, expr.span, PY_BOOL)
            case ElementType(dtype=dtype) if dtype.variable or (dtype.bits < 32 and not dtype.signed):
                return wrapping(expr)
            case _:
                return expr

    def compare(self, expr: Compare, left: Expr, right: Expr) -> Expr:
        if self.ranges.of(left).is_natural and self.ranges.of(right).is_natural:
            return expr
        return replace(expr, left=self.to_signed(left), right=self.to_signed(right))

    def helper(self, name: str, expr: Binary) -> Call:
        self.require_helper(name)
        return Call(name, (self.to_signed(expr.left), self.to_signed(expr.right)), expr.span, expr.type)

    def require_helper(self, helper: str) -> None:
        self.helpers.update(dict.fromkeys((*NEEDS.get(helper, ()), helper)))

    def to_signed(self, expr: Expr) -> Expr:
        """CUDA's launch objects are unsigned: where a negative number may meet one, it is made signed first."""
        match expr:
            case Binary(op="+" | "*", left=left, right=right) if is_unsigned(left) != is_unsigned(right):
                return replace(expr, left=self.to_signed(left), right=self.to_signed(right))
        return Convert(expr, expr.type, expr.span, explicit=True) if is_unsigned(expr) else expr

    # --- functions and conversions ---

    def call(self, expr: Call) -> Expr:
        if expr.function == "ceil_div":
            self.require_helper(expr.function)
            return replace(expr, args=tuple(map(self.to_signed, expr.args)))
        row = ROWS.get(expr.function)
        if row is None or not isinstance(expr.type, ElementType | PythonType):
            return expr
        if expr.function in EXTREMA:
            return self.extremum(expr, expr.type)
        if expr.function == "math.isinf" and not any(isinstance(part, Name | Load) for part in walk(expr)):
            return infinite(expr.args[0], expr.span)
        helper = "round_decimals" if row.rule is Rule.INTEGRAL and len(expr.args) == 2 else row.helper
        if helper:
            self.require_helper(helper)
            if row.rule is Rule.REDUCE:  # which the targets know as a call that waits
                return expr
            return Call(helper, tuple(map(self.to_signed, expr.args)), expr.span, expr.type)
        if row.rule is Rule.SCALED:
            return self.scaled(expr)
        if row.rule is Rule.INTEGRAL:
            source = expr.args[0].type
            return Convert(replace(expr, type=source), expr.type, expr.span, explicit=True)
        if (
            expr.function == "builtins.abs"
            and self.ranges.of(expr.args[0]).is_natural
            and kind_of(expr.type) is Kind.INT
            and not is_generic(expr.type)
        ):
            return expr.args[0]
        if expr.function == "builtins.abs" and isinstance(expr.type, ElementType) and expr.type.dtype.kind is Kind.INT:
            return self.magnitude(expr, expr.type)
        return expr

    def scaled(self, expr: Call) -> Expr:
        """`ldexp` takes an int, where Python takes any whole number."""
        value, power = expr.args
        found = self.ranges.of(power)
        if I32.low <= found.low and found.high <= I32.high:
            return replace(expr, args=(value, unconverted(power)))
        self.require_helper("ldexp_by_any")
        return Call("ldexp_by_any", expr.args, expr.span, expr.type)

    def magnitude(self, expr: Call, type_: ElementType) -> Expr:
        """The least value of a signed type has no counterpart: its `abs` wraps around to itself."""
        if not is_generic(type_):
            if self.ranges.of(expr.args[0]).low > type_.dtype.low:
                return expr
            if type_.dtype.bits == 8:
                return wrapping(expr)
        self.require_helper("wrapping_abs")
        return Call("wrapping_abs", expr.args, expr.span, type_)

    def extremum(self, expr: Call, type_: ScalarType) -> Expr:
        """`min` and `max` of many, two at a time from the left, as Python compares them."""
        of_floats, of_integers = EXTREMA[expr.function]
        name = of_floats if kind_of(type_) is Kind.FLOAT or is_generic(type_) else of_integers
        if name == of_floats:
            self.require_helper(name)
        result = self.to_signed(expr.args[0])
        for arg in expr.args[1:]:
            result = Call(name, (result, self.to_signed(arg)), expr.span, type_)
        return result

    def convert(self, expr: Convert) -> Expr:
        source, target = expr.value.type, expr.type
        assert isinstance(source, ElementType | PythonType) and isinstance(target, ElementType | PythonType)
        if isinstance(expr.value, Convert) and source == target:  # but for the width, perhaps
            return replace(expr.value, type=target)
        if isinstance(expr.value, Convert) and expr.value.value.type == target and widens(target, source):
            return expr.value.value
        if kind_of(target) is Kind.BOOL and kind_of(source) is not Kind.BOOL:
            return nonzero(expr.value)
        if isinstance(target, ElementType) and target.dtype.kind is Kind.INT and kind_of(source) is Kind.FLOAT:
            return self.truncate(expr, target)
        return expr

    def truncate(self, expr: Convert, target: ElementType) -> Expr:
        """A float that may lie outside an unsigned or narrow type goes through int64, as torch's CPU does."""
        value, dtype = self.ranges.of(expr.value), target.dtype
        if value.low > dtype.low - 1 and value.high < dtype.high + 1:
            return expr
        if dtype is U64:
            self.require_helper("to_uint64")
            return Call("to_uint64", (expr.value,), expr.span, target)
        if dtype.bits < 32 or not dtype.signed:
            return replace(expr, value=Convert(expr.value, PythonType(Kind.INT, Width.LONG), expr.span, explicit=True))
        return expr


def nonzero(value: Expr) -> Compare:
    """The truth of a number."""
    type_ = value.type
    assert isinstance(type_, ElementType | PythonType)
    zero = Constant(0 if kind_of(type_) < Kind.FLOAT else 0.0, value.span, part_of(type_))
    return Compare("!=", value, of_real(zero, type_) if is_complex(type_) else zero, value.span)


def infinite(value: Expr, span: Span) -> Compare:
    """`isinf` of constants, which nvcc (13.0) says of NaN too where it computes them."""
    type_ = value.type
    return Compare("==", Call("math.fabs", (value,), value.span, type_), Constant(math.inf, value.span, type_), span)


def widens(narrow: ScalarType, wide: ScalarType) -> bool:
    """True where `wide` holds every `narrow`, so that going there and back changes nothing."""
    match narrow, wide:
        case ElementType(dtype=a), ElementType(dtype=b):
            return promote(a, b) is b
        case ElementType(dtype=a), PythonType(kind=kind):
            return a.kind is kind and (kind is Kind.FLOAT or a.bits < 64)
        case _:
            return False


def is_generic(type_: Type) -> bool:
    """True for a type variable: instances are lowered alike, so that one template says them all."""
    return isinstance(type_, ElementType) and type_.dtype.variable is not None


def is_mixed(type_: Type) -> bool:
    return isinstance(type_, ElementType) and type_.dtype.variable is not None and type_.dtype.variable.is_mixed


def is_wide_unsigned(dtype: DType) -> bool:
    """C's own arithmetic in `dtype` wraps."""
    return not dtype.signed and dtype.bits >= 32


def fold_constant_if(stmt: If, holds: bool) -> Block:
    """The branch that an `if` on a constant takes; one that leaves stays under it, or what follows were unreachable."""
    branch = stmt.body if holds else stmt.orelse
    if any(isinstance(inner, Return | Break | Continue) for inner in branch):
        return (stmt,)
    return (Comment(stmt.span, stmt.trivia), *branch) if stmt.trivia != Trivia() else branch


def may_be_int16(dtype: DType) -> bool:
    """True where C negates in 32 bits what holds 16: see the helpers `wrapping_sub` and `wrapping_add`."""
    return dtype is I16 or (dtype.variable is not None and dtype.kind is Kind.INT and not dtype.variable.is_mixed)


def wrapping(expr: Binary | Unary | Call) -> Convert:
    """Narrow arithmetic cut to its own type."""
    return Convert(expr, expr.type, expr.span, explicit=True)


def strip_wrap(expr: Expr) -> Expr:
    """`expr` before it was cut: what stores it in its own type cuts it anyway."""
    if (
        isinstance(expr, Convert)
        and expr.explicit
        and expr.type == expr.value.type
        and isinstance(expr.value, Binary | Unary)
    ):
        return expr.value if isinstance(expr.type, ElementType) else expr
    return expr


def is_unsigned(expr: Expr) -> bool:
    """True where CUDA computes `expr` in unsigned arithmetic."""
    match expr:
        case LaunchIndex():
            return True
        case Unary(op="+", operand=operand):
            return is_unsigned(operand)
        case Binary(op="+" | "*" | "/" | "%" | "&" | "|" | "^", left=left, right=right):
            return is_unsigned(left) or is_unsigned(right)
        case _:
            return False


def negative_of(expr: Expr) -> Expr | None:
    """What `expr` is the negative of, as compilers see it; None where it is none."""
    match expr:
        case Unary("-", operand) | Binary("-", Constant(0), operand) | Call("wrapping_sub", (Constant(0), operand)):
            return operand
        case Binary("*" | "//", operand, Constant(-1)) | Binary("*", Constant(-1), operand):
            return operand
        case Call("wrapping_mul", (operand, Constant(-1)) | (Constant(-1), operand)):
            return operand
        case _:
            return None
