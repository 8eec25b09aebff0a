"""Accounts for the statements of a kernel: none of the Python is dropped by the front end, none later by a pass.

`unread`: statements and targets of the source for which the IR has neither code nor an `Elided`. The source is read
anew, by Python's own parser, so that what the front end overlooks is seen here.
`lost`: statements, atomic operations and calls that a pass had and has left out without an `Elided`.
"""

from __future__ import annotations

import ast
import functools
import unicodedata
from collections.abc import Iterable, Iterator

from py2cu import ir
from py2cu.analysis.call_graph import reachable_functions
from py2cu.ir.visit import all_expressions, statements
from py2cu.source import NOWHERE, SourceFile, Span


def elided_in(block: ir.Block, why: ir.Elision) -> tuple[ir.Elided, ...]:
    """A note for every statement of `block`, and for the calls and atomic operations in them."""
    expressions = elided_calls(all_expressions(block), why)
    return (*(ir.Elided(stmt.span, why) for stmt in statements(block)), *expressions)


def elided_calls(nodes: Iterable[ir.Expr], why: ir.Elision) -> tuple[ir.Elided, ...]:
    """A note for every call and atomic operation among `nodes`."""
    return tuple(ir.Elided(node.span, why) for node in nodes if isinstance(node, ir.Atomic | ir.DeviceCall))


# --- from pass to pass ---


def lost(before: ir.Kernel, after: ir.Kernel) -> Iterator[tuple[str, Span]]:
    """The effects of `before` that `after` neither has nor notes as elided: kind and place of each."""
    left: dict[str, set[Span]] = {}
    for kind, span in _effects((after, *after.functions)):
        left.setdefault(kind, set()).add(span)
    elided = {note.span for function in (after, *after.functions) for note in function.elided}
    for kind, span in _effects((before, *reachable_functions(before))):
        kept = left.get(kind, ())
        if span not in kept and span not in elided and not any(_holds(span, inner) for inner in kept):
            yield kind, span


def _effects(functions: Iterable[ir.Kernel]) -> Iterator[tuple[str, Span]]:
    """The effects of functions, by kind and place; nodes that a pass inserted have no place."""
    for function in functions:
        for stmt in statements(function.body):
            kind = _kind(stmt)
            if kind and stmt.span != NOWHERE:
                yield kind, stmt.span
        for node in all_expressions(function.body):
            if isinstance(node, ir.Atomic | ir.DeviceCall):
                yield ("atomic operation" if isinstance(node, ir.Atomic) else "call"), node.span


def _kind(stmt: ir.Stmt) -> str:
    """The kind of a statement's effect; "" where it only holds others, or where a pass may replace it."""
    match stmt:
        case ir.Assign() | ir.StructuredBinding():
            return "assignment"
        case ir.Store() | ir.Print() | ir.Assert() | ir.Sync() | ir.Return() | ir.Break() | ir.Continue():
            return type(stmt).__name__.lower()
        case _:
            return ""


# --- from the source to the IR ---


def unread(function: ir.Kernel, file: SourceFile) -> Iterator[tuple[str, Span]]:
    """Statements and targets in the source of `function`, in `file`, that the IR does not have."""
    places = _Places(file)
    definition = places.definition(function.span)
    if definition is None:
        return
    present = [stmt for stmt in statements(function.body) if not isinstance(stmt, ir.Comment)]
    elided = {note.span for note in function.elided}
    waiting: list[ast.stmt] = [*definition.body]
    while waiting:
        node = waiting.pop(0)
        span = places.span(node)
        if span in elided:
            continue
        waiting[:0] = [inner for inner in ast.iter_child_nodes(node) if isinstance(inner, ast.stmt)]
        head = places.head(node)
        here = [stmt for stmt in present if _holds(head, stmt.span)]
        if not here:
            yield "statement", span
        for target in _targets(node):
            if not any(_gives(stmt, target, places.span(target)) for stmt in here):
                yield "target", places.span(target)


def _targets(node: ast.stmt) -> Iterator[ast.expr]:
    """The names, elements and attributes that a statement assigns or deletes."""
    match node:
        case ast.Assign(targets=targets) | ast.Delete(targets=targets):
            waiting = [*targets]
        case ast.AugAssign(target=target) | ast.AnnAssign(target=target) | ast.For(target=target):
            waiting = [target]
        case _:
            waiting = []
    while waiting:
        target = waiting.pop(0)
        if isinstance(target, ast.Tuple | ast.List):
            waiting[:0] = target.elts
        else:
            yield target


def _gives(stmt: ir.Stmt, target: ast.expr, span: Span) -> bool:
    """True where `stmt` is the IR's assignment to `target`."""
    match target, stmt:
        case ast.Name(id=id_), ir.Assign(name=name) | ir.For(var=name) | ir.Delete(name=name) | ir.Alloc(array=name):
            return id_ == name
        case ast.Subscript(), ir.Store():
            return stmt.span == span
        case _:
            return False


class _Places:
    """Spans of the nodes of Python's own parser, which counts columns in bytes."""

    def __init__(self, file: SourceFile) -> None:
        self.file = file

    def definition(self, name: Span) -> ast.FunctionDef | None:
        """The function whose name stands at `name`; None for a lambda, which is one expression."""
        text = unicodedata.normalize("NFKC", self.file.line(name.line)[name.column : name.end_column])
        functions = (node for node in ast.walk(_parsed(self.file.text)) if isinstance(node, ast.FunctionDef))
        return next((node for node in functions if node.lineno == name.line and node.name == text), None)

    def span(self, node: ast.stmt | ast.expr) -> Span:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start, end = self._column(node.lineno, node.col_offset), self._column(node.end_lineno, node.end_col_offset)
        return Span(node.lineno, start, node.end_lineno, end)

    def head(self, node: ast.stmt) -> Span:
        """The span of a statement up to its first block."""
        span = self.span(node)
        body = getattr(node, "body", None)
        if not body:
            return span
        first = self.span(body[0])
        return Span(span.line, span.column, first.line, first.column)

    def _column(self, line: int, offset: int) -> int:
        return len(self.file.line(line).encode()[:offset].decode())


@functools.lru_cache(maxsize=4)
def _parsed(text: str) -> ast.Module:
    return ast.parse(text)


def _holds(outer: Span, inner: Span) -> bool:
    start, end = (outer.line, outer.column), (outer.end_line, outer.end_column)
    return start <= (inner.line, inner.column) and (inner.end_line, inner.end_column) <= end
