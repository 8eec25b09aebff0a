"""Statements that may change a list of the module, such as `TABLE.append(4)`: the list is then no table of constants.

In: the statements of a scope, and the names that are assigned a list there. Out: for each list that a statement may
change, or that gets another name, the places. A list may be indexed, compared, iterated and passed to the functions in
`_READERS`; any other use counts as a change. The rows of a list of lists are lists themselves, so that only their
numbers may be read. Kernels cannot change a list, so that their bodies are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import libcst as cst

from py2cu.frontend.names.syntax import Statement, nodes_in

_READERS = frozenset({"len", "enumerate", "zip", "reversed", "sum", "min", "max"})


def lists_in(definitions: Mapping[str, cst.BaseExpression]) -> dict[str, bool]:
    """The names that are assigned a list, or a tuple of lists, and whether the list has lists in it."""
    return {
        name: any(isinstance(element.value, cst.List) for element in value.elements)
        for name, value in definitions.items()
        if isinstance(value, cst.List | cst.Tuple) and _holds_list(value)
    }


def _holds_list(node: cst.BaseExpression) -> bool:
    """True for a list, and a tuple with one in it."""
    if isinstance(node, cst.Tuple):
        return any(_holds_list(each.value) for each in node.elements)
    return isinstance(node, cst.List)


def find_changes(
    body: Iterable[Statement], lists: Mapping[str, bool], made: Callable[[cst.FunctionDef], str | None]
) -> dict[str, list[cst.Name]]:
    """The uses of the `lists` (see `lists_in`) that may change them, by name."""
    finder = _Finder(lists, made)
    for statement in body:
        statement.visit(finder)
    return finder.changes


class _Finder(cst.CSTVisitor):
    """Collects uses. A node that only reads a list below it enters the list in `read` before the walk gets there."""

    def __init__(self, lists: Mapping[str, bool], made: Callable[[cst.FunctionDef], str | None]) -> None:
        super().__init__()
        self.lists, self.made = lists, made
        self.changes: dict[str, list[cst.Name]] = {}
        self.read: set[cst.CSTNode] = set()
        self.written: set[cst.CSTNode] = set()  # subscripts that are assigned to
        self.indexed: set[cst.CSTNode] = set()  # subscripts with another one behind them

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        self.read.add(node.name)
        return self.made(node) is None

    def visit_Annotation(self, _: cst.Annotation) -> bool:
        return False

    def visit_AssignTarget(self, node: cst.AssignTarget) -> None:
        self._write(node.target)

    def visit_AnnAssign(self, node: cst.AnnAssign) -> None:
        self._write(node.target)

    def visit_AugAssign(self, node: cst.AugAssign) -> None:
        self._write(node.target)

    def visit_Del(self, node: cst.Del) -> None:
        self._write(node.target)

    def _write(self, target: cst.BaseExpression) -> None:
        """Names that are assigned to are the concern of `bindings.py`; elements are changes."""
        self.read |= {target} if isinstance(target, cst.Name) else set()
        self.written |= {each for each in nodes_in(target) if isinstance(each, cst.Subscript)}

    def visit_Attribute(self, node: cst.Attribute) -> None:
        self.read.add(node.attr)

    def visit_Arg(self, node: cst.Arg) -> None:
        self.read |= {node.keyword} if node.keyword is not None else set()

    def visit_Param(self, node: cst.Param) -> None:
        self.read.add(node.name)

    def visit_Subscript(self, node: cst.Subscript) -> None:
        self.indexed.add(node.value)
        if node not in self.written and not (self._has_rows(node.value) and node not in self.indexed):
            self.read.add(node.value)

    def visit_For(self, node: cst.For) -> None:
        self._iterate(node.iter)
        self._write(node.target)

    def visit_CompFor(self, node: cst.CompFor) -> None:
        self._iterate(node.iter)

    def visit_Call(self, node: cst.Call) -> None:
        match node.func:
            case cst.Name(value="len"):
                self.read |= {arg.value for arg in node.args}
            case cst.Name(value=name) if name in _READERS:
                for arg in node.args:
                    self._iterate(arg.value)

    def visit_Comparison(self, node: cst.Comparison) -> None:
        self.read |= {node.left, *(each.comparator for each in node.comparisons)}

    def _iterate(self, node: cst.BaseExpression) -> None:
        self.read |= set() if self._has_rows(node) else {node}  # rule: list-rows

    def _has_rows(self, node: cst.BaseExpression) -> bool:
        return isinstance(node, cst.Name) and self.lists.get(node.value, False)

    def visit_Name(self, node: cst.Name) -> None:
        if node.value in self.lists and node not in self.read:  # rule: list-changed
            self.changes.setdefault(node.value, []).append(node)
