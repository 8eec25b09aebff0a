"""Views of arrays: `ms = buf[:n]` of shared memory, `x4 = x.view(-1, 4)` of a parameter in rows.

In: the array, and the slice or the call. Out: an `ArrayDecl` with its `base`, and for a slice the start in the base. A
wrong view is reported and replaced by one that is harmless to read on with.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import libcst as cst

from py2cu import ir
from py2cu.dtypes import F32
from py2cu.frontend.declarations.array_extents import ExtentReader
from py2cu.frontend.names.syntax import source_text
from py2cu.ir.extents import folded

ROWS: Final = (2, 4, 8, 16)  # how many elements a row of a view may have
_LISTED_ROWS: Final = "2, 4, 8 or 16"


@dataclass(frozen=True, slots=True)
class ViewReader:
    """Reads the views in one function."""

    extents: ExtentReader

    def read_slice(self, base: ir.ArrayDecl, bounds: cst.Slice, target: cst.Name) -> tuple[ir.ArrayDecl, ir.Expr]:
        """`ms = buf[:n]`: the view, and the index in `buf` at which it starts."""
        span = self.extents.span_of(target)
        start, stop = self._read_bounds(base, bounds)
        length = stop or base.type.dims[0]
        if start is not None:
            length = ir.Binary("-", length, start, span)
        type_ = ir.ArrayType(base.type.dtype, (ir.as_extent(length),))
        view = ir.ArrayDecl(target.value, type_, ir.Space.SHARED, like=base.like, span=span, base=base.name)
        return view, start or ir.Constant(0, span)

    def read_rows(self, base: str, call: cst.Call, target: cst.Name) -> ir.ArrayDecl:
        """`x4 = x.view(h, -1, 4)`: a parameter's elements in rows, each loaded and stored by one vector access."""
        span, extents = self.extents.span_of(target), self.extents
        array = extents.arrays.get(base)
        kept = "".join(f"{base}.shape[{axis}], " for axis in range(len(array.dims) - 1)) if array is not None else ""
        hint = f"`{base}.view({kept}-1, 4)`"
        places = [arg.value for arg in call.args if arg.keyword is None and not arg.star]
        is_plain = len(places) == len(call.args) > 1 and extents.environment.constant(places[-2]) == -1
        row = self._row(places[-1]) if is_plain else None
        if row is None:
            if (
                array is not None
                and not extents.is_device
                and places
                and extents.environment.constant(places[-1]) is None
            ):
                hint = f"`W = 16 // {base}.itemsize`, `{base}.view({kept}-1, W)`; or {hint}"
            self._refuse_rows(f"`{base}` is viewed in rows of {_LISTED_ROWS} elements", call, hint)
        if array is None or extents.is_device:
            own = f"`{base}` is an array of the kernel's own"
            what = "a device function makes no views" if extents.is_device else own
            self._refuse_rows(f"{what}: only parameters of kernels are viewed in rows", call, "index its elements")
        elif row is not None and not self._keeps_leading(array, places[:-2]):
            what = f"a view in rows divides the last dimension of `{base}`, and keeps all others"
            hint = f"`{base}.view({kept}-1, {source_text(places[-1])})`"
            self._refuse_rows(what, call, "index its elements" if array.leading else hint)
        row = row or ir.Constant(ROWS[0], span, ir.PY_INT)
        if array is None or not array.dims:
            array = ir.ArrayType(F32, (row,))
        *leading, last = array.dims
        type_ = replace(array, dims=(*leading, ir.as_extent(self._quotient(last, row, call)), row))
        return ir.ArrayDecl(target.value, type_, ir.Space.GLOBAL, like=base, span=span, base=base)

    def _row(self, node: cst.BaseExpression) -> ir.DimExpr | None:
        """The length of a row: a constant, or the name of a local `16 // x.itemsize`."""
        constant, span = self.extents.environment.constant(node), self.extents.span_of(node)
        if isinstance(node, cst.Name) and node.value in self.extents.row_lengths:
            return ir.Name(node.value, span, ir.PY_INT)
        return ir.Constant(constant, span, ir.PY_INT) if isinstance(constant, int) and constant in ROWS else None

    def _keeps_leading(self, array: ir.ArrayType, places: list[cst.BaseExpression]) -> bool:
        """Whether `places` are all extents of the array but the last."""
        read = [self.extents.read(place, ir.Space.SHARED) for place in places]
        same = list(map(_plain, read)) == list(map(_plain, array.dims[:-1]))  # rule: view-leading
        return same and bool(array.dims) and not (array.leading and places)

    def _quotient(self, extent: ir.Expr, row: ir.DimExpr, call: cst.Call) -> ir.Expr:
        """The number of rows; refuses a constant extent that rows do not divide."""
        match extent, row:
            case ir.Constant(value=int(size)), ir.Constant(value=int(length)) if size % length:
                self._refuse_rows(f"rows of {length} do not divide {size} elements", call, "choose another extent")
            case (
                ir.Binary(op="*", left=ir.Constant(value=factor), right=rest)
                | ir.Binary(op="*", left=rest, right=ir.Constant(value=factor)),
                ir.Constant(value=length),
            ) if factor == length:
                return rest
        return folded("//", extent, row, self.extents.span_of(call))

    def _refuse_rows(self, message: str, call: cst.Call, hint: str) -> None:
        self.extents.error("P410", message, call, hint)

    def _read_bounds(self, base: ir.ArrayDecl, bounds: cst.Slice) -> tuple[ir.Expr | None, ir.Expr | None]:
        """The start and the stop of a view: None for an end of `base`, and after a diagnostic."""
        if len(base.type.dims) != 1:
            what = f"arrays of one dimension are sliced, and `{base.name}` has more"
            self.extents.error("P408", what, bounds, "index it")
            return None, None
        start, stop = (
            None if node is None else self.extents.read(node, ir.Space.SHARED, is_bound=True)
            for node in (bounds.lower, bounds.upper)
        )
        for node, end in ((bounds.lower, start), (bounds.upper, stop)):
            if (node is not None and end is None) or (isinstance(end, ir.Constant) and end.value < 0):
                hint = (
                    "use numbers, extents, integer parameters, locals that are assigned once, and expressions of them"
                )
                what = "a bound of a view must be known at the launch, and counts from the start of its array"
                self.extents.error("P408", what, node or bounds, hint)
                return None, None
        return start, stop


def _plain(extent: ir.Expr | None) -> ir.Expr | None:
    """`extent` as two that are written apart are compared."""
    return replace(extent, type=ir.PY_INT) if isinstance(extent, ir.Name) else extent
