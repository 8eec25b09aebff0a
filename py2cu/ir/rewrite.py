"""Rebuilds expressions and statements bottom-up.

In: a tree and a function that changes a node. Out: the changed tree; whatever nothing changes stays the same object, so
that passes which change little cost little.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

from py2cu import ir
from py2cu.ir.fields import BLOCKS, OPERANDS

Node = TypeVar("Node", bound=ir.Expr | ir.Stmt | ir.Kernel)

_values_of: Final = functools.cache(lambda fields: operator.attrgetter(*fields))
_OPERANDS: Final = {node: tuple(name.removeprefix("*") for name in row) for node, row in OPERANDS.items()}


def rebuild(expr: ir.Expr, change: Callable[[ir.Expr], ir.Expr]) -> ir.Expr:
    """`expr` with `change` applied to every node, operands first; what nothing changes stays the same object."""
    if expr.__class__ not in OPERANDS:
        return change(expr)
    return change(map_children(expr, lambda operand: rebuild(operand, change)))


def map_children(node: Node, change: Callable[[ir.Expr], ir.Expr]) -> Node:
    """`node` with `change` applied to its operands."""
    changed: dict[str, Any] = {}
    for name in _OPERANDS.get(node.__class__, ()):
        old = getattr(node, name)
        if old is not None:
            new = map_all(old, change) if old.__class__ is tuple else change(old)
            if new is not old:
                changed[name] = new
    return _copy(node, changed) if changed else node


def map_all(exprs: tuple[ir.Expr, ...], change: Callable[[ir.Expr], ir.Expr]) -> tuple[ir.Expr, ...]:
    """`exprs` with `change` applied to each; the same tuple, where nothing changes."""
    done = tuple(map(change, exprs))
    return exprs if all(map(operator.is_, exprs, done)) else done


def with_fields(node: Node, **fields: Any) -> Node:
    """`node` with other fields: itself, where they are the ones that it has.

    Calls the constructor with all fields, in half the time of `dataclasses.replace`, which has to look them up.
    """
    for name, value in fields.items():
        if getattr(node, name) is not value:
            break
    else:
        return node
    return cast("Node", node.having(**fields)) if isinstance(node, ir.Kernel) else _copy(node, fields)


def _copy(node: Any, fields: dict[str, Any]) -> Any:
    values = [*_values_of(node.__match_args__)(node)]
    for name, value in fields.items():
        values[node.__match_args__.index(name)] = value
    return node.__class__(*values)


def map_blocks(stmt: ir.Stmt, change: Callable[[ir.Block], ir.Block]) -> ir.Stmt:
    """`stmt` with `change` applied to the blocks nested in it."""
    names = BLOCKS.get(stmt.__class__)
    return with_fields(stmt, **{name: change(getattr(stmt, name)) for name in names}) if names else stmt


def map_expressions(stmt: ir.Stmt, change: Callable[[ir.Expr], ir.Expr]) -> ir.Stmt:
    """`stmt` with `change` applied to each of its expressions as a whole; a call that is a statement stays one."""
    if isinstance(stmt, ir.ExprStmt):
        return with_fields(stmt, call=map_children(stmt.call, change))
    return map_children(stmt, change)


def rebuild_block(
    block: ir.Block,
    change: Callable[[ir.Expr], ir.Expr],
    change_stmt: Callable[[ir.Stmt], ir.Block] = lambda stmt: (stmt,),
) -> ir.Block:
    """`block` with `change` applied to every expression node and then `change_stmt` to every statement."""
    done: list[ir.Stmt] = []
    for stmt in block:
        done += change_stmt(_rebuild_statement(stmt, change, change_stmt))
    return block if len(block) == len(done) and all(map(operator.is_, block, done)) else tuple(done)


def rebuild_statements(block: ir.Block, change: Callable[[ir.Stmt], ir.Block]) -> ir.Block:
    """`block` with `change` applied to every statement, nested ones first."""
    done: list[ir.Stmt] = []
    for stmt in block:
        done += change(map_blocks(stmt, lambda inner: rebuild_statements(inner, change)))
    return block if len(block) == len(done) and all(map(operator.is_, block, done)) else tuple(done)


def _rebuild_statement(
    stmt: ir.Stmt, change: Callable[[ir.Expr], ir.Expr], change_stmt: Callable[[ir.Stmt], ir.Block]
) -> ir.Stmt:
    stmt = map_children(stmt, lambda expr: rebuild(expr, change))
    assert not isinstance(stmt, ir.ExprStmt) or isinstance(stmt.call, ir.DeviceCall | ir.Atomic)
    return map_blocks(stmt, lambda block: rebuild_block(block, change, change_stmt))
