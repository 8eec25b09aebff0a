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

    A part may stand in a local that is assigned once, and the block's extent as `block` says it.
    """

    values: dict[str, ir.Expr]  # of locals that are assigned once, at the top level, or added to right there
    block: tuple[ir.Expr, ...]

    @property
    def names(self) -> dict[str, str]:
        """The locals that are one, with their axis."""
        return {name: axis for name, value in self.values.items() if (axis := self.axis(value))}

    def axis(self, expr: ir.Expr | None) -> str | None:
        """The axis of one."""
        match expr and self.part(expr):
            case ir.Binary(op="+", left=left, right=right):
                return self._axis(left, right) or self._axis(right, left)
            case _:
                return None

    def part(self, expr: ir.Expr) -> ir.Expr:
        """What a local stands for."""
        while isinstance(expr, ir.Name) and expr.id in self.values:
            expr = self.values[expr.id]
        return expr

    def _axis(self, thread: ir.Expr, start: ir.Expr) -> str | None:
        match self.part(thread), self.part(start):
            case ir.LaunchIndex(object="threadIdx", axis=axis), ir.Binary(op="*", left=left, right=right):
                extents = (ir.LaunchIndex("blockDim", axis), *self.block[AXES.index(axis) :][:1])
                factors = self.part(left), self.part(right)
                for place, extent in (factors, reversed(factors)):
                    if place == ir.LaunchIndex("blockIdx", axis) and extent in extents:
                        return axis
        return None


def find_global_indices(kernel: ir.Kernel) -> GlobalIndices:
    """Those of a block kernel, computed here or by a function. A parameter that is assigned has two values."""
    returned = {function.key: _returned(function.body) for function in kernel.functions}
    assigned = Counter([*assigned_names(kernel.body), *(p.name for p in kernel.parameters)])
    values: dict[str, ir.Expr] = {}
    for before, stmt in pairwise((None, *kernel.body)):
        if not isinstance(stmt, ir.Assign):
            continue
        value = returned[stmt.value.function] if isinstance(stmt.value, ir.DeviceCall) else stmt.value
        if assigned[stmt.name] == 1 and value and (value is stmt.value or not names_in(value)):
            values[stmt.name] = value
        elif stmt.augmented and assigned[stmt.name] == 2 and isinstance(before, ir.Assign) and before.name == stmt.name:
            values[stmt.name] = substitute(stmt.value, {stmt.name: before.value})
    return GlobalIndices(values, kernel.block)


def _returned(body: ir.Block) -> ir.Expr | None:
    """What a function returns that does nothing else."""
    match [stmt for stmt in body if not isinstance(stmt, ir.Comment)]:
        case [ir.Return(value=value)]:
            return value
        case _:
            return None
