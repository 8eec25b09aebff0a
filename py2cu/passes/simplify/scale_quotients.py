"""Computes quotients of integers by powers of two in float32, where they are rounded to float32.

    float32((bits >> 8) / 2**24)        →        float32(bits >> 8) * 0x1p-24

Python divides in doubles, which a GPU does slowly. The double quotient of an integer within 53 bits is exact; it has
the digits of the integer, so both round alike.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Final

from py2cu import ir
from py2cu.analysis.natural_bounds import NaturalBounds
from py2cu.analysis.ranges import Ranges
from py2cu.diagnostics import Reporter
from py2cu.dtypes import F32
from py2cu.ir.rewrite import rebuild_block, with_fields
from py2cu.ir.visit import all_expressions

_EXACT: Final = 2**53  # doubles hold the integers up to here


def scale_quotients(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """The kernel and its device functions with such quotients as products."""
    callers = (kernel, *kernel.functions)
    if not any(_parts(expr) for caller in callers for expr in all_expressions(caller.body)):
        return kernel
    naturals = NaturalBounds(kernel)
    first, *functions = (
        with_fields(caller, body=rebuild_block(caller.body, _Scaling(caller, naturals).expression))
        for caller in callers
    )
    return with_fields(first, functions=tuple(functions))


class _Scaling:
    def __init__(self, kernel: ir.Kernel, naturals: NaturalBounds) -> None:
        self._kernel = kernel
        self._naturals = naturals

    @cached_property
    def ranges(self) -> Ranges:
        """Computed only for quotients of integers that may be negative."""
        return Ranges(self._kernel)

    def expression(self, expr: ir.Expr) -> ir.Expr:
        if (parts := _parts(expr)) is None or not self.is_exact(parts[0]):  # rule: scale-exact
            return expr
        whole, power = parts
        factor = ir.Constant(2.0**-power, expr.span, expr.type)
        return ir.Binary("*", ir.Convert(whole, expr.type, whole.span), factor, expr.span, expr.type)

    def is_exact(self, whole: ir.Expr) -> bool:
        most = self._naturals.of(whole)
        if isinstance(most, int):
            return most <= _EXACT
        values = self.ranges.of(whole)
        return values.low >= -_EXACT and values.high <= _EXACT


def _parts(expr: ir.Expr) -> tuple[ir.Expr, int] | None:
    """The integer and the exponent of a quotient by a power of two that is rounded to float32."""
    match expr:
        case ir.Convert(
            value=ir.Binary(op="/", left=ir.Convert(value=whole), right=divisor), type=ir.ElementType(dtype=dtype)
        ) if dtype is F32 and whole.type == ir.PY_INT and (power := _exponent(ir.unconverted(divisor))):
            return whole, power
        case _:
            return None


def _exponent(number: ir.Expr) -> int:
    """Of a power of two without a name in the module, whose inverse is a normal float32; 0 of anything else."""
    if not isinstance(number, ir.Constant) or number.named is not None or not 2 <= number.value <= 2.0**126:
        return 0
    fraction, exponent = math.frexp(number.value)
    return exponent - 1 if fraction == 0.5 else 0  # rule: scale-power
