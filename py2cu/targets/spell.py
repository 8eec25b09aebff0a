"""IR → C text: the only place, with the templates, where C is written.

Precedence and associativity stand in one table. Every spelled expression carries its C type, so that a conversion
which C makes by itself is not written.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, assert_never

from py2cu.builtins import ROWS
from py2cu.dtypes import Kind
from py2cu.ir.nodes import (
    Binary,
    BoolOp,
    Call,
    Compare,
    Constant,
    Convert,
    Expr,
    Extent,
    LaunchIndex,
    Load,
    Name,
    Select,
    Unary,
)
from py2cu.ir.statements import (
    Assign,
    Block,
    Break,
    Continue,
    Declare,
    For,
    If,
    Kernel,
    Remark,
    Return,
    Stmt,
    Store,
    Trivia,
    While,
)
from py2cu.ir.types import ElementType, PythonType, ScalarType, Type, Width

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
_C_RANK: Final = {
    "bool": 0, "int8_t": 0, "uint8_t": 0, "int16_t": 0, "int": 1, "int32_t": 1, "unsigned": 2, "index_t": 3,
    "int64_t": 4, "float": 5, "double": 6,
}  # fmt: skip
_C_ALIASES: Final = {"int32_t": "int"}
_INDENT: Final = "    "


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a body, and the Python line that it says."""

    text: str
    origin: int = 0


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


