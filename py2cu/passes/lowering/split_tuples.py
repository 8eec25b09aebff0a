"""Splits tuples into scalars; a struct remains where a device function returns a tuple, or a local holds such a result.

    p = (a, b)                     p_0 = a; p_1 = b
    p = (p[1], p[0])        →      new_p_1 = p_0; p_0 = p_1; p_1 = new_p_1
    return p                       return (p_0, p_1)

    t = f(x)                       t = f(x)                  a local that is assigned once, and read in its C block
    return t[0] + t[1]      →      return t.lo + t.hi

    a, b = x2[i]                   a_b = x2[i]               a row of a view, whose struct has fields x0, x1, …
    x2[i] = b, a            →      a = a_b.x0; b = a_b.x1
                                   x2[i] = (b, a)

The struct's fields have the names that `f` returns, if all its returns agree on them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import replace
from typing import Final

from py2cu import ir
from py2cu.analysis.effects import has_collective, is_wait, waiting_functions
from py2cu.diagnostics import InternalError, Reporter
from py2cu.ir.names import free_name, names_in_scope
from py2cu.ir.rewrite import rebuild_block, rebuild_statements, with_fields
from py2cu.ir.visit import all_expressions, blocks, names_in, reads, statements, walk
from py2cu.passes.lowering.identifiers import ascii_identifier, spell_identifier
from py2cu.source import Span

Fields = tuple[str, ...]
_ORDINALS: Final = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")


def split_tuples(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """The kernel, and its device functions, with tuples only as results of functions."""
    structs = _find_structs(kernel.functions)
    waiting = waiting_functions(kernel)
    functions = tuple(_Splitter(function, structs, waiting).run() for function in kernel.functions)
    return with_fields(_Splitter(kernel, structs, waiting).run(), functions=functions)


def row_struct(count: int) -> str:
    """The helper that is the type of a row."""
    return f"Vector{count}"


def row_fields(count: int) -> Fields:
    """What C calls the elements of a row."""
    return tuple(f"x{at}" for at in range(count))


# --- results ----------------------------------------------------------------------------------------------------------


def _find_structs(functions: tuple[ir.Kernel, ...]) -> dict[str, ir.Struct]:
    """The struct of each function that returns a tuple; passing on another's result shares that struct."""
    by_key = {function.key: function for function in functions}
    return {f.key: _struct(_source(f, by_key)) for f in functions if isinstance(f.result, ir.TupleType)}


def _source(function: ir.Kernel, functions: Mapping[str, ir.Kernel]) -> ir.Kernel:
    """The function whose struct this one returns: itself, unless all its returns pass on the results of one other."""
    seen = {function.key}
    while True:
        values = [stmt.value for stmt in statements(function.body) if isinstance(stmt, ir.Return)]
        called = {value.function if isinstance(value, ir.DeviceCall) else "" for value in values}
        key = called.pop() if len(called) == 1 else ""
        if not key or key in seen:
            return function
        seen.add(key)
        function = functions[key]


def _struct(function: ir.Kernel) -> ir.Struct:
    assert isinstance(function.result, ir.TupleType)
    count = len(function.result.items)
    returned = {_names(stmt.value) for stmt in statements(function.body) if isinstance(stmt, ir.Return)}
    names = returned.pop() if len(returned) == 1 else ()
    fields = tuple(f"{name}_" if name in ("T", "U", "V", "W") else name for name in map(spell_identifier, names))
    if len(set(fields)) != count:
        fields = tuple(_ORDINALS[at] if at < len(_ORDINALS) else f"item{at + 1}" for at in range(count))
    return ir.Struct(f"{ascii_identifier(function.name)}_result", fields, function.key)


def _names(value: ir.Expr | None) -> tuple[str, ...]:
    """The names of which a return makes a tuple; () for any other value."""
    items = value.items if isinstance(value, ir.Tuple) else ()
    bare = (item.value if isinstance(item, ir.Convert) else item for item in items)
    names = tuple(item.id for item in bare if isinstance(item, ir.Name))
    return names if len(names) == len(items) else ()


# --- locals -----------------------------------------------------------------------------------------------------------


