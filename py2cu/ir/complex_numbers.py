"""Complex numbers in the IR: pairs of real numbers.

    2.0 * z[i]       →        complex64(2.0f, 0.0f) * z[i]
    x[i] + 1j        →        complex64(x[i], 0.0f) + complex64(0.0f, 1.0f)

A complex number that is constructed from its parts is a call of `builtins.complex`, whatever its type; a literal is
such a call with constants. Nothing else makes a real number complex; `.real`, `.imag` and `abs` make it real again.
"""

from __future__ import annotations

from typing import Final, TypeGuard

from py2cu.ir.expressions import Call, Expr
from py2cu.ir.types import PY_FLOAT, Constant, ScalarType, part_of
from py2cu.source import Span

COMPLEX: Final = "builtins.complex"
REAL: Final = "complex.real"
IMAG: Final = "complex.imag"
CONJUGATE: Final = "complex.conjugate"


def literal(value: complex, span: Span) -> Call:
    """The Python number `value`."""
    parts = tuple(Constant(part, span, PY_FLOAT) for part in (value.real, value.imag))
    return Call(COMPLEX, parts, span)


def is_complex_constructor(expr: Expr) -> TypeGuard[Call]:
    """True for the construction of a complex number from its parts."""
    return isinstance(expr, Call) and expr.function == COMPLEX


def is_literal(expr: Expr) -> TypeGuard[Call]:
    """True for a complex number whose parts are constants."""
    return is_complex_constructor(expr) and all(isinstance(part, Constant) for part in expr.args)


def of_real(part: Expr, type_: ScalarType) -> Call:
    """The complex number of `type_` whose real part is `part` and whose imaginary part is zero."""
    return Call(COMPLEX, (part, Constant(0.0, part.span, part_of(type_))), part.span, type_)
