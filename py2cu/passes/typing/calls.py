"""Types calls of builtins by the rules of their rows: `exp(x[i])`, `np.uint8(v)`, `round(v, 2)`.

math.exp(u[i])    # uint8        →        exp(Convert(u[i], float32)): float32
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, assert_never

from py2cu import ir
from py2cu.analysis.promotion import represents, rounded
from py2cu.builtins import ROWS, Builtin, Rule
from py2cu.builtins.launch import FULL_MASK, WARP_SIZE
from py2cu.dtypes import BOOL, DEFAULT_FLOAT, DTYPES, F32, I32, U32, DType, Kind
from py2cu.ir.complex_numbers import CONJUGATE, REAL, is_complex_constructor, is_literal, literal, of_real
from py2cu.ir.rewrite import with_fields
from py2cu.ir.visit import walk
from py2cu.passes.typing.complex_rules import PARTS
from py2cu.passes.typing.join import TypeJoiner, known, scalar
from py2cu.passes.typing.path_sensitive_types import holds
from py2cu.source import Span


@dataclass(frozen=True, slots=True)
class CallTyper(TypeJoiner):
    """Types calls whose arguments are typed."""

    def call(self, expr: ir.Call, args: Sequence[ir.Expr]) -> ir.Expr:
        """`expr` typed by the rule of its row; `args` are typed, each in its original type."""
        row = ROWS[expr.function]
        if row.rule in (Rule.METHOD, Rule.LIKE, Rule.RECEIVER, Rule.VIEW):
            return self.of_element(expr, row, args) if known(args[0]) else expr
        if not all(map(known, args)) or not (args or row.rule is Rule.VOTE):
            return expr
        if row.rule is not Rule.CAST and self.is_refused(expr, args):
            return ir.Constant(0, expr.span, ir.PY_INT)
        match row.rule:
            case Rule.ANALYTIC:
                library = "cmath" if ir.is_complex(args[0].type) else "math"
                return self.call(with_fields(expr, function=f"{library}.{row.key.rpartition('.')[2]}"), args)
            case Rule.COMPLEX:
                value = self.join(args[0], replace(literal(0, expr.span), type=ir.PY_COMPLEX))[0]
                return with_fields(expr, args=(value,), type=value.type)
            case Rule.PART:
                return self.part(expr, args[0])
            case Rule.FLOAT | Rule.SCALED | Rule.PREDICATE:
                return self.of_floats(expr, row, args)
            case Rule.INTEGRAL | Rule.ROUNDED:
                return self.to_integer(expr, row, args)
            case Rule.WHOLE:
                integers = tuple(self.integer(arg, f"an argument of `{expr.function}`") for arg in args)
                return with_fields(expr, args=integers, type=ir.PY_INT)
            case Rule.INDEX:
                return self.integer(args[0], "a bound of `range`")
            case Rule.BITS | Rule.WORD:
                return self.of_bits(expr, row, args[0])
            case Rule.SAME | Rule.CHOICE | Rule.MAGNITUDE:
                return self.same(expr, row, args)
            case Rule.SHUFFLE | Rule.MATCH | Rule.REDUCE | Rule.VOTE:
                return self.of_lanes(expr, row, args)
            case Rule.SYNC | Rule.CACHE:  # the front end makes a statement or an access of it
                return expr
            case Rule.ARGUMENT:
                return self.in_float32(args)
            case Rule.RESULT:
                return self.rounded_once(args)
            case Rule.OPMATH:
                return self.opmath(expr, args[0])
            case Rule.ELEMENTS:
                type_ = ir.ElementType(row.result) if isinstance(row.result, DType) else args[-1].type
                return with_fields(expr, args=tuple(args), type=type_)
            case Rule.CAST if row.result == "complex":
                return self.complex(expr, args)
            case Rule.CAST:
                return self.cast(args[0], row.result, expr.span)
            case Rule.METHOD | Rule.LIKE | Rule.RECEIVER | Rule.VIEW:
                return self.of_element(expr, row, args)
            case Rule.COUNT:
                return self.bit_count(expr, args[0])
            case _:
                assert_never(row.rule)

    def of_element(self, expr: ir.Call, row: Builtin, args: Sequence[ir.Expr]) -> ir.Expr:
        """A method of an element, or `x.dtype(…)`; Python numbers have no such methods."""
        value, *arrays = args
        self.check_reaching("call", value)
        if row.rule is not Rule.LIKE and not isinstance(value.type, ir.ElementType):  # rule: method-of-element
            what, text = f"a {value.type} has no methods of elements", self.quote(value)
            casts = f"cast it by a function: `np.float32({text})`"
            hint = casts if row.rule in (Rule.METHOD, Rule.VIEW) else f"pass `{text}` to torch's function of that name"
            self.error("P307", what, expr.span, hint, self.origins(value))
            return ir.Constant(0, expr.span, ir.PY_INT)
        if row.rule is Rule.RECEIVER:
            return value
        if row.rule is Rule.VIEW:
            return self.view(expr, row, value)
        if arrays and isinstance(arrays[0].type, ir.ArrayType):
            return self.cast(value, arrays[0].type.dtype, expr.span)
        if row.result is not None:
            return self.cast(value, row.result, expr.span)
        number = {Kind.BOOL: "bool", Kind.INT: "int", Kind.FLOAT: "float", Kind.COMPLEX: "complex"}
        kind = number[ir.kind_of(scalar(value))]
        return self.convert(value, ir.PY_COMPLEX) if kind == "complex" else self.cast(value, kind, expr.span)

    def of_floats(self, expr: ir.Call, row: Builtin, args: Sequence[ir.Expr]) -> ir.Expr:
        """A function of floats in their common type; the exponent of `ldexp` stays an integer."""
        floats, rest = (args[:1], args[1:]) if row.rule is Rule.SCALED else (args, ())
        type_ = self.float_type(floats)
        if expr.function == "math.nextafter" and _is_half(type_):
            hint = f"widen it first: `opmath({self.quote(args[0])})`"
            self.error("P307", f"`nextafter` steps in float32 or float64, not in {type_}", expr.span, hint)
        powers = (self.integer(power, f"the power of `{expr.function}`") for power in rest)
        converted_args = (*(self.convert(arg, type_) for arg in floats), *powers)
        return with_fields(expr, args=converted_args, type=ir.PY_BOOL if row.rule is Rule.PREDICATE else type_)

    def opmath(self, expr: ir.Call, value: ir.Expr) -> ir.Expr:
        """A half, or an element that may be one, in float32 or float64; any other number as it is."""
        if not isinstance(value.type, ir.ElementType) or not value.type.dtype.admits_halves:
            return value
        self.check_reaching("value", value)
        return with_fields(expr, args=(value,), type=ir.ElementType(value.type.dtype.opmath))

    def in_float32(self, args: Sequence[ir.Expr]) -> ir.Expr:
        """The first argument in the float type that a formula computes in: that of the others, float32 for halves."""
        value, *others = args
        if not isinstance(value.type, ir.ElementType) or any(ir.is_complex(arg.type) for arg in others):
            return value
        type_ = self.float_type(others)
        element = self.cast_element(value, type_)  # rule: float32-step
        return self.cast_element(element, ir.ElementType(F32)) if _is_half(type_) else element  # rule: float32-half

    def rounded_once(self, args: Sequence[ir.Expr]) -> ir.Expr:
        """The first argument, a formula's result, rounded to the float type of the formula's inputs, the others."""
        result, *others = args
        if any(ir.is_complex(a.type) for a in args) or not any(isinstance(a.type, ir.ElementType) for a in others):
            return result
        return self.cast_element(result, self.float_type(others))

    def cast_element(self, value: ir.Expr, type_: ir.ScalarType) -> ir.Expr:
        """`value` as if the user had cast it to the element `type_`."""
        assert isinstance(type_, ir.ElementType)
        return value if value.type == type_ else self.cast(value, type_.dtype, value.span)

    def to_integer(self, expr: ir.Call, row: Builtin, args: Sequence[ir.Expr]) -> ir.Expr:
        """A rounding function: those of `math` return a Python integer, those of NumPy and torch keep the type."""
        self.check_reaching("value", args[0])  # rule: join-of-integer
        is_float = ir.kind_of(scalar(args[0])) is Kind.FLOAT
        if row.helper:
            return with_fields(expr, args=(self.convert(args[0], self.float_type(args)),), type=ir.PY_INT)
        if len(args) == 2:  # rule: round-to-digits
            return self.rounded(expr, args[0], args[1])
        if row.rule is Rule.ROUNDED:
            return with_fields(expr, args=tuple(args), type=args[0].type) if is_float else args[0]
        # rule: floor-to-integer
        return with_fields(expr, args=tuple(args), type=ir.PY_INT) if is_float else self.convert(args[0], ir.PY_INT)

    def of_bits(self, expr: ir.Call, row: Builtin, value: ir.Expr) -> ir.Expr:
        """A function of the bits of an integer."""
        type_ = scalar(value)
        is_word = isinstance(type_, ir.ElementType) and type_.dtype.kind is Kind.INT and type_.dtype.bits >= 32
        if not is_word and not (row.rule is Rule.BITS and type_ == ir.PY_INT):
            what = f"`{row.key.removeprefix('py2cu.')}` takes integers of 32 or 64 bits, not {type_}"
            self.error("P307", what, value.span, f"say how many: `np.uint32({self.quote(value)})`", self.origins(value))
            return ir.Constant(0, expr.span, ir.PY_INT)
        self.check_reaching("call", value)
        if row.result == "unsigned" and isinstance(type_, ir.ElementType):  # rule: bits-unsigned
            type_ = ir.ElementType(type_.dtype.unsigned)
            value = self.cast_element(value, type_)
        return with_fields(expr, args=(value,), type=ir.PY_INT if row.result == "int" else type_)

    def view(self, expr: ir.Call, row: Builtin, value: ir.Expr) -> ir.Expr:
        """The bits of an element as an element of another dtype, which has as many."""
        assert isinstance(value.type, ir.ElementType) and isinstance(row.result, DType)
        source, target = value.type.dtype, row.result
        text = self.quote(value)
        if source.variable is not None:
            what = "how many bits this element has depends on the dtype that a call chooses"
            hint = "annotate the array with one dtype, such as `Float32`"
        elif source not in _VIEWED:
            what = f"kernels cannot read the bits of {source}"
            hint = f"cast it first: `np.float32({text})`" if source is BOOL else f"view its parts: `{text}.real`"
        elif target not in _VIEWED or target.bits != source.bits:  # rule: bits-view
            what = f"`.view` keeps the bits: {source} has {source.bits}, {target} has {target.bits}"
            whole = next(dtype for dtype in _VIEWED if dtype.bits == source.bits and dtype is not source)
            hint = f"`{text}.view(torch.{whole})`; `{text}.to(torch.{target})` converts the value"
        else:
            return with_fields(expr, args=(value,), type=ir.ElementType(target))
        self.error("P307", what, expr.span, hint, self.origins(value))
        return ir.Constant(0, expr.span, ir.PY_INT)

    def bit_count(self, expr: ir.Call, value: ir.Expr) -> ir.Expr:
        """Python's `n.bit_count()`: `popc` of the magnitude, which elements of less than 32 bits might not hold."""
        type_ = value.type
        if not isinstance(type_, ir.ElementType) or type_.dtype.kind is not Kind.INT or type_.dtype.bits < 32:
            value = self.integer(value, "an argument of `bit_count`")
        magnitude = self.call(ir.Call("builtins.abs", (value,), expr.span), (value,))  # rule: bits-of-magnitude
        return self.call(ir.Call("py2cu.popc", (magnitude,), expr.span), (magnitude,))

    def same(self, expr: ir.Call, row: Builtin, args: Sequence[ir.Expr]) -> ir.Expr:
        """A function of numbers in their common type."""
        if ir.is_complex(args[0].type):
            type_ = scalar(args[0])
            return with_fields(expr, args=(args[0],), type=type_ if expr.function == CONJUGATE else ir.part_of(type_))
        if expr.function == CONJUGATE:
            return self.promote_bool(args[0])
        numbers = [self.promote_bool(arg) for arg in args]
        self.check_reaching("call", *numbers)
        joined = self.join_all(numbers)  # rule: choice-joined
        if row.rule is Rule.CHOICE:  # rule: choice-rounds
            self.check_choice(expr, numbers, scalar(joined[0]))
        return with_fields(expr, args=tuple(joined), type=joined[0].type)

    def check_choice(self, expr: ir.Call, args: Sequence[ir.Expr], type_: ir.ScalarType) -> None:
        """Refuse `min` and `max` whose common float type rounds an argument: Python returns it unchanged."""
        if (
            not isinstance(type_, ir.ElementType)
            or type_ not in [arg.type for arg in args]
            or ir.kind_of(type_) < Kind.FLOAT
        ):
            return
        for arg in args:
            if not isinstance(arg.type, ir.ElementType) or holds(type_.dtype, arg.type.dtype):
                continue
            if not (isinstance(arg, ir.Constant) and represents(type_.dtype, arg.value)):
                name = expr.function.removeprefix("builtins.")
                message = f"`{name}` returns one argument unchanged, and {type_} does not hold every {arg.type}"
                hint = f"round it: `np.{type_}({self.quote(arg)})`, or convert the others: `np.{arg.type}(…)`"
                self.error("P306", message, arg.span, hint, self.origins(*args))
                return

    def of_lanes(self, expr: ir.Call, row: Builtin, args: Sequence[ir.Expr]) -> ir.Expr:
        """A collective: a shuffle, vote, match or reduction of a warp, or a vote of a block."""
        if row.rule is Rule.VOTE:
            operands = tuple(self.convert(arg, ir.PY_BOOL) for arg in args[-1:])
            type_ = ir.PY_BOOL if row.result == "bool" else ir.PY_INT
            return with_fields(expr, args=(*map(self.mask, args[:-1]), *operands), type=type_)
        mask, value, *lanes = args
        if row.rule is Rule.REDUCE:
            return self.reduction(expr, self.mask(mask), value)
        value = self.promote_bool(value)
        self.check_reaching("value", value)  # rule: join-of-lanes
        if row.rule is Rule.SHUFFLE:
            at = (self.integer(lane, f"a lane of `{expr.function}`") for lane in lanes)
            return with_fields(expr, args=(self.mask(mask), value, *at), type=value.type)
        if _is_half(value.type):
            hint = f"widen it first: `opmath({self.quote(value)})`"
            self.error("P307", f"CUDA cannot match values of {value.type}", value.span, hint)
        return with_fields(expr, args=(self.mask(mask), value), type=ir.PY_INT)

    def mask(self, value: ir.Expr) -> ir.Expr:
        """The mask of participating lanes, one bit each; a constant is cut to 32 bits, so that -1 is all lanes."""
        typed = self.integer(value, "a mask of lanes")
        match typed:
            case ir.Constant(value=int(bits)):
                pass
            case ir.Unary(op="~", operand=ir.Constant(value=int(others))):
                bits = ~others
            case _:
                return typed
        if -(2**31) <= bits < 2**32:
            named = typed.named if isinstance(typed, ir.Constant) else None
            return ir.Constant(bits & FULL_MASK, typed.span, ir.PY_INT, named=named)
        self.error(
            "P305", f"{bits} does not fit a mask of {WARP_SIZE} lanes", typed.span, "`0xFFFFFFFF` selects all lanes"
        )
        return typed

    def reduction(self, expr: ir.Call, mask: ir.Expr, value: ir.Expr) -> ir.Expr:
        """A warp reduction, which CUDA has only for 32-bit integers."""
        if value.type not in (ir.ElementType(I32), ir.ElementType(U32)):  # rule: reduction-type
            what = f"`{expr.function.rpartition('.')[2]}` is for int32 and uint32, not for {value.type}"
            cast = f"np.int32({self.quote(value)})"
            hint = f"cast a number that fits, `{cast}`; reduce other types in five steps of `shfl_xor_sync`"
            self.error("P307", what, value.span, hint, self.origins(value))
        return with_fields(expr, args=(mask, value), type=value.type)

    def part(self, expr: ir.Call, value: ir.Expr) -> ir.Expr:
        """`.real` or `.imag`; a real number is its own real part."""
        if is_complex_constructor(value):
            part, other = value.args if expr.function == REAL else value.args[::-1]
            self._check_no_call(other)  # rule: call-in-other-part
            return part
        if ir.is_complex(value.type):
            return with_fields(expr, args=(value,), type=ir.part_of(scalar(value)))
        value = self.promote_bool(value)
        if expr.function == REAL:
            return value
        self._check_no_call(value)  # rule: call-in-real-number
        return self.convert(ir.Constant(0, expr.span, ir.PY_INT), scalar(value))

    def _check_no_call(self, expr: ir.Expr) -> None:
        """Refuse a call in an operand that the C++ text leaves out: it may have side effects."""
        call = next((node for node in walk(expr) if isinstance(node, ir.DeviceCall)), None)
        if call is not None:
            hint = f"assign its result in a statement before this one: `result = {self.quote(call)}`"
            self.error(
                "P409",
                "C++ would skip this call, since the part does not depend on it; Python makes it",
                call.span,
                hint,
            )

    def complex(self, expr: ir.Call, args: Sequence[ir.Expr]) -> ir.Expr:
        """Python's `complex`, which makes a Python number."""
        if len(args) == 1:
            return self.convert(args[0], ir.PY_COMPLEX)
        for arg in args:
            if ir.is_complex(arg.type):
                self.error(
                    "P307",
                    "an argument of `complex` must be a real number",
                    arg.span,
                    f"add them: `{self.quote(args[0])} + 1j * {self.quote(args[1])}`",
                    self.origins(arg),
                )
                return expr
        return with_fields(expr, args=tuple(self.convert(arg, ir.PY_FLOAT) for arg in args), type=ir.PY_COMPLEX)

    def rounded(self, expr: ir.Call, value: ir.Expr, digits: ir.Expr) -> ir.Expr:
        """`round(x, 2)`: the digits as the power of ten that `round_decimals` takes."""
        if ir.kind_of(scalar(value)) is not Kind.FLOAT:
            self.error("P307", "`round` of a whole number takes no digits", expr.span, "leave them out")
            return value
        most = 10 if value.type == ir.ElementType(F32) else 22  # the greatest power of ten that is exact
        if not isinstance(digits, ir.Constant) or not isinstance(digits.value, int) or not 0 <= digits.value <= most:
            self.error(
                "P307",
                f"`round` takes a constant number of digits, 0 to {most}",
                digits.span,
                f"write a constant; to round to tens: `round({self.quote(value)} / 10) * 10`",
            )
            return value
        power = ir.Constant(10.0**digits.value, digits.span, value.type)
        return with_fields(expr, args=(value, power), type=value.type)

    def float_type(self, args: Sequence[ir.Expr]) -> ir.ScalarType:
        self.check_reaching("call", *args)
        type_ = self.common(args)
        if ir.kind_of(type_) is Kind.FLOAT:
            return type_
        return ir.ElementType(DEFAULT_FLOAT) if isinstance(type_, ir.ElementType) else ir.PY_FLOAT

    def cast(self, value: ir.Expr, result: DType | str | None, span: Span) -> ir.Expr:
        if isinstance(result, DType):
            target: ir.ScalarType = ir.ElementType(result)
        else:
            target = {"int": ir.PY_INT, "float": ir.PY_FLOAT, "bool": ir.PY_BOOL}[str(result)]
        if ir.is_complex(target):
            if isinstance(value, ir.Constant):
                value = of_real(self.convert(value, ir.PY_FLOAT), ir.PY_COMPLEX)
            converted_value = self.convert(value, target)
            if is_literal(converted_value):
                return with_fields(converted_value, args=tuple(map(_rounded_part, converted_value.args)))
            if isinstance(converted_value, ir.Convert):
                return with_fields(converted_value, explicit=True)
            is_choice = isinstance(converted_value, ir.Select | ir.BoolOp)  # of values that no branch has rounded yet
            return ir.Convert(converted_value, target, span, explicit=True) if is_choice else converted_value
        if ir.is_complex(value.type) and target != ir.PY_BOOL and target != ir.ElementType(BOOL):
            self.error("P307", f"{value.type} cannot be converted to {target}", span, PARTS, self.origins(value))
            return ir.Constant(0, span, ir.PY_INT)
        if isinstance(value, ir.Constant):
            converted_value = (
                self.stored(value, target) if isinstance(target, ir.ElementType) else self.convert(value, target)
            )
            assert isinstance(converted_value, ir.Constant)
            element = target if isinstance(target, ir.ElementType) else None
            return with_fields(converted_value, value=rounded(target, converted_value.value), span=span, cast=element)
        return ir.Convert(self.retype_branches(value, target), target, span, explicit=True)


_VIEWED: Final = tuple(dtype for dtype in DTYPES if dtype.kind in (Kind.INT, Kind.FLOAT))


def _is_half(type_: ir.Type) -> bool:
    return isinstance(type_, ir.ElementType) and type_.dtype.is_half


def _rounded_part(part: ir.Expr) -> ir.Expr:
    """A constant as a cast to its type leaves it."""
    assert isinstance(part, ir.Constant)
    return with_fields(part, value=rounded(scalar(part), part.value))
