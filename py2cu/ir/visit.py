"""Walks over expressions and statements: the operands of a node, everything under it, the names that it reads."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter
from typing import Any, Final, TypeVar, assert_never

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

Item = TypeVar("Item")

_CACHE_SIZE: Final = 64


LEAVES: Final = frozenset([Constant, Name, LaunchIndex, Extent, ArrayName, IsGiven])  # nodes without operands


_OPERANDS: Final[Mapping[type[Expr], Callable[[Any], tuple[Expr, ...]]]] = {
    **dict.fromkeys([Binary, Compare, BoolOp], attrgetter("left", "right")),
    **dict.fromkeys([Convert, TupleItem], lambda expr: (expr.value,)),
    **dict.fromkeys([Call, DeviceCall], attrgetter("args")),
    **dict.fromkeys(LEAVES, lambda _: ()),
    Load: attrgetter("indices"),
    Unary: lambda expr: (expr.operand,),
    Select: attrgetter("test", "then", "orelse"),
    Atomic: lambda expr: (*expr.indices, *expr.values),
    Tuple: attrgetter("items"),
}


def children(expr: Expr) -> tuple[Expr, ...]:
    """The operands of `expr`, in evaluation order."""
    return _OPERANDS[expr.__class__](expr)


def walk(expr: Expr) -> list[Expr]:
    """`expr` and everything in it, parents first."""
    nodes, waiting = [], [expr]
    while waiting:
        node = waiting.pop()
        nodes.append(node)
        if node.__class__ not in LEAVES:
            waiting += reversed(_OPERANDS[node.__class__](node))
    return nodes


def names_in(expr: Expr) -> tuple[str, ...]:
    """The names that `expr` reads, in order, each once."""
    if expr.__class__ in LEAVES:
        return (expr.id,) if isinstance(expr, Name) else ()
    return tuple(dict.fromkeys(node.id for node in walk(expr) if isinstance(node, Name)))


def is_duplicable(expr: Expr) -> bool:
    """True for an expression that may be repeated: a name, a constant, an element with cheap indices."""
    match expr:
        case Constant() | Name() | LaunchIndex() | Extent() | IsGiven():
            return True
        case Unary(op="-" | "+" | "not", operand=operand) | Convert(value=operand) | TupleItem(value=operand):
            return is_duplicable(operand)
        case Load(indices=indices):
            return all(is_cheap_index(index) for index in indices)
        case _:
            return False


def is_cheap_index(index: Expr) -> bool:
    """True for an index without loads and calls: compilers see that it is the same one."""
    return not any(isinstance(node, Load | Call | Select | BoolOp | Atomic | DeviceCall) for node in walk(index))


def expressions(stmt: Stmt) -> tuple[Expr, ...]:
    """The expressions that stand in `stmt` itself, not in its blocks."""
    match stmt:
        case Assign(value=value) | StructuredBinding(value=value):
            return (value,)
        case Store(indices=indices, value=value):
            return (*indices, value)
        case If(test=test) | While(test=test):
            return (test,)
        case Print(values=values):
            return values
        case Assert(test=test, values=values):
            return (test, *values)
        case For(start=start, stop=stop, step=step):
            return (start, stop, step)
        case Return(value=value):
            return () if value is None else (value,)
        case ExprStmt(call=call):
            return (call,)
        case Sync(args=args):
            return args
        case Alloc(start=start, values=values):
            return (values or ()) if start is None else (start,)
        case EachThread() | DeclareLocal() | Break() | Continue() | Delete() | Comment():
            return ()
        case _:
            assert_never(stmt)


def blocks(stmt: Stmt) -> tuple[Block, ...]:
    """The blocks nested in `stmt`."""
    match stmt:
        case If(body=body, orelse=orelse) | For(body=body, orelse=orelse) | While(body=body, orelse=orelse):
            return (body, orelse)
        case EachThread(body=body):
            return (body,)
        case (
            Assign()
            | DeclareLocal()
            | Alloc()
            | StructuredBinding()
            | Store()
            | Break()
            | Continue()
            | Return()
            | ExprStmt()
            | Sync()
            | Delete()
            | Print()
            | Assert()
            | Comment()
        ):
            return ()
        case _:
            assert_never(stmt)


def cached_by_block(find: Callable[[Block], Iterator[Item]]) -> Callable[[Block], Iterator[Item]]:
    """`find` with a cache for the latest blocks: consecutive passes walk the same ones."""
    latest: dict[int, tuple[Block, tuple[Item, ...]]] = {}

    @functools.wraps(find)
    def find_cached(block: Block) -> Iterator[Item]:
        last = latest.get(id(block))
        if last is None or last[0] is not block:
            if len(latest) >= _CACHE_SIZE:
                latest.clear()
            last = latest[id(block)] = block, tuple(find(block))
        return iter(last[1])

    return find_cached


@cached_by_block
def statements(block: Block) -> Iterator[Stmt]:
    """Every statement of `block`, nested ones after the one that holds them."""
    waiting = list(reversed(block))
    while waiting:
        stmt = waiting.pop()
        yield stmt
        for inner in reversed(blocks(stmt)):
            waiting += reversed(inner)


def assigned_names(block: Block) -> Iterator[str]:
    """The name that each assignment and each loop under `block` gives a value, in order."""
    for stmt in statements(block):
        if isinstance(stmt, Assign):
            yield stmt.name
        elif isinstance(stmt, For):
            yield stmt.var


@cached_by_block
def all_expressions(block: Block) -> Iterator[Expr]:
    """Every expression node under `block`."""
    nodes: list[Expr] = []
    for stmt in statements(block):
        for expr in expressions(stmt):
            nodes += walk(expr)
    return iter(nodes)
