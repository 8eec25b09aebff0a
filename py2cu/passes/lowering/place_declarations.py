"""Declares every local in a C++ block: at its first assignment if all uses lie in that block, else before the first
statement that holds all of them.

    if c: r = 1                float r;
    else: r = 2         →      if (c) r = 1; else r = 2;
    out[i] = r                 out[i] = r;

An array that the next statements fill is declared with its values.

    float v[2];                float v[2] = {a, b};
    v[0] = a; v[1] = b; →

    float acc[4];              float acc[4] = {};
    for (int k = …)     →
        acc[k] = 0.0f;
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import replace

from py2cu import ir
from py2cu.diagnostics import Reporter
from py2cu.ir.rewrite import map_blocks, with_fields
from py2cu.ir.visit import blocks, expressions, names_in, statements


def place_declarations(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """The kernel with every local declared once, as deep as C allows."""
    assigned = {stmt.name for stmt in statements(kernel.body) if isinstance(stmt, ir.Assign) and stmt.declares is None}
    # A name that is never assigned is a loop's own variable: `for (int i = …` declares it.
    locals_ = {name: type_ for name, type_ in kernel.locals if name in assigned.difference(kernel.per_thread)}
    lists = {array.name: array for array in kernel.array_decls if array.is_list and array.name not in kernel.per_thread}
    body = _with_values(kernel.body, lists) if lists else kernel.body
    return with_fields(kernel, body=_declare(body, locals_))


def _with_values(block: ir.Block, lists: dict[str, ir.ArrayDecl]) -> ir.Block:
    """`block` with the values of these arrays in their declarations, as far as they are known there."""
    done: list[ir.Stmt] = []
    rest = list(block)
    while rest:
        stmt = rest.pop(0)
        if isinstance(stmt, ir.Alloc) and stmt.array in lists:
            values, count = _values_behind(lists[stmt.array], rest)
            stmt, rest = with_fields(stmt, values=values), rest[count:]
        done.append(map_blocks(stmt, lambda inner: _with_values(inner, lists)))
    return tuple(done)


def _values_behind(array: ir.ArrayDecl, block: list[ir.Stmt]) -> tuple[tuple[ir.Expr, ...] | None, int]:
    """The elements that the first statements of `block` give to `array`, and how many statements these are."""
    dims = array.type.dims
    if block and _stores_zeros(block[0], array.name, dims, ()):
        return (), 1
    shape = [int(extent.value) for extent in dims if isinstance(extent, ir.Constant)]
    places = [*itertools.product(*map(range, shape))] if len(shape) == len(dims) else []
    stores = [stmt for stmt in block[: len(places)] if isinstance(stmt, ir.Store) and stmt.array == array.name]
    found = [tuple(index.value for index in stmt.indices if isinstance(index, ir.Constant)) for stmt in stores]
    return (tuple(stmt.value for stmt in stores), len(stores)) if found and found == places else (None, 0)


def _stores_zeros(stmt: ir.Stmt, array: str, dims: tuple[ir.Expr, ...], counters: tuple[str, ...]) -> bool:
    """True for loops over `dims` in which zero is stored everywhere."""
    match stmt:
        case ir.For(var=var, start=ir.Constant(value=0), stop=stop, step=ir.Constant(value=1), body=(inner,)) if (
            dims and stop == dims[0]
        ):
            return _stores_zeros(inner, array, dims[1:], (*counters, var))
        case ir.Store(array=name, indices=indices, value=ir.Constant(value=value)) if name == array and not dims:
            is_zero = value == 0 and math.copysign(1, value) > 0
            return is_zero and [index.id for index in indices if isinstance(index, ir.Name)] == [*counters]
        case _:
            return False


def _declare(block: ir.Block, locals_: dict[str, ir.ValueType]) -> ir.Block:
    """`block` with each of these locals declared by, before or in the first statement that mentions it."""
    order = {name: place for place, name in enumerate(locals_)}
    mentioned = [_mentions((stmt,)) & order.keys() for stmt in block]
    count = Counter(itertools.chain.from_iterable(mentioned))
    declared: set[str] = set()
    rewritten: list[ir.Stmt] = []
    for stmt, names in zip(block, mentioned, strict=True):
        new = {name: locals_[name] for name in sorted(names - declared, key=order.__getitem__)}
        rewritten += _declare_at(stmt, new, {name for name in new if count[name] == 1})
        declared |= names
    return tuple(rewritten)


def _declare_at(stmt: ir.Stmt, new: dict[str, ir.ValueType], only_here: set[str]) -> ir.Block:
    """`stmt` with the declarations of the `new` locals; one that a single nested block needs goes there."""
    if not new:
        return (stmt,)
    mentioned = _direct_mentions(stmt)
    inside = [_mentions(block) for block in blocks(stmt)]
    leads: list[ir.Stmt] = []
    deeper: dict[int, dict[str, ir.ValueType]] = {}
    for name, type_ in new.items():
        holders = [place for place, names in enumerate(inside) if name in names]
        if name in only_here - mentioned and len(holders) == 1:
            deeper.setdefault(holders[0], {})[name] = type_
        elif isinstance(stmt, ir.Assign) and stmt.name == name:
            stmt = with_fields(stmt, declares=type_)
        else:
            assert not isinstance(type_, ir.TupleType), name
            leads.append(ir.DeclareLocal(name, type_, stmt.span, ir.Trivia(above=stmt.trivia.above)))
            stmt = with_fields(stmt, trivia=replace(stmt.trivia, above=()))
    for place, names_inside in deeper.items():
        stmt = _in_block(stmt, place, names_inside)
    return (*leads, stmt)


def _mentions(block: ir.Block) -> set[str]:
    """The names that the statements of `block` assign or read."""
    return {name for stmt in statements(block) for name in _direct_mentions(stmt)}


def _direct_mentions(stmt: ir.Stmt) -> set[str]:
    """The names that `stmt` assigns or reads, its blocks left out."""
    read = {name for expr in expressions(stmt) for name in names_in(expr)}
    return read | {stmt.name} if isinstance(stmt, ir.Assign) else read


def _in_block(stmt: ir.Stmt, place: int, locals_: dict[str, ir.ValueType]) -> ir.Stmt:
    field = ("body", "orelse")[place]
    return with_fields(stmt, **{field: _declare(blocks(stmt)[place], locals_)})
