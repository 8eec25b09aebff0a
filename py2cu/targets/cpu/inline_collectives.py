"""Turns collective operations into statements of the kernel body, at which `split_at_barriers` can cut: inlines device
functions with barriers or shared arrays, and assigns shuffles and votes to locals.

    v = warp_sum(x[i]) / 2              v_1 = x[i]
                                        shuffled = shfl_down_sync(FULL, v_1, 16)
                                   →    v_1 = v_1 + shuffled
    while syncthreads_or(v > 1):        …
                                        while True:
                                            vote = syncthreads_or(v > 1)
                                            if not vote: break
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Final

from py2cu import ir
from py2cu.analysis.account import elided_in
from py2cu.analysis.call_graph import functions_with, in_recursive_scc, launch_objects_by_function
from py2cu.analysis.effects import contains_yield, has_collective, is_active_mask, is_block_cooperative, is_collective
from py2cu.builtins.launch import LANE_HELPER
from py2cu.diagnostics import Origin
from py2cu.ir.names import free_name, names_in_scope
from py2cu.ir.rewrite import map_children, map_expressions, rebuild_block, with_fields
from py2cu.ir.visit import all_expressions, assigned_names, children, statements, walk
from py2cu.passes.lowering.split_tuples import without_unread
from py2cu.source import Span

_WAITS: Final = "in which threads wait for each other"


class CannotSplit(Exception):
    """The CPU target cannot run this kernel. `what` says why; it stands in the kernel's file, or in `origin`."""

    def __init__(self, what: str, span: Span, origin: Origin | None = None) -> None:
        place = f"line {span.line}" if origin is None else f"line {span.line} of {PurePath(origin.file.name).name}"
        super().__init__(f"{what} in {place}")


def contains_barrier(block: ir.Block) -> bool:
    """True where `block` contains a barrier or a collective call."""
    return has_collective(block) or any(map(is_collective, all_expressions(block)))


def runs_in_blocks(kernel: ir.Kernel) -> bool:
    """True for a kernel that the CPU runs block by block: its threads cooperate, or read their lane."""
    if kernel.indices and launch_objects_by_function(kernel)[""]:  # rule: launch-of-elements
        return True
    bodies = [each.body for each in (kernel, *kernel.functions)]
    return is_block_cooperative(kernel) or any(map(reads_lane, bodies)) or any(map(contains_yield, bodies))


def reads_lane(block: ir.Block) -> bool:
    """True where a thread reads its lane or the mask of active lanes."""
    calls = (node for node in all_expressions(block) if isinstance(node, ir.Call))
    return any(call.function == LANE_HELPER or is_active_mask(call) for call in calls)


