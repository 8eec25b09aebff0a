"""Functions of two tuples, such as `math.dist`: what the row makes of each place, and of two of these.

math.dist((a, b, c), (d, e, f))    →    hypot(hypot(a - d, b - e), c - f)
"""

from __future__ import annotations

from functools import reduce

import libcst as cst

from py2cu import ir
from py2cu.builtins.formulas import Fold
from py2cu.frontend.bodies.formulas import expand
from py2cu.frontend.bodies.scope import Scope
from py2cu.frontend.bodies.sequences.to_tuple import ItemReader
from py2cu.frontend.bodies.tables import Read
from py2cu.frontend.names.syntax import source_text


def read_fold(node: cst.Call, row: Fold, scope: Scope, read: Read) -> ir.Expr:
    """The value of a call of the function `row`; a constant after a diagnostic."""
    span, function = scope.span_of(node), source_text(node.func)
    nothing = ir.Constant(0, span)
    if len(node.args) != 2 or any(arg.keyword or arg.star for arg in node.args):
        scope.error("P105", f"`{function}` takes two tuples", node, f"`{function}((a, b), (c, d))`")
        return nothing
    errors = len(scope.reporter.diagnostics)
    who, hint = f"`{function}`", f"pass tuples: `{function}((a, b), (c, d))`"
    first = ItemReader(scope, read, who, hint)
    first.read_all(node.args[0].value)
    second = ItemReader(scope, read, who, hint)
    second.read_all(node.args[1].value)
    if len(scope.reporter.diagnostics) > errors:
        return nothing
    items, others = first.items, second.items
    if len(items) != len(others) or not items or any(isinstance(each, ir.Tuple) for each in (*items, *others)):
        what = f"`{function}` takes two tuples of as many numbers, not of {len(items)} and {len(others)}"
        scope.error("P105", what, node, "pass as many numbers in both")
        return nothing
    values = [expand(row.each, {"a": a, "b": b}, span) for a, b in zip(items, others, strict=True)]
    behind = values[1:] or [ir.Constant(0.0, span)]
    return reduce(lambda a, b: expand(row.both, {"a": a, "b": b}, span), behind, values[0])
