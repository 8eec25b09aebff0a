"""Turns conversions to a complex type into constructor calls with real parts of the right type.

    z[i] * x[i]                     →        z[i] * complex64(x[i], 0.0f)
    z[i] + complex(a, b)            →        z[i] + complex64(float(a), float(b))

Earlier passes keep such a number as a `Convert`, since its original type decides what `or` tests and what it may join.
"""

from __future__ import annotations

from py2cu import ir
from py2cu.diagnostics import Reporter
from py2cu.ir.complex_numbers import is_complex_constructor, of_real
from py2cu.ir.rewrite import rebuild_block, with_fields
from py2cu.passes.typing.join import converted


def make_complex(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """The kernel in which only complex values are converted to complex types."""
    return with_fields(kernel, body=rebuild_block(kernel.body, _make))


def _make(expr: ir.Expr) -> ir.Expr:
    match expr:
        case ir.Convert(value=value, type=ir.ElementType() | ir.PythonType() as type_) if ir.is_complex(type_):
            part = ir.part_of(type_)
            if is_complex_constructor(value):
                return with_fields(value, args=tuple(converted(arg, part) for arg in value.args), type=type_)
            return expr if ir.is_complex(value.type) else of_real(converted(value, part), type_)
        case _:
            return expr
