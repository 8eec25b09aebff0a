"""Rebuilds expressions and statements bottom-up.

In: a tree and a function that changes a node. Out: the changed tree; whatever nothing changes stays the same object, so
that passes which change little cost little.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, TypeVar, assert_never, cast

from py2cu.ir.expressions import (
    ArrayName,
    Atomic,
    BoolOp,
    Call,
    Compare,
    Convert,
    DeviceCall,
    Expr,
    Extent,
    IsGiven,
    LaunchIndex,
    Load,
    Select,
    Tuple,
    TupleItem,
    Unary,
)
from py2cu.ir.kernels import Kernel
from py2cu.ir.statements import (
    Alloc,
    Assert,
    Assign,
    Block,
    Break,
    Comment,
    Continue,
    DeclareLocal,
    Delete,
    EachThread,
    ExprStmt,
    For,
    If,
    Print,
    Return,
    Stmt,
    Store,
    StructuredBinding,
    Sync,
    While,
)
from py2cu.ir.types import Binary, Constant, Name
from py2cu.ir.visit import LEAVES

Node = TypeVar("Node", bound=Expr | Stmt | Kernel)


def rebuild(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """`expr` with `change` applied to every node, operands first; what nothing changes stays the same object."""
    if expr.__class__ in LEAVES:
        return change(expr)
    return change(map_children(expr, lambda operand: rebuild(operand, change)))


def map_children(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """`expr` with `change` applied to its operands."""
    match expr:
        case Binary(left=left, right=right) | Compare(left=left, right=right) | BoolOp(left=left, right=right):
            return with_fields(expr, left=change(left), right=change(right))
        case Load(indices=indices):
            return with_fields(expr, indices=map_all(indices, change))
        case Convert(value=value) | TupleItem(value=value):
            return with_fields(expr, value=change(value))
        case Unary(operand=operand):
            return with_fields(expr, operand=change(operand))
        case Select(test=test, then=then, orelse=orelse):
            return with_fields(expr, test=change(test), then=change(then), orelse=change(orelse))
        case Call(args=args) | DeviceCall(args=args):
            return with_fields(expr, args=map_all(args, change))
        case Atomic(indices=indices, values=values):
            return with_fields(expr, indices=map_all(indices, change), values=map_all(values, change))
        case Tuple(items=items):
            return with_fields(expr, items=map_all(items, change))
        case Constant() | Name() | LaunchIndex() | Extent() | ArrayName() | IsGiven():
            return expr
        case _:
            assert_never(expr)


def map_all(exprs: tuple[Expr, ...], change: Callable[[Expr], Expr]) -> tuple[Expr, ...]:
    """`exprs` with `change` applied to each; the same tuple, where nothing changes."""
    done = tuple(map(change, exprs))
    return exprs if all(map(operator.is_, exprs, done)) else done


def _rebuild_all(exprs: tuple[Expr, ...], change: Callable[[Expr], Expr]) -> tuple[Expr, ...]:
    return map_all(exprs, lambda expr: rebuild(expr, change))


def with_fields(node: Node, **fields: Any) -> Node:
    """`node` with other fields: itself, where they are the ones that it has.

    Calls the constructor with all fields, in half the time of `dataclasses.replace`, which has to look them up.
    """
    for name, value in fields.items():
        if getattr(node, name) is not value:
            break
    else:
        return node
    if isinstance(node, Kernel):
        return cast("Node", node.having(**fields))
    values = []
    for name in node.__match_args__:
        values.append(fields[name] if name in fields else getattr(node, name))  # noqa: PERF401 - slower on 3.11
    return type(node)(*values)


def map_blocks(stmt: Stmt, change: Callable[[Block], Block]) -> Stmt:
    """`stmt` with `change` applied to the blocks nested in it."""
    match stmt:
        case If(body=body, orelse=orelse) | For(body=body, orelse=orelse) | While(body=body, orelse=orelse):
            return with_fields(stmt, body=change(body), orelse=change(orelse))
        case EachThread(body=body):
            return with_fields(stmt, body=change(body))
        case _:
            return stmt


def map_expressions(stmt: Stmt, change: Callable[[Expr], Expr]) -> Stmt:
    """`stmt`, which has no blocks, with `change` applied to each of its expressions as a whole."""
    match stmt:
        case Assign(value=value) | StructuredBinding(value=value):
            return with_fields(stmt, value=change(value))
        case Store(indices=indices, value=value):
            return with_fields(stmt, indices=map_all(indices, change), value=change(value))
        case Print(values=values):
            return with_fields(stmt, values=map_all(values, change))
        case Assert(test=test, values=values):
            return with_fields(stmt, test=change(test), values=map_all(values, change))
        case Return(value=value) if value is not None:
            return with_fields(stmt, value=change(value))
        case ExprStmt(call=call):
            return with_fields(stmt, call=map_children(call, change))
        case Sync(args=args):
            return with_fields(stmt, args=map_all(args, change))
        case Alloc(start=start) if start is not None:
            return with_fields(stmt, start=change(start))
        case Alloc(values=values) if values is not None:
            return with_fields(stmt, values=map_all(values, change))
        case _:
            return stmt


def rebuild_block(
    block: Block,
    change: Callable[[Expr], Expr],
    change_stmt: Callable[[Stmt], Block] = lambda stmt: (stmt,),
) -> Block:
    """`block` with `change` applied to every expression node and then `change_stmt` to every statement."""
    done: list[Stmt] = []
    for stmt in block:
        done += change_stmt(_rebuild_statement(stmt, change, change_stmt))
    return block if len(block) == len(done) and all(map(operator.is_, block, done)) else tuple(done)


def rebuild_statements(block: Block, change: Callable[[Stmt], Block]) -> Block:
    """`block` with `change` applied to every statement, nested ones first."""
    done: list[Stmt] = []
    for stmt in block:
        done += change(map_blocks(stmt, lambda inner: rebuild_statements(inner, change)))
    return block if len(block) == len(done) and all(map(operator.is_, block, done)) else tuple(done)


def _rebuild_statement(stmt: Stmt, change: Callable[[Expr], Expr], change_stmt: Callable[[Stmt], Block]) -> Stmt:
    def inside(block: Block) -> Block:
        return rebuild_block(block, change, change_stmt)

    match stmt:
        case Assign(value=value) | StructuredBinding(value=value):
            return with_fields(stmt, value=rebuild(value, change))
        case Store(indices=indices, value=value):
            return with_fields(stmt, indices=_rebuild_all(indices, change), value=rebuild(value, change))
        case If(test=test, body=body, orelse=orelse):
            return with_fields(stmt, test=rebuild(test, change), body=inside(body), orelse=inside(orelse))
        case For(start=start, stop=stop, step=step, body=body, orelse=orelse):
            start, stop, step = _rebuild_all((start, stop, step), change)
            return with_fields(stmt, start=start, stop=stop, step=step, body=inside(body), orelse=inside(orelse))
        case While(test=test, body=body, orelse=orelse):
            return with_fields(stmt, test=rebuild(test, change), body=inside(body), orelse=inside(orelse))
        case EachThread(body=body):
            return with_fields(stmt, body=inside(body))
        case Return(value=value):
            return stmt if value is None else with_fields(stmt, value=rebuild(value, change))
        case ExprStmt(call=call):
            rebuilt = rebuild(call, change)
            assert isinstance(rebuilt, DeviceCall | Atomic)
            return with_fields(stmt, call=rebuilt)
        case Sync(args=args):
            return with_fields(stmt, args=_rebuild_all(args, change))
        case Alloc(values=values) if values is not None:
            return with_fields(stmt, values=_rebuild_all(values, change))
        case Alloc(start=start):
            return stmt if start is None else with_fields(stmt, start=rebuild(start, change))
        case Print(values=values):
            return with_fields(stmt, values=_rebuild_all(values, change))
        case Assert(test=test, values=values):
            return with_fields(stmt, test=rebuild(test, change), values=_rebuild_all(values, change))
        case DeclareLocal() | Break() | Continue() | Delete() | Comment():
            return stmt
        case _:
            assert_never(stmt)
