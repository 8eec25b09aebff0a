"""Keeps threads past the end from doing anything: one early return, where the kernel has no guard of its own.

    i = blockIdx.x * blockDim.x + threadIdx.x         i = blockIdx.x * blockDim.x + threadIdx.x
    out[i] = x[i]                                →    if i >= n: return
                                                      out[i] = x[i]

An index kernel is guarded by its indices' extents. In a block kernel, a *global index* is a local that is assigned once
and is `blockIdx.a * blockDim.a + threadIdx.a`; it needs a guard where it alone indexes an array and nothing has
compared it. The extent is `size` on that axis where the kernel says one, else that of the array.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from py2cu.diagnostics import Reporter
from py2cu.ir.extents import Binary, Guard, IndexParameter, Name, constant_extent
from py2cu.ir.nodes import BoolOp, Compare, Expr, LaunchIndex, Load, Select, Unary
from py2cu.ir.printer import print_expr
from py2cu.ir.statements import (
    Assert,
    Assign,
    Block,
    Break,
    Continue,
    For,
    If,
    Kernel,
    Print,
    Return,
    Stmt,
    Store,
    While,
)
from py2cu.ir.types import PY_INT, ElementType
from py2cu.ir.visit import children, expressions, names_in, statements
from py2cu.options import DEFAULT_BLOCKS
from py2cu.source import Span

AXES = "xyz"
_EFFECTS = {Store: "an array was written", Print: "something was printed", Assert: "something was asserted"}


def add_guards(kernel: Kernel, reporter: Reporter) -> Kernel:
    """The kernel with the guards that it lacks; `guards` lists them, and every one is noted in a block kernel."""
    if kernel.indices:
        return _guard_indices(kernel)
    globals_ = find_global_indices(kernel)
    kernel = _infer_size(kernel, globals_)
    missing = _missing_guards(kernel, globals_)
    if not missing:
        return kernel
    place = max(_position(kernel.body, guard.index) for guard in missing)
    first = missing[0]
    done = {type(stmt): what for stmt in statements(kernel.body[: place + 1]) if (what := _EFFECTS.get(type(stmt)))}
    if done:
        test = f"if {print_expr(first.index)} >= {print_expr(first.extent)}: return"
        hint = f"compute the index first, then write `{test}`"
        reporter.error("P405", f"a guard belongs here, after {next(iter(done.values()))}", first.span, hint)
        return kernel
    for guard in missing:
        index, extent = print_expr(guard.index), print_expr(guard.extent)
        test = f"if {index} >= {extent}: return"
        reporter.note(
            "P406", f"`{index}` may pass the end: added `{test}`", guard.span, "write it yourself, or leave it"
        )
    guards = tuple(Guard(print_expr(item.index), item.extent, item.axis) for item in missing)
    leave = _leave_past([(item.index, item.extent) for item in missing])
    return replace(kernel, body=(*kernel.body[: place + 1], leave, *kernel.body[place + 1 :]), guards=guards)


def guard_statement(guards: tuple[Guard, ...]) -> If:
    """`if r >= h or c >= w: return`, of an index kernel's guards."""
    return _leave_past([(Name(guard.index, type=PY_INT), guard.extent) for guard in guards])


def _leave_past(limits: list[tuple[Expr, Expr]]) -> If:
    test: Expr | None = None
    for index, extent in limits:
        past = Compare(">=", index, extent)
        test = past if test is None else BoolOp("or", test, past, type=past.type)
    assert test is not None
    return If(test, (Return(),))


def _guard_indices(kernel: Kernel) -> Kernel:
    """A guard for every index that the kernel does not compare with its own extent before each access."""
    accesses = tuple(_accesses(kernel.body, frozenset()))

    def is_guarded(index: IndexParameter) -> bool:
        limit = Limit(index.name, index.extent)
        return bool(accesses) and all(limit in access.limits for access in accesses)

    guards = tuple(Guard(i.name, i.extent, i.axis) for i in kernel.indices if not is_guarded(i))
    return replace(kernel, guards=guards)


# --- global indices -----------------------------------------------------------------------------------------------


def find_global_indices(kernel: Kernel) -> dict[str, str]:
    """Locals that are a thread's place in the whole grid, with their axis."""
    assigned = Counter(
        stmt.name if isinstance(stmt, Assign) else stmt.var
        for stmt in statements(kernel.body)
        if isinstance(stmt, Assign | For)
    )
    found = {}
    for stmt in kernel.body:
        if isinstance(stmt, Assign) and assigned[stmt.name] == 1 and (axis := global_axis(stmt.value)):
            found[stmt.name] = axis
    return found


def global_axis(expr: Expr) -> str | None:
    """The axis of `blockIdx.a * blockDim.a + threadIdx.a`, in any order of terms and factors."""
    match expr:
        case Binary(op="+", left=LaunchIndex(object="threadIdx", axis=axis), right=product):
            pass
        case Binary(op="+", left=product, right=LaunchIndex(object="threadIdx", axis=axis)):
            pass
        case _:
            return None
    match product:
        case Binary(op="*", left=LaunchIndex(object=a, axis=first), right=LaunchIndex(object=b, axis=second)) if {
            a,
            b,
        } == {"blockIdx", "blockDim"} and first == second == axis:
            return axis
        case _:
            return None


# --- what is indexed, and under which limits ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Limit:
    """`name`, or an expression by its text, was found to be less than `bound`."""

    name: str
    bound: Expr


@dataclass(frozen=True, slots=True)
class _Access:
    """An array access, and the limits that hold where it happens."""

    array: str
    indices: tuple[Expr, ...]
    limits: frozenset[Limit]
    span: Span

    def is_limited(self, name: str) -> bool:
        return any(limit.name == name for limit in self.limits)


