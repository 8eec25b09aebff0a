"""Types expressions, given the types of names, by the rules of docs/language.md, "Promotion".

    0.5 * x[i]       →        0.5f * x[i]: float32
    i / 2            →        Convert(i, Python float) / 2.0: Python float

Every promotion becomes a `Convert`. Operations whose Python meaning C++ cannot keep are errors; each error shows the
origin of the operands.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import assert_never

from py2cu import ir
from py2cu.analysis.constant_values import constant_value
from py2cu.analysis.promotion import constant_type
from py2cu.builtins.atomics import ATOMICS
from py2cu.diagnostics import Reporter
from py2cu.dtypes import BOOL, DEFAULT_FLOAT, Kind
from py2cu.ir.names import list_elements
from py2cu.ir.operators import OPERATORS, Family
from py2cu.ir.rewrite import with_fields
from py2cu.passes.typing.calls import CallTyper
from py2cu.passes.typing.join import constant_number, known, scalar
from py2cu.passes.typing.path_sensitive_types import from_call, reaching_types


@dataclass(frozen=True, slots=True)
class ExpressionTyper(CallTyper):
    """Types expressions."""

    def expr(self, expr: ir.Expr) -> ir.Expr:
        """`expr` typed; it must be a number."""
        typed = self.type_value(expr)
        if isinstance(typed.type, ir.TupleType):
            text, names = self.quote(expr), ", ".join("abcdefghijklmnop"[: len(typed.type.items)])
            item = f"{text[:-1]}, 0]" if isinstance(expr, ir.Load) else f"{text}[0]"  # a row of a view
            hint = f"take one of its items: `{item}`, or unpack it: `{names} = {text}`"
            self.error("P312", f"{typed.type} is not a number", expr.span, hint)
            return ir.Constant(0, expr.span, ir.PY_INT)
        return typed

    def type_value(self, expr: ir.Expr) -> ir.Expr:
        """`expr` typed, its operands converted to their common type; it may be a tuple."""
        match expr:
            case ir.Constant(value=value):
                return with_fields(expr, type=constant_type(value))
            case ir.Name(id=name):
                return with_fields(expr, type=self.types[name]) if name in self.types else expr
            case ir.LaunchIndex() | ir.Extent() | ir.IsDtype() | ir.IsGiven() | ir.Convert():
                return expr
            case ir.Load(array=array, indices=indices) if self.kernel.is_list(array):
                element = self.types.get(list_elements(array), ir.UNKNOWN)
                return with_fields(expr, indices=self.indices(array, indices), type=element)
            case ir.Load(array=array, indices=indices):
                self.check_hint(expr)
                type_: ir.ValueType = self.kernel.array_type(array).element
                if (row := self.row_type(array, len(indices))) is not None:
                    type_ = row
                return with_fields(expr, indices=self.indices(array, indices), type=type_)
            case ir.Atomic():
                return self.atomic(expr)
            case ir.Unary():
                return self.unary(expr)
            case ir.Binary():
                return self.binary(expr)
            case ir.Compare(left=left, right=right):
                a, b = self.expr(left), self.expr(right)
                if self.is_refused(expr, [a, b]):
                    return ir.Constant(False, expr.span, ir.PY_BOOL)
                self.check_reaching("compare", a, b)
                a, b = self.join(a, b)  # rule: compare-joined
                return with_fields(expr, left=a, right=b)
            case ir.BoolOp(left=left, right=right):
                a, b = self.expr(left), self.expr(right)
                if known(a) and known(b) and ir.kind_of(scalar(a)) is ir.kind_of(scalar(b)) is Kind.BOOL:
                    return with_fields(expr, left=a, right=b, type=self.common([a, b]))
                self.check_reaching("truth", a)
                a, b = self.join(a, b)
                return with_fields(expr, left=a, right=b, type=(a if known(a) else b).type)
            case ir.Select(test=test, then=then, orelse=orelse):
                a, b = self.join(self.expr(then), self.expr(orelse))  # rule: branches-joined
                # The type of a recursive call is unknown until another branch determines it.
                # rule: recursion-type
                return with_fields(expr, test=self.test(test), then=a, orelse=b, type=(a if known(a) else b).type)
            case ir.Call(args=args):
                return self.call(expr, [self.expr(arg) for arg in args])
            case ir.DeviceCall():
                called = self.invoke(expr)
                if called.type is ir.UNKNOWN and called is not expr:
                    self.error("P105", "this function returns nothing", expr.span, "return a value from it")
                return called
            case ir.ArrayName(id=name):
                return with_fields(expr, type=self.kernel.array_type(name))
            case ir.Tuple(items=items):
                typed = tuple(map(self.expr, items))
                rebuilt = ir.TupleType(tuple(map(scalar, typed))) if all(map(known, typed)) else ir.UNKNOWN
                return with_fields(expr, items=typed, type=rebuilt)
            case ir.TupleItem():
                return self.item(expr)
            case _:
                assert_never(expr)

    def check_hint(self, access: ir.Load | ir.Store) -> None:
        """Refuse a cache hint for elements of which CUDA has no such function."""
        dtype = self.kernel.array_type(access.array).dtype
        if access.hint and dtype.kind in (Kind.BOOL, Kind.COMPLEX):
            plain = f"{access.array}[{', '.join(map(self.quote, access.indices))}]"
            hint = f"access them without: `{plain}{' = …' if isinstance(access, ir.Store) else ''}`"
            origins = self.origins(ir.Load(access.array, ()))
            self.error("P307", f"CUDA has no `__{access.hint}` of {dtype}", access.span, hint, origins)

    def row_type(self, array: str, indices: int) -> ir.TupleType | None:
        """The type of a row of `array`; None unless so many indices are those of a row in a view in rows."""
        row, type_ = self.kernel.vector_width(array), self.kernel.array_type(array)
        return ir.TupleType((type_.element,) * row) if row and indices == len(type_.dims) - 1 else None

    def atomic(self, expr: ir.Atomic) -> ir.Expr:
        """An atomic operation, with values of the element's type."""
        dtype = self.kernel.array_type(expr.array).dtype
        element = ir.ElementType(dtype)
        if not ATOMICS[expr.op].takes(dtype):
            what = f"`atomic.{expr.op}` is not supported for elements of {dtype}"
            origins = self.origins(ir.Load(expr.array, ()))
            self.error("P307", what, expr.span, "`py2cu explain P502` lists what is supported", origins)
        values = tuple(self.stored(self.expr(value), element) for value in expr.values)
        return with_fields(expr, indices=self.indices(expr.array, expr.indices), values=values, type=element)

    def item(self, expr: ir.TupleItem) -> ir.Expr:
        """One item of a tuple; unpacking needs as many names as items, and a negative index counts from the end."""
        value = self.type_value(expr.value)
        if known(value) and expr.count:
            self.error("P312", f"{value.type} is one number, not {expr.count}", expr.span, "assign it to one name")
        elif known(value):
            hint = f"use it without an index: `{self.quote(value)}`"
            self.error("P401", f"{value.type} is one number and cannot be indexed", expr.span, hint)
        if not isinstance(value.type, ir.TupleType):
            return expr
        items = value.type.items
        if expr.count not in (0, len(items)):
            message = f"{len(items)} values for {expr.count} names"
            self.error("P312", message, expr.span, f"write {len(items)} names", self.origins(value))
            return expr
        if not -len(items) <= expr.at < len(items):
            message = f"{value.type} has no item {expr.at}"
            self.error("P312", message, expr.span, f"its items are 0 to {len(items) - 1}", self.origins(value))
            return expr
        at = expr.at % len(items)
        return with_fields(expr, value=value, at=at, type=items[at])

    def indices(self, array: str, indices: tuple[ir.Expr, ...]) -> tuple[ir.Expr, ...]:
        """The typed indices of an access; a constant expression that counts from the end becomes a `Constant`."""
        typed = [self.integer(self.expr(index), "an index") for index in indices]
        values = [constant_value(index, Reporter(self.reporter.file)) for index in typed]
        for axis, (at, extent) in enumerate(zip(values, self.kernel.array_type(array).dims, strict=False)):
            # rule: negative-constant
            if at is not None and isinstance(extent, ir.Constant) and not -extent.value <= at < extent.value:
                size = extent.value
                plural = "element" if size == 1 else "elements"
                message = f"index {at} is outside `{array}`, whose dimension {axis} has {size} {plural}"
                self.error("P404", message, typed[axis].span, f"the constants that fit are {-size} to {size - 1}")
        return tuple(
            index if at is None or at >= 0 else ir.Constant(at, index.span, ir.PY_INT)  # rule: negative-computed
            for index, at in zip(typed, values, strict=True)
        )

    def invoke(self, expr: ir.DeviceCall) -> ir.DeviceCall:
        args = tuple(self.expr(arg) for arg in expr.args)
        if not all(known(arg) or isinstance(arg, ir.ArrayName) for arg in args):
            return expr
        for arg in args:
            self.check_reaching("pass", arg)  # rule: two-types-passed
        key, result = self.called(expr.function, [arg.type for arg in args])
        if result is None:
            return ir.DeviceCall(key, args, expr.span)
        reaching = {name: reaching_types(arg, self.reaching) for name, arg in zip(result.parameters, args, strict=True)}
        return ir.DeviceCall(key, args, expr.span, result.type, from_call(result.reaching, reaching))

    def test(self, expr: ir.Expr) -> ir.Expr:
        """`expr` where only its truth counts: operands of `and` and `or` need no common type."""
        match expr:
            case ir.BoolOp(left=left, right=right):
                return with_fields(expr, left=self.test(left), right=self.test(right), type=ir.PY_BOOL)
            case _:
                typed = self.expr(expr)
                self.check_reaching("truth", typed)
                return ir.Convert(typed, ir.PY_BOOL, typed.span, explicit=True) if ir.is_complex(typed.type) else typed

    def unary(self, expr: ir.Unary) -> ir.Expr:
        operand = self.test(expr.operand) if expr.op == "not" else self.expr(expr.operand)
        if not known(operand):
            return expr
        if expr.op == "not":
            return with_fields(expr, operand=operand, type=ir.PY_BOOL)
        operand = self.promote_bool(operand)
        if self.is_refused(expr, [operand]):
            return operand
        if expr.op == "~" and ir.kind_of(scalar(operand)) is Kind.FLOAT:
            message = f"`~` works on whole numbers, not on {operand.type}"
            hint = f"truncate it first: `~int({self.quote(operand)})`"
            self.error("P307", message, expr.span, hint, self.origins(operand))
        if expr.op == "-" and operand.type == ir.ElementType(BOOL):  # rule: bool-negated
            text = self.quote(operand)
            hint = f"`not {text}` is its opposite; cast it to compute with it: `int({text})`"
            self.error("P307", "a bool element has no sign", expr.span, hint, self.origins(operand))
        self.check_reaching(expr.op, operand)
        return with_fields(expr, operand=operand, type=operand.type)

    def binary(self, expr: ir.Binary[ir.Expr]) -> ir.Expr:
        left, right = self.expr(expr.left), self.expr(expr.right)
        if not (known(left) and known(right)):
            return expr
        if self.is_refused(expr, [left, right]):
            return ir.Constant(0, expr.span, ir.PY_INT)
        kinds = {ir.kind_of(scalar(left)), ir.kind_of(scalar(right))}
        if expr.op == "**" and Kind.COMPLEX in kinds:
            return with_fields(expr, left=left, right=right, type=left.type)
        operator = OPERATORS[expr.op]
        logical = operator.family is Family.LOGICAL
        if not (logical and kinds == {Kind.BOOL}):  # rule: bool-logical
            left, right = self.promote_bool(left), self.promote_bool(right)
        if (logical or operator.family is Family.SHIFT) and Kind.FLOAT in kinds:
            real = left if ir.kind_of(scalar(left)) is Kind.FLOAT else right
            message = f"`{expr.op}` works on whole numbers, not on {real.type}"
            hint = f"truncate it first: `int({self.quote(real)})`"
            self.error("P307", message, expr.span, hint, self.origins(left, right))
            return with_fields(expr, left=left, right=right, type=ir.PY_INT)
        if expr.op == "**" and not self.exponent_keeps_type(expr, left, right):
            return with_fields(expr, left=left, right=right, type=ir.PY_INT)
        if expr.op == "**" and _is_complex_in_python(left, right):  # rule: power-complex
            message = "a negative number to a fractional power is complex in Python"
            power = f"cmath.exp(({self.quote(right)}) * cmath.log({self.quote(left)}))"
            hint = f"compute in complex numbers: `{power}`; or make the base positive: `abs({self.quote(left)})`"
            self.error("P307", message, expr.span, hint)
        self.check_reaching(expr.op, left, right)
        left, right = self.join(left, right)
        type_ = scalar(left)
        if type_ == ir.ElementType(BOOL) and not logical:
            message = f"`{expr.op}` of two bool elements is not supported"
            self.error("P307", message, expr.span, f"cast one: `int({self.quote(left)})`", self.origins(left, right))
        integers = ir.kind_of(type_) < Kind.FLOAT
        if (
            operator.family is Family.QUOTIENT
            and (integers or type_ == ir.PY_FLOAT)
            and constant_number(ir.unconverted(right)) == 0
        ):
            self.error("P308", "division by zero", expr.span, "divide by something else")  # rule: zero-division
        if expr.op == "/" and integers:  # rule: true-division
            # rule: true-division-type
            type_ = ir.ElementType(DEFAULT_FLOAT) if isinstance(type_, ir.ElementType) else ir.PY_FLOAT
            left, right = self.convert_exactly(left, type_), self.convert_exactly(right, type_)  # rule: float-division
        self.check_shift(expr, left, right, type_)
        return with_fields(expr, left=left, right=right, type=type_)

    def check_shift(self, expr: ir.Binary[ir.Expr], left: ir.Expr, right: ir.Expr, type_: ir.ScalarType) -> None:
        """Refuse a shift by a constant that C++ leaves undefined."""
        bits = type_.dtype.bits if isinstance(type_, ir.ElementType) else 64
        number = constant_number(ir.unconverted(right)) if OPERATORS[expr.op].family is Family.SHIFT else None
        if number is not None and not 0 <= number < bits:
            self.error(
                "P307",
                f"{type_} cannot be shifted by {number} bits",
                expr.span,
                f"shift by 0 to {bits - 1}",
                self.origins(left),
            )

    def exponent_keeps_type(self, expr: ir.Binary[ir.Expr], left: ir.Expr, right: ir.Expr) -> bool:
        """Refuse a constant negative exponent of an integer, a float in Python; `check_powers` checks others."""
        if Kind.FLOAT in (ir.kind_of(scalar(left)), ir.kind_of(scalar(right))):
            return True
        if not isinstance(right, ir.Constant) or right.value >= 0:  # rule: power-negative
            return True
        self.error(
            "P307", "a whole number to a negative power is a float in Python", expr.span,
            f"make the base a float: `float({self.quote(left)})`", self.origins(left),
        )  # fmt: skip
        return False

    def convert_value(self, value: ir.Expr, type_: ir.ValueType) -> ir.Expr:
        """`value`, a number or a tuple, as `type_`."""
        match type_:
            case ir.ElementType() | ir.PythonType():
                return self.convert_exactly(value, type_)  # rule: float-converted
            case ir.TupleType(items=types) if isinstance(value, ir.Tuple) and len(value.items) == len(types):
                return with_fields(value, items=tuple(map(self.convert_exactly, value.items, types)), type=type_)
            case ir.TupleType():
                return value if value.type in (type_, ir.UNKNOWN) else ir.Convert(value, type_, value.span)


def _is_complex_in_python(base: ir.Expr, exponent: ir.Expr) -> bool:
    """True for a power of constants that is complex in Python: `(-8) ** (1 / 3)`."""
    if not (isinstance(base.type, ir.PythonType) and isinstance(exponent.type, ir.PythonType)):
        return False
    number, power = constant_number(base), _quotient(exponent)
    return number is not None and power is not None and -math.inf < number < 0 and not power.is_integer()


def _quotient(expr: ir.Expr) -> float | None:
    """The finite value of a constant or of a quotient of constants; None for anything else."""
    match expr:
        case ir.Constant(value=value) if math.isfinite(value):
            return float(value)
        case ir.Binary(op="/", left=left, right=right):
            a, b = constant_number(ir.unconverted(left)), constant_number(ir.unconverted(right))
            return a / b if a is not None and b else None
        case _:
            return None
