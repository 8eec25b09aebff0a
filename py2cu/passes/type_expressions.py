"""Types one expression after another, given the types of names: section 5 of the contract.

    0.5 * x[i]       →        0.5f * x[i]: float32
    i / 2            →        Convert(i, Python float) / 2.0: Python float

Every promotion becomes a `Convert`; what has no meaning that C++ could keep is reported, with each operand's origin.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

from py2cu.builtins import ROWS, Rule
from py2cu.diagnostics import Related, Reporter
from py2cu.dtypes import BOOL, DEFAULT_FLOAT, F32, DType, Kind
from py2cu.ir.complex_numbers import CONJUGATE, REAL, is_literal, is_made, literal, of_real
from py2cu.ir.extents import Binary, Constant, Name
from py2cu.ir.nodes import (
    ArrayName,
    BoolOp,
    Call,
    Compare,
    Convert,
    Expr,
    Extent,
    Invoke,
    Item,
    LaunchIndex,
    Load,
    Select,
    Tuple,
    Unary,
)
from py2cu.ir.statements import Kernel
from py2cu.ir.types import (
    PY_BOOL,
    PY_COMPLEX,
    PY_FLOAT,
    PY_INT,
    UNKNOWN,
    ElementType,
    PythonType,
    ScalarType,
    TupleType,
    Type,
    ValueType,
    is_complex,
    kind_of,
    part_of,
)
from py2cu.passes.promotion import constant_as, constant_type, join, represents, rounded
from py2cu.passes.refuse_complex import PARTS, refusal
from py2cu.source import Span

ARITHMETIC = frozenset(["+", "-", "*", "/", "//", "%", "**"])
SHIFTS = frozenset(("<<", ">>"))
_EXACT = {"+": operator.add, "-": operator.sub, "*": operator.mul}

Called = Callable[[str, Sequence[Type]], tuple[str, ValueType | None]]
"""The key of a device function's instance for arguments of these types, and the type of its result."""


