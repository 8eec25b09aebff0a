"""The source positions of the nodes of a LibCST tree.

In: a module. Out: the span of each node, without the white space and comments around it, equal to that of LibCST's
`PositionProvider`. The module is written token by token, and each node keeps the numbers of its first and last token. A
line and a column are computed only for the spans that are asked for, which makes it twice as fast as LibCST's provider.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import accumulate

import libcst as cst
from libcst._nodes.internal import CodegenState

from py2cu.source import Span

Rebinder = cst.Global | cst.Nonlocal
_NEWLINE = re.compile(r"\r\n?|\n")
_FUNCTIONS = frozenset([cst.FunctionDef, cst.Lambda])
_NOTED = frozenset([cst.Global, cst.Nonlocal, cst.NamedExpr, cst.Name, *_FUNCTIONS])


class Positions:
    """The spans of the nodes of a tree."""

    def __init__(self, tree: cst.Module) -> None:
        writer = _Writer(tree.default_indent, tree.default_newline)
        tree._codegen(writer)
        self.rebinders = tuple(writer.rebinders)
        """The nodes that bind names of other scopes: `global` and `nonlocal`."""
        self.named = writer.named
        """The `:=` of each function that has some, and of the module, which is None."""
        self.foreign = tuple(writer.foreign)
        """Names with letters outside ASCII, which Python normalises."""
        self.has_lambdas = writer.has_lambdas
        self._between = writer.between
        self._offsets = list(accumulate(map(len, writer.tokens), initial=0))
        self._lines = [0, *(newline.end() for newline in _NEWLINE.finditer("".join(writer.tokens)))]

    def span(self, node: cst.CSTNode) -> Span:
        """The span of `node`, a node of the tree."""
        first, last = self._between[id(node)]
        return Span(*self._place(first), *self._place(last))

    def add(self, node: cst.CSTNode, like: cst.CSTNode) -> None:
        """Give `node`, which joins the tree, the position of `like`."""
        self._between[id(node)] = self._between[id(like)]

    def _place(self, token: int) -> tuple[int, int]:
        """The line and column where token number `token` starts."""
        offset = self._offsets[token]
        line = bisect_right(self._lines, offset)
        return line, offset - self._lines[line - 1]


class _Writer(CodegenState):
    """Counts, for each node, the tokens before its start and before its end.

    LibCST marks with a `with` statement the part of a node without white space and comments; a node without such a mark
    covers all that it writes.
    """

    def __init__(self, indent: str, newline: str) -> None:
        super().__init__(indent, newline)
        self.between: dict[int, tuple[int, int]] = {}  # by id(): LibCST's `__hash__` returns it too, but slowly
        self.rebinders: list[Rebinder] = []
        self.foreign: list[cst.Name] = []
        self.has_lambdas = False
        self.named: dict[cst.CSTNode | None, list[cst.NamedExpr]] = {}
        self._functions: list[cst.CSTNode] = []  # those around the node that is written
        self._starts: list[int] = []
        self._open: list[tuple[cst.CSTNode, int, cst.CSTNode | None, cst.CSTNode | None]] = []

    def pop_trailing_newline(self) -> None:
        """The last newline stays: nodes end behind it."""

    def before_codegen(self, node: cst.CSTNode) -> None:
        if node.__class__ is cst.SimpleWhitespace:  # four nodes in ten
            return
        self._starts.append(len(self.tokens))
        if node.__class__ in _NOTED:  # runs for every node: `isinstance` takes ten times as long with LibCST's classes
            self._note(node)

    def _note(self, node: cst.CSTNode) -> None:
        if isinstance(node, cst.Name):  # the most frequent
            if not node.value.isascii():
                self.foreign.append(node)
        elif isinstance(node, Rebinder):
            self.rebinders.append(node)
        elif isinstance(node, cst.NamedExpr):
            self.named.setdefault(self._functions[-1] if self._functions else None, []).append(node)
        else:
            self.has_lambdas |= isinstance(node, cst.Lambda)
            self._functions.append(node)

    def after_codegen(self, node: cst.CSTNode) -> None:
        if node.__class__ is cst.SimpleWhitespace:
            return
        start = self._starts.pop()
        if node.__class__ in _FUNCTIONS:
            self._functions.pop()
        if id(node) not in self.between:
            self.between[id(node)] = start, len(self.tokens)

    def record_syntactic_position(  # type: ignore[override]  # LibCST's is made of a generator
        self, node: cst.CSTNode, *, start_node: cst.CSTNode | None = None, end_node: cst.CSTNode | None = None
    ) -> _Writer:
        self._open.append((node, len(self.tokens), start_node, end_node))
        return self

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        node, start, start_node, end_node = self._open.pop()
        first = start if start_node is None else self.between[id(start_node)][0]
        last = len(self.tokens) if end_node is None else self.between[id(end_node)][1]
        self.between[id(node)] = first, last
