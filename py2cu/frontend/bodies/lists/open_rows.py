"""Stores of rows whose length differs with the dtype: `W = 16 // x.itemsize`, `x4 = x.view(-1, W)`.

x4[i] = tuple(2 * v for v in y4[i])     →     for k in range(W): row[k] = 2 * y4[i, k]
                                              for k in range(W): x4[i, k] = row[k]
x4[i] = y4[i]                           →     the same of `tuple(v for v in y4[i])`
stcs(x4, i, y4[i])                      →     the same, with the hint

In: an assignment. Out: its statements; none after a diagnostic. `load_rows` makes one store of each second loop.
"""

from __future__ import annotations

import libcst as cst

from py2cu import ir
from py2cu.frontend.bodies.lists.fill import Filler, ListReader
from py2cu.frontend.bodies.parts import cache_hint, read_row_of_view
from py2cu.frontend.bodies.sequences.ranges import ONE
from py2cu.frontend.bodies.sequences.to_tuple import TUPLE
from py2cu.frontend.bodies.views import ZERO
from py2cu.frontend.names.syntax import source_text


def read_assignment(statement: cst.Assign | cst.Expr, lists: ListReader) -> ir.Block | None:
    """The statements of an assignment of lists, to a row, or of `W = 16 // x.itemsize`; None of any other one."""
    block = lists.read_assignment(statement) if isinstance(statement, cst.Assign) else None
    return _read_row_assignment(statement, lists) if block is None else block


def _read_row_assignment(statement: cst.Assign | cst.Expr, lists: ListReader) -> ir.Block | None:
    scope, read, span = lists.scope, lists.read, lists.span
    match statement:
        case cst.Assign(targets=[cst.AssignTarget(cst.Name(value=name))]) if (
            name in scope.declarations.extents.row_lengths
        ):
            return (scope.assign(name, ir.Name(name, span), span),)  # of which fix_row_lengths makes a number
        case cst.Assign(targets=[cst.AssignTarget(cst.Subscript(value=cst.Name() as view) as target)], value=value):
            pass
        case cst.Expr(value=cst.Call(args=[cst.Arg(value=cst.Name() as view), _, cst.Arg(value=value)]) as target) if (
            cache_hint(target, scope)
        ):
            pass
        case _:
            return None
    name = view.value
    if (length := scope.open_length(name)) is None or (row := read_row_of_view(target, scope, read)) is None:
        return None
    array = scope.fresh("row")
    match value:
        case cst.Call(func=cst.Name() as function, args=[cst.Arg(value=items, keyword=None, star="")]) if (
            not scope.is_local(function) and scope.environment.qualify(function) == TUPLE
        ):
            pass
        case cst.Subscript(value=cst.Name(value=other)) | cst.Call(args=[cst.Arg(value=cst.Name(value=other)), _]) if (
            scope.is_row_view(other)
        ):
            function, items = view, value  # any name may stand for the element
        case _:
            head, _, tail = source_text(statement).rpartition(source_text(value))
            scope.refuses_open_row(name, value, f"`{head}tuple(… for … in …){tail}`")
            return ()
    row = row.kept(frozenset(), scope.save)
    before, filled = scope.hoisted.take(), Filler(scope, read, span, array).items(function, items, ())
    if filled is None:
        return ()
    if filled[0] != (length,):  # rule: row-of-length
        what = f"a row of `{name}` has `{length.id}` elements, and this has another number"
        scope.error("P410", what, value, f"store a value for each of `range({length.id})`")
        return ()
    base = scope.array_decls[name].base
    type_ = ir.ArrayType(scope.arrays[name].dtype, (length,))
    scope.array_decls[array] = ir.ArrayDecl(array, type_, ir.Space.LOCAL, like=base, span=span)
    scope.arrays[array] = type_
    place = ir.Name(scope.fresh("k"), span)
    own = ir.Load(array, (place,), span)
    store = ir.Store(name, row.indices((place,)), own, scope.span_of(target), hint=row.hint)
    return (*before, ir.Alloc(array, span), *filled[1], ir.For(place.id, ZERO, length, ONE, (store,), span))
