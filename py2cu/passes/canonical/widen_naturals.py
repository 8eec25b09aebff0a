"""Computes Python integers from 2**63 to 2**64 - 1 in uint64.

    product = a * b          uint64(uint32(a)) * uint32(b)       a and b are at most 2**32 - 1
    high = product >> 32     int64(uint64(product) >> 32)        a shift of the int64 would copy its sign
    h = (h ^ x) * P & M64    (uint64(h) ^ uint64(x)) * P & M64   the low 64 bits are exact in modular arithmetic

`NaturalBounds` finds these integers. A local to which only such integers and constants are assigned becomes a uint64.
Other locals hold the low 64 bits in an int64, which are converted where an operation depends on the sign. An operation
that observes more than the low 64 bits of an integer which neither type holds is refused. The simulator does not report
integers beyond an int64 at the places of these computations: `Kernel.natural_places` lists them.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Final

from py2cu import ir
from py2cu.analysis.natural_bounds import INT64_MAX, UINT64_MAX, NaturalBounds, Sign, exceeds_int64, is_natural
from py2cu.builtins import ROWS, Bound, Rule
from py2cu.diagnostics import Reporter
from py2cu.dtypes import U32, U64, Kind
from py2cu.ir.operators import OPERATORS
from py2cu.ir.rewrite import map_all, map_blocks, map_children, map_expressions, rebuild_block, with_fields
from py2cu.ir.visit import all_expressions, children, statements
from py2cu.source import Span

_UINT64: Final = ir.ElementType(U64)
_LARGE: Final = 2**31  # sums of smaller numbers stay within an int64
_MODULAR: Final = frozenset(symbol for symbol, row in OPERATORS.items() if row.is_modular)
_BY_SIGN: Final = frozenset([">>", "//", "%"])


def widen_naturals(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """The kernel and its device functions with the integers that an int64 may not hold in uint64."""
    callers = (kernel, *kernel.functions)
    if not _may_exceed_int64(caller.body for caller in callers):
        return kernel
    bounds, places = NaturalBounds(kernel), dict[Span, bool]()
    first, *functions = (_Widening(caller, bounds, reporter.within(caller.origin), places).run() for caller in callers)
    natural_places = tuple(sorted(span for span, is_natural in places.items() if is_natural))
    return with_fields(first, functions=tuple(functions), natural_places=natural_places)


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
    return is_bounded and multiplies  # rule: natural-multiplied


@dataclass(slots=True)
class _Widening:
    """Rewrites one function. `exact` keeps the value of an expression; `modular` keeps its low 64 bits, as a uint64."""

    kernel: ir.Kernel
    bounds: NaturalBounds
    reporter: Reporter
    places: dict[Span, bool]  # of integers: whether the simulator must not report one beyond an int64

    def run(self) -> ir.Kernel:
        body = self.block(self.kernel.body)
        return self.kernel if body is self.kernel.body else _with_uint64_locals(with_fields(self.kernel, body=body))

    def block(self, block: ir.Block) -> ir.Block:
        done = tuple(map(self.statement, block))
        return block if all(map(operator.is_, block, done)) else done

    def statement(self, stmt: ir.Stmt) -> ir.Stmt:
        match stmt:
            case ir.Print(values=values):
                return with_fields(stmt, values=map_all(values, self.printed))
            case ir.Assert(test=test, values=values):
                return with_fields(stmt, test=self.observed(test), values=map_all(values, self.printed))
            case ir.If(test=test) | ir.While(test=test):
                return map_blocks(with_fields(stmt, test=self.observed(test)), self.block)
            case ir.For(start=start, stop=stop, step=step):
                for bound in filter(self.is_wide, (start, stop, step)):  # rule: natural-range
                    self.refuse_wide(bound, "`range` counts in int64")
                start, stop, step = map(self.observed, (start, stop, step))
                return map_blocks(with_fields(stmt, start=start, stop=stop, step=step), self.block)
            case _:
                return map_expressions(stmt, self.exact)

    def printed(self, value: ir.Expr) -> ir.Expr:
        return self.modular(value) if self.is_wide(value) else self.observed(value)

    # --- what is known of an integer ---

    def exceeds(self, expr: ir.Expr) -> bool:
        """True for a Python integer that an int64 may not hold."""
        return expr.type == ir.PY_INT and exceeds_int64(self.bounds.of(expr))

    def is_wide(self, expr: ir.Expr) -> bool:
        """True for a Python integer that an int64 may not hold, but a uint64 does."""
        return self.exceeds(expr) and self.bounds.of(expr) is not Sign.MIXED  # rule: natural-wide

    def fits_uint32(self, expr: ir.Expr) -> bool:
        size = self.bounds.of(expr)
        return isinstance(size, int) and size <= U32.high  # rule: natural-narrow

    def is_wide_constant(self, expr: ir.Expr) -> bool:
        return isinstance(expr, ir.Constant) and self.is_wide(expr)

    def is_masked(self, expr: ir.Expr) -> bool:
        """False for an integer that 64 bits may not hold; it is refused."""
        if self.exceeds(expr) and not self.is_wide(expr):
            self.refuse_unmasked(expr)
            return False
        return True

    def are_natural(self, expr: ir.Expr, operands: tuple[ir.Expr, ...]) -> bool:
        """False for an integer beyond an int64 and one that may be negative; `expr` is refused then."""
        for operand in operands:
            if not is_natural(self.bounds.of(operand)):  # rule: natural-operand
                wide = next(each for each in operands if self.is_wide(each))
                quote = self.reporter.file.quote
                self.reporter.error(
                    "P305",
                    f"`{quote(wide.span)}` may exceed the greatest int64, and `{quote(operand.span)}` may be negative",
                    expr.span,
                    f"compute both in uint64: `np.uint64({quote(wide.span)})` and `np.uint64({quote(operand.span)})`",
                )
                return False
        return True

    def refuse_unmasked(self, expr: ir.Expr) -> None:
        hint = "keep its low 64 bits: `& 0xFFFFFFFFFFFFFFFF`"
        self.reporter.error("P305", "this may be negative, or not fit 64 bits", expr.span, hint)

    def refuse_wide(self, expr: ir.Expr, what: str) -> None:
        message = f"`{self.reporter.file.quote(expr.span)}` may exceed the greatest int64, and {what}"
        self.reporter.error("P305", message, expr.span, "keep its low 63 bits: `& 0x7FFFFFFFFFFFFFFF`")

    def silence(self, expr: ir.Expr, *, masked: bool = False) -> None:
        """Keep the simulator from reporting an integer that a uint64 holds, or of which a mask takes the low bits.

        Expressions of several instances of a function have one place.
        """
        if isinstance(expr, ir.Binary | ir.Unary) and expr.type == ir.PY_INT:
            is_exact = masked or self.is_wide(expr)  # rule: integer-masked
            if is_exact or isinstance(expr, ir.Unary) or OPERATORS[expr.op].may_leave:
                # rule: integer-silenced
                self.places[expr.span] = self.places.get(expr.span, True) and is_exact

    # --- expressions ---

    def observed(self, expr: ir.Expr) -> ir.Expr:
        """`expr` where more than its low 64 bits counts."""
        return self.exact(expr) if self.is_masked(expr) else expr  # rule: natural-masked

    def exact(self, expr: ir.Expr) -> ir.Expr:
        """`expr` with its value; beyond an int64, with its low 64 bits in one."""
        self.silence(expr)
        operands = children(expr)
        for part in operands if isinstance(expr, ir.Select | ir.Compare) else ():
            self.check_met(part)
        observed = tuple(operand for operand in operands if _observes(expr, operand))
        if not all([*map(self.is_masked, observed)]):
            return map_children(expr, self.exact)
        match expr:
            case ir.Convert(value=value) if self.is_wide(value) and expr.type != ir.PY_INT:  # rule: natural-converted
                return map_children(expr, self.modular)
            case _ if any(map(self.is_wide, observed)):
                return self.in_uint64(expr, observed)
            case ir.Constant() if self.is_wide(expr):
                return _as_int(self.modular(expr))
            case ir.Unary(op="-" | "~") if self.exceeds(*operands):
                return _as_int(self.modular(expr))
            case ir.Binary(op=op, type=ir.PythonType()) if op in _MODULAR:
                if self.is_wide(expr) or (op != "&" and any(map(self.exceeds, operands))):
                    return _as_int(self.modular(expr))
                return map_children(expr, self.low_bits if op == "&" else self.exact)
        return map_children(expr, self.exact)

    def count(self, expr: ir.Expr) -> ir.Expr:
        """The count of a shift, which C++ takes as an int64."""
        if self.is_wide(expr):
            self.refuse_wide(expr, "a shift counts in int64")  # rule: natural-count
        return self.observed(expr)

    def check_met(self, value: ir.Expr) -> None:
        """Refuse an integer beyond an int64 that promotion with an element converts to the type of the element."""
        match value:
            case ir.Convert(value=number, type=ir.ElementType(dtype=dtype), explicit=False) if self.exceeds(number):
                if not (dtype is U64 and self.is_wide(number)):  # rule: natural-met
                    self.refuse_wide(number, f"the element beside it converts it to {dtype}")

    def in_uint64(self, expr: ir.Expr, observed: tuple[ir.Expr, ...]) -> ir.Expr:
        """`expr`, of which all bits of `observed` decide the result: an int64 may not hold one of them."""
        match expr:
            case ir.BoolOp() | ir.Select() | ir.Unary():
                return map_children(expr, self.exact)
            case ir.Call(function=function, args=args) if ROWS[function].of_integers:
                if self.are_natural(expr, observed):
                    return _as_int(with_fields(expr, args=map_all(args, self.modular), type=_UINT64))
            case ir.Call(function=function, args=(number,)) if ROWS[function].range is Bound.MAGNITUDE:
                return self.exact(number)
            case ir.Compare():
                if self.are_natural(expr, observed):
                    return map_children(expr, self.modular)
            case ir.Binary(op=op, left=left, right=right) if op in _BY_SIGN:  # rule: natural-by-sign
                if self.are_natural(expr, observed):
                    by = self.count(right) if op == ">>" else self.modular(right)
                    return _as_int(ir.Binary(op, self.modular(left), by, expr.span, _UINT64))
            case _:
                what = f"`{expr.function}`" if isinstance(expr, ir.Call) else "a power"
                self.refuse_wide(next(filter(self.is_wide, observed)), f"{what} is computed in int64")
        return expr

    def low_bits(self, expr: ir.Expr) -> ir.Expr:
        """An operand of a mask of fewer than 64 bits: sums and products in it may wrap at 64 bits."""
        if not isinstance(expr, ir.Binary) or expr.op not in _MODULAR or not isinstance(expr.type, ir.PythonType):
            return self.exact(expr)
        # rule: natural-low
        if expr.op in ("+", "-", "*") and any(map(self.exceeds, (expr, *children(expr)))):  # overflow is undefined
            self.silence(expr, masked=True)
            left, right = map(self.low_bits_in_uint64, (expr.left, expr.right))
            return _as_int(ir.Binary(expr.op, left, right, expr.span, _UINT64))
        if expr.op == "<<":
            return with_fields(expr, left=self.low_bits(expr.left), right=self.count(expr.right))
        return map_children(expr, self.low_bits)

    def low_bits_in_uint64(self, expr: ir.Expr) -> ir.Expr:
        return self.modular(expr, masked=True) if self.exceeds(expr) else _as_uint64(self.low_bits(expr))

    def modular(self, expr: ir.Expr, *, masked: bool = False) -> ir.Expr:
        """The low 64 bits of an integer, as a uint64; `masked`: nothing depends on others."""
        self.silence(expr, masked=masked)
        match expr:
            case ir.Constant(value=value):
                return _uint64_constant(expr, int(value) % (UINT64_MAX + 1))
            case ir.Binary(op="<<", left=left, right=count, type=ir.PythonType(kind=Kind.INT)):
                return ir.Binary("<<", self.modular(left, masked=masked), self.count(count), expr.span, _UINT64)
            case ir.Binary(op=op, left=left, right=right, type=ir.PythonType(kind=Kind.INT)) if op in _MODULAR:
                masked |= op == "&" and isinstance(self.bounds.of(expr), int)
                if not masked and not self.is_wide(expr) and any(map(self.is_wide_constant, (left, right))):
                    self.refuse_unmasked(expr)
                is_wide_product = op == "*" and self.fits_uint32(left) and self.fits_uint32(right)
                left, right = (self.modular(part, masked=masked) for part in (left, right))
                if is_wide_product:
                    left, right = _from_uint32(left), _from_uint32(right)
                return ir.Binary(op, left, right, expr.span, _UINT64)
            case ir.Unary(op="-" | "~" as op, operand=operand, type=ir.PythonType(kind=Kind.INT)):
                return ir.Unary(op, self.modular(operand, masked=masked), expr.span, _UINT64)
            case ir.Select(test=test, then=then, orelse=orelse, type=ir.PythonType(kind=Kind.INT)):
                then, orelse = (self.modular(part, masked=masked) for part in (then, orelse))
                return ir.Select(self.observed(test), then, orelse, expr.span, _UINT64)
            case _:
                return _as_uint64(self.exact(expr))


def _observes(expr: ir.Expr, operand: ir.Expr) -> bool:
    """True if more than the low 64 bits of an integer operand decide the result of `expr`."""
    match expr:
        case ir.Binary(op=op):
            return op in _BY_SIGN or (op == "**" and operand is expr.right)  # rule: natural-sign
        case ir.Convert(type=ir.ElementType() | ir.PythonType() as type_):
            return ir.kind_of(type_) is not Kind.INT
        case ir.Select(test=test):
            return operand is test  # rule: natural-test
        case ir.Call(function=function):
            return function in ROWS and ROWS[function].rule is not Rule.BITS  # rule: natural-in-call
        case _:
            # rule: natural-in-test
            return isinstance(expr, ir.Compare | ir.BoolOp) or (isinstance(expr, ir.Unary) and expr.op == "not")


def _as_int(value: ir.Expr) -> ir.Expr:
    return ir.Convert(value, ir.PY_INT, value.span)


def _uint64_constant(constant: ir.Constant, value: int) -> ir.Constant:
    """The constant as a uint64. A large named constant is usually a mask, so it is spelled in hexadecimal."""
    text = f"0x{value:X}" if value > INT64_MAX and not constant.text[:1].isdigit() else constant.text
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


def _from_uint32(value: ir.Expr) -> ir.Expr:
    """A uint64 that a uint32 holds, converted from one: hardware multiplies two of these by one instruction."""
    inner = value.value if isinstance(value, ir.Convert) else value
    if isinstance(value, ir.Constant) or (_is_whole_element(inner.type) and inner.type != _UINT64):
        return value
    return ir.Convert(ir.Convert(inner, ir.ElementType(U32), value.span), _UINT64, value.span)


def _is_whole_element(type_: ir.Type) -> bool:
    return isinstance(type_, ir.ElementType) and type_.dtype.kind is Kind.INT


def _is_uint64_as_int(value: ir.Expr) -> bool:
    return isinstance(value, ir.Convert) and value.type == ir.PY_INT and value.value.type == _UINT64  # rule: as-natural


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
