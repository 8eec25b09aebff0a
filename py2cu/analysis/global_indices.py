"""Recognises a thread's index in the grid: `blockIdx.a * blockDim.a + threadIdx.a`.

    i = blockIdx.x * blockDim.x + threadIdx.x        i is the global index of axis x
    start = blockIdx.y * 16
    r = threadIdx.y + start                          with `block=(…, 16)`, r is the global index of axis y

In: a typed kernel. Out: `GlobalIndices`, which names the axis of an expression.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

from py2cu import ir
from py2cu.ir.substitution import substitute
from py2cu.ir.visit import assigned_names, names_in

AXES = "xyz"


@dataclass(frozen=True, slots=True)
class GlobalIndices:
    """A thread's index in the grid: `blockIdx.a * blockDim.a + threadIdx.a`, in any order of terms and factors.

    A term may be a local that is assigned once; the block's extent may be the constant that `block` states.
    """

    values: dict[str, ir.Expr]  # of locals assigned once at the top level, or incremented right after
    block: tuple[ir.Expr, ...]

    @property
    def names(self) -> dict[str, str]:
        """The locals that hold a global index, with its axis."""
        return {name: axis for name, value in self.values.items() if (axis := self.axis(value))}

    def axis(self, expr: ir.Expr | None) -> str | None:
        """The axis whose global index `expr` is; None for any other expression."""
        match expr and self.resolve(expr):
            case ir.Binary(op="+", left=left, right=right):
                return self._axis(left, right) or self._axis(right, left)
            case _:
                return None

    def resolve(self, expr: ir.Expr) -> ir.Expr:
        """The value of `expr`; locals are replaced by what they are assigned."""
        while isinstance(expr, ir.Name) and expr.id in self.values:  # rule: guard-by-name
            expr = self.values[expr.id]
        return expr

    def _axis(self, thread: ir.Expr, start: ir.Expr) -> str | None:
        match self.resolve(thread), self.resolve(start):
            case ir.LaunchIndex(object="threadIdx", axis=axis), ir.Binary(op="*", left=left, right=right):
                extents = (ir.LaunchIndex("blockDim", axis), *self.block[AXES.index(axis) :][:1])  # rule: block-extent
                factors = self.resolve(left), self.resolve(right)
                for place, extent in (factors, reversed(factors)):
                    if place == ir.LaunchIndex("blockIdx", axis) and extent in extents:
                        return axis
        return None


def find_global_indices(kernel: ir.Kernel) -> GlobalIndices:
    """The global indices that a block kernel computes itself or through a device function."""
    returned = {function.key: _returned_expression(function.body) for function in kernel.functions}
    # A parameter counts as an assignment: one that the kernel assigns has two values.
    assigned = Counter([*assigned_names(kernel.body), *(p.name for p in kernel.parameters)])
    values: dict[str, ir.Expr] = {}
    for before, stmt in pairwise((None, *kernel.body)):
        if not isinstance(stmt, ir.Assign):
            continue
        value = returned[stmt.value.function] if isinstance(stmt.value, ir.DeviceCall) else stmt.value  # rule: returned
        if assigned[stmt.name] == 1 and value and (value is stmt.value or not names_in(value)):
            values[stmt.name] = value
        # rule: guard-augmented
        elif stmt.augmented and assigned[stmt.name] == 2 and isinstance(before, ir.Assign) and before.name == stmt.name:
            values[stmt.name] = substitute(stmt.value, {stmt.name: before.value})
    return GlobalIndices(values, kernel.block)


def _returned_expression(body: ir.Block) -> ir.Expr | None:
    """The returned expression of a function that consists of one `return`; else None."""
    match [stmt for stmt in body if not isinstance(stmt, ir.Comment)]:
        case [ir.Return(value=value)]:
            return value
        case _:
            return None
