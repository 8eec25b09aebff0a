"""Mathematical functions, one row each: `math`'s, and those of NumPy and torch that are the same.

`expf` for float32, `exp` for float64 and Python floats. `math.floor` and its like return Python integers, NumPy's
and torch's keep the type of their argument.
"""

from __future__ import annotations

import math
from typing import Any, Final

from py2cu.builtins.registry import ARGUMENT, EXACT, LOOSE, RESULT, Bound, Builtin, Rule
from py2cu.dtypes import C64, C128

# What NumPy and torch call a function of `math` besides its own name, and what they lack.
_SYNONYMS: Final = {
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2", "asinh": "arcsinh", "acosh": "arccosh",
    "atanh": "arctanh",
}  # fmt: skip
_ELSEWHERE: Final = {
    "tanh": ("torch.nn.functional.tanh",),
    "fma": ("py2cu.fma", "numba.cuda.fma"),  # Python's is new in 3.13
    "cbrt": ("numba.cuda.cbrt",),
    **{name: (f"torch.special.{name}",) for name in ("exp2", "expm1", "log1p", "erf", "erfc")},
}
_NOT_IN_NUMPY: Final = {"erf", "erfc", "gamma", "lgamma", "fma", "remainder", "fmod", "pow"}
_NOT_IN_TORCH: Final = {"cbrt", "fabs", "gamma", "fma", "remainder", "fmod", "pow"}


def _names(name: str) -> tuple[str, ...]:
    """The qualified names of `math.name`, its own first."""
    synonyms = [name, _SYNONYMS[name]] if name in _SYNONYMS else [name]
    libraries = [("numpy", _NOT_IN_NUMPY), ("torch", _NOT_IN_TORCH)]
    return (
        f"math.{name}",
        *(f"{lib}.{n}" for lib, lacks in libraries if name not in lacks for n in synonyms),
        *_ELSEWHERE.get(name, ()),
    )


def _row(name: str, c: str | None = None, arity: int = 1, **fields: Any) -> Builtin:
    c = c or name
    return Builtin(_names(name), Rule.FLOAT, (arity, arity), {"float": f"{c}f", "double": c}, **fields)  # rule: float32


def _analytic(name: str, **fields: Any) -> tuple[Builtin, ...]:
    """The rows of a function that also takes complex numbers: `math`'s for floats, NumPy's and torch's, and `cmath`'s.

    Tangents and inverse functions take floats only: CUDA's overflow for large complex numbers.
    """
    math_name, *others = _names(name)
    spelling = {"float": f"{name}f", "double": name}
    return (
        Builtin((math_name,), Rule.FLOAT, (1, 1), spelling, **fields),
        Builtin(tuple(others), Rule.ANALYTIC),
        Builtin((f"cmath.{name}",), Rule.COMPLEX, (1, 1), {C64.c: name, C128.c: name}),
    )


def _predicate(*names: str, reference: str = "") -> Builtin:
    c = names[0].rpartition(".")[2]
    return Builtin(names, Rule.PREDICATE, (1, 1), {"float": c, "double": c}, reference=reference)


def _integral(name: str) -> Builtin:
    spelling = {"float": f"{name}f", "double": name}
    return Builtin((f"math.{name}",), Rule.INTEGRAL, (1, 1), spelling, range=Bound.WHOLE)


def _rounded(c: str, reference: str, *names: str) -> Builtin:
    """A row of NumPy and torch; `reference` gives an integer."""
    qualified = tuple(f"{library}.{name}" for library in ("numpy", "torch") for name in names)
    return Builtin(qualified, Rule.ROUNDED, (1, 1), {"float": f"{c}f", "double": c}, reference=reference)


def _whole(name: str, arity: int = 1, *, folds: bool = True) -> Builtin:
    return Builtin((f"math.{name}",), Rule.WHOLE, (arity, arity), helper=name, folds=folds)


def _propagating(name: str, of_integers: str) -> Builtin:
    """The row of an extremum that is NaN if an operand is."""
    names, helper = (f"torch.{name}imum", f"numpy.{name}imum"), f"nan_{name}"
    return Builtin(names, Rule.SAME, (2, 2), helper=helper, of_integers=of_integers, reference=f"typed.{helper}(a, b)")


_NATURAL: Final = (0.0, math.inf)


