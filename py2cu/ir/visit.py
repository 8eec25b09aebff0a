"""Generic walks over the IR: look at every node, or rebuild the tree bottom-up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import assert_never

from py2cu.ir.extents import Binary, Constant, Name
from py2cu.ir.nodes import BoolOp, Call, Compare, Convert, Expr, Extent, LaunchIndex, Load, Select, Unary
from py2cu.ir.statements import (
    Assert,
    Assign,
    Block,
    Break,
    Continue,
    Declare,
    Delete,
    For,
    If,
    Print,
    Remark,
    Return,
    Stmt,
    Store,
    While,
)


def children(expr: Expr) -> tuple[Expr, ...]:
    """The operands of `expr`, in evaluation order."""
    match expr:
        case Constant() | Name() | LaunchIndex() | Extent():
            return ()
        case Unary(operand=operand):
            return (operand,)
        case Binary(left=left, right=right) | Compare(left=left, right=right) | BoolOp(left=left, right=right):
            return (left, right)
        case Select(test=test, then=then, orelse=orelse):
            return (test, then, orelse)
        case Call(args=args):
            return args
        case Load(indices=indices):
            return indices
        case Convert(value=value):
            return (value,)
        case _:
            assert_never(expr)


def walk(expr: Expr) -> Iterator[Expr]:
    """`expr` and everything in it, parents first."""
    yield expr
    for child in children(expr):
        yield from walk(child)


def names_in(expr: Expr) -> tuple[str, ...]:
    """The names that `expr` reads, in order, each once."""
    return tuple(dict.fromkeys(node.id for node in walk(expr) if isinstance(node, Name)))


def is_cheap(expr: Expr) -> bool:
    """True for what may stand twice in a text: a name, a constant, an element at a place that is one."""
    match expr:
        case Constant() | Name() | LaunchIndex() | Extent():
            return True
        case Unary(op="-" | "+" | "not", operand=operand) | Convert(value=operand):
            return is_cheap(operand)
        case Load(indices=indices):
            return all(is_cheap_index(index) for index in indices)
        case _:
            return False


def is_cheap_index(index: Expr) -> bool:
    """True for an index without loads and calls: compilers see that it is the same one."""
    return not any(isinstance(node, Load | Call | Select | BoolOp) for node in walk(index))


def rebuild(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """`expr` with `change` applied to every node, operands first."""
    return change(map_children(expr, lambda child: rebuild(child, change)))


def map_children(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """`expr` with `change` applied to its operands."""
    match expr:
        case Constant() | Name() | LaunchIndex() | Extent():
            return expr
        case Unary(operand=operand):
            return replace(expr, operand=change(operand))
        case Binary(left=left, right=right) | Compare(left=left, right=right) | BoolOp(left=left, right=right):
            return replace(expr, left=change(left), right=change(right))
        case Select(test=test, then=then, orelse=orelse):
            return replace(expr, test=change(test), then=change(then), orelse=change(orelse))
        case Call(args=args):
            return replace(expr, args=tuple(map(change, args)))
        case Load(indices=indices):
            return replace(expr, indices=tuple(map(change, indices)))
        case Convert(value=value):
            return replace(expr, value=change(value))
        case _:
            assert_never(expr)


def expressions(stmt: Stmt) -> tuple[Expr, ...]:
    """The expressions that stand in `stmt` itself, not in its blocks."""
    match stmt:
        case Assign(value=value):
            return (value,)
        case Store(indices=indices, value=value):
            return (*indices, value)
        case If(test=test) | While(test=test) | Assert(test=test):
            return (test,)
        case Print(values=values):
            return values
        case For(start=start, stop=stop, step=step):
            return (start, stop, step)
        case Declare() | Break() | Continue() | Return() | Delete() | Remark():
            return ()
        case _:
            assert_never(stmt)


def blocks(stmt: Stmt) -> tuple[Block, ...]:
    """The blocks nested in `stmt`."""
    match stmt:
        case If(body=body, orelse=orelse) | For(body=body, orelse=orelse) | While(body=body, orelse=orelse):
            return (body, orelse)
        case (
            Assign() | Declare() | Store() | Break() | Continue() | Return() | Delete() | Print() | Assert() | Remark()
        ):
            return ()
        case _:
            assert_never(stmt)


def statements(block: Block) -> Iterator[Stmt]:
    """Every statement of `block`, nested ones after the one that holds them."""
    for stmt in block:
        yield stmt
        for inner in blocks(stmt):
            yield from statements(inner)


def all_expressions(block: Block) -> Iterator[Expr]:
    """Every expression node under `block`."""
    for stmt in statements(block):
        for expr in expressions(stmt):
            yield from walk(expr)


def rebuild_block(
    block: Block,
    change: Callable[[Expr], Expr],
    change_stmt: Callable[[Stmt], Block] = lambda stmt: (stmt,),
) -> Block:
    """`block` with `change` applied to every expression node and then `change_stmt` to every statement."""
    done: list[Stmt] = []
    for stmt in block:
        done += change_stmt(_rebuild_statement(stmt, change, change_stmt))
    return tuple(done)


def _rebuild_statement(stmt: Stmt, change: Callable[[Expr], Expr], change_stmt: Callable[[Stmt], Block]) -> Stmt:
    match stmt:
        case Assign(value=value):
            return replace(stmt, value=rebuild(value, change))
        case Store(indices=indices, value=value):
            return replace(
                stmt,
                indices=tuple(rebuild(index, change) for index in indices),
                value=rebuild(value, change),
            )
        case If(test=test, body=body, orelse=orelse):
            return replace(
                stmt,
                test=rebuild(test, change),
                body=rebuild_block(body, change, change_stmt),
                orelse=rebuild_block(orelse, change, change_stmt),
            )
        case For(start=start, stop=stop, step=step, body=body, orelse=orelse):
            return replace(
                stmt,
                start=rebuild(start, change),
                stop=rebuild(stop, change),
                step=rebuild(step, change),
                body=rebuild_block(body, change, change_stmt),
                orelse=rebuild_block(orelse, change, change_stmt),
            )
        case While(test=test, body=body, orelse=orelse):
            return replace(
                stmt,
                test=rebuild(test, change),
                body=rebuild_block(body, change, change_stmt),
                orelse=rebuild_block(orelse, change, change_stmt),
            )
        case Print(values=values):
            return replace(stmt, values=tuple(rebuild(value, change) for value in values))
        case Assert(test=test):
            return replace(stmt, test=rebuild(test, change))
        case Declare() | Break() | Continue() | Return() | Delete() | Remark():
            return stmt
        case _:
            assert_never(stmt)
