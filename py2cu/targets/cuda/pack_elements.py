"""Gives each thread of an index kernel several neighbouring elements: the body becomes a function of one element.

def twice(i: Index["n"], x, out):         float twice(float x) { return 2.0f * x; }
    out[i] = 2 * x[i]                 →
                                          each pack of i < n:
                                            x = x[i]
                                            out[i] = twice(x)

Elements that lie side by side are the function's arguments and results; other arrays, numbers and the index it takes as
they are. A kernel for which `find_packs` sees an obstacle stays as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields, replace
from itertools import takewhile
from typing import Final, TypeVar

from py2cu import ir
from py2cu.analysis.call_graph import callees
from py2cu.analysis.launches import launcher_arguments
from py2cu.analysis.packs import Obstacle, Packs, Place, find_packs
from py2cu.diagnostics import Reporter
from py2cu.ir.abi.parameters import Parameter
from py2cu.ir.names import free_name, names_in_scope
from py2cu.ir.rewrite import map_blocks, rebuild, rebuild_block, with_fields
from py2cu.ir.visit import all_expressions, assigned_names, statements
from py2cu.passes.lowering.identifiers import RESERVED, ascii_identifier
from py2cu.passes.lowering.index_arithmetic import as_index

Typed = TypeVar("Typed", ir.Expr, Parameter, ir.For)
HELPER: Final = "aligned_vector"
_BLOCK: Final = 128
"""The threads of a block where nothing says how many and there is one index. Twice as many take up to 5 % more time."""


def pack_elements(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """`kernel` with one `EachPack`, if it is an index kernel and `find_packs` sees no obstacle."""
    if not kernel.indices:
        return kernel
    packs = find_packs(kernel)
    if isinstance(packs, Obstacle):
        return kernel
    function, stmt = _element(kernel, packs)
    chooses_block = kernel.has_default_block and len(kernel.indices) == 1
    return kernel.having(
        body=(stmt,),
        block=(ir.constant_extent(_BLOCK),) if chooses_block else kernel.block,
        locals=(),
        array_decls=(),
        functions=(*kernel.functions, function),
        helpers=(HELPER,),
        elided=(*kernel.elided, *_replaced(kernel.body)),
    )


def _element(kernel: ir.Kernel, packs: Packs) -> tuple[ir.Kernel, ir.EachPack]:
    """The function of one element, and the statement that calls it."""
    stores = [packs.place(stmt) for stmt in packs.stores]
    loads = [packs.place(load) for load in packs.loads]
    names = _names(kernel, packs)
    results = tuple(ir.Name(names[place], type=_type(kernel, place)) for place in stores)
    types = tuple(_type(kernel, place) for place in stores)
    type_ = ir.TupleType(types) if len(types) > 1 else types[0]
    body = _as_function(kernel.body, packs, names, results, type_)
    values = [Parameter(names[place], _type(kernel, place)) for place in loads]
    assigned = {stmt.name for stmt in statements(body) if isinstance(stmt, ir.Assign)}
    locals_ = dict(kernel.locals) | {names[place]: _type(kernel, place) for place in stores if place not in loads}
    key, held = f"{kernel.name}: one element", tuple(result.id for result in results) if len(results) > 1 else ()
    scope = names_in_scope(kernel)
    function = kernel.having(
        key=key,
        symbol=f"{kernel.name}_element" if kernel.name in scope else kernel.name,  # arguments keep their names
        indices=(), launch=(), size=None, block=(), inits=(), guards=(), in_place=(), independent_dims=(), bounds=(),
        size_bounds=(), launch_values=(), functions=(), launch_bounds=(), variables=(), former_index_extents=(),
        parameters=(*values, *_others(kernel, body, names.values())),
        locals=tuple((name, type_) for name, type_ in locals_.items() if name in assigned),
        body=body,
        result=type_,
        struct=ir.Struct(f"{ascii_identifier(kernel.name)}_result", held, key) if held else None,
    )  # fmt: skip
    if not callees(body):  # which take indices of the width that they are given
        function = _in_64_bits(function)
    return function, _each_pack(kernel, packs, names, function)


def _plural(name: str) -> str:
    """The name of a pack of values: `xs`, and `weights_pack` for `weights`."""
    return f"{name}_pack" if name.endswith("s") else f"{name}s"


def _each_pack(kernel: ir.Kernel, packs: Packs, names: Mapping[Place, str], function: ir.Kernel) -> ir.EachPack:
    launched = (value.name for value in kernel.launch_values)
    taken = names_in_scope(kernel).union(RESERVED, launched, {function.symbol})

    def free(name: str) -> str:
        found = free_name(name, taken)
        taken.add(found)
        return found

    stores = [ir.Load(stmt.array, stmt.indices, stmt.span, _type(kernel, packs.place(stmt))) for stmt in packs.stores]
    places = [packs.place(access) for access in (*packs.loads, *stores)]
    held = {place: free(_plural(ascii_identifier(names[place]))) for place in dict.fromkeys(places)}
    args: list[ir.Expr] = [
        ir.ArrayName(p.name, type=p.type) if p.is_array else ir.Name(p.name, type=p.type) for p in function.parameters
    ]
    return ir.EachPack(
        index=packs.index.name,
        extent=rebuild(packs.index.extent, as_index),
        loads=packs.loads,
        values=tuple(names[packs.place(load)] for load in packs.loads),
        element=ir.DeviceCall(function.key, tuple(args), type=function.result or ir.UNKNOWN),
        stores=tuple(stores),
        results=function.struct.fields if function.struct else (),
        packs=tuple(held[place] for place in places),
        is_whole=packs.is_whole,
        names=ir.PackNames(**{each.name: free(str(each.default)) for each in fields(ir.PackNames)}),
        span=packs.index.span,
    )  # fmt: skip


def _replaced(block: ir.Block) -> Iterator[ir.Elided]:
    """The stores and returns for which the function's results stand."""
    for stmt in statements(block):
        if isinstance(stmt, ir.Store | ir.Return):
            yield ir.Elided(stmt.span, ir.Elision.PACKED)