def lift_waiting_calls(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel with collective calls as statements, and cooperative functions inlined.

    Raises:
        CannotSplit: a cooperative function returns early or calls itself.
    """
    cooperative = functions_with(kernel, _needs_block)
    recursive = cooperative & in_recursive_scc(kernel.functions)
    lifting = _Lifting(names_in_scope(kernel), {function.key: function.struct for function in kernel.functions})
    for function in kernel.functions:
        if function.key in recursive:
            raise CannotSplit(f"`{function.name}`, {_WAITS}, calls itself", function.span, function.origin)
        if function.key in cooperative:
            body, new_locals = lifting.block(function.body), tuple(lifting.locals.items())
            lifting.locals.clear()
            lifting.functions[function.key] = with_fields(function, body=body, locals=function.locals + new_locals)
    body = _without_unread(lifting.block(kernel.body), lifting.locals.keys())
    assigned = {*assigned_names(body)}
    return with_fields(
        kernel,
        body=(*lifting.reserved, *body),
        locals=(*kernel.locals, *(item for item in lifting.locals.items() if item[0] in assigned)),
        array_decls=(*kernel.array_decls, *lifting.decls.values()),
        helpers=tuple(dict.fromkeys([*kernel.helpers, *(h for f in lifting.functions.values() for h in f.helpers)])),
        functions=tuple(function for function in kernel.functions if function.key not in cooperative),
        elided=kernel.elided + tuple(lifting.elided),
    )


def _without_unread(body: ir.Block, names: Set[str]) -> ir.Block:
    """`body` without assignments of inlined functions, and their comments, that lead to no result that is read."""
    while (rest := without_unread(body, names, keep_comments=False)) is not body:
        body = rest
    return body


def _needs_block(function: ir.Kernel) -> bool:
    """True for a function with shared arrays, barriers or collective calls."""
    shares = any(decl.space is ir.Space.SHARED for decl in function.array_decls)
    return shares or has_collective(function.body) or reads_lane(function.body)


@dataclass(slots=True)
class _Lifting:
    """Lifts calls out of blocks, and collects the locals and arrays that this adds."""

    taken: set[str]
    structs: dict[str, ir.Struct | None]  # of the results of functions
    tuples: dict[str, tuple[ir.Expr, ...]] = field(default_factory=dict)  # by local, results of inlined functions
    functions: dict[str, ir.Kernel] = field(default_factory=dict)
    locals: dict[str, ir.ValueType] = field(default_factory=dict)
    decls: dict[str, ir.ArrayDecl] = field(default_factory=dict)
    shared: dict[tuple[str, str], str] = field(default_factory=dict)  # by function and array: all calls share one array
    reserved: list[ir.Stmt] = field(default_factory=list)
    elided: list[ir.Elided] = field(default_factory=list)  # inlined calls, and the returns of inlined functions

    def block(self, block: ir.Block) -> ir.Block:
        return tuple(done for stmt in block for done in self.statement(stmt))

    def statement(self, stmt: ir.Stmt) -> Iterator[ir.Stmt]:
        """The statement, preceded by the collective calls of its expressions."""
        before: list[ir.Stmt] = []
        match stmt:
            case ir.While(test=test, body=body) if self.has_calls(test):
                leave = ir.If(ir.Unary("not", test, test.span, ir.PY_BOOL), (ir.Break(test.span),), span=test.span)
                body = self.block((leave, *body))
                yield with_fields(stmt, test=ir.Constant(True, test.span, ir.PY_BOOL), body=body)
                return
            case ir.Return(value=ir.DeviceCall(type=ir.TupleType() as type_) as call) if not self.is_inlined(call):
                result = self.local("result", type_)
                yield from self.statement(ir.Assign(result.id, call, call.span, stmt.trivia))
                items = ir.Tuple(self.items(call.function, result), call.span, type_)
                yield with_fields(stmt, value=items, trivia=ir.BARE)
                return
            case ir.If(test=test, body=body, orelse=orelse):
                test = self.lifted(test, before)
                stmt = with_fields(stmt, test=test, body=self.block(body), orelse=self.block(orelse), chained=False)
            case ir.For(start=start, stop=stop, step=step, body=body):
                if any(map(self.has_calls, (stop, step))):
                    raise CannotSplit("threads wait in each round to compute the end or the step of a loop", stmt.span)
                stmt = with_fields(stmt, start=self.lifted(start, before), body=self.block(body))
            case ir.While(body=body):
                stmt = with_fields(stmt, body=self.block(body))
            case ir.Assign(value=value) if is_collective(value):
                inner = map_children(value, lambda child: self.lifted(child, before))
                stmt = with_fields(stmt, value=inner)
            case ir.ExprStmt(call=ir.DeviceCall() as call) if call.function in self.functions:
                self.inline_call(self.with_arguments(call, before), before)
                yield from _with_comments_of(stmt, before)
                return
            case ir.Assign(name=name, value=ir.DeviceCall(type=ir.TupleType()) as call) if self.is_inlined(call):
                self.tuples[name] = self.inline_call(self.with_arguments(call, before), before)
                self.elided.append(ir.Elided(stmt.span, ir.Elision.INLINED))
                yield from _with_comments_of(stmt, before)
                return
            case _:
                stmt = map_expressions(stmt, lambda expr: self.lifted(expr, before))
        yield from _with_comments_of(stmt, [*before, stmt])

    def has_calls(self, expr: ir.Expr) -> bool:
        return any(is_collective(node) or self.is_inlined(node) for node in walk(expr))

    def is_inlined(self, expr: ir.Expr) -> bool:
        return isinstance(expr, ir.DeviceCall) and expr.function in self.functions

    def lifted(self, expr: ir.Expr, before: list[ir.Stmt]) -> ir.Expr:
        """`expr` with its collective calls moved to `before`."""
        if isinstance(expr, ir.BoolOp | ir.Select) and any(map(self.has_calls, children(expr)[1:])):
            return self.branched(expr, before)
        inner = map_children(expr, lambda child: self.lifted(child, before))
        if isinstance(inner, ir.DeviceCall) and inner.function in self.functions:
            results = self.inline_call(inner, before)
            return ir.Tuple(results, inner.span, inner.type) if isinstance(inner.type, ir.TupleType) else results[0]
        match inner:
            case ir.TupleItem(value=ir.Name(id=name), at=at) if name in self.tuples:
                return self.tuples[name][at]  # rule: inlined-tuple
            case ir.TupleItem(value=ir.Tuple(items=items), at=at):
                return items[at]  # rule: inlined-item
        if isinstance(inner, ir.Call) and is_collective(inner):
            assert isinstance(inner.type, ir.ElementType | ir.PythonType), inner
            answer = self.local("answer", inner.type)
            before.append(ir.Assign(answer.id, inner, inner.span))
            return answer
        return inner

    def branched(self, expr: ir.BoolOp | ir.Select, before: list[ir.Stmt]) -> ir.Name:
        """A short-circuit or conditional expression: an `if` statement in `before` computes it."""
        assert isinstance(expr.type, ir.ElementType | ir.PythonType), expr
        value = self.local("chosen", expr.type)
        match expr:
            case ir.BoolOp(op=op, left=left, right=right):
                before.append(ir.Assign(value.id, self.lifted(left, before), expr.span))
                test: ir.Expr = value if op == "and" else ir.Unary("not", value, expr.span, ir.PY_BOOL)
                before.append(ir.If(test, self.assigned(value, right), span=expr.span))
            case ir.Select(test=test, then=then, orelse=orelse):
                test = self.lifted(test, before)
                before.append(ir.If(test, self.assigned(value, then), self.assigned(value, orelse), expr.span))
        return value

    def assigned(self, name: ir.Name, value: ir.Expr) -> ir.Block:
        before: list[ir.Stmt] = []
        last = self.lifted(value, before)
        return (*before, ir.Assign(name.id, last, value.span))

    def with_arguments(self, call: ir.DeviceCall, before: list[ir.Stmt]) -> ir.DeviceCall:
        return replace(call, args=tuple(self.lifted(arg, before) for arg in call.args))

    # --- functions ---

    def inline_call(self, call: ir.DeviceCall, before: list[ir.Stmt]) -> tuple[ir.Name, ...]:
        """Inline a function into `before`, and return its result: nothing, a number, or the numbers of a tuple."""
        function = self.functions[call.function]
        self.elided.append(ir.Elided(call.span, ir.Elision.INLINED))
        names = self.names_for(function)
        for parameter, arg in zip(function.parameters, call.args, strict=True):
            if isinstance(parameter.type, ir.ArrayType):
                assert isinstance(arg, ir.ArrayName), arg
                names[parameter.name] = arg.id
            else:
                copy = self.local(parameter.name, parameter.type)
                names[parameter.name] = copy.id
                before.append(ir.Assign(copy.id, arg, call.span))
        body, results = function.body, []
        if body and isinstance(body[-1], ir.Return):
            last, body = body[-1], body[:-1]
            self.elided += elided_in((last,), ir.Elision.INLINED)
            for at, (name, value, type_) in enumerate(self.results(function, last.value)):
                results.append(self.local(name, type_))
                names[str(at)] = results[-1].id  # no name of Python: `_renamed` replaces it
                body = (*body, ir.Assign(str(at), value, last.span, ir.BARE if at else last.trivia))
        for stmt in statements(body):
            if isinstance(stmt, ir.Return):
                # rule: inlined-return
                raise CannotSplit(f"`{function.name}`, {_WAITS}, returns early", stmt.span, function.origin)
        reserved = {stmt.array for stmt in self.reserved if isinstance(stmt, ir.Alloc)}
        before += (s for s in _renamed(body, names) if not (isinstance(s, ir.Alloc) and s.array in reserved))
        return tuple(results)

    def results(self, function: ir.Kernel, value: ir.Expr | None) -> Iterator[tuple[str, ir.Expr, ir.ValueType]]:
        """A name, the value and the type of each number that a function returns."""
        if isinstance(function.result, ir.TupleType):
            assert isinstance(value, ir.Tuple)
            assert function.struct is not None
            yield from zip(function.struct.fields, value.items, function.result.items, strict=True)
        elif value is not None:
            assert function.result is not None
            yield function.name, value, function.result

    def items(self, function: str, result: ir.Name) -> tuple[ir.Expr, ...]:
        """The numbers of the struct `result`, which `function` has returned."""
        struct = self.structs[function]
        assert struct is not None
        assert isinstance(result.type, ir.TupleType)
        pairs = zip(struct.fields, result.type.items, strict=True)
        return tuple(ir.TupleItem(result, at, type=type_, field=name) for at, (name, type_) in enumerate(pairs))

    def names_for(self, function: ir.Kernel) -> dict[str, str]:
        """New names in the kernel for the locals and arrays of an inlined function."""
        names = {name: self.local(name, type_).id for name, type_ in function.locals}
        names |= {stmt.var: self.free(stmt.var) for stmt in statements(function.body) if isinstance(stmt, ir.For)}
        for decl in function.array_decls:
            is_shared_by_calls = decl.space is not ir.Space.LOCAL and not decl.base
            if is_shared_by_calls and (function.key, decl.name) in self.shared:
                names[decl.name] = self.shared[function.key, decl.name]
                continue
            names[decl.name] = self.shared[function.key, decl.name] = name = self.free(decl.name)
            self.decls[name] = replace(decl, name=name, base=names.get(decl.base, decl.base))
            if is_shared_by_calls and decl.space is ir.Space.SHARED:
                self.reserved.append(ir.Alloc(name, decl.span))
        return names

    def local(self, name: str, type_: ir.ValueType) -> ir.Name:
        name = self.free(name)
        self.locals[name] = type_
        return ir.Name(name, type=type_)

    def free(self, name: str) -> str:
        """A name derived from `name` that nothing in the kernel has yet."""
        fresh = free_name(name, self.taken)
        self.taken.add(fresh)
        return fresh


def _with_comments_of(stmt: ir.Stmt, done: list[ir.Stmt]) -> Iterator[ir.Stmt]:
    """The statements `done`, which replace `stmt`, with the comments of `stmt`."""
    if len(done) == 1 and done[0] is stmt:
        yield stmt
        return
    first, *rest = done or [ir.Comment(stmt.span)]
    yield replace(first, trivia=replace(stmt.trivia, beside=""))
    for each in rest:
        yield replace(each, trivia=replace(each.trivia, above=())) if each is stmt else each


def _renamed(block: ir.Block, names: dict[str, str]) -> ir.Block:
    """`block` with its locals and arrays renamed."""

    def change(expr: ir.Expr) -> ir.Expr:
        match expr:
            case ir.Name(id=name) | ir.ArrayName(id=name) if name in names:
                return replace(expr, id=names[name])
            case ir.Load(array=name) | ir.Atomic(array=name) if name in names:
                return replace(expr, array=names[name])
            case _:
                return expr

    def change_stmt(stmt: ir.Stmt) -> ir.Block:
        match stmt:
            case ir.Assign(name=name) if name in names:
                return (replace(stmt, name=names[name]),)
            case ir.For(var=var) if var in names:
                return (replace(stmt, var=names[var]),)
            case ir.Store(array=array) | ir.Alloc(array=array) if array in names:
                return (replace(stmt, array=names[array]),)
            case _:
                return (stmt,)

    return rebuild_block(block, change, change_stmt)
