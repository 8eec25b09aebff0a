"""Refuses a power of integers whose exponent may be negative: its type in Python depends on the exponent's value.

    for k in range(8):
        s += 2 ** k      # `k` is 0 to 7: an integer
    s += 2 ** (k - 9)    # P307

The sign of an exponent follows from its range: indices, extents and unsigned elements are not negative.
"""

from __future__ import annotations

from collections.abc import Iterator

from py2cu import ir
from py2cu.analysis.argument_ranges import functions_with_ranges
from py2cu.analysis.call_graph import reachable_functions
from py2cu.analysis.ranges import Ranges
from py2cu.diagnostics import Reporter
from py2cu.dtypes import Kind
from py2cu.ir.rewrite import with_fields
from py2cu.ir.visit import all_expressions


def check_powers(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """Report powers whose exponent may be negative; the kernel is unchanged."""
    functions = reachable_functions(kernel)
    if not any(True for caller in (kernel, *functions) for _ in _powers(caller)):
        return kernel
    functions = functions_with_ranges(with_fields(kernel, functions=functions))
    for caller in (kernel, *functions):
        ranges = Ranges(with_fields(caller, functions=functions))
        for power in _powers(caller):
            exponent = ir.unconverted(power.right)
            if not ranges.of(exponent).is_natural:  # rule: power-exponent
                local = reporter.within(caller.origin)
                base, bounded = local.file.quote(power.left.span), f"max({local.file.quote(exponent.span)}, 0)"
                local.error(
                    "P307", "a whole number to a power that may be negative is a float in Python", exponent.span,
                    f"bound the exponent: `{bounded}`; or make the base a float: `float({base})`",
                )  # fmt: skip
    return kernel


def _powers(kernel: ir.Kernel) -> Iterator[ir.Binary[ir.Expr]]:
    """The powers of integers whose exponent is not a constant; typing has checked constant exponents."""
    for expr in all_expressions(kernel.body):
        match expr:
            case ir.Binary(op="**", right=right, type=ir.ElementType() | ir.PythonType() as type_):
                if ir.kind_of(type_) < Kind.FLOAT and not isinstance(right, ir.Constant):
                    yield expr
