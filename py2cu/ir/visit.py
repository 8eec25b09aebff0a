"""Generic walks over the IR: look at every node, or rebuild the tree bottom-up."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar, assert_never, cast

from py2cu.ir.abi.extents import Binary, Constant, Name
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

Node = TypeVar("Node", bound=Expr | Stmt | Kernel)
Found = TypeVar("Found")

_KEPT_LIMIT: Final = 64


_LEAVES: Final = frozenset([Constant, Name, LaunchIndex, Extent, ArrayName])


def children(expr: Expr) -> tuple[Expr, ...]:
    """The operands of `expr`, in evaluation order."""
    match expr:  # what is frequent comes first
        case Binary(left=left, right=right) | Compare(left=left, right=right) | BoolOp(left=left, right=right):
            return (left, right)
        case Load(indices=indices):
            return indices
        case Convert(value=value) | TupleItem(value=value):
            return (value,)
        case Unary(operand=operand):
            return (operand,)
        case Select(test=test, then=then, orelse=orelse):
            return (test, then, orelse)
        case Call(args=args) | DeviceCall(args=args):
            return args
        case Atomic(indices=indices, values=values):
            return (*indices, *values)
        case Tuple(items=items):
            return items
        case Constant() | Name() | LaunchIndex() | Extent() | ArrayName():
            return ()
        case _:
            assert_never(expr)


def walk(expr: Expr) -> list[Expr]:
    """`expr` and everything in it, parents first."""
    found, waiting = [], [expr]
    while waiting:
        node = waiting.pop()
        found.append(node)
        if node.__class__ not in _LEAVES:
            waiting += reversed(children(node))
    return found


def names_in(expr: Expr) -> tuple[str, ...]:
    """The names that `expr` reads, in order, each once."""
    if expr.__class__ in _LEAVES:
        return (expr.id,) if isinstance(expr, Name) else ()
    return tuple(dict.fromkeys(node.id for node in walk(expr) if isinstance(node, Name)))


def is_duplicable(expr: Expr) -> bool:
    """True for what may stand twice in a text: a name, a constant, an element at a place that is one."""
    match expr:
        case Constant() | Name() | LaunchIndex() | Extent():
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


def rebuild(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """`expr` with `change` applied to every node, operands first; what nothing changes stays the same object."""
    if expr.__class__ in _LEAVES:
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
        case Constant() | Name() | LaunchIndex() | Extent() | ArrayName():
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

    All fields of a node are what it is made with, which `dataclasses.replace` takes half its time to find out.
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


def expressions(stmt: Stmt) -> tuple[Expr, ...]:
    """The expressions that stand in `stmt` itself, not in its blocks."""
    match stmt:
        case Assign(value=value) | StructuredBinding(value=value):
            return (value,)
        case Store(indices=indices, value=value):
            return (*indices, value)
        case If(test=test) | While(test=test) | Assert(test=test):
            return (test,)
        case Print(values=values):
            return values
        case For(start=start, stop=stop, step=step):
            return (start, stop, step)
        case Return(value=value):
            return () if value is None else (value,)
        case ExprStmt(call=call):
            return (call,)
        case Sync(args=args):
            return args
        case Alloc(start=start):
            return () if start is None else (start,)
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
        case Assert(test=test):
            return with_fields(stmt, test=change(test))
        case Return(value=value) if value is not None:
            return with_fields(stmt, value=change(value))
        case ExprStmt(call=call):
            return with_fields(stmt, call=map_children(call, change))
        case Sync(args=args):
            return with_fields(stmt, args=map_all(args, change))
        case Alloc(start=start) if start is not None:
            return with_fields(stmt, start=change(start))
        case _:
            return stmt


def cached_by_block(find: Callable[[Block], Iterator[Found]]) -> Callable[[Block], Iterator[Found]]:
    """`find`, and what it found under the latest blocks is kept: passes in a row ask about the same ones."""
    latest: dict[int, tuple[Block, tuple[Found, ...]]] = {}

    @functools.wraps(find)
    def found(block: Block) -> Iterator[Found]:
        last = latest.get(id(block))
        if last is None or last[0] is not block:
            if len(latest) >= _KEPT_LIMIT:
                latest.clear()
            last = latest[id(block)] = block, tuple(find(block))
        return iter(last[1])

    return found


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
    found: list[Expr] = []
    for stmt in statements(block):
        for expr in expressions(stmt):
            found += walk(expr)
    return iter(found)


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
        case Alloc(start=start):
            return stmt if start is None else with_fields(stmt, start=rebuild(start, change))
        case Print(values=values):
            return with_fields(stmt, values=_rebuild_all(values, change))
        case Assert(test=test):
            return with_fields(stmt, test=rebuild(test, change))
        case DeclareLocal() | Break() | Continue() | Delete() | Comment():
            return stmt
        case _:
            assert_never(stmt)


def arrays_of_row_pointers(kernel: Kernel) -> tuple[str, ...]:
    """The arrays of which `kernel` loads or stores a row at once, through a pointer to the row."""
    reserved = (stmt.array for stmt in statements(kernel.body) if isinstance(stmt, Alloc))
    return tuple(sorted({kernel.base_array(array) for array in reserved if kernel.vector_width(array)}))
