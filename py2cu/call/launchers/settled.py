"""Invariant code of a launcher: the lines that compute the same for all arrays of one kind, extents and strides.

In: lines of Python, and the names whose values such arrays settle. Out: the invariant lines, and the others. For later
arrays of that kind a launcher takes the values of the invariant lines from memory, and runs the others alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence


def settle(lines: Sequence[str], known: Iterable[str], taken: Iterable[str]) -> tuple[list[str], list[str]]:
    """The statements that depend on nothing but `known` names and each other, and the others, both in order.

    `taken` are the launcher's arguments. Also among the others: a statement that returns; behind it, statements that
    raise or call something; and a statement that redefines a name of an earlier one of the others.
    """
    statements = ast.parse("\n".join(lines)).body
    settled: list[str] = []
    others: list[str] = []
    late: set[str] = set()  # read or defined by one of the others
    unsettled = {*taken, *defined_in(lines)} - {*known}
    stays: tuple[type[ast.AST], ...] = (ast.Return,)
    for each in statements:
        own = lines[each.lineno - 1 : each.end_lineno]
        if any(isinstance(node, ast.Return) for node in ast.walk(each)):
            stays = ast.Return, ast.Raise, ast.Call
        is_bound = any(isinstance(node, stays) for node in ast.walk(each))
        if is_bound or read_in(own) & unsettled or defined_in(own) & late:  # rule: launcher-settled
            others += own
            late |= read_in(own) | defined_in(own)
            unsettled |= defined_in(own)
        else:
            settled += own
            unsettled -= defined_in(own)
    return settled, others


def read_in(lines: Sequence[str]) -> set[str]:
    return _names_in(lines, ast.Load)


def defined_in(lines: Sequence[str]) -> set[str]:
    return _names_in(lines, ast.Store)


def _names_in(lines: Sequence[str], context: type[ast.expr_context]) -> set[str]:
    nodes = ast.walk(ast.parse("\n".join(lines)))
    return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, context)}
