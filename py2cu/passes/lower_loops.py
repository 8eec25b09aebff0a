"""Gives a loop whose variable is changed in the body, or read after the loop, a counter of its own: Python's loop does
not care what becomes of its variable, C's does.

    for i in range(n):             for (int i_count = 0; i_count < n; ++i_count) {
        i = i + 1           →          i = i_count;
                                       i = i + 1;

A loop's `else` becomes a block behind it, which a flag guards where a `break` would skip it:

    for i in range(n):             bool stopped = false;
        if c: break                for (int i = 0; i < n; ++i) {
    else:                   →          if (c) { stopped = true; break; }
        s = 0                      }
                                   if (!stopped) s = 0;
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from py2cu.diagnostics import Reporter
from py2cu.ir.extents import Constant, Name
from py2cu.ir.nodes import Expr, Load, Unary
from py2cu.ir.statements import Assign, Block, Break, For, If, Kernel, Stmt, Store, Trivia, While
from py2cu.ir.types import PY_BOOL, ScalarType
from py2cu.ir.visit import changed, expressions, names_in, rebuild_block, statements, walk


def lower_loops(kernel: Kernel, reporter: Reporter) -> Kernel:
    """The kernel in loops that C's `for` runs as Python's does; bounds that the body changes are taken once."""
    taken = {name for name, _ in kernel.locals} | {p.name for p in kernel.parameters} | set(kernel.dims)
    types = dict(kernel.locals)
    shared = _shared_variables(kernel.body)

    def fresh(name: str, type_: ScalarType) -> str:
        while name in taken:
            name += "_"
        taken.add(name)
        types[name] = type_
        return name

    def once(loop: For, what: str, before: list[Stmt]) -> Expr:
        """A bound that the loop would change is taken into a local before it."""
        value = loop.stop if what == "stop" else loop.step
        if loop.var not in names_in(value) and not _changes(value, loop.body):
            return value
        name = fresh(f"{loop.var}_{what}", loop.type)
        before.append(Assign(name, value, loop.span))
        return Name(name, loop.span, value.type)

    def lower(stmt: Stmt) -> Block:
        match stmt:
            case For():
                *before, loop = count(stmt)
                assert isinstance(loop, For)
                return leave(tuple(before), loop)
            case While():
                return leave((), stmt)
            case _:
                return (stmt,)

    def leave(before: Block, loop: For | While) -> Block:
        """The loop, and behind it what its `else` holds."""
        orelse, bare = loop.orelse, replace(loop, orelse=())
        if isinstance(loop, While) and isinstance(loop.test, Constant) and loop.test.value:
            return (bare,)  # its `else` is never reached
        if not (orelse and _breaks(loop.body)):
            return (*before, bare, *orelse)
        name = fresh("stopped", PY_BOOL)
        first = before[0] if before else loop
        flag = Assign(name, Constant(False, type=PY_BOOL), loop.span, Trivia(above=first.trivia.above))
        before = (*before, replace(bare, body=_flag_breaks(loop.body, name)))
        before = (replace(before[0], trivia=replace(before[0].trivia, above=())), *before[1:])
        return (flag, *before, If(Unary("not", Name(name, type=PY_BOOL), type=PY_BOOL), orelse, span=orelse[0].span))

    def count(stmt: For) -> Block:
        """The loop, counted as C counts, and what has to stand before it."""
        before: list[Stmt] = []
        stop, step = (once(stmt, what, before) for what in ("stop", "step"))
        stmt = replace(stmt, stop=stop, step=step)
        if before:
            before[0] = replace(before[0], trivia=replace(stmt.trivia, beside=""))
            stmt = replace(stmt, trivia=replace(stmt.trivia, above=()))
        if stmt.var in shared:
            counter = fresh(f"{stmt.var}_count", stmt.type)
            copy = Assign(stmt.var, Name(counter, stmt.span, stmt.type), stmt.span)
            stmt = replace(stmt, var=counter, body=(copy, *stmt.body))
        return (*before, stmt)

    body = rebuild_block(kernel.body, lambda expr: expr, lower)
    return changed(kernel, body=body, locals=tuple(types.items()))


def _breaks(body: Block) -> bool:
    """True where a `break` in `body` leaves the loop that `body` belongs to."""
    return any(
        isinstance(stmt, Break) or (isinstance(stmt, If) and (_breaks(stmt.body) or _breaks(stmt.orelse)))
        for stmt in body
    )


def _flag_breaks(body: Block, name: str) -> Block:
    """`body` with the flag set before every `break` that leaves its loop."""
    done: list[Stmt] = []
    for stmt in body:
        match stmt:
            case Break():
                flag = Assign(name, Constant(True, type=PY_BOOL), stmt.span, stmt.trivia)
                done += [flag, replace(stmt, trivia=Trivia())]
            case If():
                done.append(replace(stmt, body=_flag_breaks(stmt.body, name), orelse=_flag_breaks(stmt.orelse, name)))
            case _:
                done.append(stmt)
    return tuple(done)


def _shared_variables(body: Block) -> set[str]:
    """Loop variables that are assigned in some other way, or read outside their loop."""
    loops: dict[str, list[For]] = {}
    for stmt in statements(body):
        if isinstance(stmt, For):
            loops.setdefault(stmt.var, []).append(stmt)
    assigned = {stmt.name for stmt in statements(body) if isinstance(stmt, Assign)}
    shared = set(loops) & assigned
    for var, found in loops.items():
        inside = sum(_reads(loop.body, var) for loop in _outermost(found))
        bounds = sum(var in names_in(e) for loop in found for e in (loop.start, loop.stop, loop.step))
        if _reads(body, var) > inside or bounds or any(_rebinds(loop.body, var) for loop in found):
            shared.add(var)
    return shared


def _outermost(loops: list[For]) -> Iterator[For]:
    for loop in loops:
        if not any(loop is not other and any(loop is inner for inner in statements(other.body)) for other in loops):
            yield loop


def _rebinds(body: Block, var: str) -> bool:
    return any(isinstance(stmt, For) and stmt.var == var for stmt in statements(body))


def _reads(body: Block, var: str) -> int:
    return sum(
        isinstance(node, Name) and node.id == var
        for stmt in statements(body)
        for expr in expressions(stmt)
        for node in walk(expr)
    )


def _changes(bound: Expr, body: Block) -> bool:
    """True where the body may change what `bound` reads."""
    assigned = {stmt.name for stmt in statements(body) if isinstance(stmt, Assign)}
    assigned |= {stmt.var for stmt in statements(body) if isinstance(stmt, For)}
    stored = {stmt.array for stmt in statements(body) if isinstance(stmt, Store)}
    loads = {node.array for node in walk(bound) if isinstance(node, Load)}
    return bool(assigned & set(names_in(bound)) or (loads and stored)) and not isinstance(bound, Constant)
