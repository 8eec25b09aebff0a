"""Walks over expressions and statements: the operands of a node, everything under it, the names that it reads."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from itertools import chain
from operator import attrgetter
from typing import Any, Final, TypeVar

from py2cu.ir.expressions import (
    Atomic,
    BoolOp,
    Call,
    Convert,
    DeviceCall,
    Expr,
    Extent,
    IsDtype,
    IsGiven,
    LaunchIndex,
    Load,
    Select,
    TupleItem,
    Unary,
)
from py2cu.ir.fields import BLOCKS, OPERANDS
from py2cu.ir.statements import Assign, Block, Break, Comment, Continue, For, If, Return, Stmt, Store, While
from py2cu.ir.types import Constant, Name

Item = TypeVar("Item")

_CACHE_SIZE: Final = 1024


def _getter(row: tuple[str, ...]) -> Callable[[Any], tuple[Expr, ...]]:
    """The function from a node to its operands, for nodes with this row; of plain fields it is a single C function."""
    names = tuple(name.removeprefix("*") for name in row)
    get: Callable[[Any], Any] = attrgetter(*names)

    def one(node: object) -> tuple[Expr, ...]:
        operand = get(node)
        return () if operand is None else (operand,)

    def flattened(node: object) -> tuple[Expr, ...]:
        values = (value if isinstance(value, tuple) else (value,) for value in get(node) if value is not None)
        return tuple(chain.from_iterable(values))

    if len(row) == 1:
        return one if row == names else get
    return get if row == names else flattened


_OPERANDS: Final = {node: _getter(row) for node, row in OPERANDS.items()}


def children(expr: Expr) -> tuple[Expr, ...]:
    """The operands of `expr`, in evaluation order."""
    get = _OPERANDS.get(expr.__class__)
    return get(expr) if get else ()


def walk(*exprs: Expr) -> list[Expr]:
    """`exprs` and everything in them, parents first."""
    nodes, waiting = [], [*exprs[::-1]]
    while waiting:
        node = waiting.pop()
        nodes.append(node)
        if node.__class__ in _OPERANDS:
            waiting += reversed(_OPERANDS[node.__class__](node))
    return nodes


def always_evaluated(expr: Expr) -> Iterator[Expr]:
    """The parts of `expr` that its evaluation always evaluates, and itself, in Python's order."""
    # rule: always-evaluated
    for part in children(expr)[: 1 if isinstance(expr, BoolOp | Select) else None]:
        yield from always_evaluated(part)
    yield expr


def names_in(expr: Expr) -> tuple[str, ...]:
    """The names that `expr` reads, in order, each once."""
    if expr.__class__ not in OPERANDS:
        return (expr.id,) if isinstance(expr, Name) else ()
    return tuple(dict.fromkeys(node.id for node in walk(expr) if isinstance(node, Name)))


def reads(block: Block, name: str) -> int:
    """How often `block` reads the local `name`."""
    return sum(isinstance(node, Name) and node.id == name for node in all_expressions(block))


def is_duplicable(expr: Expr) -> bool:
    """True for an expression that may be repeated: a name, a constant, an element with cheap indices."""
    match expr:
        case Constant() | Name() | LaunchIndex() | Extent() | IsDtype() | IsGiven():
            return True
        case Unary(op="-" | "+" | "not", operand=operand) | Convert(value=operand) | TupleItem(value=operand):
            return is_duplicable(operand)
        case Load(indices=indices):
            return all(is_cheap_index(index) for index in indices)
        case _:
            return False


def is_cheap_index(index: Expr) -> bool:
    """True for an index without loads, calls and choices: compilers see that it is the same one."""
    return not any(isinstance(node, Load | Call | Select | BoolOp | Atomic | DeviceCall) for node in walk(index))


def expressions(stmt: Stmt) -> tuple[Expr, ...]:
    """The expressions that stand in `stmt` itself, not in its blocks."""
    get = _OPERANDS.get(stmt.__class__)
    return get(stmt) if get else ()


def blocks(stmt: Stmt) -> tuple[Block, ...]:
    """The blocks nested in `stmt`."""
    names = BLOCKS.get(stmt.__class__)
    return tuple([getattr(stmt, name) for name in names]) if names else ()


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
    return iter(walk(*[expr for stmt in statements(block) for expr in expressions(stmt)]))


def accesses(block: Block) -> Iterator[Load | Store]:
    """Every load and store under `block`."""
    return (node for node in chain(all_expressions(block), statements(block)) if isinstance(node, Load | Store))


def falls_through(block: Block) -> bool:
    """True if control may reach the end of `block`, assuming that loops terminate."""
    match block[-1] if block else None:
        case Return() | Break() | Continue():
            return False
        case If(body=body, orelse=orelse):
            return falls_through(body) or falls_through(orelse)
        case While(test=Constant(value=True), body=body):
            return any(isinstance(stmt, Break) for stmt in statements(body))
        case Comment():
            return falls_through(block[:-1])
        case _:
            return True