@dataclass(frozen=True, slots=True)
class ExpressionTyper:
    """Types the expressions of one kernel; `called` answers for its device functions."""

    kernel: Kernel
    types: Mapping[str, ValueType]
    called: Called
    reporter: Reporter
    places: dict[str, Span] = field(default_factory=dict)  # where the names that messages explain are bound

    def expr(self, expr: Expr) -> Expr:
        """`expr` typed, where a number is wanted."""
        typed = self.whole(expr)
        if isinstance(typed.type, TupleType):
            self.error("P312", f"{typed.type} is no number", expr.span, "take one of its items: `t[0]`, or unpack it")
            return Constant(0, expr.span, PY_INT)
        return typed

    def whole(self, expr: Expr) -> Expr:
        """`expr` typed, operands converted to the type in which they meet; it may be a tuple."""
        match expr:
            case Constant(value=value):
                return replace(expr, type=constant_type(value))
            case Name(id=name):
                return replace(expr, type=self.types[name]) if name in self.types else expr
            case LaunchIndex() | Extent():
                return expr
            case Load(array=array, indices=indices):
                element = self.kernel.array_type(array).element
                return replace(expr, indices=self.indices(array, indices), type=element)
            case Unary():
                return self.unary(expr)
            case Binary():
                return self.binary(expr)
            case Compare(left=left, right=right):
                a, b = self.expr(left), self.expr(right)
                if self.is_refused(expr, [a, b]):
                    return Constant(False, expr.span, PY_BOOL)
                a, b = self.meet(a, b)
                return replace(expr, left=a, right=b)
            case BoolOp(left=left, right=right):
                a, b = self.expr(left), self.expr(right)
                if known(a) and known(b) and kind_of(scalar(a)) is kind_of(scalar(b)) is Kind.BOOL:
                    return replace(expr, left=a, right=b, type=self.common([a, b]))
                a, b = self.meet(a, b)
                return replace(expr, left=a, right=b, type=a.type)
            case Select(test=test, then=then, orelse=orelse):
                a, b = self.meet(self.expr(then), self.expr(orelse))
                return replace(expr, test=self.test(test), then=a, orelse=b, type=a.type)
            case Call():
                return self.call(expr)
            case Invoke():
                called = self.invoke(expr)
                if called.type is UNKNOWN and called is not expr:
                    self.error("P105", "this function returns nothing", expr.span, "return a value from it")
                return called
            case ArrayName(id=name):
                return replace(expr, type=self.kernel.array_type(name))
            case Convert():
                return expr
            case Tuple(items=items):
                typed = tuple(map(self.expr, items))
                type_ = TupleType(tuple(map(scalar, typed))) if all(map(known, typed)) else UNKNOWN
                return replace(expr, items=typed, type=type_)
            case Item():
                return self.item(expr)
            case _:
                assert_never(expr)

    def item(self, expr: Item) -> Expr:
        """One item of a tuple, which has as many as it is unpacked into; a negative index counts from the end."""
        value = self.whole(expr.value)
        if known(value) and expr.count:
            self.error("P312", f"{value.type} is one number, not {expr.count}", expr.span, "assign it to one name")
        elif known(value):
            hint = 'make it a parameter: `Float32[Tensor, "n"]`'
            self.error("P401", "only array parameters are indexed", expr.span, hint)
        if not isinstance(value.type, TupleType):
            return expr
        items = value.type.items
        if expr.count not in (0, len(items)):
            message = f"{len(items)} values for {expr.count} names"
            self.error("P312", message, expr.span, "as many names as values", self.origins(value))
            return expr
        if not -len(items) <= expr.at < len(items):
            message = f"{value.type} has no item {expr.at}"
            self.error("P312", message, expr.span, f"it has 0 to {len(items) - 1}", self.origins(value))
            return expr
        at = expr.at % len(items)
        return replace(expr, value=value, at=at, type=items[at])

    def is_refused(self, expr: Binary | Compare | Unary | Call, operands: Sequence[Expr]) -> bool:
        """True, and reported, where `expr` has no meaning for complex numbers and an operand is one."""
        found = refusal(expr, operands)
        if found is not None:
            message, hint = found
            self.error("P307", message, expr.span, hint, self.origins(*operands))
        return found is not None

    def stored(self, value: Expr, element: ElementType) -> Expr:
        if is_complex(value.type) and not is_complex(element):
            message = f"{value.type} does not become {element}: Python raises, torch drops the imaginary part"
            self.error("P307", message, value.span, PARTS, self.origins(value))
            return value
        if isinstance(value, Constant) and element.dtype.kind < Kind.FLOAT:
            low, high = element.dtype.low, element.dtype.high
            if not low <= value.value <= high:
                self.error(
                    "P305", f"{value.value} does not fit {element}", value.span, f"{element} holds {low} to {high}"
                )
                return value
        return self.convert(value, element)

    def indices(self, array: str, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        typed = tuple(self.integer(self.expr(index), "an index") for index in indices)
        for axis, (index, extent) in enumerate(zip(typed, self.kernel.array_type(array).dims, strict=True)):
            match index, extent:
                case Constant(value=at), Constant(value=size) if not -size <= at < size:
                    plural = "element" if size == 1 else "elements"
                    message = f"index {at} is outside `{array}`, whose dimension {axis} has {size} {plural}"
                    self.error("P404", message, index.span, f"the constants that fit are {-size} to {size - 1}")
        return typed

    def integer(self, value: Expr, what: str) -> Expr:
        """`value` as a Python integer; bounds and indices that are elements become one."""
        if isinstance(value.type, ElementType | PythonType) and kind_of(value.type) >= Kind.FLOAT:
            self.error(
                "P307",
                f"{what} is a whole number, not {value.type}",
                value.span,
                PARTS if is_complex(value.type) else "`int(…)` truncates",
                self.origins(value),
            )
            return Constant(0, value.span, PY_INT)
        return self.convert(value, PY_INT)

    def invoke(self, expr: Invoke) -> Invoke:
        args = tuple(self.expr(arg) for arg in expr.args)
        if not all(known(arg) or isinstance(arg, ArrayName) for arg in args):
            return expr
        key, result = self.called(expr.function, [arg.type for arg in args])
        return Invoke(key, args, expr.span, UNKNOWN if result is None else result)

    def test(self, expr: Expr) -> Expr:
        """`expr` where only its truth counts: operands of `and` and `or` need not meet."""
        match expr:
            case BoolOp(left=left, right=right):
                return replace(expr, left=self.test(left), right=self.test(right), type=PY_BOOL)
            case _:
                typed = self.expr(expr)
                return Convert(typed, PY_BOOL, typed.span, explicit=True) if is_complex(typed.type) else typed

    def unary(self, expr: Unary) -> Expr:
        operand = self.test(expr.operand) if expr.op == "not" else self.expr(expr.operand)
        if not known(operand):
            return expr
        if expr.op == "not":
            return replace(expr, operand=operand, type=PY_BOOL)
        operand = self.counted(operand)
        if self.is_refused(expr, [operand]):
            return operand
        if expr.op == "~" and kind_of(scalar(operand)) is Kind.FLOAT:
            message = f"`~` works on whole numbers, not on {operand.type}"
            self.error("P307", message, expr.span, "truncate it first: `int(…)`", self.origins(operand))
        return replace(expr, operand=operand, type=operand.type)

    def counted(self, operand: Expr) -> Expr:
        """Arithmetic counts a Python bool, such as a comparison's result, as a Python integer."""
        return self.convert(operand, PY_INT) if operand.type == PY_BOOL else operand

    def binary(self, expr: Binary) -> Expr:
        left, right = self.expr(expr.left), self.expr(expr.right)
        if not (known(left) and known(right)):
            return expr
        if self.is_refused(expr, [left, right]):
            return Constant(0, expr.span, PY_INT)
        kinds = {kind_of(scalar(left)), kind_of(scalar(right))}
        if expr.op == "**" and Kind.COMPLEX in kinds:
            return replace(expr, left=left, right=right, type=left.type)
        logical = expr.op in ["&", "|", "^"]
        if not (logical and kinds == {Kind.BOOL}):
            left, right = self.counted(left), self.counted(right)
        if expr.op not in ARITHMETIC and Kind.FLOAT in kinds:
            message = f"`{expr.op}` works on whole numbers, not on {_float_of(left, right)}"
            self.error("P307", message, expr.span, "truncate it first: `int(…)`", self.origins(left, right))
            return replace(expr, left=left, right=right, type=PY_INT)
        if expr.op == "**" and not self.exponent_is_kept(expr, left, right):
            return replace(expr, left=left, right=right, type=PY_INT)
        left, right = self.meet(left, right)
        type_ = scalar(left)
        if type_ == ElementType(BOOL) and not logical:
            message = f"`{expr.op}` of two bool elements is not kept"
            self.error("P307", message, expr.span, "cast one: `int(…)`", self.origins(left, right))
        whole = kind_of(type_) < Kind.FLOAT
        if expr.op in ("//", "%", "/") and (whole or type_ == PY_FLOAT) and is_zero(right):
            self.error("P308", "division by zero", expr.span, "divide by something else")
        if expr.op == "/" and whole:
            type_ = ElementType(DEFAULT_FLOAT) if isinstance(type_, ElementType) else PY_FLOAT
            left, right = self.convert(left, type_), self.convert(right, type_)
        self.check_constants(expr, left, right, type_)
        return replace(expr, left=left, right=right, type=type_)

    def check_constants(self, expr: Binary, left: Expr, right: Expr, type_: ScalarType) -> None:
        """Refuse what the constants alone show to be undefined in C++: a shift too far, a result beyond 64 bits."""
        bits = type_.dtype.bits if isinstance(type_, ElementType) else 64
        if expr.op in SHIFTS and isinstance(right, Constant) and not 0 <= right.value < bits:
            self.error(
                "P307",
                f"{type_} is not shifted by {right.value} bits",
                expr.span,
                f"by 0 to {bits - 1}",
                self.origins(left),
            )
        if type_ == PY_INT and isinstance(left, Constant) and isinstance(right, Constant) and expr.op in _EXACT:
            value = _EXACT[expr.op](int(left.value), int(right.value))
            if not -(2**63) <= value < 2**63:
                self.error(
                    "P305",
                    "this does not fit 64 bits",
                    expr.span,
                    "Python integers are exact to 64 bits: use a float, or less",
                )

    def exponent_is_kept(self, expr: Binary, left: Expr, right: Expr) -> bool:
        """Python's `int ** int` is a float for a negative exponent, so the exponent's sign must be known."""
        if Kind.FLOAT in (kind_of(scalar(left)), kind_of(scalar(right))):
            return True
        if isinstance(right, Constant) and right.value >= 0:
            return True
        self.error(
            "P307", "a whole number to a power that may be negative is a float in Python", expr.span,
            "use a constant exponent that is not negative, or make the base a float", self.origins(left, right),
        )  # fmt: skip
        return False

    def call(self, expr: Call) -> Expr:
        row = ROWS[expr.function]
        args = [self.expr(arg) for arg in expr.args]
        if not all(map(known, args)) or not args:
            return expr
        if row.rule is not Rule.CAST and self.is_refused(expr, args):
            return Constant(0, expr.span, PY_INT)
        match row.rule:
            case Rule.ANALYTIC:
                library = "cmath" if is_complex(args[0].type) else "math"
                return self.call(replace(expr, function=f"{library}.{row.key.rpartition('.')[2]}"))
            case Rule.COMPLEX:
                value = self.meet(args[0], replace(literal(0, expr.span), type=PY_COMPLEX))[0]
                return replace(expr, args=(value,), type=value.type)
            case Rule.PART:
                return self.part(expr, args[0])
            case Rule.FLOAT:
                type_ = self.float_type(args)
                if expr.function == "math.nextafter" and isinstance(type_, ElementType) and type_.dtype.is_half:
                    hint = "widen it first: `np.float32(…)`"
                    self.error("P307", f"`nextafter` steps in float32 or float64, not in {type_}", expr.span, hint)
                return replace(expr, args=tuple(self.convert(arg, type_) for arg in args), type=type_)
            case Rule.INTEGRAL if len(args) == 2:
                return self.rounded(expr, args[0], args[1])
            case Rule.INTEGRAL | Rule.ROUNDED:
                if row.rule is Rule.ROUNDED and kind_of(scalar(args[0])) is not Kind.FLOAT:
                    return args[0]
                if row.rule is Rule.ROUNDED:
                    return replace(expr, args=tuple(args), type=args[0].type)
                if kind_of(scalar(args[0])) is not Kind.FLOAT:
                    return self.convert(args[0], PY_INT)
                return replace(expr, args=tuple(args), type=PY_INT)
            case Rule.WHOLE:
                whole = tuple(self.integer(arg, f"an argument of `{expr.function}`") for arg in args)
                return replace(expr, args=whole, type=PY_INT)
            case Rule.PREDICATE:
                return replace(expr, args=(self.convert(args[0], self.float_type(args)),), type=PY_BOOL)
            case Rule.SAME if is_complex(args[0].type):
                type_ = scalar(args[0])
                return replace(expr, args=(args[0],), type=type_ if expr.function == CONJUGATE else part_of(type_))
            case Rule.SAME if expr.function == CONJUGATE:
                return self.counted(args[0])
            case Rule.SAME:
                met = self.meet_all([self.counted(arg) for arg in args])
                return replace(expr, args=tuple(met), type=met[0].type)
            case Rule.CAST if row.result == "complex":
                return self.complex(expr, args)
            case Rule.CAST:
                return self.cast(args[0], row.result, expr.span)
            case _:
                assert_never(row.rule)

    def part(self, expr: Call, value: Expr) -> Expr:
        """`.real` or `.imag`; a real number is its own real part."""
        if is_made(value):
            return value.args[0 if expr.function == REAL else 1]
        if is_complex(value.type):
            return replace(expr, args=(value,), type=part_of(scalar(value)))
        value = self.counted(value)
        return value if expr.function == REAL else self.convert(Constant(0, expr.span, PY_INT), scalar(value))

    def complex(self, expr: Call, args: Sequence[Expr]) -> Expr:
        """Python's `complex`, which makes a Python number."""
        if len(args) == 1:
            return self.convert(args[0], PY_COMPLEX)
        for arg in args:
            if is_complex(arg.type):
                self.error("P307", "a part is a real number", arg.span, "add them: `a + 1j * b`", self.origins(arg))
                return expr
        return replace(expr, args=tuple(self.convert(arg, PY_FLOAT) for arg in args), type=PY_COMPLEX)

    def rounded(self, expr: Call, value: Expr, digits: Expr) -> Expr:
        """`round(x, 2)`: the digits as the power of ten that `round_decimals` takes."""
        if kind_of(scalar(value)) is not Kind.FLOAT:
            self.error("P307", "`round` of a whole number takes no digits", expr.span, "leave them out")
            return value
        most = 10 if value.type == ElementType(F32) else 22  # what the float holds as a power of ten
        if not isinstance(digits, Constant) or not isinstance(digits.value, int) or not 0 <= digits.value <= most:
            self.error(
                "P307",
                f"`round` takes a constant number of digits, 0 to {most}",
                digits.span,
                "write the number of digits out",
            )
            return value
        power = Constant(10.0**digits.value, digits.span, value.type)
        return replace(expr, args=(value, power), type=value.type)

    def float_type(self, args: Sequence[Expr]) -> ScalarType:
        type_ = self.common(args)
        if kind_of(type_) is Kind.FLOAT:
            return type_
        return ElementType(DEFAULT_FLOAT) if isinstance(type_, ElementType) else PY_FLOAT

    def cast(self, value: Expr, result: DType | str | None, span: Span) -> Expr:
        if isinstance(result, DType):
            target: ScalarType = ElementType(result)
        else:
            target = {"int": PY_INT, "float": PY_FLOAT, "bool": PY_BOOL}[str(result)]
        if is_complex(target):
            made = self.convert(value, target)
            return replace(made, args=tuple(map(_rounded_part, made.args))) if is_literal(made) else made
        if is_complex(value.type) and target != PY_BOOL and target != ElementType(BOOL):
            self.error("P307", f"{value.type} does not become {target}", span, PARTS, self.origins(value))
            return Constant(0, span, PY_INT)
        if isinstance(value, Constant):
            made = self.stored(value, target) if isinstance(target, ElementType) else self.convert(value, target)
            assert isinstance(made, Constant)
            return replace(made, value=rounded(target, made.value), span=span)
        return Convert(value, target, span, explicit=True)

    # --- where types meet ---

    def meet(self, left: Expr, right: Expr) -> tuple[Expr, Expr]:
        if not (known(left) and known(right)):
            return left, right
        left, right = self.meet_all([left, right])
        return left, right

    def meet_all(self, values: list[Expr]) -> list[Expr]:
        """All values in their common type; a Python constant that an integer element type cannot hold is refused."""
        type_ = self.common(values)
        for value in values:
            if isinstance(value, Constant) and isinstance(type_, ElementType) and type_.dtype.kind < Kind.FLOAT:
                self.check_fits(value, type_.dtype, self.origins(*values))
        return [self.convert(value, type_) for value in values]

    def common(self, values: Sequence[Expr]) -> ScalarType:
        """The type in which all of `values` meet."""
        type_ = scalar(values[0])
        for value in values[1:]:
            met = join(type_, scalar(value))
            if met is None:
                message = f"{type_} and {value.type} do not meet: torch has no type for both"
                casts = [f"`np.{t}(…)`" for t in (value.type, type_) if isinstance(t, ElementType)]
                widen = "widen it first: `np.float32(…)`"
                self.error(
                    "P309", message, value.span, f"cast one of them: {' or '.join(casts)}" if casts[1:] else widen
                )
                return type_
            type_ = met
        return type_

    def check_fits(self, constant: Constant, dtype: DType, origins: Sequence[Related]) -> None:
        if not represents(dtype, constant.value):
            self.error(
                "P305", f"{constant.value} does not fit {dtype}, the type it meets here", constant.span,
                f"{dtype} holds {dtype.low} to {dtype.high}; cast the element first: `int(…)`", origins,
            )  # fmt: skip

    def whole_as(self, value: Expr, type_: ValueType) -> Expr:
        """`value`, a number or a tuple, as `type_`."""
        match type_:
            case ElementType() | PythonType():
                return self.convert(value, type_)
            case TupleType(items=types) if isinstance(value, Tuple) and len(value.items) == len(types):
                return replace(value, items=tuple(map(self.convert, value.items, types)), type=type_)
            case TupleType():
                return value if value.type in (type_, UNKNOWN) else Convert(value, type_, value.span)

    def convert(self, value: Expr, type_: ScalarType) -> Expr:
        """`value` as `type_`; constants change in place."""
        if value.type == type_ or not known(value):
            return value
        self.check_branches(value, type_)
        if is_complex(type_) and is_made(value):
            return replace(value, args=tuple(self.convert(part, part_of(type_)) for part in value.args), type=type_)
        if is_complex(type_) and not is_complex(value.type):
            return of_real(self.convert(value, part_of(type_)), type_)
        if isinstance(value, Constant):
            number = constant_as(value.value, type_)
            is_cast = isinstance(value.type, ElementType) and value.type.dtype.kind is Kind.FLOAT
            is_said = number == value.value and not is_cast  # else the digits in the source say another number
            return Constant(number, value.span, type_, value.text if is_said else "")
        return Convert(value, type_, value.span)

    def check_branches(self, value: Expr, type_: ScalarType) -> None:
        """Refuse a conditional value that is an element or a Python float, rounded to one, where `type_` is wider."""
        match value:
            case (
                Select(then=a, orelse=b, type=ElementType(dtype=narrow))
                | BoolOp(left=a, right=b, type=ElementType(dtype=narrow))
            ) if isinstance(type_, ElementType) and type_.dtype.precision > narrow.precision > 0:
                rounds = next((branch for branch in (a, b) if is_rounded(branch, narrow)), None)
                if rounds is not None:
                    message = f"this is rounded to {narrow} and then used as {type_}, where Python would not round it"
                    self.error("P306", message, rounds.span, f"say which is meant: `np.{narrow}(…)` or `np.{type_}(…)`")

    def origins(self, *values: Expr) -> list[Related]:
        """Where each operand's type came from: a parameter's annotation, or a local's first assignment."""
        found = []
        for value in values:
            match value.value if isinstance(value, Convert) and not value.explicit else value:
                case Name(id=name) if name in self.places:
                    found.append(Related(f"`{name}` is {self.types[name]}", self.places[name]))
                case Load(array=name):
                    found.append(Related(f"`{name}` holds {self.kernel.array_type(name).dtype}", self.places[name]))
                case Constant():
                    pass
                case other:
                    found.append(Related(f"this is {other.type}", other.span))
        return found

    def error(self, code: str, message: str, span: Span, hint: str, related: Sequence[Related] = ()) -> None:
        self.reporter.error(code, message, span, hint, related)


def is_rounded(expr: Expr, dtype: DType) -> bool:
    """True for a Python float that `dtype` rounds, with nobody having asked for it."""
    match expr:
        case Constant(value=value):
            return not represents(dtype, value)
        case Convert(value=source, explicit=explicit):
            return source.type == PY_FLOAT and not explicit
        case _:
            return False


def is_zero(expr: Expr) -> bool:
    return isinstance(expr, Constant) and expr.value == 0


def known(expr: Expr) -> bool:
    return isinstance(expr.type, ElementType | PythonType)


def scalar(expr: Expr) -> ScalarType:
    assert isinstance(expr.type, ElementType | PythonType), expr
    return expr.type


def _rounded_part(part: Expr) -> Expr:
    """A constant as a cast to its type leaves it."""
    assert isinstance(part, Constant)
    return replace(part, value=rounded(scalar(part), part.value))


def _float_of(left: Expr, right: Expr) -> ScalarType:
    return scalar(left) if kind_of(scalar(left)) is Kind.FLOAT else scalar(right)