def _accesses(block: Block, limits: frozenset[Limit]) -> Iterator[_Access]:
    """Every array access of `block`, in order. A test limits what stands under it; one that leaves, what follows."""
    for stmt in block:
        for expr in expressions(stmt):
            yield from _expression_accesses(expr, limits)
        match stmt:
            case Store(array=array, indices=indices, span=span):
                yield _Access(array, indices, limits, span)
            case Print(span=span) | Assert(span=span):
                yield _Access("", (), limits, span)  # an effect, though of no array: threads past the end have none
            case If(test=test, body=body, orelse=orelse):
                yield from _accesses(body, limits | limits_where(test, True))
                yield from _accesses(orelse, limits | limits_where(test, False))
                if body and isinstance(body[-1], Return | Continue | Break):
                    limits |= limits_where(test, False)
            case While(test=test, body=body, orelse=orelse):
                yield from _accesses(body, limits | limits_where(test, True))
                yield from _accesses(orelse, limits)
            case For(body=body, orelse=orelse):
                yield from _accesses(body, limits)
                yield from _accesses(orelse, limits)


def _expression_accesses(expr: Expr, limits: frozenset[Limit]) -> Iterator[_Access]:
    match expr:
        case BoolOp(op=op, left=left, right=right):
            yield from _expression_accesses(left, limits)
            yield from _expression_accesses(right, limits | limits_where(left, op == "and"))
        case Select(test=test, then=then, orelse=orelse):
            yield from _expression_accesses(test, limits)
            yield from _expression_accesses(then, limits | limits_where(test, True))
            yield from _expression_accesses(orelse, limits | limits_where(test, False))
        case _:
            if isinstance(expr, Load):
                yield _Access(expr.array, expr.indices, limits, expr.span)
            for child in children(expr):
                yield from _expression_accesses(child, limits)


def limits_where(test: Expr, holds: bool) -> frozenset[Limit]:
    """The limits that follow from `test` being true, or false."""
    match test:
        case Compare(op="<" | "<=", left=small, right=large) if holds:
            return _limits(small, large)
        case Compare(op=">" | ">=", left=large, right=small) if holds:
            return _limits(small, large)
        case Compare(op=">" | ">=", left=small, right=large) if not holds:
            return _limits(small, large)
        case Compare(op="<" | "<=", left=large, right=small) if not holds:
            return _limits(small, large)
        case BoolOp(op=op, left=left, right=right) if (op == "and") is holds:
            return limits_where(left, holds) | limits_where(right, holds)
        case Unary(op="not", operand=operand):
            return limits_where(operand, not holds)
        case _:
            return frozenset()


def _limits(small: Expr, large: Expr) -> frozenset[Limit]:
    return frozenset(Limit(name, large) for name in (*names_in(small), print_expr(small)))


# --- missing guards -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Missing:
    index: Expr
    extent: Expr
    axis: str
    span: Span


def _missing_guards(kernel: Kernel, globals_: dict[str, str]) -> list[_Missing]:
    found: dict[tuple[str, Expr], _Missing] = {}
    for access in _accesses(kernel.body, frozenset()):
        for dim, index in enumerate(access.indices):
            axis = globals_.get(index.id) if isinstance(index, Name) else global_axis(index)
            if axis and not access.is_limited(print_expr(index)):
                extent = _size_on(kernel, axis) or kernel.array_type(access.array).dims[dim]
                found.setdefault((print_expr(index), extent), _Missing(index, extent, axis, access.span))
    return list(found.values())


def _size_on(kernel: Kernel, axis: str) -> Expr | None:
    place = AXES.index(axis)
    return kernel.size[place] if kernel.size and place < len(kernel.size) else None


def _infer_size(kernel: Kernel, globals_: dict[str, str]) -> Kernel:
    """Where the kernel says no `size`: the extents that its global indices run over, if they say one for every axis."""
    if kernel.size is not None:
        return kernel
    extents: dict[str, Expr] = {}
    for access in _accesses(kernel.body, frozenset()):
        for dim, index in enumerate(access.indices):
            axis = globals_.get(index.id) if isinstance(index, Name) else global_axis(index)
            if axis:
                extents.setdefault(axis, kernel.array_type(access.array).dims[dim])
    for access in _accesses(kernel.body, frozenset()):
        for limit in access.limits:
            if limit.name in globals_ and _is_extent(kernel, limit.bound):
                extents[globals_[limit.name]] = limit.bound
    axes = AXES[: max((AXES.index(axis) for axis in (*extents, *globals_.values())), default=-1) + 1]
    if not axes or not all(axis in extents for axis in axes):
        return kernel
    default = tuple(map(constant_extent, DEFAULT_BLOCKS[len(axes)]))
    block = kernel.block if len(kernel.block) >= len(axes) else default
    return replace(kernel, size=tuple(extents[axis] for axis in axes), block=block)


def _is_extent(kernel: Kernel, expr: Expr) -> bool:
    scalars = {p.name for p in kernel.parameters if p.type == PY_INT}
    known = set(kernel.dims) | scalars
    assigned = {stmt.name for stmt in statements(kernel.body) if isinstance(stmt, Assign)}
    return bool(names_in(expr)) and set(names_in(expr)) <= known - assigned and not isinstance(expr.type, ElementType)


def _position(body: tuple[Stmt, ...], index: Expr) -> int:
    """Where `index` is assigned; -1, the start, for one that is written out."""
    if not isinstance(index, Name):
        return -1
    return next(place for place, stmt in enumerate(body) if isinstance(stmt, Assign) and stmt.name == index.id)
