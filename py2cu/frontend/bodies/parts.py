"""Expressions that are elements or parts of arrays: `x[i, k]`, `row[k]`, `x[i][k]`; `x[i]`, `row[:n]`, `x`.

In: a LibCST expression in a scope. Out: a `View`, the array and indices of an element, or None for anything else.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import starmap

import libcst as cst

from py2cu import builtins, ir
from py2cu.builtins import Rule
from py2cu.builtins.memory import STCS
from py2cu.frontend.bodies.scope import Scope
from py2cu.frontend.bodies.tables import Read, read_indices
from py2cu.frontend.bodies.tuples.forms import Form, numbers_of
from py2cu.frontend.bodies.tuples.values import open_tuple
from py2cu.frontend.bodies.views import ZERO, View, count_back, is_negative, larger, plus, smaller
from py2cu.frontend.hints.annotations import array_type
from py2cu.frontend.hints.subscripts import rewrite_brackets, rewrite_slices
from py2cu.frontend.names.syntax import is_starred, source_text
from py2cu.ir.abi.parameters import NegativeIndex


@dataclass(frozen=True, slots=True)
class Element:
    """One element of an array."""

    array: str
    indices: tuple[ir.Expr, ...]


def read_part(node: cst.BaseExpression, scope: Scope, read: Read) -> View | None:
    """The part of an array that `node` is; None for elements and everything else, and after a diagnostic."""
    match node:
        case cst.Name(value=name) if name in scope.views.views:
            return scope.views.views[name]
        case cst.Name(value=name) if name in scope.arrays and not scope.is_row_view(name):
            return View(name, len(scope.arrays[name].dims))
        case cst.Subscript() if is_part(node, scope):
            part = read_subscript(node, scope, read)
            return part if isinstance(part, View) else None
        case _:
            return None


def cache_hint(node: cst.BaseExpression, scope: Scope) -> str:
    """The cache hint that `node` gives: `ldg` of a call of it; "" of anything else."""
    if not isinstance(node, cst.Call) or scope.is_local(node.func):
        return ""
    row = builtins.lookup(scope.environment.qualify(node.func) or "")
    return row.name if row is not None and row.rule is Rule.CACHE else ""


def hinted_places(index: cst.BaseExpression) -> list[cst.BaseExpression]:
    """The indices of `ldg(x, i)` and of `ldg(x, (r, c))`."""
    return [element.value for element in index.elements] if isinstance(index, cst.Tuple) else [index]


def read_row_of_view(node: cst.BaseExpression, scope: Scope, read: Read) -> View | None:
    """The elements of a row of a view in rows, `x4[i]` or `ldg(x4, i)`; None for anything else."""
    hint = cache_hint(node, scope)
    match node:
        case cst.Subscript(value=cst.Name(value=name)):
            parts = subscripts(node)
        case cst.Call(args=[cst.Arg(value=cst.Name(value=name)), cst.Arg(value=index), *values] as args) if (
            hint and len(values) == (hint == STCS) and not any(arg.keyword or arg.star for arg in args)
        ):
            parts = [cst.Index(place) for place in hinted_places(index)]
        case _:
            return None
    places = [part.value for part in parts if isinstance(part, cst.Index) and part.star is None]
    if len(places) < len(parts) or not scope.is_row(name, len(places)):
        return None
    return View(name, 1, read_indices(places, node, scope, read), origin=scope.span_of(node), hint=hint)


def is_part(node: cst.BaseExpression, scope: Scope) -> bool:
    """True for a part of an array that has a dimension, by its form: nothing is reported."""
    return _rank(node, scope) > 0


def is_array(node: cst.BaseExpression, scope: Scope) -> bool:
    """True for a part of an array, and for the name of any array."""
    return is_part(node, scope) or (isinstance(node, cst.Name) and node.value in scope.arrays)


def is_tensor(node: cst.BaseExpression, scope: Scope) -> bool:
    """True for a part of an array that is no list: it has `.shape`, and the like."""
    return is_array(node, scope) and not is_list_part(node, scope)


def is_list_part(node: cst.BaseExpression, scope: Scope) -> bool:
    """True for a list, and for a list in a list."""
    if not is_part(node, scope):
        return False
    while isinstance(node, cst.Subscript):
        node = node.value
    view = scope.views.views.get(node.value) if isinstance(node, cst.Name) else None
    return view is not None and scope.views.is_list(view.array)


def is_indexed(node: cst.Subscript, scope: Scope) -> bool:
    """True where `node` takes indices of an array or of a view."""
    return _rank(node.value, scope) >= (0 if isinstance(node.value, cst.Name) else 1)


def _rank(node: cst.BaseExpression, scope: Scope) -> int:
    """The dimensions of a part of an array: 0 of an element, -1 of anything else."""
    match node:
        case cst.Name(value=name) if name in scope.views.views:
            return scope.views.views[name].rank
        case cst.Name(value=name) if name in scope.arrays and not scope.is_row_view(name):
            return len(scope.arrays[name].dims)
        case cst.Subscript(value=base) if (rank := _rank(base, scope)) > 0:
            parts = subscripts(node)
            single = _form_of_all(parts, scope) or [each for each in parts if isinstance(each, cst.Index)]
            return max(rank - len(single), 0)
        case _:
            return -1


def read_extents(node: cst.BaseExpression, scope: Scope, read: Read) -> tuple[ir.Expr, ...] | None:
    """The extents of an array, of a view, or of a part of either; None for anything else."""
    span = scope.span_of(node)
    is_view = isinstance(node, cst.Name) and node.value in scope.views.views
    if isinstance(node, cst.Name) and node.value in scope.arrays and not is_view:
        return tuple(ir.Extent(node.value, axis, span) for axis in range(len(scope.arrays[node.value].dims)))
    part = read_part(node, scope, read)
    return None if part is None else tuple(map(part.extent, range(part.rank)))


def subscripts(node: cst.Subscript) -> list[cst.BaseSlice]:
    """The indices and slices between the brackets, also of `x[(i, j)]`."""
    parts = [element.slice for element in node.slice]
    match parts:
        case [cst.Index(value=cst.Tuple(elements=elements), star=None)] if not any(map(is_starred, elements)):
            return [cst.Index(value=element.value) for element in elements]
        case _:
            return parts


def _form_of_all(parts: list[cst.BaseSlice], scope: Scope) -> Form:
    """The form of `at` in `x[at]`, a tuple of all indices; None for anything else between the brackets."""
    match parts:
        case [cst.Index(value=value, star=None)]:
            return scope.form_of(value)
        case _:
            return None


def read_subscript(node: cst.Subscript, scope: Scope, read: Read) -> View | Element | None:
    """The part or the element of an array that `node` is; None after a diagnostic."""
    base = read_part(node.value, scope, read)
    if base is None:
        return None
    parts = subscripts(node)
    if scope.views.is_list(base.array) and (len(parts) > 1 or not isinstance(parts[0], cst.Index)):
        if len(parts) > 1:
            what = "each bracket of a list takes one index"
            hint = f"write `{rewrite_brackets(source_text(node.value), node)}`"
        else:
            what, hint = "a slice of a list would be a new list", rewrite_slices(node.value, parts, node)
        scope.error("P401", what, node, hint)
        return None
    numbers = list[ir.Expr]()
    if _form_of_all(parts, scope) is not None and isinstance(parts[0], cst.Index):
        numbers += numbers_of(open_tuple(read(parts[0].value), parts[0].value, scope))
    if (count := len(numbers or parts)) > base.rank:
        _refuse_count(node, base, count, [] if numbers else parts[: base.rank], scope)
        return None
    singles = [part for part in parts if isinstance(part, cst.Index)]
    ranges = parts[len(singles) :]
    if any(part.star for part in singles) or parts[: len(singles)] != singles or any(map(_has_step, ranges)):
        what = "a part of an array takes indices, then one slice of neighbouring elements"
        scope.error("P401", what, node, rewrite_slices(node.value, parts, node))
        return None
    if any(not _is_all(part) for part in ranges[1:]):
        scope.error("P401", "only the first axis that is left is sliced", node, rewrite_slices(node.value, parts, node))
        return None
    indices = tuple(numbers) or read_indices((part.value for part in singles), node, scope, read)
    if len(indices) == base.rank:
        return Element(base.array, base.indices(indices))
    part = _from_start(base.at(tuple(map(scope.computed_once, indices))), scope)
    if ranges and isinstance(ranges[0], cst.Slice):
        part = _sliced(part, ranges[0], scope, read)
    return replace(part, origin=scope.span_of(node))


def _from_start(part: View, scope: Scope) -> View:
    """`x[-1]` as `x[x.shape[0] - 1]`: functions that take the part see a number that is no constant."""
    dims = scope.arrays[part.array].dims

    def count(axis: int, index: ir.Expr) -> ir.Expr:
        if not is_negative(index):
            return index
        extent = known if isinstance(known := dims[axis], ir.Constant) else ir.Extent(part.array, axis)
        return count_back(extent, index)

    return replace(part, prefix=tuple(starmap(count, enumerate(part.prefix))))


def _refuse_count(node: cst.Subscript, base: View, count: int, fitting: list[cst.BaseSlice], scope: Scope) -> None:
    rank = base.rank
    dimensions, s = ("dimension", "index") if rank == 1 else ("dimensions", "indices")
    what = f"`{base.array}` has" if isinstance(node.value, cst.Name) and not base.prefix else "this part has"
    is_parameter = isinstance(node.value, cst.Name) and not base.prefix and base.array not in scope.array_decls
    annotated = f", or annotate `{base.array}` with {count} dimensions" if is_parameter else ""
    if is_parameter and scope.environment.imports_numba:
        annotated = f", or type `{base.array}` as {array_type(count, scope.environment)}"
    indices = ", ".join([*map(source_text, fitting)] or "klmnopq"[:rank]) or "()"
    hint = f"write `{source_text(node.value)}[{indices}]`{annotated}"
    scope.error("P401", f"{what} {rank} {dimensions} and takes {rank} {s}, not {count}", node, hint)


def _has_step(part: cst.BaseSlice) -> bool:
    return isinstance(part, cst.Slice) and part.step is not None


def _is_all(part: cst.BaseSlice) -> bool:
    return isinstance(part, cst.Slice) and part.lower is None and part.upper is None


def _sliced(part: View, bounds: cst.Slice, scope: Scope, read: Read) -> View:
    """The elements of `part` from the lower bound to the upper one, as far as there are any."""
    whole = part.extent(0)

    def bound(node: cst.BaseExpression) -> ir.Expr:
        at = scope.environment.constant(node)
        if isinstance(at, int) and not isinstance(at, bool) and at < 0:
            scope.negative_indices.append(NegativeIndex(scope.span_of(node).line, -1, at))
            from_end = ir.Binary("-", whole, ir.Constant(-at, scope.span_of(node)), scope.span_of(node))
            return larger(from_end, ZERO)
        value = scope.computed_once(read(node))
        return value if isinstance(value, ir.Constant) else ir.Call("builtins.int", (value,), value.span)

    first = part.start
    start = bound(bounds.lower) if bounds.lower is not None else None
    stop = smaller(bound(bounds.upper), whole) if bounds.upper is not None else None
    if first is not None:
        stop = plus(first, whole if stop is None else stop)
        start = first if start is None else plus(first, start)
    elif stop is None:
        stop = part.stop
    return View(part.array, part.rank, part.prefix, start, stop)
