"""IR expressions → C text.

Precedence and associativity stand in one table. Every spelled expression carries its C type, so that a conversion
which C makes by itself is not written.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, assert_never

from py2cu.builtins import ROWS
from py2cu.dtypes import Kind
from py2cu.ir.extents import Binary, Constant, Name
from py2cu.ir.nodes import BoolOp, Call, Compare, Convert, Expr, Extent, LaunchIndex, Load, Select, Unary
from py2cu.ir.statements import Kernel
from py2cu.ir.types import ElementType, PythonType, Type, Width
from py2cu.targets.c_types import C_RANK, arithmetic_type, common_type, keeps_value, same_type

PRIMARY: Final = 16
UNARY: Final = 15
TERNARY: Final = 3
PRECEDENCE: Final = {
    "*": 13, "/": 13, "%": 13, "+": 12, "-": 12, "<<": 11, ">>": 11, "<": 10, "<=": 10, ">": 10, ">=": 10,
    "==": 9, "!=": 9,
    "&": 8, "^": 7, "|": 6, "and": 5, "or": 4,
}  # fmt: skip
_JUNCTION: Final = {"and": "&&", "or": "||"}
# C's order of arithmetic types; `index_t` stands where it does for its narrower instantiation.


@dataclass(frozen=True, slots=True)
class Spelled:
    """C text of an expression: how tightly it binds, and its C type."""

    text: str
    precedence: int
    c_type: str

    def within(self, precedence: int) -> str:
        return self.text if self.precedence >= precedence else f"({self.text})"


@dataclass(frozen=True, slots=True)
class Dialect:
    """What differs between the C++ of two targets."""

    widths: Mapping[Width, str]
    launch_type: str  # of blockIdx.x and its like
    functions: Mapping[str, str] = field(default_factory=dict)


class ExpressionSpeller:
    """Spells the expressions of one kernel."""

    def __init__(self, kernel: Kernel, dialect: Dialect) -> None:
        self.kernel = kernel
        self.dialect = dialect
        self.names = dict(kernel.renamed)

    def name(self, name: str) -> str:
        return self.names.get(name, name)

    def c_type(self, type_: Type) -> str:
        """The C type that carries values of `type_`."""
        match type_:
            case ElementType(dtype=dtype):
                return dtype.c
            case PythonType(kind=Kind.INT, width=width):
                return self.dialect.widths[width]
            case PythonType(kind=kind):
                return "bool" if kind is Kind.BOOL else "double"
            case _:
                raise AssertionError(f"no C type for {type_}")

    # --- statements ---

    def assigned(self, value: Expr, c_type: str) -> Spelled:
        """`value` where C converts it to `c_type` by assigning it; only conversions that lose something are written."""
        if isinstance(value, Constant) and is_whole_literal(value):
            return self.operand(value, c_type)
        if isinstance(value, Convert) and not value.explicit:
            inner = self.expr(value.value)
            if keeps_value(inner.c_type, c_type):
                return inner
        return self.expr(value)

    def expr(self, expr: Expr) -> Spelled:
        match expr:
            case Constant():
                return self.constant(expr)
            case Name(id=name, type=type_):
                return Spelled(self.name(name), PRIMARY, self.c_type(type_))
            case LaunchIndex(object=launched, axis=axis):
                return Spelled(f"{launched}.{axis}", PRIMARY, self.dialect.launch_type)
            case Load(array=array, indices=indices):
                c_type = self.kernel.array_type(array).dtype.c
                return Spelled(f"{self.name(array)}[{self.index(indices[0])}]", PRIMARY, c_type)
            case Unary():
                return self.unary(expr)
            case Binary(op="<<" | ">>" as op, left=left, right=right, type=type_):
                wanted = self.c_type(type_)
                return self.shift(op, self.operand(left, wanted), self.operand(right, wanted), wanted)
            case Binary(op=op, left=left, right=right, type=type_):
                return self.binary(op, *self.operands(left, right, self.c_type(type_)))
            case Compare(op=op, left=left, right=right):
                wanted = self.meeting_type(left, right)
                a, b = self.operands(left, right, wanted)
                inner = PRECEDENCE["<"] + 1  # readers do not know how `<` and `==` bind among each other
                return Spelled(f"{a.within(inner)} {op} {b.within(inner)}", PRECEDENCE[op], "bool")
            case BoolOp(op=op, left=left, right=right):
                return self.junction(op, self.expr(left), self.expr(right))
            case Select(test=test, then=then, orelse=orelse, type=type_):
                a, b = self.operands(then, orelse, self.c_type(type_))
                text = f"{self.expr(test).within(TERNARY + 1)} ? {a.within(TERNARY + 1)} : {b.within(TERNARY + 1)}"
                of_one = same_type(a.c_type, b.c_type)  # C promotes operands of two types only
                return Spelled(text, TERNARY, a.c_type if of_one else common_type(a.c_type, b.c_type))
            case Call():
                return self.call(expr)
            case Convert(value=value, type=type_):
                return self.cast(self.expr(value), type_)
            case Extent():
                raise AssertionError("an extent reached the targets")
            case _:
                assert_never(expr)

    def index(self, index: Expr) -> str:
        """A subscript: any whole number serves."""
        while isinstance(index, Convert) and not index.explicit:
            index = index.value
        return self.expr(index).text

    def constant(self, expr: Constant) -> Spelled:
        c_type, value = self.c_type(expr.type), expr.value
        if c_type == "bool":
            return Spelled("true" if value else "false", PRIMARY, "bool")
        if c_type in ("float", "double"):
            return float_literal(expr, c_type)
        value = int(value)
        if value == -(2**63):
            return Spelled("INT64_MIN", PRIMARY, "int64_t")
        if value == -(2**31) and arithmetic_type(c_type) == "int":
            return Spelled("INT32_MIN", PRIMARY, "int")
        wide = not -(2**31) < value < 2**31
        text = expr.text if re.fullmatch(r"0[xX][0-9a-fA-F]+", expr.text) else str(value)
        return Spelled(f"{text}{'L' if wide else ''}", PRIMARY if value >= 0 else UNARY, "int64_t" if wide else "int")

    def unary(self, expr: Unary) -> Spelled:
        inner = self.expr(expr.operand)
        if expr.op == "not":
            return Spelled(f"!{inner.within(UNARY)}", UNARY, "bool")
        text = inner.within(UNARY)
        gap = "(" if text.startswith(("-", "+")) else ""
        return Spelled(f"{expr.op}({text})" if gap else f"{expr.op}{text}", UNARY, arithmetic_type(inner.c_type))

    def binary(self, op: str, left: Spelled, right: Spelled) -> Spelled:
        rank = PRECEDENCE[op]
        # Readers do not know how `<<`, `&`, `^` and `|` bind: what stands inside them is parenthesised.
        inner = UNARY if op in ("<<", ">>", "&", "^", "|") else rank
        a = left.within(inner) if left.precedence != rank else left.text
        return Spelled(f"{a} {op} {right.within(max(inner, rank + 1))}", rank, common_type(left.c_type, right.c_type))

    def shift(self, op: str, left: Spelled, right: Spelled, wanted: str) -> Spelled:
        """C shifts in the type of the left operand, whatever the right one's."""
        if C_RANK[left.c_type] < C_RANK[wanted]:
            left = Spelled(functional_cast(left.text, wanted), PRIMARY, wanted)
        return replace(self.binary(op, left, right), c_type=arithmetic_type(left.c_type))

    def junction(self, op: str, left: Spelled, right: Spelled) -> Spelled:
        """`&&` inside `||` is parenthesised, though C would not need it."""
        rank = PRECEDENCE[op]

        def side(spelled: Spelled) -> str:
            return spelled.text if spelled.precedence in (rank, *range(rank + 2, PRIMARY + 1)) else f"({spelled.text})"

        return Spelled(f"{side(left)} {_JUNCTION[op]} {side(right)}", rank, "bool")

    def meeting_type(self, left: Expr, right: Expr) -> str:
        """The C type in which a comparison's operands meet."""
        a, b = self.c_type(left.type), self.c_type(right.type)
        return a if a == b else common_type(a, b)

    def operands(self, left: Expr, right: Expr, wanted: str) -> tuple[Spelled, Spelled]:
        """Both operands so that C computes in `wanted`; conversions that it makes by itself are left out."""
        plain = self.operand(left, wanted), self.operand(right, wanted)
        target = arithmetic_type(wanted)
        if common_type(plain[0].c_type, plain[1].c_type) == target:
            return plain
        one = self.expr(left), plain[1]
        if common_type(one[0].c_type, one[1].c_type) == target:
            return one
        a, b = self.expr(left), self.expr(right)
        if C_RANK[common_type(a.c_type, b.c_type)] < C_RANK[target]:  # two small constants of a wide type
            a = Spelled(functional_cast(a.text, target), PRIMARY, target)
        return a, b

    def operand(self, expr: Expr, wanted: str) -> Spelled:
        """`expr` without an implicit conversion, if C would not compute in something wider than `wanted` for it."""
        if isinstance(expr, Constant) and is_whole_literal(expr):
            return Spelled(str(int(expr.value)), PRIMARY if expr.value >= 0 else UNARY, "int")
        if isinstance(expr, Convert) and not expr.explicit:
            inner = self.expr(expr.value)
            if C_RANK[inner.c_type] <= C_RANK[arithmetic_type(wanted)]:
                return inner
        return self.expr(expr)

    def cast(self, value: Spelled, type_: Type) -> Spelled:
        c_type = self.c_type(type_)
        if value.c_type == c_type or (
            c_type == "int" and value.c_type == "int64_t" and self.dialect.launch_type == "int64_t"
        ):
            return value
        if isinstance(type_, PythonType) and value.c_type not in ("float", "double"):
            return Spelled(functional_cast(value.text, c_type), PRIMARY, c_type)
        return Spelled(f"static_cast<{c_type}>({value.text})", PRIMARY, c_type)

    def call(self, expr: Call) -> Spelled:
        """A builtin by its row's spelling, or a helper by its own name; templates want arguments of one type."""
        c_type = self.c_type(expr.type)
        row = ROWS.get(expr.function)
        if row is None or expr.function in ("builtins.min", "builtins.max"):
            name = expr.function.removeprefix("builtins.")
            args = [self.exactly(arg, c_type) for arg in expr.args]
        else:
            argument = self.c_type(expr.args[0].type)
            name = row.spelling.get(argument) or row.spelling.get("int64_t", row.key)
            args = [self.argument(arg, argument) for arg in expr.args]
            c_type = c_type if c_type == "bool" else arithmetic_type(c_type)  # C's `abs` of a narrow number is an int
        name = self.dialect.functions.get(name, name)
        return Spelled(f"{name}({', '.join(args)})", PRIMARY, c_type)

    def argument(self, arg: Expr, c_type: str) -> str:
        """An argument of a C function, which converts it; `sqrt` and its like are overloaded, and want a double."""
        if c_type != "double":
            return self.assigned(arg, c_type).text
        spelled = self.expr(arg)
        return spelled.text if spelled.c_type in ("float", "double") else f"static_cast<double>({spelled.text})"

    def exactly(self, arg: Expr, c_type: str) -> str:
        spelled = self.expr(arg)
        if same_type(spelled.c_type, c_type):
            return spelled.text
        return functional_cast(spelled.text, c_type)


def functional_cast(text: str, c_type: str) -> str:
    """`index_t(x)` for the types that indices have, `static_cast` for others."""
    return f"{c_type}({text})" if c_type in ("int", "index_t", "int64_t") else f"static_cast<{c_type}>({text})"


def float_literal(expr: Constant, c_type: str) -> Spelled:
    """`0.5870f` as the user wrote it, where C reads those digits as the same number."""
    value = float(expr.value)
    sign = "-" if math.copysign(1, value) < 0 else ""
    precedence = UNARY if sign else PRIMARY
    if math.isinf(value):
        return Spelled(f"{sign}INFINITY", precedence, "float")
    if math.isnan(value):
        return Spelled("NAN", PRIMARY, "float")
    text = expr.text if re.fullmatch(r"-?\d+\.\d+", expr.text) else repr(value)
    return Spelled(text + ("f" if c_type == "float" else ""), precedence, c_type)


def is_whole_literal(expr: Constant) -> bool:
    """A float that the user wrote as `2`: C turns it into one where it meets a float."""
    return isinstance(expr.value, float) and re.fullmatch(r"-?\d+", expr.text) is not None and abs(expr.value) < 2**24
