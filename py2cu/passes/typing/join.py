"""Joins the types of operands and branches: the common type, the `Convert`s to it, and the errors where none exists.

    0.5, x[i]: float32        →        0.5f, x[i]
    u[i]: uint8, 300          →        P305: 300 does not fit uint8, as an item of a table would not

Torch's promotion between elements; Python numbers are weak (docs/language.md, "Promotion").
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from py2cu import ir
from py2cu.analysis.constant_values import constant_value, items_of_table
from py2cu.analysis.promotion import as_float, constant_as, join, represents
from py2cu.diagnostics import Related, Reporter
from py2cu.dtypes import F64, DType, Kind
from py2cu.ir.complex_numbers import is_literal
from py2cu.ir.rewrite import with_fields
from py2cu.passes.typing.complex_rules import PARTS, refusal
from py2cu.passes.typing.path_sensitive_types import Number, ambiguous_operand, is_lossy, possible_types
from py2cu.source import Span


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a device function: its type, its reaching types, and the names of the function's parameters."""

    type: ir.ValueType
    reaching: ir.ReachingTypes
    parameters: tuple[str, ...]


Called = Callable[[str, Sequence[ir.Type]], tuple[str, Result | None]]
"""The key of a device function's instance for arguments of these types, and its result."""


@dataclass(frozen=True, slots=True)
class TypeJoiner:
    """Converts typed expressions of one kernel to a common type; `called` returns results of device functions."""

    kernel: ir.Kernel
    types: Mapping[str, ir.ValueType]
    called: Called
    reporter: Reporter
    places: dict[str, Span] = field(default_factory=dict)  # where each name is bound, for messages
    reaching: Mapping[str, ir.ReachingTypes] = field(default_factory=dict)  # of locals, where they differ from the type
    ambiguous: set[str] = field(default_factory=set)  # locals whose type was reported to depend on the path

    def join(self, left: ir.Expr, right: ir.Expr) -> tuple[ir.Expr, ir.Expr]:
        if not (known(left) and known(right)):
            return left, right
        left, right = self.join_all([left, right])
        return left, right

    def join_all(self, values: list[ir.Expr]) -> list[ir.Expr]:
        """All values in their common type; a Python constant that an integer element type cannot hold is refused."""
        type_ = self.common(values)
        if isinstance(type_, ir.ElementType) and not ir.is_complex(type_):
            for value in values:
                self.check_representable(value, type_.dtype, values)
        return [self.convert_exactly(value, type_) for value in values]

    def common(self, values: Sequence[ir.Expr]) -> ir.ScalarType:
        """The common type of `values`: elements are joined first, and Python numbers take their type."""
        first, *rest = sorted(values, key=lambda value: isinstance(value.type, ir.PythonType))
        type_ = scalar(first)
        for value in rest:
            joined = join(type_, scalar(value))
            if joined is None:
                message = f"{type_} and {value.type} have no common type"
                casts = [f"`np.{t}(…)`" for t in (value.type, type_) if isinstance(t, ir.ElementType)]
                widen = f"widen it first: `opmath({self.quote(first)})`"
                self.error(  # rule: unsigned-clash
                    "P309", message, value.span, f"cast one of them: {' or '.join(casts)}" if casts[1:] else widen
                )
                return type_
            type_ = joined
        return type_

    def check_representable(self, value: ir.Expr, dtype: DType, values: Sequence[ir.Expr]) -> None:
        """Refuse `value`, one of `values`, if it is a constant or an item of a table that `dtype` does not hold."""
        is_float = dtype.kind is Kind.FLOAT

        def fits(number: Number) -> bool:
            if is_float:
                return not (math.isfinite(number) and math.isinf(as_float(dtype, number)))
            return represents(dtype, number)  # rule: constant-met

        if (text := self.unfit_constant(value, fits)) is not None:
            element = next(value for value in values if isinstance(value.type, ir.ElementType))
            wider = "int" if not is_float else "opmath" if dtype.is_half else "np.float64"
            cast = f"`{wider}({self.quote(element)})`"
            self.error(
                "P305", f"{text} does not fit {dtype}, to which it is converted here", value.span,
                f"{dtype} holds {dtype.low} to {dtype.high}; cast the element first: {cast}", self.origins(*values),
            )  # fmt: skip

    def unfit_constant(self, value: ir.Expr, fits: Callable[[Number], bool]) -> str | None:
        """The text of the constant `value`, or of an item of a table that `value` may be, that does not fit."""
        number = constant_number(value)
        if number is not None:
            return None if fits(number) else str(number)
        match value:
            case ir.Load(array=array) if (table := self.table(array)) is not None:
                # rule: constant-of-table
                return next((f"{item} of `{array}`" for item in items_of_table(value, table) if not fits(item)), None)
            case _:
                return None

    def table(self, array: str) -> ir.ArrayDecl | None:
        """The tuple of constants called `array`; None for any other array."""
        declared = self.kernel.array_decl(array)
        return declared if declared is not None and declared.space is ir.Space.CONSTANT else None

    def convert_exactly(self, value: ir.Expr, type_: ir.ScalarType) -> ir.Expr:
        """`value` as `type_`; refuses an integer constant that no float represents, since Python keeps it exact."""
        if (
            isinstance(value, ir.Constant)
            and type_ in (ir.PY_FLOAT, ir.PY_COMPLEX)
            and not represents(F64, value.value)  # rule: float-holds
        ):
            self.error(
                "P305", f"{value.value} is converted to a float here, which does not represent it", value.span,
                f"beyond 2**53 floats do not represent every integer: write the intended one, `{float(value.value)}`",
            )  # fmt: skip
        return self.convert(value, type_)

    def convert(self, value: ir.Expr, type_: ir.ScalarType) -> ir.Expr:
        """`value` as `type_`."""
        return converted(self.retype_branches(value, type_), type_) if known(value) else value

    def retype_branches(self, value: ir.Expr, type_: ir.ScalarType) -> ir.Expr:
        """Convert the branches of `value` to `type_` where their joined type would round one; report rounded locals."""
        narrow = value.type
        if isinstance(value, ir.Constant) or not isinstance(narrow, ir.ElementType) or narrow == type_:
            return value
        # rule: two-types-branch
        if not any(is_lossy(each, narrow, type_) for each in possible_types(value, self.reaching)):
            return value
        match value:
            case ir.Select(then=a, orelse=b):
                a, b = (self.convert(ir.unconverted(branch), type_) for branch in (a, b))
                return with_fields(value, then=a, orelse=b, type=type_)
            case ir.BoolOp(left=a, right=b):
                a, b = (self.convert(ir.unconverted(branch), type_) for branch in (a, b))
                return with_fields(value, left=a, right=b, type=type_)
            case ir.Convert(value=inner):
                return self.convert(inner, type_)
            case _:
                what = "rounded to" if ir.kind_of(narrow) >= Kind.FLOAT else "converted to"
                message = f"this is {what} {narrow} on one path, but used as {type_}; Python would not convert it"
                casts = f"`{_cast(narrow)}(…)` or `{_cast(type_)}(…)`"
                self.error("P306", message, value.span, f"cast it where it is assigned: {casts}")
                return value

    def check_reaching(self, op: str, *operands: ir.Expr) -> None:
        """Refuse an operation whose result depends on the path that gave an operand its type."""
        for at, operand in enumerate(operands):
            reached = ambiguous_operand(op, operand, operands[:at] + operands[at + 1 :], self.reaching)
            if reached is None:  # rule: join-path
                continue
            name = operand.id if isinstance(operand, ir.Name) else ""
            if name in self.ambiguous:
                return
            other = reached if isinstance(reached, ir.ElementType | ir.PythonType) else f"the Python number {reached}"
            what, cast = f"`{name}`" if name else "this", _cast(operand.type)
            message = f"{what} is {other} on one path and {operand.type} here, and the result depends on which"
            hint = f"cast it to the type that you mean, for example: `{cast}({self.quote(operand)})`"
            if name:
                self.ambiguous.add(name)
                hint = f"cast it where it is assigned to the type that you mean, for example: `{cast}(…)`"
            place = [Related(f"`{name}` is assigned here", self.places[name])] if name in self.places else []
            self.error("P306", message, operand.span, hint, place)
            return

    def stored(self, value: ir.Expr, element: ir.ElementType) -> ir.Expr:
        if ir.is_complex(value.type) and not ir.is_complex(element):
            message = f"{value.type} cannot be converted to {element}: Python raises, torch drops the imaginary part"
            self.error("P307", message, value.span, PARTS, self.origins(value))
            return value
        if element.dtype.kind < Kind.FLOAT:
            low, high = element.dtype.low, element.dtype.high
            text = self.unfit_constant(value, lambda number: low <= number <= high)  # rule: constant-stored
            if text is not None:
                self.error("P305", f"{text} does not fit {element}", value.span, f"{element} holds {low} to {high}")
                return value
        return self.convert(value, element)

    def integer(self, value: ir.Expr, what: str) -> ir.Expr:
        """`value` as a Python integer; bounds and indices that are elements become one."""
        if isinstance(value.type, ir.ElementType | ir.PythonType) and ir.kind_of(value.type) >= Kind.FLOAT:
            self.error(
                "P307",
                f"{what} must be a whole number, not {value.type}",
                value.span,
                PARTS if ir.is_complex(value.type) else f"`int({self.quote(value)})` truncates",
                self.origins(value),
            )
            return ir.Constant(0, value.span, ir.PY_INT)
        return self.convert(value, ir.PY_INT)  # rule: range-bound-converted

    def promote_bool(self, operand: ir.Expr) -> ir.Expr:
        """Arithmetic counts a Python bool, such as a comparison's result, as a Python integer."""
        return self.convert(operand, ir.PY_INT) if operand.type == ir.PY_BOOL else operand  # rule: bool-promoted

    def is_refused(
        self, expr: ir.Binary[ir.Expr] | ir.Compare | ir.Unary | ir.Call, operands: Sequence[ir.Expr]
    ) -> bool:
        """True, with an error reported, if `expr` is not defined for its complex operands."""
        reason = refusal(expr, operands)
        if reason is not None:
            message, hint = reason
            self.error("P307", message, expr.span, hint, self.origins(*operands))
        return reason is not None

    def origins(self, *values: ir.Expr) -> list[Related]:
        """Where each operand's type came from: a parameter's annotation, or a local's first assignment."""
        related = []
        for value in values:
            match ir.unconverted(value):
                case ir.Name(id=name) if name in self.places:
                    related.append(Related(f"`{name}` is {self.types[name]}", self.places[name]))
                case ir.Load(array=name) if self.table(name) is None:
                    related.append(Related(f"`{name}` holds {self.kernel.array_type(name).dtype}", self.places[name]))
                case ir.Constant() | ir.Load():
                    pass
                case other:
                    related.append(Related(f"this is {other.type}", other.span))
        return related

    def quote(self, value: ir.Expr) -> str:
        """The source text of `value`, for hints."""
        return self.reporter.file.quote(value.span)

    def error(self, code: str, message: str, span: Span, hint: str, related: Sequence[Related] = ()) -> None:
        self.reporter.error(code, message, span, hint, related)