class Speller:
    """Spells one kernel's body."""

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

    def block(self, block: Block, depth: int = 1) -> Iterator[Line]:
        """The statements of a block, indented; blank lines between them survive, those at its start do not."""
        first = True
        for stmt in block:
            for line in self.statement(stmt, depth):
                if first and not line.text:
                    continue
                first = False
                yield line

    def statement(self, stmt: Stmt, depth: int) -> Iterator[Line]:
        pad = _INDENT * depth
        yield from _comments(stmt.trivia, pad)
        lines = [*self.spell_statement(stmt, depth)]
        beside = f"  // {comment_text(stmt.trivia.beside)}" if stmt.trivia.beside else ""
        for place, line in enumerate(lines):
            yield Line(line.text + (beside if place == 0 else ""), line.origin or stmt.span.line)
        if beside and not lines:
            yield Line(f"{pad}{beside.strip()}")

    def spell_statement(self, stmt: Stmt, depth: int) -> Iterator[Line]:
        pad = _INDENT * depth
        match stmt:
            case Assign():
                yield Line(f"{pad}{self.assignment(stmt)}")
            case Declare(name=name, type=type_):
                yield Line(f"{pad}{self.c_type(type_)} {self.name(name)};")
            case Store(array=array, indices=indices, value=value, augmented=augmented):
                target = f"{self.name(array)}[{self.expr(indices[0]).text}]"
                c_type = self.kernel.array_type(array).dtype.c
                load = Load(array, indices)
                yield Line(f"{pad}{self.assign(target, load, value, c_type, augmented)}")
            case If():
                yield from self.conditional(stmt, depth)
            case For():
                yield from self.controlled(f"{pad}{self.loop_head(stmt)}", stmt.body, depth)
            case While(test=test, body=body):
                yield from self.controlled(f"{pad}while ({self.expr(test).text})", body, depth)
            case Break() | Continue() | Return():
                yield Line(f"{pad}{type(stmt).__name__.lower()};")
            case Remark():
                return
            case _:
                assert_never(stmt)

    def assignment(self, stmt: Assign) -> str:
        if stmt.declares is not None:
            c_type = self.c_type(stmt.declares)
            return f"{c_type} {self.name(stmt.name)} = {self.assigned(stmt.value, c_type).text};"
        target = dict(self.kernel.locals).get(stmt.name) or self.parameter_type(stmt.name)
        c_type = self.c_type(target)
        return self.assign(self.name(stmt.name), Name(stmt.name), stmt.value, c_type, stmt.augmented)

    def parameter_type(self, name: str) -> Type:
        found = self.kernel.parameter(name)
        assert found is not None, name
        return found.type

    def assign(self, target: str, place: Expr, value: Expr, c_type: str, augmented: bool) -> str:
        """`target = value;`, or `target op= operand;` where that is what the user wrote and C means the same."""
        inner = value.value if isinstance(value, Convert) and not value.explicit else value
        if augmented and isinstance(inner, Binary):
            left = inner.left.value if isinstance(inner.left, Convert) else inner.left
            if _same_place(left, place):
                right = self.operand(inner.right, self.c_type(inner.type))
                computed = common_type(c_type, right.c_type)
                if computed == arithmetic_type(self.c_type(inner.type)):
                    if inner.op in "+-" and right.text == "1" and not isinstance(inner.type, ElementType):
                        return f"{inner.op * 2}{target};"
                    return f"{target} {inner.op}= {right.text};"
        return f"{target} = {self.assigned(value, c_type).text};"

    def assigned(self, value: Expr, c_type: str) -> Spelled:
        """`value` where C converts it to `c_type` by assigning it; only conversions that lose something are written."""
        if isinstance(value, Constant) and is_whole_literal(value):
            return self.operand(value, c_type)
        if isinstance(value, Convert) and not value.explicit:
            inner = self.expr(value.value)
            if keeps_value(inner.c_type, c_type):
                return inner
        return self.expr(value)

    def conditional(self, stmt: If, depth: int) -> Iterator[Line]:
        """An `if` with its `elif` chain and `else`: braces around all branches or none."""
        pad = _INDENT * depth
        braces = any(self.needs_braces(body) for body in _branches(stmt)) or _has_comments(stmt)
        lines = [*self.controlled(f"{pad}if ({self.expr(stmt.test).text})", stmt.body, depth, braces, not stmt.orelse)]
        rest = stmt.orelse
        while rest:
            head = f"{pad}else"
            if braces:
                lines.pop()
                head = f"{pad}}} else"
            body = rest
            comments: tuple[str, ...] = ()
            match rest:
                case (If(chained=True) as branch,):
                    head += f" if ({self.expr(branch.test).text})"
                    body, rest = branch.body, branch.orelse
                    comments = (*branch.trivia.above, branch.trivia.beside)
                case _:
                    rest = ()
            lines += self.controlled(head, body, depth, braces, inline=False, preface=comments)
        yield from lines

    def controlled(
        self,
        head: str,
        body: Block,
        depth: int,
        braces: bool | None = None,
        inline: bool = True,
        preface: tuple[str, ...] = (),
    ) -> Iterator[Line]:
        """A head and the block that it controls: braces unless the block is one short statement."""
        if braces is None:
            braces = self.needs_braces(body)
        inner = [*_comments(Trivia(above=preface), _INDENT * (depth + 1)), *self.block(body, depth + 1)]
        if braces:
            yield Line(f"{head} {{")
            yield from (line for place, line in enumerate(inner) if place or line.text)
            yield Line(f"{_INDENT * depth}}}")
        elif inline and isinstance(body[0], Return | Break | Continue):
            yield Line(f"{head} {inner[0].text.strip()}", inner[0].origin)
        else:
            yield Line(head)
            yield from inner

    def needs_braces(self, body: Block) -> bool:
        if len(body) != 1 or any(body[0].trivia.above):
            return True
        return isinstance(body[0], If | For | While | Remark | Declare) or (
            isinstance(body[0], Assign) and body[0].declares is not None
        )

    def loop_head(self, loop: For) -> str:
        """`for (int k = 0; k < n; ++k)`."""
        var, c_type = self.name(loop.var), self.c_type(loop.type)
        start = self.assigned(loop.start, c_type).text
        stop, step = self.expr(loop.stop).within(11), loop.step
        match step:
            case Constant(value=1):
                test, advance = f"{var} < {stop}", f"++{var}"
            case Constant(value=-1):
                test, advance = f"{var} > {stop}", f"--{var}"
            case Constant(value=value):
                test = f"{var} < {stop}" if value > 0 else f"{var} > {stop}"
                advance = f"{var} += {value}" if value > 0 else f"{var} -= {-value}"
            case _:
                text = self.expr(step).within(11)
                test, advance = f"{text} > 0 ? {var} < {stop} : {var} > {stop}", f"{var} += {text}"
        return f"for ({c_type} {var} = {start}; {test}; {advance})"

    # --- expressions ---

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
                return Spelled(f"{self.name(array)}[{self.expr(indices[0]).text}]", PRIMARY, c_type)
            case Unary():
                return self.unary(expr)
            case Binary(op=op, left=left, right=right, type=type_):
                return self.binary(op, *self.operands(left, right, self.c_type(type_)))
            case Compare(op=op, left=left, right=right):
                wanted = self.meeting_type(left, right)
                a, b = self.operands(left, right, wanted)
                return Spelled(
                    f"{a.within(PRECEDENCE[op] + 1)} {op} {b.within(PRECEDENCE[op] + 1)}", PRECEDENCE[op], "bool"
                )
            case BoolOp(op=op, left=left, right=right):
                return self.junction(op, self.expr(left), self.expr(right))
            case Select(test=test, then=then, orelse=orelse, type=type_):
                a, b = self.operands(then, orelse, self.c_type(type_))
                text = f"{self.expr(test).within(TERNARY + 1)} ? {a.within(TERNARY + 1)} : {b.within(TERNARY)}"
                return Spelled(text, TERNARY, common_type(a.c_type, b.c_type))
            case Call():
                return self.call(expr)
            case Convert(value=value, type=type_):
                return self.cast(self.expr(value), type_)
            case Extent():
                raise AssertionError("an extent reached the targets")
            case _:
                assert_never(expr)

    def constant(self, expr: Constant) -> Spelled:
        c_type, value = self.c_type(expr.type), expr.value
        if c_type == "bool":
            return Spelled("true" if value else "false", PRIMARY, "bool")
        if c_type in ("float", "double"):
            return float_literal(expr, c_type)
        value = int(value)
        if value == -(2**63):
            return Spelled("INT64_MIN", PRIMARY, "int64_t")
        wide = not -(2**31) < value < 2**31
        return Spelled(f"{value}{'LL' if wide else ''}", PRIMARY if value >= 0 else UNARY, "int64_t" if wide else "int")

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
        return self.expr(left), self.expr(right)

    def operand(self, expr: Expr, wanted: str) -> Spelled:
        """`expr` without an implicit conversion, if C would not compute in something wider than `wanted` for it."""
        if isinstance(expr, Constant) and is_whole_literal(expr):
            return Spelled(str(int(expr.value)), PRIMARY if expr.value >= 0 else UNARY, "int")
        if isinstance(expr, Convert) and not expr.explicit:
            inner = self.expr(expr.value)
            if _C_RANK[inner.c_type] <= _C_RANK[arithmetic_type(wanted)]:
                return inner
        return self.expr(expr)

    def cast(self, value: Spelled, type_: Type) -> Spelled:
        c_type = self.c_type(type_)
        if value.c_type == c_type or (
            c_type == "int" and value.c_type == "int64_t" and self.dialect.launch_type == "int64_t"
        ):
            return value
        if isinstance(type_, PythonType) and value.c_type not in ("float", "double"):
            return Spelled(f"{c_type}({value.text})", PRIMARY, c_type)
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
        name = self.dialect.functions.get(name, name)
        return Spelled(f"{name}({', '.join(args)})", PRIMARY, c_type)

    def argument(self, arg: Expr, c_type: str) -> str:
        """An argument of a C function, which converts it."""
        return self.assigned(arg, c_type).text

    def exactly(self, arg: Expr, c_type: str) -> str:
        spelled = self.expr(arg)
        if _C_ALIASES.get(spelled.c_type, spelled.c_type) == _C_ALIASES.get(c_type, c_type):
            return spelled.text
        return f"{c_type}({spelled.text})"


