"""Refuses kernels that need neighbours in memory of an array that may have any strides.

@kernel(strided=True) … x: Float32[Tensor, "... n"]     P304: `...` are flattened into one index
@kernel(strided="x") … x4 = x.view(-1, 4)               P410: a row is loaded at once
"""

from __future__ import annotations

from py2cu import ir
from py2cu.diagnostics import Reporter


def check_layouts(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """Report leading dimensions and views in rows of strided arrays; the kernel is unchanged."""
    for array in kernel.arrays:
        leading = array.type.leading if isinstance(array.type, ir.ArrayType) else ""
        if leading and array.name in kernel.strided:  # rule: leading-strided
            what = f"`{leading}` of `{array.name}` are flattened, which `strided` does not allow"
            hint = f"name every dimension, or leave `{array.name}` out of `strided`"
            reporter.error("P304", what, array.span, hint)
    for view in kernel.array_decls:
        if view.vector_width and kernel.base_array(view.name) in kernel.strided:  # rule: strides-of-view
            what = f"a row of `{view.name}` is loaded at once, and elements of a strided array lie apart"
            hint = f"index the elements of `{view.base}`, or leave `{view.base}` out of `strided`"
            reporter.error("P410", what, view.span, hint)
    return kernel
