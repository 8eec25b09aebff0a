"""Loads a row of a view once before the loop over its elements, and stores a row at once.

for k in range(4): t += x4[i, k]         →   row = x4[i]
                                             for k in range(4): t += row[k]
for k in range(4): x4[i, k] = acc[k]     →   x4[i] = acc

In the IR the whole row is an access without indices, `x4_row[] = x4[i, 0]`, with the cache hint of its elements. A row
is loaded early only where each round reads it, and where nothing in the loop may leave it, write the array, or depend
on other threads. A loop from 1 reads it, too: `max(x4[i])`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from py2cu import ir
from py2cu.analysis.effects import Footprint, commute, footprint
from py2cu.builtins.memory import row_access
from py2cu.diagnostics import Reporter
from py2cu.ir.names import free_name, names_in_scope
from py2cu.ir.rewrite import rebuild_block, rebuild_statements, with_fields
from py2cu.ir.visit import accesses, all_expressions, always_evaluated, expressions, names_in, statements

HELPER = "aligned_vector"
_FIRST = ir.Constant(0, type=ir.INT)
_PLAIN = ir.Assign | ir.Store | ir.Alloc | ir.If | ir.For | ir.Comment | ir.Delete


def load_rows(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """The kernel with rows that are loaded and stored at once."""
    if not kernel.vector_widths:
        return kernel
    rows = _Rows(kernel)
    body = rebuild_statements(kernel.body, rows.rebuilt)
    if not rows.names:
        return kernel
    decls = [*(replace(d, is_row=d.is_row or d.name in rows.names) for d in kernel.array_decls), *rows.decls]
    helpers = (*kernel.helpers, HELPER, *map(row_access, sorted(rows.hints - {""})))
    return with_fields(kernel, body=rebuild_statements(body, rows.unrolled), array_decls=tuple(decls), helpers=helpers)


@dataclass(slots=True)
class _Rows:
    kernel: ir.Kernel
    names: set[str] = field(default_factory=set)  # arrays that are rows
    hints: set[str] = field(default_factory=set)  # of the accesses to whole rows
    decls: list[ir.ArrayDecl] = field(default_factory=list)
    taken: set[str] = field(init=False)
    passed: set[str] = field(init=False)

    def __post_init__(self) -> None:
        self.taken = names_in_scope(self.kernel)
        self.passed = {node.id for node in all_expressions(self.kernel.body) if isinstance(node, ir.ArrayName)}

    def rebuilt(self, stmt: ir.Stmt) -> ir.Block:
        match stmt:
            case ir.For(start=ir.Constant(value=0 | 1), stop=ir.Constant(value=int(count)), step=ir.Constant(value=1)):
                return self.stored(stmt, count) or self.loaded(stmt, count)
            case _:
                return (stmt,)

    def does(self, *values: ir.Expr, block: ir.Block = ()) -> Footprint:
        functions = {function.key: function for function in self.kernel.functions}
        return footprint(block, values, functions, self.kernel.base_array)

    def unrolled(self, stmt: ir.Stmt) -> ir.Block:
        """Only an unrolled loop keeps the elements of a row in registers."""
        if isinstance(stmt, ir.For) and stmt.unroll is None:
            of_rows = (access for access in accesses(stmt.body) if access.array in self.names)
            if any(names_in(index) == (stmt.var,) for access in of_rows for index in access.indices):
                return (with_fields(stmt, unroll=0),)
        return (stmt,)

    def stored(self, loop: ir.For, count: int) -> ir.Block | None:
        """The store of a whole row, in place of a loop that copies an array of the thread into it."""
        match loop.start, *loop.body:
            case (
                ir.Constant(value=0),  # rule: row-store-whole
                ir.Store(
                    indices=(*at, ir.Name(id=last)), value=ir.Load(array=own, indices=(ir.Name(id=index),))
                ) as store,
            ) if last == index == loop.var and own not in self.passed:
                decl, view = self.kernel.array_decl(own), self.kernel.array_decl(store.array)
            case _:
                return None
        if decl is None or view is None or decl.space is not ir.Space.LOCAL or decl.is_list:
            return None
        lengths = [int(dim.value) for dim in decl.type.dims if isinstance(dim, ir.Constant)]
        if view.vector_width != count or lengths != [count] or decl.type.dtype != view.type.dtype:
            return None
        if any(loop.var in names_in(each) for each in at):  # rule: row-store-index
            return None
        self.names.add(own)
        self.hints.add(store.hint)
        whole = ir.Load(own, (), loop.span, type=view.type.element)
        return (with_fields(store, indices=(*at, _FIRST), value=whole, trivia=loop.trivia),)

    def loaded(self, loop: ir.For, count: int) -> ir.Block:
        """The loop behind loads of the rows that it reads."""
        acts = any(isinstance(node, ir.Atomic | ir.ArrayName) for node in all_expressions(loop.body))
        if acts or not all(isinstance(stmt, _PLAIN) for stmt in statements(loop.body)):  # rule: row-loop-plain
            return (loop,)
        effects = self.does(block=(loop,))
        rows: dict[tuple[str, tuple[ir.Expr, ...], str], str] = {}  # array, indices and hint
        before: list[ir.Stmt] = []
        for load in _certain(loop.body):
            *at, last = load.indices or (_FIRST,)
            if self.kernel.vector_width(load.array) != count or last != ir.Name(loop.var, type=last.type):
                continue
            row = replace(load, indices=(*at, _FIRST))
            key = (load.array, tuple(at), load.hint)
            if key in rows or not commute(effects, self.does(row)):  # rule: row-invariant
                continue
            name = free_name(f"{load.array}_row", self.taken)
            rows[key] = name
            self.taken.add(name)
            self.names.add(name)
            self.hints.add(load.hint)
            view = self.kernel.array_decl(load.array)
            assert view is not None
            type_ = replace(view.type, dims=view.type.dims[-1:])
            self.decls.append(ir.ArrayDecl(name, type_, ir.Space.LOCAL, like=view.like, span=loop.span, is_row=True))
            before.append(ir.Store(name, (), row, loop.span))

        def change(expr: ir.Expr) -> ir.Expr:
            match expr:
                case ir.Load(array=array, indices=(*at, ir.Name(id=last)), hint=hint) if last == loop.var and (
                    row := rows.get((array, tuple(at), hint))
                ):
                    return with_fields(expr, array=row, indices=expr.indices[-1:], hint="")
                case _:
                    return expr

        if not before:
            return (loop,)
        before[0] = with_fields(before[0], trivia=loop.trivia)
        return (*before, with_fields(loop, body=rebuild_block(loop.body, change), trivia=ir.BARE))


def _certain(block: ir.Block) -> Iterator[ir.Load]:
    """The elements that every round of a loop reads."""
    evaluated = (node for stmt in block for expr in expressions(stmt) for node in always_evaluated(expr))
    return (node for node in evaluated if isinstance(node, ir.Load))
