"""The IR as text, Python-like with types: for test cases, messages and `py2cu translate --dump-ir`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from py2cu.dtypes import DType, TypeVariable
from py2cu.ir.extents import Binary, Constant, Name
from py2cu.ir.kernel import Kernel
from py2cu.ir.nodes import (
    ArrayName,
    Atomic,
    BoolOp,
    Call,
    Compare,
    Convert,
    Expr,
    Extent,
    Invoke,
    Item,
    LaunchIndex,
    Load,
    Select,
    Tuple,
    Unary,
)
from py2cu.ir.statements import (
    Assert,
    Assign,
    Bind,
    Block,
    Break,
    Continue,
    Declare,
    Delete,
    EachThread,
    Evaluate,
    For,
    If,
    Print,
    Remark,
    Reserve,
    Return,
    Stmt,
    Store,
    Sync,
    While,
)
from py2cu.ir.types import UNKNOWN, ElementType, PythonType, TupleType, ValueType, Width


def print_kernel(kernel: Kernel) -> str:
    """The whole kernel: a line a parameter, then the body."""
    lines = [f"kernel {kernel.name}"]
    lines += [f"  index {i.name}: {print_expr(i.extent)} on {i.axis}" for i in kernel.indices]
    lines += [f"  {p.role.value} {p.name}: {p.type}" for p in kernel.parameters]
    lines += [f"  {b.space.value} {b.name}: {b.type}{f' = {b.values}' if b.values else ''}" for b in kernel.buffers]
    lines += [f"  local {name}: {type_}{_width(type_)}" for name, type_ in kernel.locals]
    return "\n".join([*lines, *(f"  {line}" for line in print_block(kernel.body))]) + "\n"


def print_block(block: Block) -> Iterator[str]:
    for stmt in block:
        yield from _print_statement(stmt)


def _print_statement(stmt: Stmt) -> Iterator[str]:
    match stmt:
        case Assign(name=name, value=value):
            yield f"{name} = {print_expr(value, typed=True)}"
        case Declare(name=name, type=type_):
            yield f"{name}: {type_}"
        case Reserve(array=array, start=start):
            yield f"reserve {array}{f' at {print_expr(start)}' if start is not None else ''}"
        case Bind(names=names, value=value):
            yield f"{', '.join(names)} = {print_expr(value, typed=True)}"
        case Store(array=array, indices=indices, value=value):
            yield f"{array}[{', '.join(map(print_expr, indices))}] = {print_expr(value, typed=True)}"
        case If(test=test, body=body, orelse=orelse):
            yield f"if {print_expr(test, typed=True)}:"
            yield from _print_branches(body, orelse)
        case For(var=var, start=start, stop=stop, step=step, body=body, orelse=orelse, unroll=unroll):
            if unroll is not None:
                yield f"unroll {unroll or 'wholly'}:"
            yield f"for {var} in range({print_expr(start)}, {print_expr(stop)}, {print_expr(step)}):"
            yield from _print_branches(body, orelse)
        case While(test=test, body=body, orelse=orelse):
            yield f"while {print_expr(test, typed=True)}:"
            yield from _print_branches(body, orelse)
        case Return(value=value) if value is not None:
            yield f"return {print_expr(value, typed=True)}"
        case Evaluate(call=call):
            yield print_expr(call, typed=True)
        case Sync(function=function, args=args):
            yield f"{function}({', '.join(map(print_expr, args))})"
        case EachThread(body=body):
            yield "each thread:"
            yield from _print_branches(body, ())
        case Break() | Continue() | Return():
            yield type(stmt).__name__.lower()
        case Delete(name=name):
            yield f"del {name}"
        case Print(texts=texts, values=values, fields=fields):
            shown = [f"{{{print_expr(v)}:{f.layout}{f.letter}}}" for v, f in zip(values, fields, strict=True)]
            yield f"print({''.join(a + b for a, b in zip(texts, [*shown, ''], strict=True))!r})"
        case Assert(test=test, message=message):
            yield f"assert {print_expr(test, typed=True)}, {message!r}"
        case Remark():
            yield "pass"
        case _:
            assert_never(stmt)


def _print_branches(body: Block, orelse: Block) -> Iterator[str]:
    yield from (f"  {line}" for line in print_block(body))
    if orelse:
        yield "else:"
        yield from (f"  {line}" for line in print_block(orelse))


def print_expr(expr: Expr, typed: bool = False) -> str:
    """`expr` as Python; `typed` adds the type of every operation and conversion."""

    def show(inner: Expr) -> str:
        text = print_expr(inner, typed)
        return (
            f"({text})" if isinstance(inner, Binary | Compare | BoolOp | Select) and not text.startswith("(") else text
        )

    suffix = f":{expr.type}" if typed and expr.type is not UNKNOWN else ""
    match expr:
        case Constant(value=value):
            return f"{value!r}{suffix}"
        case Name(id=name):
            return name
        case LaunchIndex(object=launched, axis=axis):
            return f"{launched}.{axis}"
        case Extent(array=array, axis=axis_number):
            return f"{array}.shape[{axis_number}]"
        case Unary(op=op, operand=operand):
            return f"{op} {show(operand)}" if op == "not" else f"{op}{show(operand)}"
        case Binary(op=op, left=left, right=right):
            text = f"{show(left)} {op} {show(right)}"
            return f"({text}){suffix}" if typed else text
        case Compare(op=op, left=left, right=right) | BoolOp(op=op, left=left, right=right):
            return f"{show(left)} {op} {show(right)}"
        case Select(test=test, then=then, orelse=orelse):
            return f"{show(then)} if {show(test)} else {show(orelse)}"
        case ArrayName(id=name):
            return name
        case Call(function=function, args=args) | Invoke(function=function, args=args):
            return f"{function}({', '.join(print_expr(arg, typed) for arg in args)}){suffix}"
        case Load(array=array, indices=indices):
            return f"{array}[{', '.join(print_expr(index) for index in indices)}]{suffix}"
        case Atomic(op=op, array=array, indices=indices, values=values):
            place = f"{array}[{', '.join(map(print_expr, indices))}]"
            return f"atomic.{op}({', '.join((place, *(print_expr(value, typed) for value in values)))}){suffix}"
        case Convert(value=value, type=type_):
            return f"{type_}({print_expr(value, typed)})"
        case Tuple(items=items):
            return f"({', '.join(print_expr(item, typed) for item in items)},)"
        case Item(value=value, at=at):
            return f"{show(value)}[{at}]{suffix}"
        case _:
            assert_never(expr)


def print_type(type_: ValueType | None) -> str:
    """A type with its width; what is of a type variable goes by its symbol."""
    match type_:
        case TupleType(items=items):
            return f"({', '.join(map(print_type, items))})"
        case ElementType(dtype=DType(variable=TypeVariable(symbol=symbol))):
            return symbol
        case _:
            return f"{type_}{_width(type_)}"


def _width(type_: object) -> str:
    return f" as {type_.width.value}" if isinstance(type_, PythonType) and type_.width is not Width.ANY else ""
