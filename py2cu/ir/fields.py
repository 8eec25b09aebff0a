"""The fields of nodes that hold expressions or blocks: `visit` walks and `rewrite` rebuilds along these two tables.

A new node enters its row here; `tests/unit/ir/test_fields.py` compares the rows with the annotations of the classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from py2cu.ir import expressions, statements, types

OPERANDS: Final[Mapping[type, tuple[str, ...]]] = {
    expressions.Unary: ("operand",),
    types.Binary: ("left", "right"),
    expressions.Compare: ("left", "right"),
    expressions.BoolOp: ("left", "right"),
    expressions.Select: ("test", "then", "orelse"),
    expressions.Call: ("*args",),
    expressions.DeviceCall: ("*args",),
    expressions.Load: ("*indices",),
    expressions.Atomic: ("*indices", "*values"),
    expressions.Convert: ("value",),
    expressions.Tuple: ("*items",),
    expressions.TupleItem: ("value",),
    statements.Assign: ("value",),
    statements.StructuredBinding: ("value",),
    statements.Alloc: ("start", "*values"),
    statements.Store: ("*indices", "value"),
    statements.If: ("test",),
    statements.For: ("start", "stop", "step"),
    statements.While: ("test",),
    statements.EachPack: ("extent", "*loads", "element", "*stores"),
    statements.Return: ("value",),
    statements.ExprStmt: ("call",),
    statements.Sync: ("*args",),
    statements.Print: ("*values",),
    statements.Assert: ("test", "*values"),
}
"""The operands of each node, in order; a `*` marks a tuple of expressions. A field that stands alone may be None.

Nodes without a row have no operands.
"""

BLOCKS: Final[Mapping[type, tuple[str, ...]]] = {
    statements.If: ("body", "orelse"),
    statements.For: ("body", "orelse"),
    statements.While: ("body", "orelse", "start", "advance"),
    statements.EachThread: ("body",),
}
"""The blocks nested in each statement that has any."""