ROWS: Final = (
    *_analytic("sqrt", range=_NATURAL, error=EXACT),
    _row("cbrt"),
    *_analytic("exp", range=_NATURAL),
    _row("exp2", range=_NATURAL),
    _row("expm1"),
    *_analytic("log"),
    _row("log2"),
    *_analytic("log10"),
    _row("log1p"),
    *_analytic("sin"),
    *_analytic("cos"),
    _row("tan"),
    _row("asin"),
    _row("acos"),
    _row("atan"),
    *_analytic("sinh"),
    *_analytic("cosh"),
    _row("tanh"),
    _row("asinh"),
    _row("acosh"),
    _row("atanh"),
    _row("atan2", arity=2),
    _row("hypot", arity=2, range=_NATURAL),
    _row("pow", arity=2, error=LOOSE, beyond="power_ieee(a, b)"),
    _row("fmod", arity=2, error=EXACT),
    _row("remainder", arity=2, error=EXACT, beyond="math.nan"),
    _row("copysign", arity=2, reference="typed.copy_sign(a, b)", error=EXACT),
    _row("nextafter", arity=2, reference="typed.next_after(a, b)"),
    _row("fma", arity=3, reference="fused_multiply_add(a, b, c)", beyond="a * b + c", error="abs(value)"),
    Builtin(
        ("math.ldexp", "numpy.ldexp"),
        Rule.SCALED,
        (2, 2),
        {"float": "ldexpf", "double": "ldexp"},
        reference="typed.load_exponent(a, b)",
    ),
    _row("fabs", range=_NATURAL, error=EXACT),
    _row("erf"),
    _row("erfc"),
    _row(
        "gamma",
        "tgamma",
        beyond="math.copysign(math.inf, a) if a >= 0 else math.nan",
        error=f"{LOOSE} if value == value else math.inf",  # large negative numbers are all poles: CUDA's is unspecified
    ),
    _row("lgamma", error="16 * (abs(value) + 1)"),
    _integral("floor"),
    _integral("ceil"),
    _integral("trunc"),
    _rounded("floor", "math.floor(a)", "floor"),
    _rounded("ceil", "math.ceil(a)", "ceil"),
    _rounded("trunc", "math.trunc(a)", "trunc", "fix"),
    _rounded("rint", "round(a)", "round"),
    Builtin(("numpy.rint",), Rule.ROUNDED, (1, 1), {"float": "rintf", "double": "rint"}, reference="round(a)"),
    _predicate(*_names("isnan")),
    _predicate(*_names("isinf")),
    _predicate(*_names("isfinite")),
    _predicate("numpy.signbit", "torch.signbit", reference="typed.is_negative(a)"),
    _propagating("max", "builtins.max"),
    _propagating("min", "builtins.min"),
    Builtin(("torch.sign", "torch.sgn"), Rule.SAME, helper="sign", reference="typed.sign(a)"),
    Builtin(("numpy.sign",), Rule.SAME, helper="sign_or_nan", reference="typed.sign_or_nan(a)"),
    _whole("gcd", 2),
    _whole("lcm", 2),
    _whole("isqrt"),
    _whole("factorial", folds=False),  # too large to be computed
    Builtin(("part.fraction",), Rule.FLOAT, helper="fraction", reference="typed.fraction(a)"),
    Builtin(("part.whole",), Rule.FLOAT, (1, 1), {"float": "truncf", "double": "trunc"}, reference="typed.whole(a)"),
    Builtin(("part.mantissa",), Rule.FLOAT, helper="mantissa", reference="typed.mantissa(a)"),
    Builtin(  # rule: exponent-range
        ("part.exponent",), Rule.INTEGRAL, helper="exponent", reference="typed.exponent(a)", range=(-1073.0, 1024.0)
    ),
    Builtin((ARGUMENT,), Rule.ARGUMENT, (2, 3)),
    Builtin((RESULT,), Rule.RESULT, (2, 3)),
)

CONSTANTS: Final = {
    f"{module}.{name}": float(getattr(math, name))
    for module, names in {
        "math": ("pi", "e", "tau", "inf", "nan"),
        "cmath": ("pi", "e", "tau", "inf", "nan"),
        "numpy": ("pi", "e", "inf", "nan"),
        "torch": ("pi", "e", "inf", "nan"),
    }.items()
    for name in names
}
