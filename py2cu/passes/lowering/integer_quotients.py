"""Replaces rounded float quotients of integers by integer division, as one writes it in C.

math.ceil(k / tw)       ceil_div(k, tw)
int(i / 4)              i // 4
"""

from __future__ import annotations

from py2cu import ir
from py2cu.analysis.integer_quotients import integer_quotient, rounded_quotient
from py2cu.analysis.ranges import Ranges
from py2cu.diagnostics import Reporter
from py2cu.ir.rewrite import rebuild_block, with_fields
from py2cu.ir.visit import all_expressions


def divide_integers(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """The kernel with such quotients computed in integers."""
    if not any(rounded_quotient(expr) for expr in all_expressions(kernel.body)):
        return kernel
    ranges = Ranges(kernel)

    def divide(expr: ir.Expr) -> ir.Expr:
        return integer_quotient(expr, ranges) or expr

    return with_fields(kernel, body=rebuild_block(kernel.body, divide))
