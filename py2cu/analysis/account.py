"""Checks that no statement of a kernel gets lost, neither in the front end nor in a pass.

`untranslated`: statements and targets of the source for which the IR has neither code nor an `Elided`. It parses the
source again with Python's own parser, so that it also finds what the front end overlooks.
`dropped`: statements, atomic operations and calls that a pass removed without an `Elided`.
"""

from __future__ import annotations

import ast
import functools
import unicodedata
from collections.abc import Iterable, Iterator

from py2cu import ir
from py2cu.analysis.call_graph import reachable_functions
from py2cu.ir.visit import all_expressions, statements
from py2cu.source import NOWHERE, SourceFile, Span, parsed


def elided_in(block: ir.Block, why: ir.Elision) -> tuple[ir.Elided, ...]:
    """An `Elided` for every statement of `block`, and for every call and atomic operation in it."""
    expressions = elided_calls(all_expressions(block), why)
    return (*(ir.Elided(stmt.span, why) for stmt in statements(block)), *expressions)


def elided_calls(nodes: Iterable[ir.Expr], why: ir.Elision) -> tuple[ir.Elided, ...]:
    """An `Elided` for every call and atomic operation among `nodes`."""
    return tuple(ir.Elided(node.span, why) for node in nodes if isinstance(node, ir.Atomic | ir.DeviceCall))


# --- from pass to pass ---


def dropped(before: ir.Kernel, after: ir.Kernel) -> Iterator[tuple[str, Span]]:
    """Kind and span of each effect of `before` that `after` neither contains nor lists as elided."""
    spans_by_kind: dict[str, set[Span]] = {}
    for kind, span in _effects((after, *after.functions)):
        spans_by_kind.setdefault(kind, set()).add(span)
    elided = {note.span for function in (after, *after.functions) for note in function.elided}
    for kind, span in _effects((before, *reachable_functions(before))):
        remaining = spans_by_kind.get(kind, ())
        if span not in remaining and span not in elided and not any(_holds(span, inner) for inner in remaining):
            yield kind, span  # rule: dropped-effect


def _effects(functions: Iterable[ir.Kernel]) -> Iterator[tuple[str, Span]]:
    """Kind and span of each effect; statements without a span, which a pass inserted, are skipped."""
    for function in functions:
        for stmt in statements(function.body):
            kind = _kind(stmt)
            if kind and stmt.span != NOWHERE:
                yield kind, stmt.span
        for node in all_expressions(function.body):
            if isinstance(node, ir.Atomic | ir.DeviceCall):
                yield ("atomic operation" if isinstance(node, ir.Atomic) else "call"), node.span


def _kind(stmt: ir.Stmt) -> str:
    """The kind of a statement's effect; "" for a statement that only contains others or that a pass may replace."""
    match stmt:
        case ir.Assign() | ir.StructuredBinding():
            return "assignment"
        case ir.Alloc(values=values) if values is not None:
            return "store"
        case ir.Store() | ir.Print() | ir.Assert() | ir.Sync() | ir.Return() | ir.Break() | ir.Continue():
            return type(stmt).__name__.lower()
        case _:
            return ""


# --- from the source to the IR ---


def untranslated(function: ir.Kernel, file: SourceFile) -> Iterator[tuple[str, Span]]:
    """Kind and span of each statement and target in the source of `function`, in `file`, that its IR lacks."""
    locator = _Locator(file)
    definition = locator.definition(function.span)
    if definition is None:
        return
    present = [stmt for stmt in statements(function.body) if not isinstance(stmt, ir.Comment)]
    elided = {note.span for note in function.elided}
    lists = frozenset(array.name for array in function.array_decls if array.is_list)
    worklist: list[ast.stmt] = [*definition.body]
    while worklist:
        node = worklist.pop(0)
        span = locator.span(node)
        if span in elided:
            continue
        worklist[:0] = [inner for inner in ast.iter_child_nodes(node) if isinstance(inner, ast.stmt)]
        head = locator.head(node)
        translated = [stmt for stmt in present if _holds(head, stmt.span)]
        targets = tuple(_targets(node))
        expected = [target for target in targets if locator.span(target) not in elided]
        if not translated and (expected or not targets):
            yield "statement", span  # rule: dropped-statement
        for target in expected:
            if not any(_assigns(stmt, target, locator.span(target), lists) for stmt in translated):
                yield "target", locator.span(target)  # rule: dropped-target


def _targets(node: ast.stmt) -> Iterator[ast.expr]:
    """The names, elements and attributes that a statement assigns or deletes."""
    match node:
        case ast.Assign(targets=targets) | ast.Delete(targets=targets):
            worklist = [*targets]
        case ast.AugAssign(target=target) | ast.AnnAssign(target=target) | ast.For(target=target):
            worklist = [target]
        case _:
            worklist = []
    while worklist:
        target = worklist.pop(0)
        if isinstance(target, ast.Tuple | ast.List):
            worklist[:0] = target.elts
        elif isinstance(target, ast.Starred):
            worklist.insert(0, target.value)
        else:
            yield target


def _assigns(stmt: ir.Stmt, target: ast.expr, span: Span, lists: frozenset[str]) -> bool:
    """True where `stmt` is the IR's assignment to `target`; `lists` are the arrays that are lists in the source."""
    match target, stmt:
        case ast.Name(), ir.Alloc(array=name) | ir.Store(array=name) if name in lists:
            return True
        case ast.Name(id=id_), ir.Assign(name=name) | ir.For(var=name) | ir.Delete(name=name) | ir.Alloc(array=name):
            return id_ == name
        case ast.Subscript(), ir.Store():
            return stmt.span == span
        case _:
            return False


class _Locator:
    """Finds the spans of nodes of Python's own parser, which counts columns in bytes."""

    def __init__(self, file: SourceFile) -> None:
        self.file = file

    def definition(self, name: Span) -> ast.FunctionDef | None:
        """The definition of the function whose name has the span `name`; None for a lambda."""
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


_parsed = functools.lru_cache(maxsize=4)(parsed)


def _holds(outer: Span, inner: Span) -> bool:
    start, end = (outer.line, outer.column), (outer.end_line, outer.end_column)
    return start <= (inner.line, inner.column) and (inner.end_line, inner.end_column) <= end
