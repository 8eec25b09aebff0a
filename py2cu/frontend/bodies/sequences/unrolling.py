"""`unroll(range(n), 4)` in the head of a loop or a generator: what Python loops over, and how the loop is unrolled."""

from __future__ import annotations

from typing import Final

import libcst as cst

from py2cu.builtins.marks import UNROLL
from py2cu.frontend.bodies.scope import Scope
from py2cu.frontend.names.syntax import source_text

MAX_UNROLL: Final = 65534  # GCC's limit


def is_unroll(node: cst.Call, scope: Scope) -> bool:
    """True for a call of `unroll`."""
    return scope.environment.qualify(node.func) == UNROLL


def read_unroll(node: cst.BaseExpression, scope: Scope) -> tuple[cst.BaseExpression, int | None]:
    """The argument of `unroll` and the factor; `node` itself and None for any other expression."""
    if not isinstance(node, cst.Call) or not is_unroll(node, scope):
        return node, None
    rounds = source_text(node.args[0].value) if node.args else "range(n)"
    hint = f"`unroll({rounds}, 4)`, or `unroll({rounds})` for all rounds"
    match node.args:
        case [cst.Arg(value=counts, keyword=None, star="")]:
            return counts, 0
        case [cst.Arg(value=counts, keyword=None, star=""), cst.Arg(value=factor, keyword=None, star="")]:
            number = scope.environment.constant(factor)
            if type(number) is int and 1 <= number <= MAX_UNROLL:  # rule: unroll-number
                return counts, number  # rule: unroll-count
            scope.error("P104", f"a loop is unrolled by a constant from 1 to {MAX_UNROLL}", factor, hint)
            return counts, None
        case _:
            scope.error("P104", "`unroll` takes a `range`, and by how much to unroll", node, hint)
            return (node.args[0].value if node.args else node), None
