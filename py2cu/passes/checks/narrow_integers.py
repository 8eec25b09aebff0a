"""Warns where arithmetic of uint8, int8, uint16 or int16 elements can leave its dtype, and then wraps around.

    out[i] = x[i] + y[i]             P313: uint8, with 0 to 510 before it wraps
    out[i] = x[i] // 2 + y[i] // 2   at most 254
    out[i] = (x[i] + y[i]) & 0xFF    the same without wrapping, as is `np.uint8(x[i] + y[i])`

Reads the typed kernel and changes nothing. A line has at most one warning. Arithmetic in a type variable has none: its
dtype is the caller's choice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from py2cu import ir
from py2cu.analysis.argument_ranges import functions_with_ranges
from py2cu.analysis.call_graph import reachable_functions
from py2cu.analysis.narrow_ranges import NarrowRanges, narrow_dtype
from py2cu.builtins import ROWS, Rule
from py2cu.diagnostics import Reporter
from py2cu.dtypes import DType, Kind
from py2cu.ir.operators import OPERATORS
from py2cu.ir.rewrite import with_fields
from py2cu.ir.visit import all_expressions, children, expressions, statements
from py2cu.source import SourceFile, Span


def warn_narrow_integers(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """Report arithmetic that can leave a narrow dtype; the kernel is unchanged."""
    functions = reachable_functions(kernel)
    if not any(narrow_dtype(expr) for caller in (kernel, *functions) for expr in all_expressions(caller.body)):
        return kernel
    functions = functions_with_ranges(with_fields(kernel, functions=functions))
    lines: set[tuple[str, int]] = set()
    for caller in (kernel, *functions):
        ranges = NarrowRanges(with_fields(caller, functions=functions))
        _Warner(ranges, reporter.within(caller.origin), lines).look_at(caller.body)
    return kernel


@dataclass(frozen=True, slots=True)
class _Warner:
    ranges: NarrowRanges
    reporter: Reporter
    lines: set[tuple[str, int]]  # of each file, those with a warning

    def look_at(self, body: ir.Block) -> None:
        for stmt in statements(body):
            for expr in expressions(stmt):
                for operation, dtype in self.leaving(expr):
                    line = self.reporter.file.name, operation.span.line
                    if line not in self.lines:  # rule: narrow-once-a-line
                        self.lines.add(line)
                        self.warn(stmt, operation, dtype)

    def leaving(self, expr: ir.Expr, is_modular: bool = False) -> Iterator[tuple[ir.Expr, DType]]:
        """The outermost operations that can leave their dtype; `is_modular`: only the low bits of `expr` count."""
        dtype = narrow_dtype(expr)
        if dtype is not None and not is_modular and self.ranges.leaves_dtype(expr, dtype):
            yield expr, dtype
            return
        for operand in children(expr):
            yield from self.leaving(operand, self.passes_low_bits(expr, operand, is_modular))

    def passes_low_bits(self, expr: ir.Expr, operand: ir.Expr, is_modular: bool) -> bool:
        """True if only the low bits of `operand` count in `expr`: its result is the same if `operand` wraps."""
        match expr:
            case ir.Binary(op="&", left=left, right=right):
                mask = right if operand is left else left
                return is_modular or self.ranges.of(mask).is_natural  # rule: narrow-mask
            case ir.Binary(op="<<" | "**", left=left):
                return is_modular and operand is left
            case ir.Binary(op=op):
                return is_modular and OPERATORS[op].is_modular
            case ir.Unary(op="-" | "+" | "~") | ir.Select():
                return is_modular and operand.type == expr.type
            case ir.Convert(type=ir.ElementType(dtype=target), explicit=True):
                narrow = narrow_dtype(operand)
                return narrow is not None and target.kind is Kind.INT and target.bits <= narrow.bits
            case _:
                return False

    def warn(self, stmt: ir.Stmt, operation: ir.Expr, dtype: DType) -> None:
        message = f"{dtype} arithmetic can leave {dtype.low} to {dtype.high} here, and wraps around"
        self.reporter.warning("P313", message, operation.span, _hint(stmt, operation, dtype, self.reporter.file))


def _hint(stmt: ir.Stmt, operation: ir.Expr, dtype: DType, file: SourceFile) -> str:
    """How to compute exactly, and how to say that wrapping is meant."""
    match stmt, operation:
        case ir.Store(augmented=True), ir.Binary() if operation is ir.unconverted(stmt.value):
            return f"if that is meant, write `{_update(stmt.span, operation, dtype, file)}`; else use a wider array"
        case ir.Assign(augmented=True), ir.Binary(left=left, right=right) if operation is stmt.value:
            is_written = file.quote(left.span) == stmt.name  # the name of `sum(…)` is not in the source
            exact = _with_casts(right, file) or f"{stmt.name} = int(…)"
            wraps = _update(left.span, operation, dtype, file) if is_written else ""
        case _:
            exact = _with_casts(operation, file) or "int(…)"
            wraps = _wrapping(file.quote(operation.span), dtype)
    alternative = f"; if it is meant to wrap, say so: `{wraps}`" if wraps else ""
    return f"to compute exactly, cast the elements: `{exact}`{alternative}"


def _update(target: Span, operation: ir.Binary[ir.Expr], dtype: DType, file: SourceFile) -> str:
    """The text of `target op= value` as an assignment that wraps to `dtype`."""
    text = file.quote(target)
    return f"{text} = {_wrapping(f'{text} {operation.op} {file.quote(operation.right.span)}', dtype)}"


def _wrapping(text: str, dtype: DType) -> str:
    """The text of an operation that wraps to `dtype`."""
    return f"np.{dtype}({text})" if dtype.signed else f"({text}) & {int(dtype.high):#X}".replace("0X", "0x")


def _with_casts(expr: ir.Expr, file: SourceFile) -> str:
    """The text of `expr` with its elements cast by `int`; empty if there are none, or the text has several lines."""
    span, places = expr.span, sorted({leaf.span for leaf in _elements(expr)})
    if not places or {span.line, span.end_line} != {place.line for place in places}:
        return ""
    line, text, at = file.line(span.line), "", span.column
    for place in places:
        text += f"{line[at : place.column]}int({line[place.column : place.end_column]})"
        at = place.end_column
    return text + line[at : span.end_column]


def _elements(expr: ir.Expr) -> Iterator[ir.Expr]:
    """The operands of arithmetic in narrow integers that are no arithmetic themselves, and no Python numbers."""
    value = ir.unconverted(expr)
    match value:
        case ir.Call(function=function) if function in ROWS and ROWS[function].rule is Rule.VIEW:
            yield value
        case ir.Binary() | ir.Unary() | ir.Call() if narrow_dtype(value) is not None:
            for operand in children(value):
                yield from _elements(operand)
        case ir.Constant():
            return
        case _ if isinstance(value.type, ir.ElementType):
            yield value
