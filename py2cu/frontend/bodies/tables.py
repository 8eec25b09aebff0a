"""Tuples of constants from around a kernel, indexed in it: `WEIGHTS[k]`, `KERNEL[r][c]`.

A constant index is replaced by its constant. An index that is known only at run time places the tuple in constant
memory; its elements remain Python numbers, weakly typed and exact. A whole tuple, or a row of one, is a tuple of
numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import starmap
from typing import Final

import libcst as cst

from py2cu import ir
from py2cu.dtypes import BOOL, F64, I64
from py2cu.frontend.bodies.scope import Scope
from py2cu.frontend.bodies.views import is_fixed, is_negative
from py2cu.frontend.hints.subscripts import rewrite_brackets
from py2cu.frontend.names.constants import Constants, Real, check_64_bits, numbers, shape_of
from py2cu.frontend.names.syntax import source_text
from py2cu.ir.abi.parameters import NegativeIndex
from py2cu.ir.visit import names_in
from py2cu.source import Span

_NONE: Final[frozenset[str]] = frozenset()
_DTYPES: Final = {bool: BOOL, int: I64, float: F64}

MAX_NUMBERS: Final = 64
"""Of a tuple of constants that is a value: each is a local or an argument."""

Read = Callable[[cst.BaseExpression], ir.Expr]


def read_lookup(node: cst.Subscript, scope: Scope, read: Read) -> ir.Expr | None:
    """`node` if it indexes a tuple of constants; None for any other subscript."""
    name, subscripts = _peeled(node)
    table = scope.table(name)
    if not isinstance(name, cst.Name):
        return None
    if table is None:
        return _refuse_other(node, name, scope)
    indices = [_read_index(subscript, name.value, scope, read) for subscript in subscripts]
    item: Constants | Real = table
    for axis, index in enumerate(indices):
        if index is None:
            return ir.Constant(0, scope.span_of(node))
        if not isinstance(item, tuple):
            break
        if not isinstance(index, ir.Constant):
            return _look_up(node, name.value, table, [i for i in indices if i is not None], scope)
        at = int(index.value)
        if not -len(item) <= at < len(item):
            what = f"index {at} is outside `{name.value}`, whose dimension {axis} has {len(item)} elements"
            scope.error("P404", what, node, f"the constants that fit are {-len(item)} to {len(item) - 1}")
            return ir.Constant(0, scope.span_of(node))
        item = item[at]
    else:
        return constant_value(item, node, scope)
    return _refuse_rank(node, name.value, table, scope)


def constant_value(value: Constants | Real, node: cst.BaseExpression, scope: Scope) -> ir.Expr:
    """A constant, or a tuple of constants, as a value."""
    span = scope.span_of(node)
    if isinstance(value, tuple) and (count := sum(1 for _ in numbers(value))) > MAX_NUMBERS:
        what = f"a tuple of {count} numbers is no value: at most {MAX_NUMBERS} fit locals and arguments"
        scope.error("P408", what, node, f"index it: `{source_text(node)}[k]`")
        return ir.Constant(0, span)

    def part(value: Constants | Real) -> ir.Expr:
        if isinstance(value, tuple):
            return ir.Tuple(tuple(map(part, value)), span)
        return ir.Constant(check_64_bits(value, scope.reporter, span), span)

    return part(value)


def read_table(node: cst.BaseExpression, scope: Scope) -> Constants | None:
    """The tuple of constants that `T`, or `T[0]` of a tuple of tuples, evaluates to; None for anything else."""
    name, subscripts = _peeled(node)
    row: Constants | Real | None = scope.table(name)
    for subscript in subscripts:
        match subscript.slice:
            case [cst.SubscriptElement(slice=cst.Index(value=value, star=None))]:
                at = scope.environment.constant(value)
            case _:
                return None
        if not isinstance(row, tuple) or not isinstance(at, int) or not -len(row) <= at < len(row):
            return None
        if at < 0:
            scope.negative_indices.append(NegativeIndex(scope.span_of(subscript).line, 0, at))
        row = row[at]
    return row if isinstance(row, tuple) else None


def _refuse_other(node: cst.Subscript, name: cst.Name, scope: Scope) -> ir.Expr | None:
    """Refuse a name that the module defines as something else than a tuple of constants; None for other names."""
    if scope.is_local(name) or name.value not in scope.environment.definitions:
        return None
    definition = scope.environment.definition(name.value)
    what = f"a kernel indexes tuples of constants, and `{name.value}` is not one"
    hint = "write its numbers out, or pass it as a parameter"
    if isinstance(definition, cst.Call) and not scope.environment.live:
        hint = "write its numbers out, or call the kernel from Python, where the module has computed them"
    scope.error("P408", what, node, hint)
    return ir.Constant(0, scope.span_of(node))


def read_indices(
    indices: Iterable[cst.BaseExpression], node: cst.CSTNode, scope: Scope, read: Read
) -> tuple[ir.Expr, ...]:
    """Read the indices between the brackets of `node`. At its line the simulator accepts the negative constants."""

    def read_index(axis: int, index: cst.BaseExpression) -> ir.Expr:
        value = read(index)
        if not isinstance(value, ir.Constant) and not names_in(value):
            constant = scope.environment.constant(index)
            if isinstance(constant, int) and constant < 0:  # rule: negative-in-table
                value = ir.Constant(constant, value.span, ir.PY_INT)
        if is_negative(value):
            scope.negative_indices.append(NegativeIndex(scope.span_of(node).line, axis, int(value.value)))
        return value

    return tuple(starmap(read_index, enumerate(indices)))


def _peeled(node: cst.BaseExpression) -> tuple[cst.BaseExpression, list[cst.Subscript]]:
    """`T[a][b]` as `T` and its subscripts, the first one first."""
    subscripts: list[cst.Subscript] = []
    while isinstance(node, cst.Subscript):
        subscripts.insert(0, node)
        node = node.value
    return node, subscripts


def _read_index(subscript: cst.Subscript, table: str, scope: Scope, read: Read) -> ir.Expr | None:
    match subscript.slice:
        case [cst.SubscriptElement(slice=cst.Index(value=value, star=None))] if not isinstance(value, cst.Tuple):
            return read_indices([value], subscript, scope, read)[0]
        case _:
            hint = f"write `{rewrite_brackets(table, subscript)}`"
            scope.error("P401", "each bracket of a tuple takes one integer", subscript, hint)
            return None


def _look_up(node: cst.Subscript, name: str, table: Constants, indices: list[ir.Expr], scope: Scope) -> ir.Expr:
    span = scope.span_of(node)
    if (problem := problem_of(table)) is not None:
        kinds = {type(value) for value in numbers(table)}
        hint = "numbers of one kind in rows of one length, or an array parameter"
        hint = "write the whole numbers as floats: `1.0`" if kinds == {int, float} else hint
        scope.error("P408", f"a kernel cannot index the tuple `{name}` at run time: {problem}", node, hint)
        return ir.Constant(0, span)
    array = scope.array_decls.setdefault(name, as_array(name, table, span))
    if len(indices) > len(array.type.dims):
        return _refuse_rank(node, name, table, scope)

    def part(indices: tuple[ir.Expr, ...]) -> ir.Expr:
        if len(indices) == len(array.type.dims):
            return ir.Load(name, indices, span)
        extent = array.type.dims[len(indices)]
        assert isinstance(extent, ir.Constant)
        places = (ir.Constant(place, span, ir.PY_INT) for place in range(int(extent.value)))
        return ir.Tuple(tuple(part((*indices, place)) for place in places), span)

    if len(indices) < len(array.type.dims):
        indices = [each if is_fixed(each, _NONE) or scope.hoisted.barrier else scope.save(each) for each in indices]
    return part(tuple(indices))


def _refuse_rank(node: cst.Subscript, name: str, table: Constants, scope: Scope) -> ir.Expr:
    rank, (_, subscripts) = len(shape_of(table) or (0,)), _peeled(node)
    indices = [source_text(each.slice[0]) for each in subscripts] + [*"klmnopqr"]
    brackets = "".join(f"[{index}]" for index in indices[:rank])
    scope.error("P401", f"this is not one number of `{name}`", node, f"write `{name}{brackets}`")
    return ir.Constant(0, scope.span_of(node))


def problem_of(table: Constants) -> str | None:
    """Why `table` cannot be indexed at run time; None if it can."""
    if shape_of(table) is None:
        return "its rows are of different lengths"
    values = tuple(numbers(table))
    kinds = {type(value) for value in values}
    if len(kinds) > 1:
        return f"it holds {' and '.join(sorted(kind.__name__ for kind in kinds))}"
    if any(isinstance(value, int) and not -(2**63) <= value < 2**63 for value in values):
        return "it holds numbers beyond 64 bits"
    if not values:
        return "it is empty"
    return None


def as_array(name: str, table: Constants, span: Span) -> ir.ArrayDecl:
    """A tuple of constants without problems as an array."""
    values, shape = tuple(numbers(table)), shape_of(table)
    assert shape is not None
    extents = tuple(ir.Constant(extent, span, ir.PY_INT) for extent in shape)
    type_ = ir.ArrayType(_DTYPES[type(values[0])], extents, weak=True)
    return ir.ArrayDecl(name, type_, ir.Space.CONSTANT, values, span=span)
