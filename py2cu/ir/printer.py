"""The IR as text, Python-like with types: for test cases, messages and `py2cu translate --dump-ir`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from py2cu import ir
from py2cu.dtypes import Kind
from py2cu.ir.abi.launch_values import value_in_python


def print_kernel(kernel: ir.Kernel) -> str:
    """The whole kernel: a line each for what its head says, then the body, then the device functions."""
    parts = [f"kernel {kernel.name}", *_print_launch(kernel), *_print_function(kernel)]
    for function in kernel.functions:
        result = f" -> {_show(function.result)}" if function.result is not None else ""
        parts += ["", f"function {_instance_of(function.key)}{result}", *_print_function(function)]
    return "\n".join(parts) + "\n"


def _print_launch(kernel: ir.Kernel) -> Iterator[str]:
    """What only a kernel has: how it is launched."""
    yield from (f"  index {i.name}: {print_expr(i.extent)} on {i.axis}" for i in kernel.indices)
    if kernel.size is not None:
        yield f"  size {_print_all(kernel.size)}"
    yield f"  block {_print_all(kernel.block)}"
    yield from (f"  guard {guard.index} >= {print_expr(guard.extent)} on {guard.axis}" for guard in kernel.guards)
    if kernel.independent_dims:
        yield f"  independent: {', '.join(kernel.independent_dims)}"
    yield from (f"  {written} may be {read}" for written, read in kernel.in_place)
    for site in kernel.predicated:
        yield f"  predicated at line {site.line}: {', '.join(guard.index for guard in site.guards)}"
    for bound in kernel.bounds:
        products = ((*names, *([str(by)] if by != 1 or not names else [])) for names, by in bound.terms)
        yield f"  32 bits hold {' + '.join(map(' * '.join, products))}"
    for value in kernel.launch_values:
        yield f"  the launcher computes {value.name} = {value_in_python(value.value, str)}"
    yield from (f"  {name} is passed as {_show(type_)}" for name, type_ in kernel.narrowed)


def _print_function(function: ir.Kernel) -> Iterator[str]:
    """What a kernel and a device function have: parameters, arrays, locals, and the body."""
    for p in function.parameters:
        yield f"  {p.role.value} {p.name}: {_show(p.type)}"
    for array in dict.fromkeys(stride.array for stride in function.strides):
        yield f"  strides of {array}: {_print_all(function.strides_of(array))}"
    for b in function.array_decls:
        what = f"{'dynamic ' if b.is_dynamic else ''}{b.space.value} {b.name}: {_show(b.type)}"
        yield f"  {what}{f' of {b.base}' if b.base else ''}{f' = {b.values}' if b.values else ''}"
    yield from (f"  from the end, at line {at.line}: {at.index} on axis {at.axis}" for at in function.negative_indices)
    yield from (f"  up to 2**64 - 1, at line {line}" for line in dict.fromkeys(p.line for p in function.natural_places))
    yield from (f"  local {name}: {_show(type_)}" for name, type_ in function.locals)
    if function.per_thread:
        yield f"  kept for each thread: {', '.join(function.per_thread)}"
    if function.struct is not None:
        yield f"  struct {function.struct.name}: {', '.join(function.struct.fields)}"
    if function.helpers:
        yield f"  helpers {', '.join(function.helpers)}"
    if function.symbol:
        yield f"  called {function.symbol} in C++"
    yield from (f"  {old} is {new} in C++" for old, new in function.renamed)
    yield from (f"  {line}" for line in print_block(function.body))


def _print_all(exprs: tuple[ir.Expr, ...], typed: bool = False) -> str:
    return ", ".join(print_expr(expr, typed) for expr in exprs)


def _show(type_: ir.Type) -> str:
    """A type of a parameter, an array or a local: `float32[h, w]`, `int as index_t`."""
    match type_:
        case ir.ArrayType(dtype=dtype, dims=dims):
            return f"{dtype}[{_print_all(dims)}]"
        case ir.TupleType(items=items):
            return f"({', '.join(map(_show, items))})"
        case _:
            return f"{type_}{_width(type_)}"


def print_block(block: ir.Block) -> Iterator[str]:
    for stmt in block:
        yield from _print_statement(stmt)


def _print_statement(stmt: ir.Stmt) -> Iterator[str]:
    match stmt:
        case ir.Assign(name=name, value=value, declares=declares):
            yield f"{name}{'' if declares is None else f': {_show(declares)}'} = {print_expr(value, typed=True)}"
        case ir.DeclareLocal(name=name, type=type_):
            yield f"{name}: {_show(type_)}"
        case ir.Alloc(array=array, values=values) if values is not None:
            yield f"reserve {array} = {{{_print_all(values, typed=True)}}}"
        case ir.Alloc(array=array, start=start):
            yield f"reserve {array}{f' at {print_expr(start, typed=True)}' if start is not None else ''}"
        case ir.StructuredBinding(names=names, value=value):
            yield f"{', '.join(names)} = {print_expr(value, typed=True)}"
        case ir.Store(array=array, indices=indices, value=value, hint=hint):
            yield f"{hint and f'{hint} '}{array}[{_print_all(indices, typed=True)}] = {print_expr(value, typed=True)}"
        case ir.If(test=test, body=body, orelse=orelse):
            yield f"if {print_expr(test, typed=True)}:"
            yield from _print_branches(body, orelse)
        case ir.For(var=var, body=body, orelse=orelse, unroll=unroll, type=type_):
            if unroll is not None:
                yield f"unroll {unroll or 'wholly'}:"
            counts = _print_all((stmt.start, stmt.stop, stmt.step), typed=True)
            yield f"for {var}{_width(type_)} in range({counts}):"
            yield from _print_branches(body, orelse)
        case ir.While(test=test, body=body, orelse=orelse, start=start, advance=advance):
            parts = (text for each in (*start, *advance) for text in _print_statement(each))
            yield "; ".join((f"while {print_expr(test, typed=True)}", *parts)) + ":"
            yield from _print_branches(body, orelse)
        case ir.Return(value=value) if value is not None:
            yield f"return {print_expr(value, typed=True)}"
        case ir.ExprStmt(call=call):
            yield print_expr(call, typed=True)
        case ir.Sync(function=function, args=args):
            yield f"{function}({_print_all(args, typed=True)})"
        case ir.EachThread(body=body, turns=turns):
            yield f"each thread{'' if turns is ir.ThreadOrder.ANY else f', {turns.name.lower()}'}:"
            yield from _print_branches(body, ())
        case ir.EachPack(index=index, loads=loads, values=values, element=element, stores=stores):
            yield f"each pack of {index} < {print_expr(stmt.extent)}{', in whole rows' if stmt.is_whole else ''}:"
            yield from (
                f"  {value} = {print_expr(load, typed=True)}" for value, load in zip(values, loads, strict=True)
            )
            yield f"  {_print_all(stores, typed=False)} = {print_expr(element, typed=True)}"
        case ir.Break() | ir.Continue() | ir.Return():
            yield type(stmt).__name__.lower()
        case ir.Delete(name=name):
            yield f"del {name}"
        case ir.Print(texts=texts, values=values, fields=fields):
            yield f"print({_print_text(texts, values, fields)})"
        case ir.Assert(test=test, message=message, values=values, fields=fields):
            yield f"assert {print_expr(test, typed=True)}, {_print_text(message, values, fields) if message else None}"
        case ir.Comment():
            yield "pass"
        case _:
            assert_never(stmt)


def _print_text(texts: tuple[str, ...], values: tuple[ir.Expr, ...], fields: tuple[ir.Field, ...]) -> str:
    """A string in quotes, with each value and its format in braces."""
    shown = [f"{{{print_expr(v, typed=True)}:{f.layout}{f.letter}}}" for v, f in zip(values, fields, strict=True)]
    return repr("".join(text + value for text, value in zip(texts, [*shown, ""], strict=True)))


def _print_branches(body: ir.Block, orelse: ir.Block) -> Iterator[str]:
    yield from (f"  {line}" for line in (print_block(body) if body else ["pass"]))
    if orelse:
        yield "else:"
        yield from (f"  {line}" for line in print_block(orelse))


def print_expr(expr: ir.Expr, typed: bool = False) -> str:
    """`expr` as Python; `typed` adds types, but for names, comparisons and Python numbers that no C type carries."""

    def show(inner: ir.Expr) -> str:
        text = print_expr(inner, typed)
        is_open = isinstance(inner, ir.Binary | ir.Compare | ir.BoolOp | ir.Select | ir.IsDtype | ir.IsGiven)
        return f"({text})" if is_open and not text.startswith("(") else text

    suffix = _suffix(expr) if typed else ""
    match expr:
        case ir.Constant(value=value):
            return f"{value!r}{suffix}"
        case ir.Name(id=name) | ir.ArrayName(id=name):
            return name
        case ir.LaunchIndex(object=launched, axis=axis):
            return f"{launched}.{axis}"
        case ir.IsDtype(array=array, dtype=dtype):
            return f"{array}.dtype == {dtype}"
        case ir.IsGiven(parameter=parameter):
            return f"{parameter} is not None"
        case ir.Extent(array=array, axis=axis_number):
            return f"{array}.shape[{axis_number}]"
        case ir.Unary(op=op, operand=operand):
            return f"{op} {show(operand)}" if op == "not" else f"{op}{show(operand)}{suffix}"
        case ir.Binary(op=op, left=left, right=right):
            text = f"{show(left)} {op} {show(right)}"
            return f"({text}){suffix}" if suffix else text
        case ir.Compare(op=op, left=left, right=right) | ir.BoolOp(op=op, left=left, right=right):
            return f"{show(left)} {op} {show(right)}"
        case ir.Select(test=test, then=then, orelse=orelse):
            return f"{show(then)} if {show(test)} else {show(orelse)}"
        case ir.DeviceCall(function=key, args=args):
            return f"{_instance_of(key)}({_print_all(args, typed)}){suffix}"
        case ir.Call(function=function, args=args):
            return f"{function}({_print_all(args, typed)}){suffix}"
        case ir.Load(array=array, indices=indices, hint=hint):
            return f"{hint and f'{hint} '}{array}[{_print_all(indices, typed)}]{suffix}"
        case ir.Atomic(op=op, array=array, indices=indices, values=values):
            place = f"{array}[{_print_all(indices, typed)}]"
            return f"atomic.{op}({place}{''.join(f', {print_expr(value, typed)}' for value in values)}){suffix}"
        case ir.Convert(value=value, type=type_):
            return f"{_show(type_) if typed else type_}({print_expr(value, typed)})"
        case ir.Tuple(items=items):
            return f"({_print_all(items, typed)},)"
        case ir.TupleItem(value=value, at=at):
            return f"{show(value)}[{at}]{suffix}"
        case _:
            assert_never(expr)


def _instance_of(key: str) -> str:
    """`put[1-D array of float32, Python int]` of a device function's key; the arrays' ranks, `put[1,]`, until typed."""
    name, _, rest = key.rpartition("(")
    ranks, _, types = rest.partition(")")
    return f"{name}[{types.removeprefix(': ') or ranks}]"


def _suffix(expr: ir.Expr) -> str:
    """`:float32`, `:index_t`; nothing for what its text shows, and for a Python integer of no width yet."""
    match expr.type:
        case ir.ElementType() as type_:
            return f":{type_}"
        case ir.PythonType() if isinstance(expr, ir.Constant):
            return ""
        case ir.PythonType(kind=Kind.INT, width=width) if width is not ir.Width.ANY:
            return f":{width.value}"
        case ir.PythonType(kind=Kind.FLOAT | Kind.COMPLEX as kind):
            return f":{kind.name.lower()}"
        case _:
            return ""


def _width(type_: object) -> str:
    return f" as {type_.width.value}" if isinstance(type_, ir.PythonType) and type_.width is not ir.Width.ANY else ""
