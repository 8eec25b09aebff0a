"""Removes top-level statements that no kernel can depend on, so that LibCST parses kernels and not data or host code.

In: the text and the tree of Python's own parser, which is fast and small; LibCST's trees take a thousand bytes a token.
Out: the text with those statements blanked, all others at their positions, and the names that the blanked ones bind.
Kept are imports, decorated functions and statements that contain one, statements that may call `kernel`, and statements
that bind a name which a remaining statement mentions, or may change the list that it stands for.
"""

from __future__ import annotations

import ast
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PrunedSource:
    """The statements that remain of a file, and the names that only removed ones bind."""

    text: str
    statements: list[ast.stmt]  # those that remain
    pruned_names: frozenset[str]


def prune(text: str, tree: ast.Module, wanted: str | None = None) -> PrunedSource:
    """The part of `text` that decorated functions and the function `wanted` may depend on."""
    lines = re.split(r"(?<=\n)|(?<=\r)(?!\n)", text)
    binders: dict[str, list[ast.stmt]] = {}
    has_globals = "global" in text
    for stmt in tree.body:
        for name in _bound(stmt, has_globals):
            binders.setdefault(name, []).append(stmt)
    for name, stmt in _uses_of_lists(lines, tree):
        binders[name].append(stmt)
    roots = _kernel_statements(text, lines, tree)
    roots.update(binders.get(wanted or "", ()))
    waiting = [stmt for stmt in tree.body if stmt in roots or _is_root(stmt, lines, wanted)]
    remaining = set(waiting)
    while waiting:
        for word in _words("".join(lines[_first_line(stmt := waiting.pop()) - 1 : stmt.end_lineno])):
            for binder in binders.get(word, ()):
                if binder not in remaining:
                    remaining.add(binder)
                    waiting.append(binder)
    _blank(lines, tree, remaining)
    pruned_names = frozenset(name for name, statements in binders.items() if remaining.isdisjoint(statements))
    return PrunedSource("".join(lines), [stmt for stmt in tree.body if stmt in remaining], pruned_names)


def _uses_of_lists(lines: list[str], tree: ast.Module) -> Iterator[tuple[str, ast.stmt]]:
    """The statements that mention a name to which a statement assigns a list, and so may change the list."""
    lists = {
        target.id
        for stmt in tree.body
        if isinstance(stmt, ast.Assign | ast.AnnAssign) and any(isinstance(node, ast.List) for node in ast.walk(stmt))
        for target in ast.walk(stmt)
        if isinstance(target, ast.Name) and isinstance(target.ctx, ast.Store)
    }
    for stmt in tree.body if lists else ():
        words = _words("".join(lines[_first_line(stmt) - 1 : stmt.end_lineno]))
        yield from ((name, stmt) for name in sorted(lists & words))  # rule: list-used


def _blank(lines: list[str], tree: ast.Module, remaining: set[ast.stmt]) -> None:
    """Replace each run of removed statements by one string of as many lines."""
    used = {line for stmt in remaining for line in _lines(stmt)}  # `a = 1; b = 2`
    runs: list[list[int]] = []
    is_open = False
    for stmt in tree.body:
        if stmt in remaining or used.intersection(_lines(stmt)):
            is_open = False
        elif is_open:
            runs[-1] += _lines(stmt)
        else:
            runs.append([*_lines(stmt)])
            is_open = True
    for run in runs:
        first, last = run[0], run[-1]
        lines[first - 1 : last] = ["\n"] * (last - first + 1)
        if first < last:
            lines[first - 1], lines[last - 1] = '"""\n', '"""\n'


def _kernel_statements(text: str, lines: list[str], tree: ast.Module) -> set[ast.stmt]:
    """The statements, functions apart, that mention `kernel` or another name of it, and so may call it.

    Also those that may attach a function by `silu.backward(f)`, or make a kernel for Numba by `cuda.jit(f)`.
    """
    names = {"kernel", *re.findall(r"\bkernel\s+as\s+(\w+)", text)}
    statements: set[ast.stmt] = set()
    for stmt in tree.body:
        if isinstance(stmt, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        source = "".join(lines[_first_line(stmt) - 1 : stmt.end_lineno])
        if re.search(rf"\b(?:{'|'.join(names)})\b|\bjit\(|\.backward\(\s*\w", source):
            statements.add(stmt)
            match stmt:  # `wide = kernel(block=128)`
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Name() | ast.Attribute() | ast.Call(args=[])):
                    names.add(name)
    return statements


def _is_root(stmt: ast.stmt, lines: list[str], wanted: str | None) -> bool:
    """True for a statement that always remains; `wanted` is the function of a call `kernel(f)`."""
    match stmt:
        case ast.Import() | ast.ImportFrom():
            return True
        case ast.Assign() | ast.AnnAssign() | ast.AugAssign() | ast.Expr():
            return False
        case _:
            # Without one of these, no node below is wanted; a walk takes as long as all else here.
            source = "".join(lines[_first_line(stmt) - 1 : stmt.end_lineno])
            may_be = (
                "@" in source or "import" in source or bool(wanted and wanted in unicodedata.normalize("NFKC", source))
            )
            return may_be and any(_is_wanted(node, wanted) for node in ast.walk(stmt))


def _is_wanted(node: ast.AST, wanted: str | None) -> bool:
    match node:
        case ast.FunctionDef(name=name, decorator_list=decorators):
            return bool(decorators) or name == wanted
        case ast.AsyncFunctionDef(decorator_list=decorators):
            return bool(decorators)
        case ast.ImportFrom(names=[ast.alias(name="*")]):
            return True
        case _:
            return False


def _bound(stmt: ast.stmt, has_globals: bool) -> Iterator[str]:
    """A superset of the names that a statement, or a function in it with `global`, binds in the module."""
    match stmt:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
            for node in ast.walk(stmt) if has_globals else ():
                if isinstance(node, ast.Global):  # rule: name-global
                    yield from node.names
        case _:
            for node in ast.walk(stmt):
                match node:
                    # rule: name-deleted
                    case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.ExceptHandler(name=str(name)):
                        yield name
                    case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                        yield name
                    case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                        yield name
                    case ast.Global(names=names):
                        yield from names
                    case ast.alias(name=name, asname=asname):
                        yield asname or name.partition(".")[0]


def _first_line(stmt: ast.stmt) -> int:
    match stmt:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return min([stmt.lineno, *(decorator.lineno for decorator in stmt.decorator_list)])
        case _:
            return stmt.lineno


def _lines(stmt: ast.stmt) -> range:
    assert stmt.end_lineno is not None
    return range(_first_line(stmt), stmt.end_lineno + 1)


def _words(text: str) -> set[str]:
    """All words that may be names, also those in strings: an annotation may be a string."""
    return set(re.findall(r"\w+", text if text.isascii() else unicodedata.normalize("NFKC", text)))
