"""Hides loop counters from gcc 12, which vectorizes some searches for an index wrongly.

    for j in range(n):                        for j in range(n):
        if x[j] < x[best]:             →          if x[j] < x[best]:
            best = j                                  best = hide_counter(j)

gcc reduces `best` over the lanes after the loop, although each iteration reads the `best` of the one before. The pass
hides the counter where a loop conditionally assigns it to a local that the loop also reads. Loops that compare values
alone, `if x[j] < least`, are left to the vectorizer.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Final

from py2cu import ir
from py2cu.diagnostics import Reporter
from py2cu.dtypes import Kind
from py2cu.ir.rewrite import rebuild_statements, with_fields
from py2cu.ir.visit import blocks, expressions, names_in, statements

HELPER: Final = "hide_counter"
_Loop = ir.For | ir.While


def hide_counters(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """The kernel with a call of the opaque helper around each counter that such a search assigns."""
    found = {id(stmt) for loop in statements(kernel.body) if isinstance(loop, _Loop) for stmt in _searches(loop)}
    if not found:  # rule: search-counters
        return kernel

    def hide(stmt: ir.Stmt) -> ir.Block:
        return (_hidden(stmt) if id(stmt) in found and isinstance(stmt, ir.Assign) else stmt,)

    return with_fields(kernel, body=rebuild_statements(kernel.body, hide))


def _hidden(stmt: ir.Assign) -> ir.Assign:
    branch, value = _assigned(stmt)
    call = ir.Call(HELPER, (value,), value.span, value.type)
    return with_fields(stmt, value=with_fields(stmt.value, **{branch: call}) if branch else call)


def _assigned(stmt: ir.Assign) -> tuple[str, ir.Expr]:
    """The branch of `new if c else old` that holds the new value, and that value; no branch for other assignments."""
    match stmt.value:
        case ir.Select(then=ir.Name(id=name), orelse=value) if name == stmt.name:
            return "orelse", value  # rule: search-else
        case ir.Select(then=value, orelse=ir.Name(id=name)) if name == stmt.name:
            return "then", value  # rule: search-then
        case value:
            return "", value


def _searches(loop: _Loop) -> Iterator[ir.Assign]:
    """The assignments of a counter, on some condition, to a local that the loop reads."""
    conditional = [*_conditional(loop.body, is_conditional=False)]
    counters = _counters(loop) if conditional else set[str]()
    for stmt in conditional:
        if stmt.name not in counters and _is_affine(_assigned(stmt)[1], counters) and _reads(loop, stmt):
            yield stmt


def _counters(loop: _Loop) -> set[str]:
    """The induction variables of `loop`: its counters, and locals that are a counter plus a constant."""
    counters = {loop.var} if isinstance(loop, ir.For) else set[str]()
    for stmt in loop.body:
        match stmt:
            case ir.Assign(name=name, value=ir.Binary(left=ir.Name(id=left)) as step) if name == left:
                counters |= {name} if _is_affine(step, {name}) else set()
    for stmt in loop.body:
        if _may_continue(stmt):
            break
        if isinstance(stmt, ir.Assign) and _is_affine(stmt.value, counters):  # rule: search-copied
            counters.add(stmt.name)
    return counters


def _may_continue(stmt: ir.Stmt) -> bool:
    return any(isinstance(each, ir.Continue) for inner in blocks(stmt) for each in statements(inner))


def _is_affine(value: ir.Expr, counters: Container[str]) -> bool:
    """True for a counter, and for one plus or minus a constant."""
    match value:
        case ir.Name(id=name):
            return name in counters
        case ir.Convert(value=inner, type=ir.ElementType() | ir.PythonType() as type_):
            return ir.kind_of(type_) is Kind.INT and _is_affine(inner, counters)
        case ir.Binary(op="+" | "-", left=inner, right=ir.Constant()):  # rule: search-affine
            return _is_affine(inner, counters)
        case ir.Binary(op="+", left=ir.Constant(), right=inner):
            return _is_affine(inner, counters)
        case _:
            return False


def _conditional(block: ir.Block, *, is_conditional: bool) -> Iterator[ir.Assign]:
    """The assignments in a loop's body that some iterations may skip."""
    for stmt in block:
        if isinstance(stmt, ir.Assign) and (is_conditional or isinstance(stmt.value, ir.Select)):
            yield stmt
        for inner in blocks(stmt):
            yield from _conditional(inner, is_conditional=is_conditional or isinstance(stmt, ir.If))
        is_conditional |= _may_continue(stmt)  # rule: search-skipped


def _reads(loop: _Loop, search: ir.Assign) -> bool:
    """True if `loop` reads the local of `search` elsewhere than in a branch that keeps its value."""
    read = [expr for stmt in statements(loop.body) if stmt is not search for expr in expressions(stmt)]
    read += expressions(loop)
    branch, value = _assigned(search)
    if branch:  # rule: search-branch
        assert isinstance(search.value, ir.Select)
        read += search.value.test, value
    return any(search.name in names_in(expr) for expr in read)
