"""Emits IR expressions as C++ text: operators, operands, constants and conversions; `calls.py` emits the calls.

Every emitted expression carries its C type, so that no conversion is written that C makes by itself.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Final, assert_never

from py2cu import ir
from py2cu.builtins.memory import row_access
from py2cu.dtypes import C128, Kind
from py2cu.passes.lowering.split_tuples import row_struct
from py2cu.targets.cxx.c_types import (
    C_RANK,
    COMPLEXES,
    FLOATS,
    HALVES,
    arithmetic_type,
    common_type,
    computes_in,
    converts,
    keeps_value,
    same_type,
)
from py2cu.targets.cxx.cxx_text import PRECEDENCE, PRIMARY, TERNARY, UNARY, CxxText, functional_cast
from py2cu.targets.cxx.dialect import Callee, Dialect
from py2cu.targets.cxx.includes import MATH
from py2cu.targets.cxx.literals import (
    digits,
    float_literal,
    generic_literal,
    integer_literal,
    is_integer_literal,
    named_literal,
)

_JUNCTION: Final = {"and": "&&", "or": "||"}  # rule: junction


class ExpressionEmitter(ABC):
    """Emits the expressions of one kernel, and records the types and the headers that the emitted text needs.

    Comments are emitted elsewhere, so a word in a comment adds neither a type nor a header.
    """

    def __init__(self, kernel: ir.Kernel, dialect: Dialect, callees: Mapping[str, Callee]) -> None:
        self.kernel = kernel
        self.dialect = dialect
        self.callees = callees  # by key
        self.names = dict(kernel.renamed)
        self.locals = dict(kernel.locals)
        self.constants = {each.constant: each for each in kernel.constants}
        self.declarations: dict[ir.ConstantDeclaration, None] = {}  # of the constants that the text names
        self.types: set[str] = set()  # that the text names
        self.headers: set[str] = set()  # that its functions and numbers need; `includes.py` has those of types

    def name(self, name: str) -> str:
        return self.names.get(name, name)

    def c_type(self, type_: ir.Type) -> str:
        """The C type that carries values of `type_`."""
        match type_:
            case ir.ElementType(dtype=dtype):
                return dtype.c
            case ir.PythonType(kind=Kind.INT, width=width):
                return self.dialect.widths[width]
            case ir.PythonType(kind=kind):
                return {Kind.BOOL: "bool", Kind.FLOAT: "double", Kind.COMPLEX: C128.c}[kind]  # rule: python-double
            case ir.TupleType():
                return ""  # nothing is computed with it
            case _:
                raise AssertionError(f"no C type for {type_}")

    def type_name(self, type_: ir.Type) -> str:
        """The C type of `type_` as the target writes it."""
        if isinstance(type_, ir.ElementType):
            return self.dialect.spell(type_.dtype)
        return self.dialect.spell(C128) if ir.is_complex(type_) else self.c_type(type_)

    def type_text(self, type_: ir.Type) -> str:
        """The same, recorded among the types that the text names."""
        return self.named(self.type_name(type_))

    def named(self, c_type: str) -> str:
        """`c_type`, recorded among the types that the text names."""
        self.types.add(c_type)
        return c_type

    def chosen(self, spelled: CxxText) -> CxxText:
        """`spelled`, one of several candidates, with its type recorded: the text holds it."""
        if spelled.casts_to:  # rule: needed-cast
            self.types.add(spelled.casts_to)
        return spelled

    def converted(self, spelled: CxxText, c_type: str) -> CxxText:
        """`spelled` cast to `c_type`."""
        return CxxText(functional_cast(spelled.text, self.named(c_type)), PRIMARY, c_type)

    # --- statements ---

    def assigned(self, value: ir.Expr, c_type: str) -> CxxText:
        """`value` for an assignment to a `c_type`; only conversions that lose information are written."""
        if self.whole_number(value) is not None and c_type not in HALVES:
            return self.operand(value, c_type)
        if isinstance(value, ir.Convert) and not (value.explicit or crosses_type_variable(value)):
            inner = self.expr(value.value)
            return inner if keeps_value(inner.c_type, c_type) else self.chosen(self.cast(inner, value.type))
        return self.expr(value)

    def expr(self, expr: ir.Expr) -> CxxText:
        match expr:
            case ir.Constant():
                return self.constant(expr)
            case ir.Name(id=name, type=type_):
                return CxxText(self.name(name), PRIMARY, self.c_type(type_))
            case ir.LaunchIndex(object=launched, axis=axis):
                return CxxText(f"{launched}.{axis}", PRIMARY, self.dialect.launch_type)
            case ir.Load(array=array, indices=indices, type=type_):
                place = self.element(array, indices)
                accessor = self.accessor(expr)
                return CxxText(f"{accessor}(&{place})" if accessor else place, PRIMARY, self.c_type(type_))
            case ir.Atomic():
                return self.atomic(expr)
            case ir.Unary():
                return self.unary(expr)
            case ir.Binary(op="<<" | ">>" as op, left=left, right=right, type=type_):
                shifted, by = self.shifted(left, right, self.c_type(type_))
                return replace(self.binary(op, shifted, by), c_type=arithmetic_type(shifted.c_type))
            case ir.Binary(op=op, left=left, right=right, type=type_):
                return self.binary(op, *self.operands(left, right, self.c_type(type_)))
            case ir.Compare(op=op, left=left, right=right):
                wanted = self.comparison_type(left, right)
                a, b = self.operands(left, right, wanted)
                inner = PRECEDENCE["<"] + 1  # readers do not know how `<` and `==` bind among each other
                return CxxText(f"{a.within(inner)} {op} {b.within(inner)}", PRECEDENCE[op], "bool")
            case ir.BoolOp(op=op, left=left, right=right):
                return self.junction(op, self.expr(left), self.expr(right))
            case ir.Select(test=test, then=then, type=ir.TupleType()):  # past the end, where threads wait
                text = f"{self.expr(test).within(TERNARY + 1)} ? {self.expr(then).text} : {self.struct_text(then)}{{}}"
                return CxxText(text, TERNARY, "")
            case ir.Select(test=test, then=then, orelse=orelse, type=type_):
                a, b = self.operands(then, orelse, self.c_type(type_))
                text = f"{self.expr(test).within(TERNARY + 1)} ? {a.within(TERNARY + 1)} : {b.within(TERNARY + 1)}"
                have_one_type = same_type(a.c_type, b.c_type)  # C promotes operands of two types only
                return CxxText(text, TERNARY, a.c_type if have_one_type else common_type(a.c_type, b.c_type))
            case ir.Call():
                return self.call(expr)
            case ir.Convert(value=value, type=type_) if crosses_type_variable(expr):
                text = f"static_cast<{self.type_text(type_)}>({self.expr(value).text})"
                return CxxText(text, PRIMARY, self.c_type(type_))
            case ir.Convert(value=value, type=type_):
                return self.chosen(self.cast(self.expr(value), type_))
            case ir.DeviceCall():
                return self.invoke(expr)
            case ir.ArrayName(id=name):
                rank = len(self.kernel.array_type(name).dims) if self.kernel.keeps_subscripts(name) else 1
                return CxxText(self.name(name) if rank == 1 else f"&{self.name(name)}{'[0]' * rank}", PRIMARY, "")
            case ir.TupleItem(value=value, field=field_, type=type_):
                return CxxText(f"{self.expr(value).text}.{field_}", PRIMARY, self.c_type(type_))
            case ir.IsGiven(parameter=parameter):
                return CxxText(self.kernel.flag(parameter), PRIMARY, "bool")
            case ir.Extent() | ir.IsDtype() | ir.Tuple():
                raise AssertionError(f"{expr} reached the targets")
            case _:
                assert_never(expr)

    @abstractmethod
    def call(self, expr: ir.Call) -> CxxText:
        """A call of a builtin or of a helper."""

    @abstractmethod
    def atomic(self, expr: ir.Atomic) -> CxxText:
        """An atomic operation."""

    @abstractmethod
    def invoke(self, expr: ir.DeviceCall) -> CxxText:
        """A call of a device function."""

    def struct_text(self, value: ir.Expr) -> str:
        """The struct type of a tuple: of a row of a view, or of a function's result."""
        match value:
            case ir.Load(array=array):
                return self.row_text(array)
            case ir.DeviceCall(function=function):
                callee = self.callees[function]
                self.types.update(callee.template)
                return callee.struct
            case _:
                raise AssertionError(f"{value} is in no struct")

    def row_text(self, array: str) -> str:
        """The type of a row of `array`: `Vector4<float>`."""
        return f"{row_struct(self.kernel.vector_width(array))}<{self.type_text(self.kernel.array_type(array).element)}>"

    def element(self, array: str, indices: tuple[ir.Expr, ...]) -> str:
        """`acc[r][c]`."""
        return self.name(array) + "".join(f"[{self.index(index)}]" for index in indices)

    def accessor(self, access: ir.Load | ir.Store) -> str:
        """CUDA's function for an access with a cache hint, or the helper for a row; "" of a plain access."""
        if not access.hint or not self.dialect.has_intrinsics:
            return ""
        return row_access(access.hint) if self.kernel.vector_width(access.array) else f"__{access.hint}"

    def index(self, index: ir.Expr) -> str:
        """A subscript; implicit conversions are dropped, since C takes any integer type."""
        while isinstance(index, ir.Convert) and not index.explicit:
            index = index.value
        return self.expr(index).text

    def constant(self, expr: ir.Constant) -> CxxText:
        c_type = self.c_type(expr.type)
        self.record_number(expr)
        if (named := self.by_name(expr, c_type)) is not None:
            return named
        if isinstance(expr.type, ir.ElementType) and expr.type.dtype.variable is not None:
            return CxxText(f"{self.type_text(expr.type)}({generic_literal(expr, expr.type.dtype)})", PRIMARY, c_type)
        if c_type == "bool":
            return CxxText("true" if expr.value else "false", PRIMARY, "bool")
        if c_type in HALVES:
            literal = float_literal(expr, "float").text
            return CxxText(f"{self.type_text(expr.type)}({literal})", PRIMARY, c_type)
        if c_type in FLOATS:
            return float_literal(expr, c_type)
        return integer_literal(expr, c_type)

    def by_name(self, expr: ir.Constant, c_type: str) -> CxxText | None:
        """A number by the name that the module gives it; None where it has none here."""
        constant = expr.written
        if constant is not None and not constant.name:
            return self.expr(constant.definition) if isinstance(expr.type, ir.PythonType) else None
        if constant is None or (declared := self.declared(constant)) is None:
            return None
        text = named_literal(expr, declared, c_type, self.type_name(expr.type))
        if text is None:
            return None
        if declared.text:
            self.declarations[declared] = None
        return self.chosen(text)

    def declared(self, constant: ir.NamedConstant) -> ir.ConstantDeclaration | None:
        """The declaration of a constant of the module, or of a local that is the length of rows; None of others."""
        if constant.array:
            return ir.ConstantDeclaration(constant, self.name(constant.name), "int", "", ())
        return self.constants.get(constant)

    def definition(self, expr: ir.Expr) -> str:
        """What a constant of the module is declared as: digits, or an expression."""
        written = digits(expr) if isinstance(expr, ir.Constant) and expr.written is None else ""
        return written or self.expr(expr).text

    def whole_number(self, expr: ir.Expr) -> CxxText | None:
        """A float as the integer that the user wrote or named: beside a float, C converts it; None of others."""
        if not isinstance(expr, ir.Constant):
            return None
        if is_integer_literal(expr):
            text, precedence = str(int(expr.value)), PRIMARY if expr.value >= 0 else UNARY
            return CxxText(text, precedence, "int", begins_with_sign=expr.value < 0)
        is_generic = isinstance(expr.type, ir.ElementType) and expr.type.dtype.variable is not None
        if is_generic or not isinstance(expr.value, float) or abs(expr.value) >= 2**24:
            return None
        named = self.by_name(replace(expr, type=ir.INT), "int")
        return named if named is not None and named.c_type == "int" else None

    def unary(self, expr: ir.Unary) -> CxxText:
        inner = self.expr(expr.operand)
        if isinstance(expr.operand, ir.Constant) and self.c_type(expr.type) in ("uint32_t", "uint64_t"):
            inner = CxxText(functional_cast(inner.text, self.type_text(expr.type)), PRIMARY, self.c_type(expr.type))
        if expr.op == "not":
            return CxxText(f"!{inner.within(UNARY)}", UNARY, "bool")
        wanted = arithmetic_type(self.c_type(expr.type))
        if C_RANK[arithmetic_type(inner.c_type)] < C_RANK[wanted] < C_RANK["__half"]:  # rule: widened-unary
            inner = self.converted(inner, wanted)
        text = f"({inner.text})" if inner.begins_with_sign else inner.within(UNARY)
        return CxxText(f"{expr.op}{text}", UNARY, arithmetic_type(inner.c_type), begins_with_sign=expr.op in "+-")

    def binary(self, op: str, left: CxxText, right: CxxText) -> CxxText:
        rank = PRECEDENCE[op]
        # Readers do not know how `<<`, `&`, `^` and `|` bind: what stands inside them is parenthesised.
        inner = UNARY if op in ("<<", ">>", "&", "^", "|") else rank
        a = left.within(inner) if left.precedence != rank else left.text
        return CxxText(f"{a} {op} {right.within(max(inner, rank + 1))}", rank, common_type(left.c_type, right.c_type))

    def junction(self, op: str, left: CxxText, right: CxxText) -> CxxText:
        """`&&` inside `||` is parenthesised, though C would not need it."""
        rank = PRECEDENCE[op]

        def side(spelled: CxxText) -> str:
            return spelled.text if spelled.precedence in (rank, *range(rank + 2, PRIMARY + 1)) else f"({spelled.text})"

        return CxxText(f"{side(left)} {_JUNCTION[op]} {side(right)}", rank, "bool")

    def comparison_type(self, left: ir.Expr, right: ir.Expr) -> str:
        """The common C type of a comparison's operands."""
        a, b = self.c_type(left.type), self.c_type(right.type)
        return a if a == b else common_type(a, b)

    def operands(self, left: ir.Expr, right: ir.Expr, wanted: str) -> tuple[CxxText, CxxText]:
        """Both operands so that C computes in `wanted`; conversions that it makes by itself are left out."""
        (bare_left, full_left), (bare_right, full_right) = self.spellings(left, wanted), self.spellings(right, wanted)
        target = arithmetic_type(wanted)
        if computes_in(target, bare_left.c_type, bare_right.c_type):
            return self.chosen(bare_left), self.chosen(bare_right)
        if computes_in(target, full_left.c_type, bare_right.c_type):
            return self.chosen(full_left), self.chosen(bare_right)
        self.chosen(full_left)
        if C_RANK[common_type(full_left.c_type, full_right.c_type)] < C_RANK[target]:  # two constants of a wide type
            full_left = self.converted(full_left, target)
        return full_left, self.chosen(full_right)

    def shifted(self, left: ir.Expr, right: ir.Expr, wanted: str) -> tuple[CxxText, CxxText]:
        """The operands of a shift, whose type in C is that of its left one alone."""
        plain, by = self.operand(left, wanted), self.operand(right, wanted)
        if arithmetic_type(plain.c_type) == arithmetic_type(wanted):
            return plain, by
        full = plain if isinstance(left, ir.Constant) else self.expr(left)
        if C_RANK[arithmetic_type(full.c_type)] < C_RANK[wanted]:  # rule: widened-shift
            full = self.converted(full, wanted)
        return full, by

    def operand(self, expr: ir.Expr, wanted: str) -> CxxText:
        """`expr` without its implicit conversion, unless C would then compute in a type wider than `wanted`."""
        return self.chosen(self.spellings(expr, wanted)[0])

    def spellings(self, expr: ir.Expr, wanted: str) -> tuple[CxxText, CxxText]:
        """`expr` without and with its conversion; the inner text is emitted once, or nesting would cost 2ⁿ."""
        if wanted in HALVES | COMPLEXES:
            pass
        elif (bare := self.whole_number(expr)) is not None:
            return bare, self.expr(expr)
        elif isinstance(expr, ir.Convert) and not (expr.explicit or crosses_type_variable(expr)):
            inner = self.expr(expr.value)
            full = self.cast(inner, expr.type)
            return inner if converts(inner.c_type, arithmetic_type(wanted)) else full, full
        full = self.expr(expr)
        return full, full

    def cast(self, value: CxxText, type_: ir.Type) -> CxxText:
        """`value` cast to `type_`; a caller that uses the result passes it to `chosen`."""
        c_type = self.c_type(type_)
        if value.c_type == c_type or (
            c_type == "int" and value.c_type == "int64_t" and self.dialect.launch_type == "int64_t"
        ):
            return value
        # Of a template argument, gcc parses `T(int64_t(both))` as the type of a function
        is_plain = value.c_type not in FLOATS | COMPLEXES and value.text not in self.kernel.constexprs
        if isinstance(type_, ir.PythonType) and is_plain:
            return CxxText(functional_cast(value.text, c_type), PRIMARY, c_type, casts_to=c_type)
        named = self.type_name(type_)
        return CxxText(f"static_cast<{named}>({value.text})", PRIMARY, c_type, casts_to=named)

    def record_header(self, needed_for: str) -> None:
        """Records the header that the target needs for a function or a statement, if any."""
        if header := self.dialect.headers.get(needed_for):
            self.headers.add(header)

    def record_number(self, number: ir.Constant) -> None:
        """Records the header of INFINITY and NAN."""
        if not math.isfinite(number.value):
            self.headers.add(MATH)


def crosses_type_variable(convert: ir.Convert) -> bool:
    """True for a conversion to or from a type variable: it is always written, since instances differ in it."""
    source, target = convert.value.type, convert.type
    if source == target and not convert.explicit:
        return False
    return any(isinstance(type_, ir.ElementType) and type_.dtype.variable is not None for type_ in (source, target))