def float_literal(expr: Constant, c_type: str) -> Spelled:
    """`0.5870f` as the user wrote it, where C reads those digits as the same number."""
    value = float(expr.value)
    sign = "-" if math.copysign(1, value) < 0 else ""
    precedence = UNARY if sign else PRIMARY
    if math.isinf(value):
        return Spelled(f"{sign}INFINITY", precedence, c_type)
    if math.isnan(value):
        return Spelled("NAN", PRIMARY, c_type)
    text = expr.text if re.fullmatch(r"-?\d+\.\d+", expr.text) else repr(value)
    return Spelled(text + ("f" if c_type == "float" else ""), precedence, c_type)


def is_whole_literal(expr: Constant) -> bool:
    """A float that the user wrote as `2`: C turns it into one where it meets a float."""
    return isinstance(expr.value, float) and re.fullmatch(r"-?\d+", expr.text) is not None and abs(expr.value) < 2**24


def _branches(stmt: If) -> Iterator[Block]:
    """The blocks of an `if` and its `elif` chain, which all get braces if one of them does."""
    yield stmt.body
    match stmt.orelse:
        case ():
            return
        case (If(chained=True) as branch,):
            yield from _branches(branch)
        case _:
            yield stmt.orelse


def _has_comments(stmt: If) -> bool:
    match stmt.orelse:
        case (If(chained=True) as branch,):
            return any(branch.trivia.above) or bool(branch.trivia.beside) or _has_comments(branch)
        case _:
            return False


def arithmetic_type(c_type: str) -> str:
    """What C computes in for operands of `c_type`: narrow integers are promoted to int."""
    return "int" if _C_RANK[c_type] <= 1 else c_type


def common_type(a: str, b: str) -> str:
    """C's usual arithmetic conversions."""
    return arithmetic_type(max(a, b, key=_C_RANK.__getitem__))


def keeps_value(source: str, target: str) -> bool:
    """True where assigning a `source` to a `target` needs no cast in the eyes of a careful reader."""
    if source == target:
        return True
    if target in ("float", "double"):
        return source != "double"
    if source in ("float", "double"):
        return False
    return _C_RANK[source] <= _C_RANK[target]


def _same_place(left: Expr, place: Expr) -> bool:
    match left, place:
        case Name(id=a), Name(id=b):
            return a == b
        case Load(array=a, indices=i), Load(array=b, indices=j):
            return a == b and i == j
        case _:
            return False


def _comments(trivia: Trivia, pad: str) -> Iterator[Line]:
    blank = False
    for text in trivia.above:
        if text:
            yield Line(f"{pad}// {comment_text(text)}")
            blank = False
        elif not blank:
            yield Line("")
            blank = True


def comment_text(text: str) -> str:
    """Text that is harmless behind `//`: one line, no control characters, no backslash at its end."""
    text = "".join(char if char.isprintable() else " " for char in text).rstrip()
    return f"{text} (backslash)" if text.endswith("\\") else text


__all__ = ["Dialect", "Line", "ScalarType", "Spelled", "Speller", "comment_text"]
