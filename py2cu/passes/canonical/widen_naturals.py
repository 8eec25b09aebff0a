"""Computes Python integers from 2**63 to 2**64 - 1 in uint64.

    product = a * b          uint64(a) * uint64(b)               a and b are at most 2**32 - 1
    high = product >> 32     int64(uint64(product) >> 32)        a shift of the int64 would copy its sign
    h = (h ^ x) * P & M64    (uint64(h) ^ uint64(x)) * P & M64   the low 64 bits are exact in modular arithmetic

`NaturalBounds` finds these integers. A local to which only such integers and constants are assigned becomes a uint64.
Other locals hold the low 64 bits in an int64, which are converted where an operation depends on the sign. The simulator
does not report integers beyond an int64 on the lines of these computations: `Kernel.natural_lines` lists them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

from py2cu import ir
from py2cu.analysis.natural_bounds import UINT64_MAX, NaturalBounds
from py2cu.analysis.ranges import Ranges
from py2cu.builtins import ROWS, Bound
from py2cu.diagnostics import Reporter
from py2cu.dtypes import U64, Kind
from py2cu.ir.rewrite import map_blocks, map_children, map_expressions, rebuild_block, with_fields
from py2cu.ir.visit import all_expressions, statements

_UINT64: Final = ir.ElementType(U64)
_INT64_MAX: Final = 2**63 - 1
_LARGE: Final = 2**31  # sums of smaller numbers stay within an int64
_MODULAR: Final = frozenset(["+", "-", "*", "&", "|", "^", "<<"])  # their low bits depend on low bits alone
_BY_SIGN: Final = frozenset([">>", "//", "%"])


def widen_naturals(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """The kernel and its device functions with the integers that an int64 may not hold in uint64."""
    callers = (kernel, *kernel.functions)
    if not _may_exceed_int64(caller.body for caller in callers):
        return kernel
    bounds = NaturalBounds(kernel)
    first, *functions = (_Widening(caller, bounds, reporter.within(caller.origin)).run() for caller in callers)
    return with_fields(first, functions=tuple(functions))


def _may_exceed_int64(bodies: Iterable[ir.Block]) -> bool:
    """A quick test before the analysis: True for large numbers, and for products or shifts beside bounded integers."""
    is_bounded = multiplies = False
    for expr in chain.from_iterable(map(all_expressions, bodies)):
        if isinstance(expr, ir.Constant):
            if expr.value >= _LARGE and isinstance(expr.type, ir.PythonType):
                return True
        elif isinstance(expr, ir.Binary):
            if expr.type == ir.PY_INT:
                multiplies |= expr.op in ("*", "<<")
                is_bounded |= expr.op == "&" or (expr.op == "%" and isinstance(expr.right, ir.Constant))
        elif isinstance(expr, ir.Convert) and isinstance(expr.value.type, ir.ElementType) and expr.type == ir.PY_INT:
            dtype = expr.value.type.dtype
            if dtype.high >= _LARGE and not dtype.signed:
                return True
            is_bounded |= not dtype.signed
    return is_bounded and multiplies


@dataclass(slots=True)
class _Widening:
    """Rewrites one function. `exact` keeps the value of an expression; `modular` keeps its low 64 bits, as a uint64."""

    kernel: ir.Kernel
    bounds: NaturalBounds
    reporter: Reporter
    lines: set[int] = field(default_factory=set)
    ranges: Ranges | None = None
    masks_64_bits: bool = False  # the function has constants beyond an int64, so larger results are to be masked

    def run(self) -> ir.Kernel:
        nodes = all_expressions(self.kernel.body)
        self.masks_64_bits = any(isinstance(node, ir.Constant) and self.is_wide(node) for node in nodes)
        body = self.block(self.kernel.body)
        if not self.lines:
            return self.kernel
        lines = tuple(sorted({*self.kernel.natural_lines, *self.lines}))
        return _with_uint64_locals(with_fields(self.kernel, body=body, natural_lines=lines))

    def block(self, block: ir.Block) -> ir.Block:
        return tuple(self.statement(stmt) for stmt in block)

    def statement(self, stmt: ir.Stmt) -> ir.Stmt:
        match stmt:
            case ir.Print(values=values):
                return with_fields(stmt, values=tuple(map(self.printed, values)))
            case ir.Assert(test=test, values=values):
                return with_fields(stmt, test=self.exact(test), values=tuple(map(self.printed, values)))
            case ir.If(test=test) | ir.While(test=test):
                return map_blocks(with_fields(stmt, test=self.exact(test)), self.block)
            case ir.For(start=start, stop=stop, step=step):
                start, stop, step = map(self.exact, (start, stop, step))
                return map_blocks(with_fields(stmt, start=start, stop=stop, step=step), self.block)
            case _:
                return map_expressions(stmt, self.exact)

    def printed(self, value: ir.Expr) -> ir.Expr:
        return self.modular(value) if self.is_wide(value) else self.exact(value)

    def is_wide(self, expr: ir.Expr) -> bool:
        """True for an integer whose upper bound lies between 2**63 and 2**64 - 1."""
        most = self.bounds.of(expr) if expr.type == ir.PY_INT else None
        return most is not None and _INT64_MAX < most <= UINT64_MAX

    def is_natural(self, expr: ir.Expr) -> bool:
        """True for an integer between 0 and 2**64 - 1."""
        most = self.bounds.of(expr)
        if most is not None:
            return most <= UINT64_MAX
        self.ranges = self.ranges or Ranges(self.kernel)
        return self.ranges.of(expr).is_natural

    def check_operands(self, expr: ir.Expr) -> None:
        """Refuse operands that 64 bits may not hold in operations that do not wrap."""
        match expr:
            case ir.Binary(op=op) if op not in _BY_SIGN:
                return
            case ir.Binary(left=left, right=right) | ir.Compare(left=left, right=right):
                operands = [left, right]
            case ir.Convert(value=value, type=ir.ElementType() | ir.PythonType() as type_) if (
                ir.kind_of(type_) >= Kind.FLOAT
            ):
                operands = [value]
            case ir.Call(args=args):
                operands = [*args]
            case _:
                return
        for operand in operands:
            most = self.bounds.of(operand) if operand.type == ir.PY_INT else None
            if most is not None and most > UINT64_MAX:
                self.refuse_unmasked(operand)

    def exact(self, expr: ir.Expr) -> ir.Expr:
        """`expr` with its value; beyond an int64, with its low 64 bits in one."""
        if self.masks_64_bits:
            self.check_operands(expr)
        match expr:
            case ir.Binary(op="&", type=ir.PythonType()) if not self.is_wide(expr) and not self.has_wide_constant(expr):
                return map_children(expr, self.low_bits)
            case ir.Constant() if self.is_wide(expr):
                return self.as_int(self.modular(expr))
            case ir.Binary(op=op, type=ir.PythonType()) if op in _MODULAR and (
                self.is_wide(expr) or (op == "&" and self.has_wide_constant(expr))
            ):
                return self.as_int(self.modular(expr))
            case ir.Binary(op=op, type=ir.PythonType()) if op in _MODULAR and self.has_wide_constant(expr):
                self.refuse_unmasked(expr)
                return expr
            case ir.Binary(op=op, left=left, right=right, type=ir.PythonType(kind=Kind.INT)) if op in _BY_SIGN and (
                self.is_wide(left) or self.is_wide(right)
            ):
                self.require_natural(expr, left, right)
                by = self.exact(right) if op == ">>" else self.modular(right)
                return self.as_int(ir.Binary(op, self.modular(left), by, expr.span, _UINT64))
            case ir.Compare(left=left, right=right) if self.is_wide(left) or self.is_wide(right):
                self.require_natural(expr, left, right)
                self.lines.add(expr.span.line)
                return with_fields(expr, left=self.modular(left), right=self.modular(right))
            case ir.Convert(value=value, type=type_) if self.is_wide(value) and type_ != ir.PY_INT:
                self.lines.add(expr.span.line)
                return with_fields(expr, value=self.modular(value))
            case ir.Call(function=function, args=args) if (
                function in ROWS
                and ROWS[function].range in (Bound.GREATEST, Bound.LEAST)
                and any(map(self.is_wide, args))
            ):
                self.require_natural(expr, *args)
                return self.as_int(with_fields(expr, args=tuple(map(self.modular, args)), type=_UINT64))
            case _:
                return map_children(expr, self.exact)

    def low_bits(self, expr: ir.Expr) -> ir.Expr:
        """An operand of a mask of fewer than 64 bits: sums and products in it may wrap at 64 bits."""
        if isinstance(expr, ir.Binary) and expr.op in _MODULAR and isinstance(expr.type, ir.PythonType):
            return map_children(expr, self.low_bits)
        return self.exact(expr)

    def modular(self, expr: ir.Expr) -> ir.Expr:
        """The low 64 bits of an integer, as a uint64."""
        self.lines.add(expr.span.line)
        match expr:
            case ir.Constant(value=value):
                return _uint64_constant(expr, int(value) % (UINT64_MAX + 1))
            case ir.Binary(op="<<", left=left, right=count, type=ir.PythonType(kind=Kind.INT)):
                return ir.Binary("<<", self.modular(left), self.exact(count), expr.span, _UINT64)
            case ir.Binary(op=op, left=left, right=right, type=ir.PythonType(kind=Kind.INT)) if op in _MODULAR:
                return ir.Binary(op, self.modular(left), self.modular(right), expr.span, _UINT64)
            case ir.Select(then=then, orelse=orelse, type=ir.PythonType(kind=Kind.INT)):
                test = self.exact(expr.test)
                return ir.Select(test, self.modular(then), self.modular(orelse), expr.span, _UINT64)
            case _:
                return _as_uint64(self.exact(expr))

    def as_int(self, value: ir.Expr) -> ir.Expr:
        self.lines.add(value.span.line)
        return ir.Convert(value, ir.PY_INT, value.span)

    def has_wide_constant(self, expr: ir.Expr) -> bool:
        """True for a constant beyond an int64, and for arithmetic modulo 2**64 that contains one."""
        match expr:
            case ir.Constant():
                return self.is_wide(expr)
            case ir.Binary(op=op, left=left, right=right) if op in _MODULAR:
                return self.has_wide_constant(left) or self.has_wide_constant(right)
            case _:
                return False

    def refuse_unmasked(self, expr: ir.Expr) -> None:
        self.reporter.error(
            "P305",
            "this may be negative, or not fit 64 bits",
            expr.span,
            "keep its low 64 bits: `& 0xFFFFFFFFFFFFFFFF`",
        )

    def require_natural(self, expr: ir.Expr, *operands: ir.Expr) -> None:
        """Refuse an operation on an integer beyond an int64 and one that may be negative, or may exceed a uint64."""
        for operand in operands:
            if not self.is_natural(operand):
                wide = next(each for each in operands if self.is_wide(each))
                quote = self.reporter.file.quote
                self.reporter.error(
                    "P305",
                    f"`{quote(wide.span)}` may exceed the greatest int64, and `{quote(operand.span)}` may be negative",
                    expr.span,
                    f"compute both in uint64: `np.uint64({quote(wide.span)})` and `np.uint64({quote(operand.span)})`",
                )
                return


def _uint64_constant(constant: ir.Constant, value: int) -> ir.Constant:
    """The constant as a uint64. A large named constant is usually a mask, so it is spelled in hexadecimal."""
    text = f"0x{value:X}" if value > _INT64_MAX and not constant.text[:1].isdigit() else constant.text
    return with_fields(constant, value=value, type=_UINT64, text=text)


def _as_uint64(value: ir.Expr) -> ir.Expr:
    match value:
        case ir.Constant(value=int(number)):
            return _uint64_constant(value, number)
        case ir.Convert(value=inner, type=ir.PythonType()) if inner.type == _UINT64:
            return inner
        case ir.Convert(value=inner, type=ir.PythonType(kind=Kind.INT)) if _is_whole_element(inner.type):
            return ir.Convert(inner, _UINT64, value.span)
        case _:
            return ir.Convert(value, _UINT64, value.span)


def _is_whole_element(type_: ir.Type) -> bool:
    return isinstance(type_, ir.ElementType) and type_.dtype.kind is Kind.INT


def _is_uint64_as_int(value: ir.Expr) -> bool:
    return isinstance(value, ir.Convert) and value.type == ir.PY_INT and value.value.type == _UINT64


def _is_uint64(value: ir.Expr) -> bool:
    """True for a converted uint64, and for a constant that one holds."""
    is_constant = isinstance(value, ir.Constant) and value.type == ir.PY_INT and value.value >= 0
    return is_constant or _is_uint64_as_int(value)


def _with_uint64_locals(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel with a uint64 for each local to which only converted uint64 and constants are assigned."""
    values: dict[str, list[ir.Expr]] = {}
    for stmt in statements(kernel.body):
        if isinstance(stmt, ir.Assign):
            values.setdefault(stmt.name, []).append(stmt.value)
    parameters = {parameter.name for parameter in kernel.parameters}
    names = {
        name
        for name, assigned in values.items()
        if name not in parameters and any(map(_is_uint64_as_int, assigned)) and all(map(_is_uint64, assigned))
    }
    if not names:
        return kernel

    def change(expr: ir.Expr) -> ir.Expr:
        match expr:
            case ir.Name(id=name) if name in names:
                return ir.Convert(with_fields(expr, type=_UINT64), ir.PY_INT, expr.span)
            case ir.Convert(value=ir.Convert(value=inner, type=ir.PythonType()), type=type_) if (
                type_ == inner.type == _UINT64
            ):
                return inner
            case _:
                return expr

    def change_statement(stmt: ir.Stmt) -> ir.Block:
        if isinstance(stmt, ir.Assign) and stmt.name in names:
            return (with_fields(stmt, value=_as_uint64(stmt.value)),)
        return (stmt,)

    body = rebuild_block(kernel.body, change, change_statement)
    locals_ = tuple((name, _UINT64 if name in names else type_) for name, type_ in kernel.locals)
    return with_fields(kernel, body=body, locals=locals_)
