"""Finds the values of which each thread of a block needs a copy: divergent names, assigned parameters, thread-local
views.

`split_at_barriers` keeps these values for each thread; the block holds all other values once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from py2cu import ir
from py2cu.analysis.call_graph import functions_with
from py2cu.ir.names import free_name, names_in_scope
from py2cu.ir.rewrite import rebuild_block, with_fields
from py2cu.ir.substitution import renamed
from py2cu.ir.visit import statements, walk
from py2cu.passes.checks.barriers import find_varying


def find_private(kernel: ir.Kernel) -> tuple[frozenset[str], Callable[[ir.Expr], bool]]:
    """Names and expressions that every thread must evaluate: divergent ones, and calls that print."""
    names, varies = find_varying(kernel)
    printing = functions_with(kernel, lambda function: any(isinstance(s, ir.Print) for s in statements(function.body)))

    def prints(expr: ir.Expr) -> bool:
        return any(isinstance(node, ir.DeviceCall) and node.function in printing for node in walk(expr))

    from_printing = {
        stmt.name for stmt in statements(kernel.body) if isinstance(stmt, ir.Assign) and prints(stmt.value)
    }
    return names | from_printing, lambda expr: varies(expr) or prints(expr)  # rule: block-printing


def with_private_parameters(kernel: ir.Kernel) -> ir.Kernel:
    """Replaces every parameter that the kernel assigns to by a local: the threads of a block share the parameter."""
    assigned = {stmt.name for stmt in statements(kernel.body) if isinstance(stmt, ir.Assign)}
    taken = names_in_scope(kernel)
    local_names: dict[str, str] = {}
    types: dict[str, ir.ScalarType] = {}
    lead: list[ir.Stmt] = []
    for p in kernel.parameters:
        if p.name in assigned and not isinstance(p.type, ir.ArrayType):
            local_names[p.name] = name = free_name(f"own_{p.name}", taken)
            taken.add(name)
            types[name] = p.type
            lead.append(ir.Assign(name, ir.Name(p.name, p.span, p.type), p.span))

    def change_stmt(stmt: ir.Stmt) -> ir.Block:
        return (
            replace(stmt, name=local_names[stmt.name])
            if isinstance(stmt, ir.Assign) and stmt.name in local_names
            else stmt,
        )

    body = (*lead, *rebuild_block(kernel.body, lambda expr: renamed(expr, local_names), change_stmt))
    return with_fields(kernel, body=body, locals=(*kernel.locals, *types.items())) if local_names else kernel


def find_private_views(kernel: ir.Kernel, varies: Callable[[ir.Expr], bool]) -> frozenset[str]:
    """The views whose start diverges, and the views of arrays that each thread has for itself."""
    private_arrays = {decl.name for decl in kernel.array_decls if decl.space is ir.Space.LOCAL}
    views: set[str] = set()
    for stmt in statements(kernel.body):
        if isinstance(stmt, ir.Alloc) and stmt.start is not None:
            decl = kernel.array_decl(stmt.array)
            assert decl is not None, stmt.array
            if varies(stmt.start) or decl.base in private_arrays | views:
                views.add(stmt.array)
    return frozenset(views)
