"""Guards a kernel against threads past the end of an array: inserts one early return, unless the kernel tests the
index.

    i = blockIdx.x * blockDim.x + threadIdx.x         i = blockIdx.x * blockDim.x + threadIdx.x
    out[i] = x[i]                                →    if i >= n: return
                                                      out[i] = x[i]

The guard of an index kernel compares its indices with their extents. In a block kernel, a *global index* needs a guard
if it alone indexes an array and no test has bounded it. The extent is `size` on that axis where the kernel has one,
else the array's.

In a kernel with barriers no thread may return early: there `predicate_accesses` guards each access separately.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from py2cu import ir
from py2cu.analysis.accesses import Access, IndexLimit, find_accesses
from py2cu.analysis.call_graph import callees
from py2cu.analysis.effects import has_barrier, waiting_functions
from py2cu.analysis.global_indices import AXES, GlobalIndices, find_global_indices
from py2cu.diagnostics import Reporter
from py2cu.ir.abi.parameters import Guard, IndexParameter
from py2cu.ir.printer import print_expr
from py2cu.ir.rewrite import with_fields
from py2cu.ir.visit import all_expressions, assigned_names, names_in, statements
from py2cu.options import DEFAULT_BLOCKS
from py2cu.passes.guards.predicate_accesses import as_limit, data_dependents, find_effects, predicate_accesses
from py2cu.source import Span

_EFFECTS = {ir.Store: "an array was written", ir.Print: "something was printed", ir.Assert: "something was asserted"}


def add_guards(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """The kernel with its missing guards, which `guards` lists; each is reported as a note in a block kernel."""
    if kernel.indices:
        return _guard_indices(kernel, reporter)
    global_indices = find_global_indices(kernel)
    accesses = find_accesses(kernel)
    kernel = _infer_size(kernel, global_indices, accesses)
    missing = _missing_guards(kernel, global_indices, accesses)
    if not missing:
        return kernel
    if has_barrier(kernel):
        return _predicate_each(kernel, accesses, missing, reporter)  # rule: guard-each
    place = max(_position(kernel.body, guard.index) for guard in missing)
    first = missing[0]
    effect = next(_effects(kernel, kernel.body[: place + 1]), None)
    if effect:
        test = f"if {print_expr(first.index)} >= {_in_python(first.extent, kernel)}: return"
        hint = f"compute the index first, then write `{test}`"
        reporter.error(
            "P405", f"this index needs an early return, but {effect} before the index is computed", first.span, hint
        )
        return kernel
    for guard in missing:
        index, extent = print_expr(guard.index), _in_python(guard.extent, kernel)
        test = f"if {index} >= {extent}: return"
        what = f"`{index}` may pass the end: added `{test}`"
        reporter.note("P406", what, guard.span, "write it yourself, or leave it")
    guards = tuple(Guard(print_expr(item.index), ir.as_extent(item.extent), item.axis) for item in missing)
    early_return = _return_if_past([(item.index, item.extent) for item in missing])
    return with_fields(kernel, body=(*kernel.body[: place + 1], early_return, *kernel.body[place + 1 :]), guards=guards)


def _in_python(extent: ir.Expr, kernel: ir.Kernel) -> str:
    """An extent as the kernel can write it: a dimension that is no parameter is read from the shape of an array."""
    if not isinstance(extent, ir.Name) or any(parameter.name == extent.id for parameter in kernel.parameters):
        return print_expr(extent)
    places = (
        f"{parameter.name}.shape[{axis}]"
        for parameter in kernel.parameters
        if isinstance(parameter.type, ir.ArrayType)
        for axis, dim in enumerate(parameter.type.dims)
        if isinstance(dim, ir.Name) and dim.id == extent.id
    )
    return next(places, print_expr(extent))


def guard_statement(guards: tuple[Guard, ...]) -> ir.If:
    """`if r >= h or c >= w: return`, of an index kernel's guards."""
    return _return_if_past([(ir.Name(guard.index, type=ir.PY_INT), guard.extent) for guard in guards])


def _return_if_past(limits: list[tuple[ir.Expr, ir.Expr]]) -> ir.If:
    test: ir.Expr | None = None
    for index, extent in limits:
        past = ir.Compare(">=", index, extent)
        test = past if test is None else ir.BoolOp("or", test, past, type=past.type)
    assert test is not None
    return ir.If(test, (ir.Return(),))


