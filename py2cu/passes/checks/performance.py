"""Notes code that is slow on a GPU and could be written otherwise (`py2cu translate --notes`).

    out[i] = x[i] * (a * a)       P701: `a * a` of Python floats is computed in double
    s += x[at]                    P702: in a loop, and `at` has no bound: 64 bits
    s += x[k % m]                 P703: in a loop, and `m` is no constant: some forty instructions
    out[c, r] = x[r, c]           P704: neighbouring threads write elements that lie far apart

Reads the typed kernel and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from py2cu import ir
from py2cu.analysis.global_indices import find_global_indices
from py2cu.analysis.ranges import Ranges
from py2cu.diagnostics import Reporter
from py2cu.dtypes import F32, F64, Kind
from py2cu.ir.visit import blocks, children, expressions, names_in, walk


def note_performance(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """Report slow code as notes; the kernel is unchanged."""
    noter = _Noter(kernel, reporter, Ranges(kernel), _thread_axes(kernel))
    for place in _places(kernel.body, False):
        noter.look_at(place)
    return kernel


@dataclass(frozen=True, slots=True)
class _Place:
    """A statement, and whether a loop evaluates its expressions repeatedly."""

    stmt: ir.Stmt
    in_loop: bool


def _places(block: ir.Block, in_loop: bool) -> Iterator[_Place]:
    for stmt in block:
        yield _Place(stmt, in_loop or isinstance(stmt, ir.While))
        for inner in blocks(stmt):
            yield from _places(inner, in_loop or isinstance(stmt, ir.For | ir.While))


def _thread_axes(kernel: ir.Kernel) -> dict[str, str]:
    """The names that hold a thread's index, with its axis; neighbours in a warp differ in x."""
    return {index.name: index.axis for index in kernel.indices} | find_global_indices(kernel).names


@dataclass(frozen=True, slots=True)
class _Noter:
    kernel: ir.Kernel
    reporter: Reporter
    ranges: Ranges
    axes: dict[str, str]

    def look_at(self, place: _Place) -> None:
        if self.is_single:
            for expr in expressions(place.stmt):
                self.note_doubles(expr)
        if isinstance(place.stmt, ir.Store):
            self.look_at_access(place.stmt, place.in_loop)
        for expr in expressions(place.stmt):
            for node in walk(expr):
                if isinstance(node, ir.Load):
                    self.look_at_access(node, place.in_loop)
                if place.in_loop and isinstance(node, ir.Binary):
                    self.note_division(node)

    def look_at_access(self, access: ir.Load | ir.Store, in_loop: bool) -> None:
        if self.kernel.is_kernel_local(access.array):
            return
        if in_loop:
            self.note_wide_index(access)
        self.note_order(access)

    @property
    def is_single(self) -> bool:
        """True where the arrays hold float32 and none holds float64."""
        dtypes = {p.type.dtype for p in self.kernel.arrays if isinstance(p.type, ir.ArrayType)}
        return F32 in dtypes and F64 not in dtypes

    def note_doubles(self, expr: ir.Expr) -> None:
        """Report the outermost operations on Python floats."""
        if isinstance(expr, ir.Binary | ir.Call) and expr.type == ir.PY_FLOAT:
            hint = "compute in float32: cast a part of it with `np.float32(…)`, or pass the result as a parameter"
            self.reporter.note("P701", "this is computed in double, though the arrays hold float32", expr.span, hint)
            return
        for child in children(expr):
            self.note_doubles(child)

    def note_wide_index(self, access: ir.Load | ir.Store) -> None:
        for index in access.indices:
            if self.ranges.of(index).reach is None:
                hint = "let a loop count it, or bound it: `min(v, n - 1)`, `v % n`"
                message = "nothing bounds this index in a loop, so it takes 64 bits"
                self.reporter.note("P702", message, index.span, hint)

    def note_division(self, expr: ir.Binary[ir.Expr]) -> None:
        is_integer = isinstance(expr.type, ir.ElementType | ir.PythonType) and ir.kind_of(expr.type) < Kind.FLOAT
        is_known = isinstance(expr.right, ir.Constant) or (
            isinstance(expr.right, ir.Name) and expr.right.id in self.kernel.constexprs
        )
        if expr.op in ("//", "%") and is_integer and not is_known:
            hint = "divide before the loop, count along with it, or make the divisor a constant, best a power of two"
            self.reporter.note("P703", f"`{expr.op}` by a value that is not constant, in a loop", expr.span, hint)

    def note_order(self, access: ir.Load | ir.Store) -> None:
        if not access.indices:
            return
        *slow, fast = map(self.axes_of, access.indices)
        if "x" not in fast and fast and any("x" in axes for axes in slow):
            message = f"neighbouring threads reach elements of `{access.array}` that lie far apart"
            hint = "put the index that runs fastest, x, last: in `Index` parameters the last one, else `threadIdx.x`"
            self.reporter.note("P704", message, access.span, hint)

    def axes_of(self, index: ir.Expr) -> set[str]:
        launched = {n.axis for n in walk(index) if isinstance(n, ir.LaunchIndex) and n.object == "threadIdx"}
        return launched | {self.axes[name] for name in names_in(index) if name in self.axes}
