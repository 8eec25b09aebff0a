"""Chooses the C type of each Python integer: `int` where its range fits, `index_t` where the launch decides, else
`int64_t`.

    i, n, 2 * n + i        index_t: the launcher takes int if 3 * n fits, else int64_t
    k = 0 … 9              int
    seen += x[i]           int64_t

A result that needs more bits than its operands gets a `Convert` of the left one, as in `int64_t(1) << s`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

from py2cu import ir
from py2cu.analysis.argument_ranges import functions_with_ranges
from py2cu.analysis.call_graph import reachable_functions
from py2cu.analysis.launches import used_names
from py2cu.analysis.ranges import FAR, INT_MAX, Ranges
from py2cu.builtins import ROWS
from py2cu.diagnostics import Reporter
from py2cu.dtypes import I32, I64, Kind
from py2cu.ir.abi.launch_values import only_converted
from py2cu.ir.abi.parameters import Constexpr
from py2cu.ir.intervals import Interval, SymbolicBound, plus, times
from py2cu.ir.names import list_elements
from py2cu.ir.rewrite import rebuild, rebuild_block, with_fields
from py2cu.ir.visit import children, walk

_INTEGERS = {width: ir.PythonType(Kind.INT, width) for width in ir.Width}


def choose_integer_widths(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """The kernel with every Python integer's width, and the bounds under which `index_t` may be `int`.

    What a device function's parameters can be follows from all its calls.
    """
    kernel = with_fields(kernel, functions=reachable_functions(kernel))
    kernel = with_fields(kernel, functions=functions_with_ranges(kernel))
    chooser = _Chooser(kernel, kernel.constexprs)
    typed = chooser.run()
    functions = []
    for function in kernel.functions:
        inner = _Chooser(with_fields(function, functions=kernel.functions), kernel.constexprs)
        functions.append(with_fields(inner.run(), functions=()))
        chooser.bounds += inner.bounds
        chooser.is_bounded &= inner.is_bounded
    bounds = prune(chooser.bounds, _nonzero(kernel))
    return with_fields(
        typed,
        functions=tuple(functions),
        bounds=bounds,
        size_bounds=chooser.size_bounds(),
        all_integers_bounded=chooser.is_bounded,
    )


def with_common_bounds(family: ir.Instances) -> ir.Instances:
    """The instances of a kernel with the bounds of all of them, so that they share a launcher."""
    bounds: list[SymbolicBound] = [dict(bound.terms) for instance in family for bound in instance.bounds]
    return tuple(instance.having(bounds=prune(bounds, _nonzero(instance))) for instance in family)


class _Chooser:
    def __init__(self, kernel: ir.Kernel, constexprs: Mapping[str, Constexpr]) -> None:
        self.kernel = kernel
        self.constexprs = constexprs
        self.ranges = Ranges(kernel)
        self.bounds: list[SymbolicBound] = []
        self.is_bounded = True
        self.index_names = {*kernel.dims, *(index.name for index in kernel.indices)} - kernel.constexprs.keys()

    def run(self) -> ir.Kernel:
        kernel = self.kernel
        body = rebuild_block(kernel.body, self.expression, self.statement)
        locals_ = tuple(
            (name, type_ if isinstance(type_, ir.TupleType) else self.of_name(name, type_))
            for name, type_ in kernel.locals
        )
        array_decls = tuple(self.of_list(decl) if decl.is_list else decl for decl in kernel.array_decls)
        converted = only_converted(kernel.launch_values) - used_names(kernel) - {*kernel.dims}  # the launcher's alone
        parameters = tuple(
            p
            if isinstance(p.type, ir.ArrayType) or p.name in converted
            else replace(p, type=self.of_name(p.name, p.type))
            for p in kernel.parameters
        )
        for index in kernel.indices:
            axis = index.axis
            self.bounds.append({(f"blockDim.{axis}", f"gridDim.{axis}"): 1})
            self.bounds += self._steps(index.extent)  # the guard computes it for any grid  # rule: grid-guard-bounds
        if kernel.has_flat_launch:
            self.bounds += [bound for extent in kernel.size or () for bound in self._steps(extent)]
        if not kernel.key:
            self._bound_arrays()
        result = self.of_result(kernel.result) if kernel.result_ranges else kernel.result
        changed = with_fields(kernel, body=body, locals=locals_, parameters=parameters, result=result)
        return with_fields(changed, array_decls=array_decls)

    def of_result(self, type_: ir.ValueType | None) -> ir.ValueType | None:
        match type_:
            case ir.TupleType(items=items):
                return ir.TupleType(tuple(map(self.of_range, items, self.kernel.result_ranges)))
            case None:
                return None
            case _:
                return self.of_range(type_, self.kernel.result_ranges[0])

    def of_range(self, type_: ir.ScalarType, range_: Interval) -> ir.ScalarType:
        return _INTEGERS[self.width(range_)] if type_ == ir.PY_INT else type_

    def of_list(self, decl: ir.ArrayDecl) -> ir.ArrayDecl:
        """A list of Python integers that `int` holds takes `int` elements, else 64 bits."""
        if decl.type.element != ir.PY_INT:
            return decl
        return replace(decl, type=replace(decl.type, dtype=I32 if self.has_int_elements(decl.name) else I64))

    def has_int_elements(self, array: str) -> bool:
        """True for a list of Python integers that `int` holds whatever the launch is."""
        elements = self.ranges.names.get(list_elements(array))
        return elements is not None and self.width(elements) is ir.Width.INT

    def _bound_arrays(self) -> None:
        """Record the size of every array, and the farthest offset in a strided one: a flat index may reach them."""
        for array in self.kernel.arrays:
            assert isinstance(array.type, ir.ArrayType)
            size: SymbolicBound | None = {(): 1}
            farthest: SymbolicBound | None = {}
            for dim in array.type.dims:
                size = times(size, self.ranges.of(dim).bound)
            for dim, stride in zip(array.type.dims, self.kernel.strides_of(array.name), strict=False):
                farthest = plus(farthest, times(self.ranges.of(dim).bound, {(stride.id,): 1}))
            self.bounds += [bound for bound in (size, farthest) if bound]  # rule: strides-bound

    def size_bounds(self) -> tuple[ir.IndexBound, ...]:
        """The bounds of all intermediate results in the extents of the launch."""
        return prune([bound for extent in self.kernel.size or () for bound in self._steps(extent)], frozenset())

    def _steps(self, extent: ir.Expr) -> list[SymbolicBound]:
        """The symbolic bounds of the operations in `extent`, except those that are extents of arrays."""
        types = (array.type for array in self.kernel.arrays)
        known = [dim for type_ in types if isinstance(type_, ir.ArrayType) for dim in type_.dims]
        steps = (node for node in walk(extent) if isinstance(node, ir.Binary) and node not in known)
        return [bound for step in steps if (bound := self.ranges.of(step).bound) is not None]

    def width(self, range_: Interval) -> ir.Width:
        """The narrowest type for values of this range; a bound that only the launch can judge is recorded."""
        width = self._width(range_)
        self.is_bounded &= width is not ir.Width.LONG  # rule: integer-bounded
        return width

    def _width(self, range_: Interval) -> ir.Width:
        if range_.bound is None:
            return ir.Width.LONG  # rule: width-unbounded
        if range_.low >= -FAR and range_.high <= FAR:
            return ir.Width.INT
        names = {name for term in range_.bound for name in term}
        if names <= self.constexprs.keys():
            most = {name: self.constexprs[name].most for name in names}
            # rule: width-within-int
            if sum(n * math.prod(most[name] for name in term) for term, n in range_.bound.items()) <= INT_MAX:
                return ir.Width.INT
            # The launcher checks values that are not known yet: they may fit.
            if all(self.constexprs[name].values for name in names):
                return ir.Width.LONG
        if any(abs(factor) > INT_MAX for factor in range_.bound.values()):
            return ir.Width.LONG
        self.bounds.append(range_.bound)  # rule: width-bound
        return ir.Width.INDEX

    def of_name(self, name: str, type_: ir.ScalarType) -> ir.ScalarType:
        if isinstance(type_, ir.PythonType) and type_.kind is Kind.INT:
            return _INTEGERS[self.width(self.ranges.names[name])]
        return type_

    def expression(self, expr: ir.Expr) -> ir.Expr:
        if not (isinstance(expr.type, ir.PythonType) and expr.type.kind is Kind.INT):
            return expr
        match expr:
            case ir.Name(id=name) if name in self.index_names:
                return with_fields(expr, type=extent_type(self.kernel, name))
            case ir.LaunchIndex():
                return with_fields(expr, type=ir.INT)
            case ir.Load(array=array) if self.kernel.is_list(array):
                return with_fields(expr, type=ir.INT if self.has_int_elements(array) else ir.LONG)
        # Never narrower than the operands: C computes in their type.
        operands = map(_width, () if _has_own_width(expr) else children(expr))
        width = max(self.width(self.ranges.of(expr)), *operands, ir.Width.INT)
        # rule: width-of-count
        if isinstance(expr, ir.Binary) and expr.op in ("<<", ">>") and self.ranges.of(expr.right).high >= I32.bits:
            width = ir.Width.LONG  # C leaves such a shift of an `int` undefined
            if not isinstance(expr.right, ir.Constant):
                self.is_bounded = False  # the count may exceed 64 bits as well  # rule: count-bounded
        typed = with_fields(expr, type=_INTEGERS[width])
        return widen_operands(typed)

    def statement(self, stmt: ir.Stmt) -> ir.Block:
        if (
            isinstance(stmt, ir.Assign)
            and isinstance(stmt.value.type, ir.PythonType)
            and stmt.value.type.kind is Kind.INT
        ):
            self.width(self.ranges.of(stmt.value))
        if isinstance(stmt, ir.For) and isinstance(stmt.type, ir.PythonType) and stmt.type.kind is Kind.INT:
            return (with_fields(stmt, type=self.of_name(stmt.var, stmt.type)),)
        return (stmt,)


def extent_type(kernel: ir.Kernel, name: str) -> ir.PythonType:
    """The type of an extent.

    The launcher checks extents of arrays against 2³¹, but not constants that callers pass to a device function.
    """
    bound = dict(kernel.argument_ranges)[name].bound if name in dict(kernel.argument_ranges) else None
    return ir.LONG if bound is not None and bound.get((), 0) > INT_MAX else ir.INDEX  # rule: width-of-extent


def typed_extent(kernel: ir.Kernel, extent: ir.Expr, ranges: Callable[[], Ranges]) -> ir.Expr:
    """`extent` with the types that C++ computes it in.

    A template argument is an `int`, and so is arithmetic of template arguments and constants, unless its values need 64
    bits. `ranges` computes the ranges of `kernel`; it is called only for such arithmetic.
    """

    def change(node: ir.Expr) -> ir.Expr:
        match node:
            case ir.Name(id=name):
                return with_fields(node, type=ir.INT if name in kernel.constexprs else extent_type(kernel, name))
            case ir.Binary(left=left, right=right):
                width = max(_width(left), _width(right), ir.Width.INT)
                if width is ir.Width.INT and ranges().of(node).high > INT_MAX:
                    return widen_operands(with_fields(node, type=ir.LONG))
                return with_fields(node, type=ir.PythonType(Kind.INT, width))
            case _:
                return node

    return rebuild(extent, change)


def widen_operands(expr: ir.Expr) -> ir.Expr:
    """C computes in the operands' type, so one of them must have the result's width."""
    match expr:
        case ir.Binary(left=left, right=right, type=ir.PythonType(width=width)) if width is not ir.Width.INT:
            if max(_least_width(left), _least_width(right)) < width and expr.op != "//":  # rule: width-of-operands
                if isinstance(right, ir.LaunchIndex):
                    return with_fields(expr, right=ir.Convert(right, expr.type, right.span))
                return with_fields(expr, left=ir.Convert(left, expr.type, left.span))
        case ir.Unary(operand=operand, type=ir.PythonType(width=width)) if _least_width(operand) < width:
            return with_fields(expr, operand=ir.Convert(operand, expr.type, operand.span))
        case ir.Call(function=function, args=args, type=ir.PythonType() as type_) if _is_template(function):
            widest = replace(type_, width=max(_width(arg) for arg in args))
            even = tuple(arg if _width(arg) is widest.width else ir.Convert(arg, widest, arg.span) for arg in args)
            return with_fields(expr, type=widest, args=even)
    return expr


def _has_own_width(expr: ir.Expr) -> bool:
    """True if the type of the result does not depend on the operands."""
    match expr:
        case ir.Call(function=function):
            return function in ROWS and ROWS[function].result == "int"  # `popc`
        case _:
            return isinstance(expr, ir.Load | ir.Convert | ir.DeviceCall | ir.TupleItem)


def _is_template(function: str) -> bool:
    """True for functions whose arguments have one type, the widest."""
    return function == "ceil_div" or (function in ROWS and bool(ROWS[function].of_integers))


def _width(expr: ir.Expr) -> ir.Width:
    return expr.type.width if isinstance(expr.type, ir.PythonType) and expr.type.kind is Kind.INT else ir.Width.INT


def _least_width(expr: ir.Expr) -> ir.Width:
    """The width in which C computes `expr` at least: a constant takes the width of the other operand."""
    return ir.Width.INT if isinstance(expr, ir.Constant) else max(_width(expr), ir.Width.INT)


def _nonzero(kernel: ir.Kernel) -> frozenset[str]:
    """The names that are at least 1 in a running kernel: the extents of its launch, its grid and its block."""
    launched = {dim.id for dim in kernel.size or () if isinstance(dim, ir.Name)}
    return frozenset(launched | {f"{thing}.{axis}" for thing in ("gridDim", "blockDim") for axis in "xyz"})


def prune(bounds: list[SymbolicBound], nonzero: frozenset[str]) -> tuple[ir.IndexBound, ...]:
    """The bounds that no other one implies, without their negative terms, in a stable order."""
    positive = [{term: n for term, n in bound.items() if n > 0} for bound in bounds]
    unique = [dict(terms) for terms in dict.fromkeys(tuple(sorted(bound.items())) for bound in positive if any(bound))]
    not_implied = [
        bound for bound in unique if not any(other is not bound and _implies(other, bound, nonzero) for other in unique)
    ]
    return tuple(ir.IndexBound(tuple(bound.items())) for bound in not_implied)


def _implies(stronger: SymbolicBound, weaker: SymbolicBound, nonzero: frozenset[str]) -> bool:
    """True if `weaker` never exceeds `stronger`: a separate term of `stronger` covers each of its terms."""
    used: set[tuple[str, ...]] = set()
    for term, n in weaker.items():
        cover = next((other for other, m in stronger.items() if n <= m and _divides(term, other, nonzero)), None)
        if cover is None or cover in used:
            return False
        used.add(cover)
    return True


def _divides(term: tuple[str, ...], other: tuple[str, ...], nonzero: frozenset[str]) -> bool:
    """True if `other` is `term` times names that are at least 1."""
    rest = list(other)
    for name in term:
        if name not in rest:
            return False
        rest.remove(name)
    return set(rest) <= nonzero
