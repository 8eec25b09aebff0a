"""Invariant code of a launcher: the lines that compute the same for all arrays of one kind, extents and strides.

In: lines of Python, and the names whose values such arrays settle. Out: the invariant lines, and the others. For later
arrays of that kind a launcher takes the values of the invariant lines from memory, and runs the others alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Settled(NamedTuple):
    """Lines, and the names that they define."""

    lines: list[str]
    names: set[str]


def settle(lines: Sequence[str], known: Iterable[str], taken: Iterable[str]) -> tuple[Settled, list[str]]:
    """The statements that depend on nothing but `known` names and each other, and the others, both in order.

    `taken` are the launcher's arguments. Also among the others: a statement that returns; behind it, statements that
    raise or call something; and a statement that redefines a name of an earlier one of the others.
    """
    statements = [(each, [*ast.walk(each)]) for each in ast.parse("\n".join(lines)).body]
    settled = Settled([], set())
    others: list[str] = []
    late: set[str] = set()  # read or defined by one of the others
    unsettled = {*taken, *(name for _, nodes in statements for name in _names(nodes, ast.Store))} - {*known}
    stays: tuple[type[ast.AST], ...] = (ast.Return,)
    for statement, nodes in statements:
        own = lines[statement.lineno - 1 : statement.end_lineno]
        read, defined = _names(nodes, ast.Load), _names(nodes, ast.Store)
        if any(isinstance(node, ast.Return) for node in nodes):
            stays = ast.Return, ast.Raise, ast.Call
        if (
            any(isinstance(node, stays) for node in nodes) or read & unsettled or defined & late
        ):  # rule: launcher-settled
            others += own
            late |= read | defined
            unsettled |= defined
        else:
            settled.lines.extend(own)
            settled.names.update(defined)
            unsettled -= defined
    return settled, others


def _names(nodes: Iterable[ast.AST], context: type[ast.expr_context]) -> set[str]:
    return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, context)}
