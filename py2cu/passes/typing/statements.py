"""Types statements, given the types of locals from `infer_locals`.

out[j] = o       →        out[j] = Convert(o, uint8)
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from py2cu import ir
from py2cu.dtypes import BF16, F16, F32, I64, Kind
from py2cu.ir.names import list_elements
from py2cu.ir.rewrite import with_fields
from py2cu.ir.visit import blocks
from py2cu.passes.typing.expressions import ExpressionTyper
from py2cu.passes.typing.infer_locals import RETURN
from py2cu.passes.typing.join import constant_number, known, scalar


@dataclass(frozen=True, slots=True)
class StatementTyper(ExpressionTyper):
    """Types statements; `types` holds the types of their locals."""

    def block(self, block: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
        return tuple(self.statement(stmt) for stmt in block)

    def statement(self, stmt: ir.Stmt) -> ir.Stmt:
        match stmt:
            case ir.Assign(name=name, value=value):
                typed = self.type_value(value)
                # A local without a type is only assigned from names that were refused.
                known = self.types.get(name)
                return stmt if known is None else with_fields(stmt, value=self.convert_value(typed, known))
            case ir.Store(array=array, indices=indices, value=value) if self.kernel.is_list(array):
                value, type_of_elements = self.expr(value), self.types.get(list_elements(array))
                value = value if type_of_elements is None else self.convert_value(value, type_of_elements)
                return with_fields(stmt, indices=self.indices(array, indices), value=value)
            case ir.Store(array=array, indices=indices) if (type_ := self.row_type(array, len(indices))) is not None:
                self.check_hint(stmt)
                return with_fields(stmt, indices=self.indices(array, indices), value=self.stored_row(stmt, type_))
            case ir.Store(array=array, indices=indices, value=value):
                self.check_hint(stmt)
                element = ir.ElementType(self.kernel.array_type(array).dtype)
                stored = self.stored(self.expr(value), element)
                return with_fields(stmt, indices=self.indices(array, indices), value=stored)
            case ir.If(test=test):
                return with_fields(
                    stmt, test=self.test(test), body=self.block(stmt.body), orelse=self.block(stmt.orelse)
                )
            case ir.For(start=start, stop=stop, step=step, body=body, var=var):
                # rule: range-bound-integer
                bounds = [self.integer(self.expr(bound), "a bound of `range`") for bound in (start, stop, step)]
                start, stop, step = bounds
                if constant_number(step) == 0:
                    message = "the step of `range` must not be zero"
                    self.error("P104", message, step.span, "use a positive or a negative step")
                elif _counter_overflows(*map(constant_number, bounds)):  # rule: range-overflows
                    hint = "Python integers are exact to 64 bits: stop one step earlier"
                    self.error("P305", "this loop counts beyond 64 bits", stop.span, hint)
                loop = with_fields(stmt, start=start, stop=stop, step=step, type=self.counter(var))
                return with_fields(loop, body=self.block(body), orelse=self.block(stmt.orelse))
            case ir.While(test=test, body=body):
                return with_fields(stmt, test=self.test(test), body=self.block(body), orelse=self.block(stmt.orelse))
            case ir.Return(value=value) if value is not None:
                returned = self.type_value(value)
                return with_fields(stmt, value=self.convert_value(returned, self.types.get(RETURN, ir.PY_INT)))
            case ir.ExprStmt(call=call):
                return with_fields(stmt, call=self.atomic(call) if isinstance(call, ir.Atomic) else self.invoke(call))
            case ir.Sync(args=args):
                return with_fields(stmt, args=tuple(self.mask(self.expr(arg)) for arg in args))
            case ir.Alloc(start=start) if start is not None:
                return with_fields(stmt, start=self.integer(self.expr(start), "a bound of a slice"))
            case ir.Print() | ir.Assert():
                pairs = zip(stmt.values, stmt.fields, strict=True)
                printed = [self.printed(self.expr(value), field) for value, field in pairs]
                stmt = with_fields(stmt, values=tuple(v for v, _ in printed), fields=tuple(f for _, f in printed))
                return with_fields(stmt, test=self.test(stmt.test)) if isinstance(stmt, ir.Assert) else stmt
            case _:
                assert not blocks(stmt)
                return stmt

    def stored_row(self, stmt: ir.Store, row: ir.TupleType) -> ir.Expr:
        """The value stored into a row: a tuple of as many numbers as the row has, or another row of its type."""
        before = len(self.reporter.diagnostics)
        value, count = self.type_value(stmt.value), len(row.items)
        element = ir.ElementType(self.kernel.array_type(stmt.array).dtype)
        if isinstance(value, ir.Tuple) and len(value.items) == count:
            return with_fields(value, items=tuple(self.stored(item, element) for item in value.items), type=row)
        if value.type not in (row, ir.UNKNOWN) and len(self.reporter.diagnostics) == before:  # rule: row-of-type
            message = f"a row of `{stmt.array}` is {count} elements of {element}, and this is {value.type}"
            hint = f"`{stmt.array}[i] = {', '.join('abcdefghijklmnop'[:count])}`, each of them a number"
            self.error("P410", message, stmt.value.span, hint)
        return value

    def counter(self, var: str) -> ir.ScalarType:
        """The type of a loop's variable; one that is a tuple elsewhere was refused."""
        type_ = self.types.get(var, ir.PY_INT)
        return ir.PY_INT if isinstance(type_, ir.TupleType) else type_

    def printed(self, value: ir.Expr, field: ir.Field) -> tuple[ir.Expr, ir.Field]:
        """The value converted for `printf`, and its format with the letter that its type needs."""
        if not known(value):
            return value, field
        self.check_reaching("print", value)  # rule: two-types-printed
        type_, letter = scalar(value), field.letter
        if ir.is_complex(type_):
            text = self.quote(value)
            hint = f"print `{text}.real` and `{text}.imag`"
            self.error("P307", f"`print` takes real numbers, not {type_}", field.span, hint)
            return value, field
        if ir.kind_of(type_) is Kind.BOOL and not (letter or field.layout):
            return value, replace(field, letter="s")
        if ir.kind_of(type_) is Kind.FLOAT:
            if letter in ("d", "x", "X", "o"):
                self.error(
                    "P307",
                    f"`{letter}` prints whole numbers, not {type_}",
                    field.span,
                    f"`int({self.quote(value)})` truncates",
                )
            elif not letter and "." in field.layout:
                self.error("P307", "this format needs a letter", field.span, "write `g`, which Python uses by default")
            elif _pads_with_zeros(field):  # rule: print-zeros
                message = "C pads infinity and NaN with blanks, Python with zeros"
                layout = re.sub(r"^([-+ ]*)0+", r"\1", field.layout) + letter
                hint = f"pad with blanks, by a width without `0`: `{{{self.quote(value)}:{layout}}}`"
                self.error("P307", message, field.span, hint)
            return self.convert(value, _printed_float(type_)), replace(field, letter=letter or "g")  # rule: print-float
        if letter in ("f", "e", "E", "g", "G"):
            return self.convert(value, ir.PY_FLOAT), field
        if "." in field.layout:
            self.error(
                "P307",
                f"a precision is for floats, not for {type_}",
                field.span,
                f"print `float({self.quote(value)})`, or leave the precision out",
            )
        if letter in ("x", "X", "o") and not (isinstance(type_, ir.ElementType) and not type_.dtype.signed):
            hint = f"cast it to an unsigned type: `np.uint32({self.quote(value)})`"
            self.error("P307", f"`{letter}` prints a negative number differently in C", field.span, hint)
        elif not {"+", " "}.isdisjoint(field.layout) and _is_unsigned(type_):  # rule: print-sign
            self.error("P307", "C writes no sign before an unsigned number", field.span, "leave it out")
        return (self.convert(value, ir.PY_INT) if ir.kind_of(type_) is Kind.BOOL else value), replace(
            field, letter=letter or "d"
        )


def _printed_float(type_: ir.ScalarType) -> ir.ScalarType:
    """The type in which `printf` gets a float: float32 for halves, double for type variables."""
    if isinstance(type_, ir.ElementType) and type_.dtype.variable is not None:
        return ir.PY_FLOAT
    return ir.ElementType(F32) if type_ in (ir.ElementType(F16), ir.ElementType(BF16)) else type_


def _counter_overflows(start: complex | None, stop: complex | None, step: complex | None) -> bool:
    """True if the final counter in C++, one step past the last number, exceeds 64 bits."""
    if not (isinstance(start, int) and isinstance(stop, int) and isinstance(step, int)) or abs(step) == 1:
        return False
    return any(not I64.low <= last + step <= I64.high for last in range(start, stop, step)[-1:])  # rule: range-last


def _is_unsigned(type_: ir.ScalarType) -> bool:
    return isinstance(type_, ir.ElementType) and ir.kind_of(type_) is Kind.INT and not type_.dtype.signed


def _pads_with_zeros(field: ir.Field) -> bool:
    """True for `05.1f`, and not for `0.1f`, which has no width to pad."""
    return re.match(r"[-+ ]*0\d*[1-9]", field.layout) is not None  # rule: print-zero-width
