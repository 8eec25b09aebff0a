"""What may reach the targets, as rules; a kernel that breaks one shows a bug of ours, not of the user."""

from __future__ import annotations

from py2cu.diagnostics import InternalError
from py2cu.ir.extents import Binary
from py2cu.ir.kernel import Kernel
from py2cu.ir.nodes import Atomic, Extent, Item, Load
from py2cu.ir.statements import Assign, Evaluate, For, Store, While
from py2cu.ir.types import UNKNOWN
from py2cu.ir.visit import all_expressions, statements


def verify(kernel: Kernel) -> None:
    """Check a kernel after all passes.

    Raises:
        InternalError: an untyped node, an unresolved extent, an operator that C lacks, an access of several indices.
    """
    results_unused = [stmt.call for stmt in statements(kernel.body) if isinstance(stmt, Evaluate)]
    for node in all_expressions(kernel.body):
        if node.type is UNKNOWN and node not in results_unused:
            raise InternalError(f"{type(node).__name__} has no type", node.span)
        if isinstance(node, Extent):
            raise InternalError("an extent was not resolved", node.span)
        if isinstance(node, Item) and not node.field:
            raise InternalError("an item of a tuple has no field", node.span)
        if isinstance(node, Binary) and node.op in ("//", "**"):
            raise InternalError(f"`{node.op}` was not lowered", node.span)
        if isinstance(node, Load | Atomic) and len(node.indices) != 1 and not kernel.has_rank(node.array):
            raise InternalError("an access was not flattened", node.span)
    names = {name for name, _ in kernel.locals} | {p.name for p in kernel.parameters}
    for stmt in statements(kernel.body):
        if isinstance(stmt, Store) and len(stmt.indices) != 1 and not kernel.has_rank(stmt.array):
            raise InternalError("a store was not flattened", stmt.span)
        if isinstance(stmt, For | While) and stmt.orelse:
            raise InternalError("the `else` of a loop was not lowered", stmt.span)
        if isinstance(stmt, Assign) and stmt.name not in names:
            raise InternalError(f"`{stmt.name}` has no declaration", stmt.span)