def _type(kernel: ir.Kernel, place: Place) -> ir.ElementType:
    return ir.ElementType(kernel.array_type(place[0]).dtype)


def _others(kernel: ir.Kernel, body: ir.Block, elements: Collection[str]) -> Iterator[Parameter]:
    """What else the function takes: indices, arrays, numbers, extents and launch values that it reads or assigns to."""
    nodes = [*all_expressions(body)]
    arrays = {node.array for node in nodes if isinstance(node, ir.Load)}
    numbers = {node.id for node in nodes if isinstance(node, ir.Name)}.union(assigned_names(body)).difference(elements)
    yield from (Parameter(index.name, ir.INDEX) for index in kernel.indices if index.name in numbers)
    for name, type_, parameter in launcher_arguments(kernel):
        if name in (arrays if isinstance(type_, ir.ArrayType) else numbers):
            yield Parameter(name, ir.INDEX) if parameter is None else replace(parameter, default=None)
    yield from (Parameter(value.name, ir.PY_FLOAT) for value in kernel.launch_values if value.name in numbers)


def _names(kernel: ir.Kernel, packs: Packs) -> dict[Place, str]:
    """The names of elements: that of the array, numbered where the function reads other elements of it, too."""
    taken = names_in_scope(kernel)
    every: tuple[ir.Load | ir.Store, ...] = (*packs.loads, *packs.stores)
    accesses = {packs.place(access): access for access in every}
    read = {(node.array, node.indices) for node in all_expressions(kernel.body) if isinstance(node, ir.Load)}
    names = {}
    for place, access in accesses.items():
        array = place[0]
        own = [each for each in accesses if each[0] == array]
        is_only = len(own) == 1 and {indices for name, indices in read if name == array} <= {access.indices}
        names[place] = array if is_only else free_name(f"{array}{own.index(place)}", taken)
        taken.add(names[place])
    return names


def _in_64_bits(function: ir.Kernel) -> ir.Kernel:
    """The function with indices of 64 bits, as the kernel has them."""

    def widen(node: Typed) -> Typed:
        return replace(node, type=ir.LONG) if _is_index(node.type) else node

    def widen_loop(stmt: ir.Stmt) -> ir.Block:
        return (widen(stmt) if isinstance(stmt, ir.For) else stmt,)

    return function.having(
        parameters=tuple(map(widen, function.parameters)),
        locals=tuple((name, ir.LONG if _is_index(type_) else type_) for name, type_ in function.locals),
        body=rebuild_block(function.body, widen, widen_loop),
    )


def _is_index(type_: ir.Type) -> bool:
    return isinstance(type_, ir.PythonType) and type_.width is ir.Width.INDEX


# --- the function's body ----------------------------------------------------------------------------------------------


def _as_function(
    body: ir.Block, packs: Packs, names: Mapping[Place, str], results: tuple[ir.Name, ...], type_: ir.ValueType
) -> ir.Block:
    """The body on elements in place of arrays, which returns what it stored."""
    value = results[0] if len(results) == 1 else ir.Tuple(results, type=type_)

    def read(expr: ir.Expr) -> ir.Expr:
        place = packs.find(expr) if isinstance(expr, ir.Load) else None
        return expr if place is None else ir.Name(names[place], expr.span, expr.type)

    def write(stmt: ir.Stmt) -> ir.Block:
        if isinstance(stmt, ir.Store):
            name = names[packs.place(stmt)]
            return (ir.Assign(name, stmt.value, stmt.span, stmt.trivia, stmt.augmented),)
        return (with_fields(stmt, value=value),) if isinstance(stmt, ir.Return) else (stmt,)

    return _merged(_ended(rebuild_block(body, read, write), value))


def _ended(block: ir.Block, value: ir.Expr) -> ir.Block:
    """`block` with a return at its end, or at those of the branches of its last statement."""
    stmts, notes = _without_notes(block)
    match stmts:
        case (*_, ir.Return()):
            return block
        case (*head, ir.If(body=body, orelse=orelse) as last) if orelse and isinstance(value, ir.Name):
            return (*head, with_fields(last, body=_ended(body, value), orelse=_ended(orelse, value)), *notes)
        case _:
            return (*block, ir.Return(value=value))


def _merged(block: ir.Block) -> ir.Block:
    """`out = v; return out` at the end as `return v`, with the comments of both; those at the end stay there."""
    done = tuple(map_blocks(stmt, _merged) for stmt in block)
    stmts, footer = _without_notes(done)
    if not stmts or not isinstance(last := stmts[-1], ir.Return):
        return done
    before, notes = _without_notes(stmts[:-1])
    match before, last.value:
        case (*head, ir.Assign(name=name) as made), ir.Name(id=returned) if returned == name:
            above = (*made.trivia.above, *last.trivia.above)
            beside = "  ".join(filter(None, (made.trivia.beside, last.trivia.beside)))
            return (*head, ir.Return(made.span, ir.Trivia(above, beside), made.value), *notes, *footer)
        case _:
            return done


def _without_notes(block: ir.Block) -> tuple[ir.Block, ir.Block]:
    """A block up to the comments at its end, and these."""
    notes = [*takewhile(lambda stmt: isinstance(stmt, ir.Comment), reversed(block))]
    return block[: len(block) - len(notes)], block[len(block) - len(notes) :]
