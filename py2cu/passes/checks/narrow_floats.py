"""Reports computations in floats of fewer than 64 bits, in the copy of a kernel whose gradients are checked.

    y = np.float32(x[i]) * 2     # P413, also where `x` is widened to float64

Numerical derivatives need 64 bits. `widen_floats` widens annotations; a cast in the body keeps its type. `opmath(x[i])`
is float64 where `x` is.
"""

from __future__ import annotations

from py2cu import ir
from py2cu.diagnostics import Reporter
from py2cu.dtypes import DType, Kind
from py2cu.ir.visit import all_expressions, children


def check_narrow_floats(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """Report the first narrow float of the kernel; the kernel is unchanged."""
    narrow = filter(_is_narrow, all_expressions(kernel.body))
    if (expr := next((each for each in narrow if not any(map(_is_narrow, children(each)))), None)) is not None:
        what = f"`{reporter.file.quote(expr.span)}` is computed in {expr.type}, and gradients are checked in float64"
        reporter.error(
            "P413", what, expr.span, "`opmath(…)` widens halves alone, `x.dtype(…)` casts to the dtype of `x`"
        )
    return kernel


def _is_narrow(expr: ir.Expr) -> bool:
    return isinstance(expr.type, ir.ElementType) and is_narrow(expr.type.dtype)


def is_narrow(dtype: DType) -> bool:
    """Whether it is a float, or a complex number with parts, of fewer than 64 bits."""
    return dtype.kind in (Kind.FLOAT, Kind.COMPLEX) and dtype.part.bits < 64
