"""Notes code that is slow on a GPU and could be written otherwise (`py2cu translate --notes`).

    out[i] = x[i] * (a * a)       P701: `a * a` of Python floats is computed in double
    s += x[at]                    P702: in a loop, and `at` has no bound: 64 bits
    s += x[k % m]                 P703: in a loop, and `m` is no constant: some forty instructions
    out[c, r] = x[r, c]           P704: neighbouring threads write elements that lie far apart
    out[i] = x[i] ** 3            P705: `powf`, some hundred instructions
    out[r] = sum(h[r])            P707: `h` of halves, to which each addition rounds

Reads the typed kernel and its device functions, and changes nothing. Each cause has one note.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from py2cu import ir
from py2cu.analysis.argument_ranges import functions_with_ranges
from py2cu.analysis.call_graph import reachable_functions
from py2cu.analysis.global_indices import find_global_indices
from py2cu.analysis.ranges import Ranges
from py2cu.diagnostics import Reporter
from py2cu.dtypes import Kind
from py2cu.ir.operators import TORCH_POWERS
from py2cu.ir.rewrite import with_fields
from py2cu.ir.visit import blocks, expressions, names_in, walk
from py2cu.passes.checks.hidden_doubles import narrow_precision, note_doubles
from py2cu.passes.compute_in_launcher import compute_in_launcher

_ROUNDS_ONCE: Final = "adds in float32 and rounds once"
_GREATEST_PRODUCT: Final = 8  # a greater power takes more than three multiplications


def note_performance(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """Report slow code as notes; the kernel is unchanged."""
    precision = narrow_precision(kernel)
    functions = functions_with_ranges(with_fields(kernel, functions=reachable_functions(kernel)))
    for caller in (kernel, *functions):
        whole, local = with_fields(caller, functions=functions), reporter.within(caller.origin)
        ranges = Ranges(whole)
        if precision is not None:
            in_kernel = compute_in_launcher(caller, local) if caller is kernel else caller
            note_doubles(in_kernel, precision, ranges, local)
        noter = _Noter(caller, local, ranges, _thread_axes(whole))
        for place in _places(caller.body, False):
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
    unbounded: set[str] = field(default_factory=set)  # names whose wide indices have a note
    scattered: set[str] = field(default_factory=set)  # arrays whose order of indices has a note

    def look_at(self, place: _Place) -> None:
        match place.stmt:
            case ir.Store() as store:
                self.look_at_access(store, place.in_loop)
            case ir.Assign(name=name, value=ir.Binary("+", ir.Name(id=total), right=term)) if total == name:
                if place.in_loop:
                    self.note_sum(place.stmt, term)
        for expr in expressions(place.stmt):
            for node in walk(expr):
                match node:
                    case ir.Load():
                        self.look_at_access(node, place.in_loop)
                    case ir.Binary(op="**", left=base, right=ir.Constant(value=exponent)):
                        self.note_power(node, base, exponent)
                    case ir.Call(function="math.pow", args=(base, ir.Constant(value=exponent))):
                        self.note_power(node, base, exponent)
                    case ir.Binary() if place.in_loop:
                        self.note_division(node)

    def look_at_access(self, access: ir.Load | ir.Store, in_loop: bool) -> None:
        if self.kernel.is_kernel_local(access.array):
            return
        if in_loop:
            self.note_wide_index(access)
        self.note_order(access)

    def note_wide_index(self, access: ir.Load | ir.Store) -> None:
        for index in access.indices:
            names = set(names_in(index))
            if self.ranges.of(index).bound is None and (not names or not names <= self.unbounded):
                self.unbounded.update(names)
                hint = "let a loop count it, or bound it: `min(v, n - 1)`, `v % n`"
                message = "nothing bounds this index in a loop: it takes 64 bits, two or more instructions an operation"
                self.reporter.note("P702", message, index.span, hint)

    def note_division(self, expr: ir.Binary[ir.Expr]) -> None:
        is_integer = isinstance(expr.type, ir.ElementType | ir.PythonType) and ir.kind_of(expr.type) < Kind.FLOAT
        is_known = isinstance(expr.right, ir.Constant) or (
            isinstance(expr.right, ir.Name) and expr.right.id in self.kernel.constexprs
        )
        if expr.op in ("//", "%") and is_integer and not is_known:
            message = f"`{expr.op}` by a value that is not constant, in a loop: twenty to forty instructions each time"
            hint = "divide before the loop, count along with it, or make the divisor a constant, best a power of two"
            self.reporter.note("P703", message, expr.span, hint)

    def note_power(self, expr: ir.Expr, base: ir.Expr, exponent: float) -> None:
        """Report a power of float elements that a few multiplications, a quotient or a root compute."""
        if not isinstance(expr.type, ir.ElementType) or expr.type.dtype.kind is not Kind.FLOAT:
            return
        dtype, text = expr.type.dtype, self.reporter.file.quote(base.span)
        is_operator, is_leaf = isinstance(expr, ir.Binary), isinstance(base, ir.Name | ir.Load)
        if exponent in TORCH_POWERS:
            if is_operator:
                return  # no power in the text
            hint = f"write `{text if is_leaf else f'({text})'} ** {exponent:g}`"
        elif exponent not in range(4, _GREATEST_PRODUCT + 1):
            return
        elif dtype.is_half or not is_leaf:  # products of halves would be rounded one by one
            value = f"opmath({text})" if dtype.is_half else text
            hint = f"multiply: `v = {value}`, then `{' * '.join('v' * int(exponent))}`"
        else:
            hint = f"multiply: `{' * '.join([text] * int(exponent))}`"
        self.reporter.note("P705", "this power takes some hundred instructions", expr.span, hint)

    def note_sum(self, stmt: ir.Assign, term: ir.Expr) -> None:
        """Report a sum of halves, which each addition rounds; for instances of a kernel, if one is for halves."""
        type_ = stmt.value.type
        if not isinstance(type_, ir.ElementType) or not type_.dtype.admits_halves:
            return
        to = f"to {type_.dtype}" if type_.dtype.variable is None else "where the dtype is a half"
        text = self.reporter.file.quote(term.span)
        hint = f"add `opmath({text})`, which {_ROUNDS_ONCE}"
        if isinstance(term, ir.Load) and stmt.span == term.span and text.endswith(")"):  # `sum` of a sequence
            part = term.array if term.origin is None else self.reporter.file.quote(term.origin)
            hint = f"`sum(opmath(v) for v in {part})` {_ROUNDS_ONCE}"
        self.reporter.note("P707", f"each addition rounds this sum {to}", stmt.span, hint)

    def note_order(self, access: ir.Load | ir.Store) -> None:
        if not access.indices or access.array in self.scattered:
            return
        *slow, fast = map(self.axes_of, access.indices)
        if "x" not in fast and fast and any("x" in axes for axes in slow):
            self.scattered.add(access.array)
            elements = f"neighbouring threads reach elements of `{access.array}` that lie far apart"
            hint = "put the index that runs fastest, x, last: in `Index` parameters the last one, else `threadIdx.x`"
            self.reporter.note("P704", f"{elements}: up to 32 times the traffic", access.span, hint)

    def axes_of(self, index: ir.Expr) -> set[str]:
        launched = {n.axis for n in walk(index) if isinstance(n, ir.LaunchIndex) and n.object == "threadIdx"}
        return launched | {self.axes[name] for name in names_in(index) if name in self.axes}
