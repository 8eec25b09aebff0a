"""Emits bounds as C++ conditions, which the launcher tests before it chooses a type or a grid."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Set
from typing import Final

from py2cu import ir
from py2cu.targets.cxx.includes import MATH

_MAGNITUDE: Final = "std::fabs"  # of a number that may be negative, as a double
_MOST_THREADS: Final = "1e18"  # so far below 2^63 that rounding to a double hides no larger number


def overflows(kernel: ir.Kernel) -> tuple[str, ...]:
    """The conditions under which 64 bits may not hold the number of threads: `1.0 * n * n > 1e18`.

    A product that is no greater than some array's size needs no condition.
    """
    texts = (bound_text(bound, kernel) for bound in kernel.size_bounds)
    return tuple(f"{text} > {_MOST_THREADS}" for text, fits_int64 in texts if not fits_int64)  # rule: grid-threads


def bound_text(bound: ir.IndexBound, kernel: ir.Kernel) -> tuple[str, bool]:
    """A bound in C++, and whether int64_t holds it.

    Products that no array's size bounds, and integer arguments, are computed as doubles, which do not overflow.
    """
    naturals, strides = _naturals(kernel), {stride.name for stride in kernel.strides}
    terms, fits_int64 = [], True
    for names, factor in sorted(bound.terms, key=lambda term: not term[0]):  # the constant last
        ordered = sorted(names, key=lambda name: (not _may_be_negative(name, naturals), name in strides))
        factors = [_symbol(name, kernel, naturals) for name in ordered] or ["1"]
        if names and all(name in kernel.constexprs for name in names):
            factors[0] = f"int64_t({factors[0]})"
        is_grid = len(names) == 2 and all(name.startswith(("grid", "block")) for name in names)
        if len(names) == 1 and names[0].startswith(("gridDim", "blockDim")):
            factors = [f"int64_t({factors[0]})"]
        elif is_grid:
            factors = [f"int64_t({factors[1]})", factors[0]]
        elif ordered and _may_be_negative(ordered[0], naturals):
            fits_int64 = False
        elif len(names) > 1 and not any(Counter(names) <= size for size in kernel.sizes):
            factors.insert(0, "1.0")
            fits_int64 = False
        if factor != 1:
            factors = [str(factor), *(name for name in factors if name != "1")]
        terms.append(" * ".join(factors))
    return " + ".join(terms), fits_int64


def _symbol(name: str, kernel: ir.Kernel, naturals: Set[str]) -> str:
    match name.partition("."):
        case ("gridDim", _, axis):
            return f"grid.{axis}"
        case ("blockDim", _, axis):
            return f"block.{axis}"
    parameter = kernel.parameter(name)
    value = ".value_or(0)" if parameter is not None and parameter.may_be_none else ""
    return kernel.c_name(name) if name in naturals else f"{_MAGNITUDE}({kernel.c_name(name)}{value})"  # rule: bound-abs


def _naturals(kernel: ir.Kernel) -> Set[str]:
    return kernel.naturals | kernel.constexprs.keys()


def _may_be_negative(name: str, naturals: Set[str]) -> bool:
    """True for an integer argument that is not itself an extent; launch values have a dot in their names."""
    return "." not in name and name not in naturals


def bound_headers(bounds: Iterable[ir.IndexBound], kernel: ir.Kernel) -> frozenset[str]:
    """The headers that the texts of `bounds` need."""
    naturals = _naturals(kernel)
    names = {name for bound in bounds for factors, _ in bound.terms for name in factors}
    return frozenset({MATH} if any(_may_be_negative(name, naturals) for name in names) else ())
