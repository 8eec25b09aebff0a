"""Write an extent as a multiple of one dimension and a rest, so that an array of this extent determines the dimension.

2*n + 1        2 * n + 1
(n - 1)*k      k * n + (0 - k)
n // 2         None: several values of n give the same extent
"""

from __future__ import annotations

from py2cu import ir
from py2cu.ir.extents import folded
from py2cu.ir.visit import names_in


def linear(extent: ir.DimExpr, name: str) -> tuple[ir.DimExpr, ir.DimExpr] | None:
    """The factor and the rest in `extent = factor * name + rest`, neither of which contains `name`.

    None where there are none, or where the factor is never positive.
    """
    parts = _linear(extent, name)
    is_positive = parts is not None and not (isinstance(parts[0], ir.Constant) and parts[0].value <= 0)
    return parts if is_positive else None


def _linear(extent: ir.DimExpr, name: str) -> tuple[ir.DimExpr, ir.DimExpr] | None:
    match extent:
        case ir.Name(id=id_) if id_ == name:
            return ir.constant_extent(1), ir.constant_extent(0)
        case _ if name not in names_in(extent):
            return ir.constant_extent(0), extent
        case ir.Binary(op="+" | "-" as op, left=left, right=right):
            a, b = _linear(left, name), _linear(right, name)
            return None if a is None or b is None else (folded(op, a[0], b[0]), folded(op, a[1], b[1]))
        case ir.Binary(op="*", left=left, right=right) if name not in names_in(left) or name not in names_in(right):
            scale, inner = (right, left) if name in names_in(left) else (left, right)  # rule: extent-scale
            parts = _linear(inner, name)
            return None if parts is None else (folded("*", scale, parts[0]), folded("*", scale, parts[1]))
        case _:
            return None