class _Splitter:
    """Splits the tuples of one kernel or device function; `waiting` are the functions in which threads wait."""

    def __init__(self, kernel: ir.Kernel, structs: Mapping[str, ir.Struct], waiting: frozenset[str]) -> None:
        self.kernel = kernel
        self.structs = structs
        self.waiting = waiting
        self.taken = names_in_scope(kernel)
        self.types: dict[str, ir.ValueType] = {}
        self.holders: dict[str, Fields] = {}  # locals that stay structs, with their fields
        self.parts: dict[str, tuple[ir.Name, ...]] = {}  # the scalars of every other local
        self.unchanged: list[ir.Elided] = []  # assignments of items to themselves
        for name, type_ in kernel.locals:
            if not isinstance(type_, ir.TupleType):
                self.types[name] = type_
            elif fields := self.struct_fields(name, type_):
                self.types[name], self.holders[name] = type_, fields
            else:
                self.parts[name] = tuple(self.local(f"{name}_{at}", item) for at, item in enumerate(type_.items))

    def struct_fields(self, name: str, type_: ir.TupleType) -> Fields:
        """The fields of the local `name` if it may stay a struct, else (). It must be assigned once, read only in the
        same block, and not live across a barrier: the CPU keeps only numbers for each thread.
        """
        body = self.kernel.body
        match [stmt for stmt in statements(body) if isinstance(stmt, ir.Assign) and stmt.name == name]:
            case [ir.Assign(value=ir.DeviceCall() | ir.Load() | ir.Select() as value) as only] if value.type == type_:
                block = next(block for block in _all_blocks(body) if any(stmt is only for stmt in block))
                # rule: split-tuple-waits
                is_visible = reads(block, name) == reads(body, name) and not self.waits(_from_to(block, only, name))
                return self.fields(value) if is_visible else ()
            case _:
                return ()

    def waits(self, block: ir.Block) -> bool:
        """True where threads wait for each other in `block`, or in a function that it calls."""
        calls = (node for node in all_expressions(block) if isinstance(node, ir.DeviceCall))
        return has_collective(block) or any(call.function in self.waiting for call in calls)

    def run(self) -> ir.Kernel:
        numbers = {part.id for parts in self.parts.values() for part in parts}
        body = without_unread(rebuild_block(self.kernel.body, self.expression, self.statement), numbers)
        struct = self.structs.get(self.kernel.key)
        assigned = {stmt.name for stmt in statements(body) if isinstance(stmt, ir.Assign)}
        unread = numbers - assigned
        locals_ = tuple((name, type_) for name, type_ in self.types.items() if name not in unread)
        dropped = tuple(
            ir.Elided(stmt.span, ir.Elision.UNREAD)
            for stmt in statements(self.kernel.body)
            if isinstance(stmt, ir.Assign) and any(part.id in unread for part in self.parts.get(stmt.name, ()))
        )
        elided = (*self.kernel.elided, *dropped, *self.unchanged)
        return with_fields(self.kernel, body=body, locals=locals_, struct=struct, elided=elided)

    def local(self, name: str, type_: ir.ValueType) -> ir.Name:
        """A new local, called `name` if that is free."""
        fresh = free_name(name, self.taken)
        self.taken.add(fresh)
        self.types[fresh] = type_
        return ir.Name(fresh, type=type_)

    def expression(self, expr: ir.Expr) -> ir.Expr:
        match expr:
            case ir.TupleItem(value=ir.Name(id=name), at=at) if name in self.parts:
                return replace(self.parts[name][at], span=expr.span)
            case ir.TupleItem(value=value, at=at) if fields := self.fields(value):
                return replace(expr, field=fields[at])
            case _:
                return expr

    def fields(self, value: ir.Expr) -> Fields:
        """The field names of `value` if it is a struct, else ()."""
        match value:
            case ir.Name(id=name):
                return self.holders.get(name, ())
            case ir.DeviceCall(function=function, type=ir.TupleType()):
                return self.structs[function].fields
            case ir.Load(type=ir.TupleType(items=items)):
                return row_fields(len(items))
            case ir.Select(then=then, type=ir.TupleType()):
                return self.fields(then)
            case _:
                return ()

    def statement(self, stmt: ir.Stmt) -> ir.Block:
        before: list[ir.Stmt] = []
        match stmt:
            case ir.Assign(name=name, value=value) if name in self.parts:
                split = [*self.assign(self.parts[name], self.items(value, before), before, stmt.span)]
            case ir.Return(value=ir.DeviceCall(function=function, type=ir.TupleType() as type_)) if self.returns(
                function, type_
            ):
                return (stmt,)
            case ir.Store(value=value) if isinstance(value.type, ir.TupleType):
                if self.fields(value) == row_fields(len(value.type.items)):  # rule: row-in-place
                    return (stmt,)
                items = tuple(self.items(value, before))
                split = [replace(stmt, value=ir.Tuple(items, value.span, value.type), trivia=ir.BARE)]
            case ir.Return(value=value) if value is not None and isinstance(value.type, ir.TupleType):
                items = tuple(self.items(value, before))
                split = [replace(stmt, value=ir.Tuple(items, value.span, value.type), trivia=ir.BARE)]
            case _:
                return (stmt,)
        first, *rest = (*before, *split) or (ir.Comment(stmt.span),)
        return (replace(first, trivia=stmt.trivia), *rest)

    def returns(self, function: str, type_: ir.TupleType) -> bool:
        """True if this function returns the struct and the type that `function` returns."""
        return self.structs[function] == self.structs[self.kernel.key] and type_ == self.kernel.result

    def items(self, value: ir.Expr, before: list[ir.Stmt]) -> list[ir.Expr]:
        """The items of a tuple; a call is made in a statement of its own."""
        match value:
            case ir.Tuple(items=items):
                return [*items]
            case ir.Name(id=name) if name in self.parts:
                return [*self.parts[name]]
            case ir.Convert(value=inner, type=ir.TupleType(items=types)):
                pairs = zip(self.items(inner, before), types, strict=True)
                return [item if item.type == type_ else ir.Convert(item, type_, value.span) for item, type_ in pairs]
            case (
                ir.DeviceCall(type=ir.TupleType() as type_)
                | ir.Load(type=ir.TupleType() as type_)
                | ir.Select(type=ir.TupleType() as type_)
            ):
                holder = self.local("result", type_)
                self.holders[holder.id] = self.fields(value)
                before.append(ir.Assign(holder.id, value, value.span))
                return self.items(holder, before)
            case ir.Name(id=name, type=ir.TupleType(items=types)):
                fields = self.holders[name]
                return [ir.TupleItem(value, at, value.span, type_, field=fields[at]) for at, type_ in enumerate(types)]
            case _:
                raise InternalError("this is no tuple", value.span)

    def assign(
        self, parts: tuple[ir.Name, ...], items: list[ir.Expr], before: list[ir.Stmt], span: Span
    ) -> Iterator[ir.Stmt]:
        """Assign each item to its part; an item that reads an earlier part is saved first."""
        assigned: set[str] = set()
        for part, item in zip(parts, items, strict=True):
            if item == part:
                self.unchanged.append(ir.Elided(span, ir.Elision.UNCHANGED))
                continue
            if assigned & set(names_in(item)):
                saved = self.local(f"new_{part.id}", self.types[part.id])
                before.append(ir.Assign(saved.id, item, span))
                item = saved
            assigned.add(part.id)
            yield ir.Assign(part.id, item, span)


def without_unread(body: ir.Block, names: Set[str], *, keep_comments: bool = True) -> ir.Block:
    """`body` without assignments to those of `names` that it never reads, but for calls and what waits for threads."""
    unread = names - {node.id for node in all_expressions(body) if isinstance(node, ir.Name)}

    def prune(stmt: ir.Stmt) -> ir.Block:
        if not isinstance(stmt, ir.Assign) or stmt.name not in unread:
            return (stmt,)
        if any(isinstance(node, ir.DeviceCall) or is_wait(node) for node in walk(stmt.value)):
            return (stmt,)
        return (ir.Comment(stmt.span, stmt.trivia),) if keep_comments and stmt.trivia != ir.BARE else ()

    return rebuild_statements(body, prune) if unread else body


def _all_blocks(body: ir.Block) -> Iterator[ir.Block]:
    yield body
    for stmt in statements(body):
        yield from blocks(stmt)


def _from_to(block: ir.Block, first: ir.Stmt, name: str) -> ir.Block:
    """`block` from `first`, exclusive, to the last statement that reads `name`."""
    start = next(place for place, stmt in enumerate(block) if stmt is first) + 1
    last = max((place for place, stmt in enumerate(block) if reads((stmt,), name)), default=start)
    return block[start : last + 1]
