"""Limits of the nesting depth of a source, and of the length of its chains of operators.

In: the tree of Python's own parser. Out: None, or a `Nested` with the place and the reason. A chain counts as
one level: operators of one precedence (`a + b - c`), `and`, `or`, comparisons, `elif`. `MAX_TERMS` limits its length.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

MAX_DEPTH: Final = 200
"""The deepest nesting: the limit that Python's own parser has for brackets. The time and memory of LibCST's parser grow
with the square of the depth, and every walk over the tree uses a few frames of Python's stack per level.
"""
MAX_TERMS: Final = 400 if sys.version_info[:2] == (3, 12) else 1000
"""The longest chain. Only Python 3.12 has a fixed limit of recursion in C, which LibCST reaches."""

_DEEP: Final = "break long expressions into several assignments"
_LONG: Final = {
    ast.BinOp: "add up parts in a local: `total = …`, then `total += …`",
    ast.BoolOp: "keep parts in locals: `first = a and b`, then `first and c`",
    ast.Compare: "keep parts in locals: `first = a < b < c`, then `first and c < d`",
    ast.If: "look the value up in an array or a tuple of constants, or nest the branches",
}
_FLAT: Final = frozenset([ast.Name, ast.Constant, *ast.expr_context.__subclasses__(), *ast.operator.__subclasses__()])
_PRECEDENCE: Final[dict[type[ast.operator], int]] = {
    ast.Add: 1, ast.Sub: 1, ast.Mult: 2, ast.Div: 2, ast.BitAnd: 3, ast.BitOr: 4, ast.BitXor: 5,
}  # fmt: skip  # the others become calls, which nest in the emitted text

Node = ast.expr | ast.stmt


@dataclass(frozen=True, slots=True)
class Nested:
    """Why a source is refused: the first node beyond a limit, and what to write instead."""

    node: Node
    reason: str
    hint: str


def is_deep(tree: ast.AST) -> bool:
    """True if a node is deeper than `MAX_DEPTH`, counting each term of a chain as one level."""
    levels: dict[int, list[ast.AST]] = {0: [tree]}
    while levels:
        depth = min(levels)
        for node in levels.pop(depth):
            if depth > MAX_DEPTH and isinstance(node, Node):
                return True
            match node:
                case ast.BoolOp(values=values):
                    levels_here = len(values) - 1
                case ast.Compare(comparators=compared):
                    levels_here = len(compared)
                case _:
                    levels_here = 1
            below = levels.setdefault(depth + levels_here, [])
            left_out = _FLAT if depth + levels_here <= MAX_DEPTH else ()
            # As `ast.iter_child_nodes` does, in half its time. Only the fields count: all trees share one object for
            # each of `Load`, `Lt` and their like, on which a traceback printer such as IPython's leaves a `parent`.
            for part in map(vars(node).get, node._fields):
                if part.__class__ is list:
                    below += [child for child in part if isinstance(child, ast.AST)]
                elif isinstance(part, ast.AST) and part.__class__ not in left_out:
                    below.append(part)
    return False


def find_nested(tree: ast.AST) -> Nested | None:
    """The first place where `tree` is nested too deep, or where a chain has too many terms."""
    # (node, its depth with a chain counted as one level, its depth with every term of a chain counted)
    waiting: list[tuple[ast.AST, int, int]] = [(tree, 0, 0)]
    while waiting:
        node, depth, terms = waiting.pop()
        if isinstance(node, Node) and depth > MAX_DEPTH:
            return Nested(node, f"the source is nested more than {MAX_DEPTH} levels deep here", _DEEP)
        if isinstance(node, Node) and terms > MAX_DEPTH + MAX_TERMS:
            what = f"chains of more than {MAX_DEPTH + MAX_TERMS} terms in total are nested here"
            return Nested(node, what, _DEEP)
        chain = _chain(node)
        if len(chain) > MAX_TERMS:
            beyond, what = chain[MAX_TERMS], "branches" if isinstance(node, ast.If) else "terms"
            reason = f"a chain of {len(chain)} {what}: at most {MAX_TERMS} are translated"
            return Nested(beyond, reason, next(hint for kind, hint in _LONG.items() if isinstance(node, kind)))
        links = (link for link in chain if isinstance(link, ast.If)) if isinstance(node, ast.If) else ()
        inner = [part for link in links for part in _parts(link)] or chain
        waiting += [(part, depth + 1, terms + max(1, len(chain))) for part in reversed(inner or [*_children(node)])]
    return None


def _chain(node: ast.AST) -> Sequence[Node]:
    """The terms of a chain, first to last; of an `if`, itself and each `elif`; none for any other node."""
    match node:
        case ast.BinOp(op=op) if type(op) in _PRECEDENCE:
            terms: list[Node] = []
            inner: ast.expr = node
            while isinstance(inner, ast.BinOp) and _PRECEDENCE.get(type(inner.op)) == _PRECEDENCE[type(op)]:
                terms.append(inner.right)
                inner = inner.left
            return [inner, *reversed(terms)]
        case ast.BoolOp(values=values):
            return values
        case ast.Compare(left=left, comparators=compared):
            return [left, *compared]
        case ast.If():
            branches = [node]
            while (following := _elif(branches[-1])) is not None:
                branches.append(following)
            return branches
        case _:
            return ()


def _elif(branch: ast.If) -> ast.If | None:
    """The `elif` behind `branch`, which stands where its `if` does; an `if` under `else` is further in."""
    match branch.orelse:
        case [ast.If(col_offset=column) as following] if column == branch.col_offset:
            return following
        case _:
            return None


def _parts(branch: ast.If) -> Iterator[ast.AST]:
    """The nodes in one branch of a chain of `if` and `elif`."""
    yield branch.test
    yield from branch.body
    if _elif(branch) is None:
        yield from branch.orelse


def _children(node: ast.AST) -> Iterator[ast.AST]:
    for part in map(vars(node).get, node._fields):
        if isinstance(part, list):
            yield from (child for child in part if isinstance(child, ast.AST))
        elif isinstance(part, ast.AST):
            yield part
