"""Finds the inputs in whose place a call may write an output: `k(x, out=x)`.

    def f(r: Index["h"], c: Index["w"], x: …["h w"], bias: …["w"], out: …["h w"]):
        out[r, c] = x[r, c] + bias[c]           →     out may be x

Each thread has to read, of the input, only the one element that it alone writes of the output, and before it writes:
then no thread sees a new value in place of an old one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from py2cu import ir
from py2cu.analysis.global_indices import AXES, find_global_indices
from py2cu.builtins.memory import LDG
from py2cu.diagnostics import Reporter
from py2cu.ir.abi.parameters import Role
from py2cu.ir.rewrite import with_fields
from py2cu.ir.visit import all_expressions, assigned_names, blocks, expressions, statements, walk


def find_in_place_pairs(kernel: ir.Kernel, _: Reporter) -> ir.Kernel:
    """The kernel with its pairs of a written array and an input of the same type."""
    axes = _axes_of_indices(kernel)
    inputs = [p.name for p in kernel.arrays if p.role is Role.INPUT]
    pairs = (
        (written.name, read)
        for written in kernel.arrays
        if written.role is not Role.INPUT and axes
        for read in inputs
        if kernel.array_type(read) == kernel.array_type(written.name) and _may_be_one(kernel, written.name, read, axes)
    )
    return with_fields(kernel, in_place=tuple(pairs))


def _axes_of_indices(kernel: ir.Kernel) -> Mapping[str, str]:
    """The names that hold a thread's index in the launch of a call, with the index or the axis that each stands for.

    Empty for a kernel that only explicit launches run: these may run two threads with one index.
    """
    if kernel.indices:
        return {index.name: index.name for index in kernel.indices if index.name not in assigned_names(kernel.body)}
    return find_global_indices(kernel).names if kernel.size is not None else {}


def _launched_axes(kernel: ir.Kernel) -> set[str]:
    """The indices, or the axes, along which a call launches more than one thread."""
    rank = len(kernel.size or ())
    further = zip(AXES[rank:], kernel.block[rank:], strict=False)
    wide = [axis for axis, extent in further if extent != ir.constant_extent(1)]  # rule: in-place-threads
    return {*([index.name for index in kernel.indices] or AXES[:rank]), *wide}


def _may_be_one(kernel: ir.Kernel, written: str, read: str, axes: Mapping[str, str]) -> bool:
    """True if each thread accesses the same single element of both arrays, and never reads it after writing it."""
    if any(kernel.base_array(view.name) in (written, read) for view in kernel.array_decls):
        return False
    elements = {*_accesses(kernel, written, read)}
    if len(elements) != 1 or (element := elements.pop()) is None:  # rule: in-place-element
        return False
    names = {index.id for index in element if isinstance(index, ir.Name)}
    is_plain = all(isinstance(at, ir.Constant) or (isinstance(at, ir.Name) and at.id in axes) for at in element)
    is_whole = is_plain and len(element) == len(kernel.array_type(read).dims)
    is_own = is_whole and {axes[name] for name in names} >= _launched_axes(kernel)  # rule: in-place-axes
    return is_own and _is_stored_behind(kernel.body, written, read, False) is not None


def _accesses(kernel: ir.Kernel, written: str, read: str) -> Iterator[tuple[ir.Expr, ...] | None]:
    """The indices of the stores to `written` and of the loads from `read`; None for any other access to the two."""
    for node in all_expressions(kernel.body):
        match node:
            case ir.ArrayName(id=name) | ir.Atomic(array=name) if name in (written, read):
                yield None
            case ir.Load(array=name, indices=indices, hint=hint) if name == read:
                yield None if hint == LDG else indices  # rule: in-place-hint
    for stmt in statements(kernel.body):
        if isinstance(stmt, ir.Store) and stmt.array == written:
            yield stmt.indices


def _is_stored_behind(block: ir.Block, written: str, read: str, stored: bool) -> bool | None:
    """Whether `written` may be stored once `block` is done; None if `read` may be loaded behind a store."""
    for stmt in block:
        is_loop = isinstance(stmt, ir.For | ir.While)
        for _ in range(1 + is_loop):  # rule: in-place-in-loop
            nodes = (node for expr in expressions(stmt) for node in walk(expr))
            if stored and any(isinstance(node, ir.Load) and node.array == read for node in nodes):
                return None  # rule: in-place-behind
            outcomes = [_is_stored_behind(inner, written, read, stored) for inner in blocks(stmt)]
            if None in outcomes:
                return None
            stored = stored or any(outcomes)
        stored = stored or (isinstance(stmt, ir.Store) and stmt.array == written)
    return stored
