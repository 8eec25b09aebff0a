"""`math`: one row a function; `expf` for float32, `exp` for float64 and Python floats."""

from __future__ import annotations

import math
from typing import Final

from py2cu.builtins.registry import Builtin, Rule


def _row(name: str, c: str | None = None, rule: Rule = Rule.FLOAT, arity: int = 1) -> Builtin:
    c = c or name
    return Builtin((f"math.{name}",), rule, (arity, arity), {"float": f"{c}f", "double": c})


def _predicate(name: str) -> Builtin:
    return Builtin((f"math.{name}",), Rule.PREDICATE, (1, 1), {"float": name, "double": name})


ROWS: Final = (
    _row("sqrt"),
    _row("cbrt"),
    _row("exp"),
    _row("exp2"),
    _row("expm1"),
    _row("log2"),
    _row("log10"),
    _row("log1p"),
    Builtin(("math.log",), Rule.FLOAT, (1, 1), {"float": "logf", "double": "log"}),
    _row("sin"),
    _row("cos"),
    _row("tan"),
    _row("asin"),
    _row("acos"),
    _row("atan"),
    _row("sinh"),
    _row("cosh"),
    _row("tanh"),
    _row("asinh"),
    _row("acosh"),
    _row("atanh"),
    _row("atan2", arity=2),
    _row("hypot", arity=2),
    _row("pow", arity=2),
    _row("fmod", arity=2),
    _row("copysign", arity=2),
    _row("fabs"),
    _row("erf"),
    _row("erfc"),
    _row("gamma", "tgamma"),
    _row("lgamma"),
    _row("floor", rule=Rule.INTEGRAL),
    _row("ceil", rule=Rule.INTEGRAL),
    _row("trunc", rule=Rule.INTEGRAL),
    _predicate("isnan"),
    _predicate("isinf"),
    _predicate("isfinite"),
)

CONSTANTS: Final = {
    f"math.{name}": float(getattr(math, name)) for name in ("pi", "e", "tau", "inf", "nan")
}  # fmt: skip
