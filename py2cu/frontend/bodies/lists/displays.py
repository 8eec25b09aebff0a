"""Which expressions make a list: displays, comprehensions, `[0.0] * 4`, and calls of `list`."""

from __future__ import annotations

import libcst as cst

from py2cu.frontend.bodies.scope import Scope


def is_list(node: cst.BaseExpression) -> bool:
    """True for an expression that makes a list: a display, a comprehension, `[0.0] * 4`, and a choice of two."""
    match node:
        case cst.List() | cst.ListComp():
            return True
        case cst.BinaryOperation(left=left, operator=cst.Multiply(), right=right):
            return isinstance(left, cst.List) or isinstance(right, cst.List)
        case cst.IfExp(body=body, orelse=orelse):
            return is_list(body) and is_list(orelse)
        case _:
            return False


def is_list_call(node: cst.BaseExpression, scope: Scope) -> bool:
    """True for `list(…)` of one argument, which makes a list of its items."""
    match node:
        case cst.Call(func=cst.Name() as func, args=[cst.Arg(keyword=None, star="")]):
            return not scope.is_local(func) and scope.environment.qualify(func) == "builtins.list"
        case _:
            return False