def _guard_indices(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """A guard for every index that the kernel does not compare with its own extent before each access."""
    accesses = find_accesses(kernel)

    def is_guarded(index: IndexParameter) -> bool:
        limit = IndexLimit(ir.Name(index.name, type=ir.PY_INT), index.extent)
        return bool(accesses) and all(limit.follows_from(access.limits) for access in accesses)

    if has_barrier(kernel) and kernel.has_flat_launch:
        message = f"a kernel with barriers has at most {ir.MAX_AXES} element indices"
        outer, inner = kernel.indices[:2]
        product = f'{outer.name}{inner.name}: Index["{print_expr(outer.extent)} * {print_expr(inner.extent)}"]'
        hint = f"index over a product, `{product}`, and divide"
        reporter.error("P106", message, kernel.indices[ir.MAX_AXES].span, hint)
        return kernel
    if has_barrier(kernel):
        return _guard_elements(kernel, accesses, reporter)  # rule: guard-elements
    guards = tuple(Guard(i.name, i.extent, i.axis) for i in kernel.indices if not is_guarded(i))
    return with_fields(kernel, guards=guards)


def _guard_elements(kernel: ir.Kernel, accesses: tuple[Access, ...], reporter: Reporter) -> ir.Kernel:
    """An index kernel with barriers, with a predicate on every access that its indices lead to."""
    effects = find_effects(kernel)
    calls = {node.span: node for node in all_expressions(kernel.body) if isinstance(node, ir.DeviceCall)}
    needed: dict[Span, tuple[IndexLimit, ...]] = {}
    guards: list[Guard] = []
    for index in kernel.indices:
        limit = as_limit(index.name, index.extent)
        names = data_dependents(kernel.body, index.name)
        for access in accesses:
            dependent = effects.get(access.span) or access.place.index or calls.get(access.span)  # rule: guard-effects
            if dependent is None or limit in access.limits or names.isdisjoint(names_in(dependent)):
                continue
            if limit not in needed.get(access.span, ()):
                needed[access.span] = (*needed.get(access.span, ()), limit)
        if any(limit in limits for limits in needed.values()):
            guards.append(Guard(index.name, index.extent, index.axis))
    return predicate_accesses(
        with_fields(kernel, guards=tuple(guards)), _without_unskippable_calls(kernel, needed, reporter)
    )


def _without_unskippable_calls(
    kernel: ir.Kernel, needed: dict[Span, tuple[IndexLimit, ...]], reporter: Reporter
) -> dict[Span, tuple[IndexLimit, ...]]:
    """`needed` without calls that no guard can skip; these are refused.

    They are calls of functions with barriers, and of functions nested in the kernel, which the simulator cannot skip.
    """
    waiting = waiting_functions(kernel)
    functions = {function.key: function for function in kernel.functions}
    for call in (node for node in all_expressions(kernel.body) if isinstance(node, ir.DeviceCall)):
        function = functions[call.function]
        is_nested = _is_nested(kernel, call, function)
        limits = needed.pop(call.span, ()) if is_nested or call.function in waiting else ()
        if limits and is_nested:
            message = f"`{function.name}` is called with an index that may pass the end"
            hint = f"compare the index before the call, or move `{function.name}` out of the kernel"
            reporter.error("P405", message, call.span, hint)
        elif limits:
            message = f"`{function.name}` has a barrier or collective, so threads past the end call it too"
            indices = ", ".join(f"`{print_expr(limit.index)}`" for limit in limits)
            hint = f"store the elements in shared memory before the call, and pass nothing that depends on {indices}"
            reporter.error("P405", message, call.span, hint)
    return needed


def _is_nested(kernel: ir.Kernel, call: ir.DeviceCall, function: ir.Kernel) -> bool:
    """True if `function`, which `call` calls, is defined inside the kernel."""
    return function.origin is None and kernel.span.line < function.span.line < call.span.line


def _predicate_each(
    kernel: ir.Kernel, accesses: tuple[Access, ...], missing: list[_MissingGuard], reporter: Reporter
) -> ir.Kernel:
    """A block kernel with a predicate on each access that lacks a guard."""
    needed: dict[Span, tuple[IndexLimit, ...]] = {}
    effects = find_effects(kernel)
    for item in missing:
        names = data_dependents(kernel.body, item.index.id) if isinstance(item.index, ir.Name) else frozenset()
        dependent_effects = (
            access.span for access in accesses
            if access.span in effects and IndexLimit(item.index, None) not in access.limits
            and not names.isdisjoint(names_in(effects[access.span]))
        )  # fmt: skip
        for span in dict.fromkeys((*item.spans, *dependent_effects)):
            needed[span] = (*needed.get(span, ()), IndexLimit(item.index, item.extent))
        index, extent = print_expr(item.index), _in_python(item.extent, kernel)
        what = f"`{index}` may pass the end: where it does, reads give 0, writes and atomics do nothing"
        reporter.note("P406", what, item.span, f"write `if {index} < {extent}:` yourself, or leave it")
    guards = tuple(Guard(print_expr(item.index), ir.as_extent(item.extent), item.axis) for item in missing)
    return predicate_accesses(with_fields(kernel, guards=guards), _without_unskippable_calls(kernel, needed, reporter))


def _effects(kernel: ir.Kernel, block: ir.Block) -> Iterator[str]:
    """The side effects of `block` and its callees, as text for a message."""
    functions = {function.key: function for function in kernel.functions}
    waiting = [(kernel, block)]
    while waiting:
        caller, block = waiting.pop()
        for stmt in statements(block):
            if type(stmt) in _EFFECTS and not (isinstance(stmt, ir.Store) and caller.is_kernel_local(stmt.array)):
                yield _EFFECTS[type(stmt)]
        for node in all_expressions(block):
            if isinstance(node, ir.Atomic) and not caller.is_kernel_local(node.array):
                yield _EFFECTS[ir.Store]
        called = [functions.pop(key) for key in callees(block) if key in functions]
        waiting += [(function, function.body) for function in called]


# --- missing guards -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _MissingGuard:
    """A global index that may pass `extent`, with its first access and all of them."""

    index: ir.Expr
    extent: ir.Expr
    axis: str
    span: Span
    spans: list[Span] = field(default_factory=list)  # every access that lacks the guard


def _missing_guards(
    kernel: ir.Kernel, global_indices: GlobalIndices, accesses: tuple[Access, ...]
) -> list[_MissingGuard]:
    missing_by_axis: dict[
        tuple[str, ir.Expr], _MissingGuard
    ] = {}  # by axis and extent: an axis has one global index, however it is written
    for access in accesses:
        place = access.place
        axis = global_indices.axis(place.index)
        if axis and place.index and IndexLimit(place.index, None) not in access.limits:
            extent = _size_on(kernel, axis) or kernel.array_type(place.array).dims[place.dim]
            # rule: guard-by-extent
            missing = missing_by_axis.setdefault((axis, extent), _MissingGuard(place.index, extent, axis, access.span))
            missing.spans.append(access.span)
    return list(missing_by_axis.values())


def _size_on(kernel: ir.Kernel, axis: str) -> ir.Expr | None:
    place = AXES.index(axis)
    return kernel.size[place] if kernel.size and place < len(kernel.size) else None


def _infer_size(kernel: ir.Kernel, global_indices: GlobalIndices, accesses: tuple[Access, ...]) -> ir.Kernel:
    """Infer a missing `size` from the extents of the global indices, if every axis has one."""
    if kernel.size is not None:
        return kernel
    extents: dict[str, ir.Expr] = {}
    for place in (access.place for access in accesses):
        if axis := global_indices.axis(place.index):
            extents.setdefault(axis, kernel.array_type(place.array).dims[place.dim])
    for limit in (limit for access in accesses for limit in sorted(access.limits, key=repr)):  # a set has no order
        if (axis := global_indices.axis(limit.index)) and limit.bound and _is_extent(kernel, limit.bound):
            extents[axis] = limit.bound
    axes = AXES[: max((AXES.index(axis) for axis in (*extents, *global_indices.names.values())), default=-1) + 1]
    if not axes or not all(axis in extents for axis in axes):
        return kernel
    default = tuple(map(ir.constant_extent, DEFAULT_BLOCKS[len(axes)]))
    block = kernel.block if len(kernel.block) >= len(axes) else default
    return with_fields(kernel, size=tuple(extents[axis] for axis in axes), block=block)


def _is_extent(kernel: ir.Kernel, expr: ir.Expr) -> bool:
    scalars = {p.name for p in kernel.parameters if p.type == ir.PY_INT}
    known = set(kernel.dims) | scalars
    return (
        bool(names_in(expr))
        and set(names_in(expr)) <= known - set(assigned_names(kernel.body))
        and not isinstance(expr.type, ir.ElementType)
    )


def _position(body: tuple[ir.Stmt, ...], index: ir.Expr) -> int:
    """The position in `body` of the last assignment to a name in `index`; -1 without one."""
    names = names_in(index)
    # rule: guard-behind
    return max((at for at, stmt in enumerate(body) if isinstance(stmt, ir.Assign) and stmt.name in names), default=-1)
