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
        """`x4 = x.view(-1, 4)`: a parameter's elements in rows, each loaded and stored by one vector access."""
        span = self.extents.span_of(target)
        constant = self.extents.environment.constant
        match [constant(arg.value) for arg in call.args if arg.keyword is None and not arg.star]:
            case [-1, int(row)] if len(call.args) == 2 and row in ROWS:
                pass
            case _:
                what = f"`{base}` is viewed in rows of {_LISTED_ROWS} elements"
                self._refuse_rows(what, call, f"`{base}.view(-1, 4)`")
                row = ROWS[0]
        array = self.extents.arrays.get(base)
        if array is None or self.extents.is_device:
            own = f"`{base}` is an array of the kernel's own"
            what = "a device function makes no views" if self.extents.is_device else own
            self._refuse_rows(f"{what}: only parameters of kernels are viewed in rows", call, "index its elements")
        if array is None or len(array.dims) != 1:
            if array is not None:
                what = f"arrays of one dimension are viewed in rows, and `{base}` has {len(array.dims)}"
                self._refuse_rows(what, call, 'annotate it flat: `Float32[Tensor, "n"]`')
            array = ir.ArrayType(F32, (ir.Constant(row, span, ir.PY_INT),))
        type_ = replace(
            array, dims=(ir.as_extent(self._quotient(array.dims[0], row, call)), ir.Constant(row, span, ir.PY_INT))
        )
        return ir.ArrayDecl(target.value, type_, ir.Space.GLOBAL, like=base, span=span, base=base)

    def _quotient(self, extent: ir.Expr, row: int, call: cst.Call) -> ir.Expr:
        """The number of rows; refuses a constant extent that rows do not divide."""
        span = self.extents.span_of(call)
        match extent:
            case ir.Constant(value=int(size)):
                if size % row:
                    self._refuse_rows(f"rows of {row} do not divide {size} elements", call, "choose another extent")
                return ir.Constant(size // row, span, ir.PY_INT)
            case ir.Binary(op="*", left=ir.Constant(value=int(factor)), right=rest) if factor == row:
                return rest
            case ir.Binary(op="*", left=rest, right=ir.Constant(value=int(factor))) if factor == row:
                return rest
            case _:
                return ir.Binary("//", extent, ir.Constant(row, span, ir.PY_INT), span, ir.PY_INT)

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
