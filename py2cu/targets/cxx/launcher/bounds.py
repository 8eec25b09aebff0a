"""Emits bounds as C++ conditions, which the launcher tests before it chooses a type or a grid."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from py2cu import ir
from py2cu.analysis.launches import bound_of, is_launch_name
from py2cu.analysis.launches import overflows as overflows_of
from py2cu.ir.abi.launch import Bound, Term
from py2cu.targets.cxx.includes import MATH

_MAGNITUDE: Final = "std::fabs"  # of a number that may be negative, as a double
_MOST_THREADS: Final = "1e18"


def overflows(kernel: ir.Kernel) -> tuple[str, ...]:
    """The conditions under which 64 bits may not hold the number of threads: `1.0 * n * n > 1e18`."""
    return tuple(f"{bound_text(bound, kernel)} > {_MOST_THREADS}" for bound in overflows_of(kernel))


def fits(kernel: ir.Kernel) -> str:
    """The launcher's condition for 32-bit indices: `std::max({h * k, k * w}) <= INT32_MAX`."""
    bounds = [bound_of(bound, kernel) for bound in kernel.bounds]
    integers = [bound_text(bound, kernel) for bound in bounds if bound.fits_int64]
    parts = [f"std::max({{{', '.join(integers)}}})"] if len(integers) > 1 else integers
    parts += [bound_text(bound, kernel) for bound in bounds if not bound.fits_int64]
    return " && ".join(f"{part} <= INT32_MAX" for part in parts)


def headers_of_bounds(kernel: ir.Kernel, *, with_fits: bool) -> frozenset[str]:
    """The headers that the texts above need."""
    bounds = [bound_of(bound, kernel) for bound in (*(kernel.bounds if with_fits else ()), *kernel.size_bounds)]
    needs_max = sum(bound.fits_int64 for bound in bounds[: len(kernel.bounds)]) > 1 and with_fits
    return _math(bounds) | (frozenset({"algorithm"}) if needs_max else frozenset())


def _math(bounds: Iterable[Bound]) -> frozenset[str]:
    return frozenset({MATH} if any(term.signed for bound in bounds for term in bound.terms) else ())


def bound_text(bound: Bound, kernel: ir.Kernel) -> str:
    """A bound in C++."""
    return " + ".join(_term_text(term, kernel) for term in bound.terms)


def _term_text(term: Term, kernel: ir.Kernel) -> str:
    names = term.names
    factors = [_symbol(name, kernel, name in term.signed) for name in names] or ["1"]
    if names and all(name in kernel.constexprs for name in names):
        factors[0] = f"int64_t({factors[0]})"
    if len(names) <= 2 and names and all(map(is_launch_name, names)):  # of 32 bits
        *others, last = factors
        factors = [f"int64_t({last})", *others]
    elif term.in_double:
        factors.insert(0, "1.0")
    if term.scale != 1:
        factors = [str(term.scale), *(factor for factor in factors if factor != "1")]
    return " * ".join(factors)


def _symbol(name: str, kernel: ir.Kernel, is_signed: bool) -> str:
    match name.partition("."):
        case ("gridDim", _, axis):
            return f"grid.{axis}"
        case ("blockDim", _, axis):
            return f"block.{axis}"
    parameter = kernel.parameter(name)
    value = ".value_or(0)" if parameter is not None and parameter.may_be_none else ""
    return f"{_MAGNITUDE}({kernel.c_name(name)}{value})" if is_signed else kernel.c_name(name)  # rule: bound-abs