def converted(value: ir.Expr, type_: ir.ScalarType) -> ir.Expr:
    """`value` as `type_`; constants change in place."""
    if value.type == type_:
        return value
    if ir.is_complex(type_) and is_literal(value):
        return replace(value, args=tuple(converted(part, ir.part_of(type_)) for part in value.args), type=type_)
    if isinstance(value, ir.Constant) and not ir.is_complex(type_):
        number = constant_as(value.value, type_)
        is_cast = isinstance(value.type, ir.ElementType) and value.type.dtype.kind is Kind.FLOAT
        is_same_number = number == value.value and not is_cast  # otherwise the digits denote another number
        text = value.text if is_same_number else ""
        return ir.Constant(number, value.span, type_, text, value.cast, value.named)
    return ir.Convert(value, type_, value.span)


def _cast(type_: ir.Type) -> str:
    """The function that casts to a type of numbers."""
    return type_.kind.name.lower() if isinstance(type_, ir.PythonType) else f"np.{type_}"


def constant_number(value: ir.Expr) -> Number | None:
    """The value of a constant or of a constant integer expression; None for anything else."""
    return value.value if isinstance(value, ir.Constant) else constant_value(value)  # rule: constant-composed


def known(expr: ir.Expr) -> bool:
    """True once `expr` has the type of a number."""
    return isinstance(expr.type, ir.ElementType | ir.PythonType)


def scalar(expr: ir.Expr) -> ir.ScalarType:
    assert isinstance(expr.type, ir.ElementType | ir.PythonType), expr
    return expr.type
