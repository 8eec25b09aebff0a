"""Mathematical functions, one row each: `math`'s, and those of NumPy and torch that are the same.

`expf` for float32, `exp` for float64 and Python floats. `math.floor` and its like return Python integers, NumPy's
and torch's keep the type of their argument.
"""

from __future__ import annotations

import math
from typing import Final

from py2cu.builtins.registry import ARGUMENT, RESULT, Builtin, Rule
from py2cu.dtypes import C64, C128

# What NumPy and torch call a function of `math` besides its own name, and what they lack.
_SYNONYMS: Final = {
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2", "asinh": "arcsinh", "acosh": "arccosh",
    "atanh": "arctanh",
}  # fmt: skip
_ELSEWHERE: Final = {
    "tanh": ("torch.nn.functional.tanh",),
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


def _row(name: str, c: str | None = None, arity: int = 1) -> Builtin:
    c = c or name
    return Builtin(_names(name), Rule.FLOAT, (arity, arity), {"float": f"{c}f", "double": c})


def _analytic(name: str) -> tuple[Builtin, ...]:
    """The rows of a function that also takes complex numbers: `math`'s for floats, NumPy's and torch's, and `cmath`'s.

    Tangents and inverse functions take floats only: CUDA's overflow for large complex numbers.
    """
    math_name, *others = _names(name)
    spelling = {"float": f"{name}f", "double": name}
    return (
        Builtin((math_name,), Rule.FLOAT, (1, 1), spelling),
        Builtin(tuple(others), Rule.ANALYTIC),
        Builtin((f"cmath.{name}",), Rule.COMPLEX, (1, 1), {C64.c: name, C128.c: name}),
    )


def _predicate(*names: str) -> Builtin:
    c = names[0].rpartition(".")[2]
    return Builtin(names, Rule.PREDICATE, (1, 1), {"float": c, "double": c})


def _integral(name: str) -> Builtin:
    return Builtin((f"math.{name}",), Rule.INTEGRAL, (1, 1), {"float": f"{name}f", "double": name})


def _rounded(c: str, *names: str) -> Builtin:
    qualified = tuple(f"{library}.{name}" for library in ("numpy", "torch") for name in names)
    return Builtin(qualified, Rule.ROUNDED, (1, 1), {"float": f"{c}f", "double": c})


ROWS: Final = (
    *_analytic("sqrt"),
    _row("cbrt"),
    *_analytic("exp"),
    _row("exp2"),
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
    _row("hypot", arity=2),
    _row("pow", arity=2),
    _row("fmod", arity=2),
    _row("remainder", arity=2),
    _row("copysign", arity=2),
    _row("nextafter", arity=2),
    _row("fma", arity=3),
    Builtin(("math.ldexp", "numpy.ldexp"), Rule.SCALED, (2, 2), {"float": "ldexpf", "double": "ldexp"}),
    _row("fabs"),
    _row("erf"),
    _row("erfc"),
    _row("gamma", "tgamma"),
    _row("lgamma"),
    _integral("floor"),
    _integral("ceil"),
    _integral("trunc"),
    _rounded("floor", "floor"),
    _rounded("ceil", "ceil"),
    _rounded("trunc", "trunc", "fix"),
    _rounded("rint", "round"),
    Builtin(("numpy.rint",), Rule.ROUNDED, (1, 1), {"float": "rintf", "double": "rint"}),
    _predicate(*_names("isnan")),
    _predicate(*_names("isinf")),
    _predicate(*_names("isfinite")),
    _predicate("numpy.signbit", "torch.signbit"),
    Builtin(("torch.maximum", "numpy.maximum"), Rule.SAME, (2, 2)),
    Builtin(("torch.minimum", "numpy.minimum"), Rule.SAME, (2, 2)),
    Builtin(("torch.sign", "torch.sgn"), Rule.SAME, helper="sign"),
    Builtin(("numpy.sign",), Rule.SAME, helper="sign_or_nan"),
    Builtin(("math.gcd",), Rule.WHOLE, (2, 2), helper="gcd"),
    Builtin(("math.lcm",), Rule.WHOLE, (2, 2), helper="lcm"),
    Builtin(("math.isqrt",), Rule.WHOLE, helper="isqrt"),
    Builtin(("math.factorial",), Rule.WHOLE, helper="factorial"),
    Builtin(("part.fraction",), Rule.FLOAT, helper="fraction"),
    Builtin(("part.whole",), Rule.FLOAT, (1, 1), {"float": "truncf", "double": "trunc"}),
    Builtin(("part.mantissa",), Rule.FLOAT, helper="mantissa"),
    Builtin(("part.exponent",), Rule.INTEGRAL, helper="exponent"),
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
