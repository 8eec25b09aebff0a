"""Functions that are a short formula of others: NumPy's and torch's operators by name, and what C has no function for.

A row's text is Python over its parameters. The front end puts the arguments into it, the simulator evaluates it: both
mean the same by construction. `maximum` and `minimum` are torch's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Formula:
    """`names` are qualified; `parameters` may be given by name where the library's own are called so."""

    names: tuple[str, ...]
    parameters: tuple[str, ...]
    text: str


def _both(text: str, *names: str, parameters: tuple[str, ...] = ("a", "b")) -> Formula:
    """A formula that NumPy and torch have under the same names."""
    return Formula(tuple(f"{library}.{name}" for library in ("numpy", "torch") for name in names), parameters, text)


def _one(text: str, *names: str) -> Formula:
    return _both(text, *names, parameters=("a",))


ROWS: Final = (
    _both("a + b", "add"),
    _both("a - b", "subtract"),
    _both("a * b", "multiply"),
    _both("a / b", "divide", "true_divide"),
    _both("a // b", "floor_divide"),
    _both("a % b", "remainder"),
    _both("a ** b", "pow"),
    Formula(("numpy.mod",), ("a", "b"), "a % b"),
    Formula(("numpy.power",), ("a", "b"), "a ** b"),
    Formula(("torch.sub",), ("a", "b"), "a - b"),
    Formula(("torch.mul",), ("a", "b"), "a * b"),
    Formula(("torch.div",), ("a", "b"), "a / b"),
    Formula(("builtins.pow",), ("a", "b"), "a ** b"),
    _both("a & b", "bitwise_and"),
    _both("a | b", "bitwise_or"),
    _both("a ^ b", "bitwise_xor"),
    _both("a << b", "bitwise_left_shift"),
    _both("a >> b", "bitwise_right_shift"),
    _one("~a", "bitwise_not"),
    _one("-a", "negative"),
    _both("bool(a) and bool(b)", "logical_and"),
    _both("bool(a) or bool(b)", "logical_or"),
    _both("bool(a) != bool(b)", "logical_xor"),
    _one("not a", "logical_not"),
    _both("a < b", "less"),
    _both("a <= b", "less_equal"),
    _both("a > b", "greater"),
    _both("a >= b", "greater_equal"),
    Formula(("numpy.equal", "torch.eq"), ("a", "b"), "a == b"),
    Formula(("numpy.not_equal", "torch.ne"), ("a", "b"), "a != b"),
    _both("b if a else c", "where", parameters=("a", "b", "c")),
    _one("a ** 2", "square"),
    _one("1 / a", "reciprocal"),
    _one("a * 57.29577951308232", "rad2deg"),
    _one("a * 0.017453292519943295", "deg2rad"),
    Formula(("numpy.degrees", "math.degrees"), ("a",), "a * 57.29577951308232"),
    Formula(("numpy.radians", "math.radians"), ("a",), "a * 0.017453292519943295"),
    Formula(("math.log",), ("a", "base"), "math.log(a) / math.log(base)"),
    Formula(("cmath.log",), ("a", "base"), "cmath.log(a) / cmath.log(base)"),
    Formula(("cmath.phase", "numpy.angle"), ("a",), "math.atan2(a.imag, a.real)"),
    Formula(("cmath.rect",), ("r", "phi"), "complex(r * math.cos(phi), r * math.sin(phi))"),
    Formula(("cmath.isnan",), ("a",), "math.isnan(a.real) or math.isnan(a.imag)"),
    Formula(("cmath.isinf",), ("a",), "math.isinf(a.real) or math.isinf(a.imag)"),
    Formula(("cmath.isfinite",), ("a",), "math.isfinite(a.real) and math.isfinite(a.imag)"),
    Formula(("torch.rsqrt",), ("a",), "1 / math.sqrt(a)"),
    Formula(("torch.sigmoid", "torch.nn.functional.sigmoid", "torch.special.expit"), ("a",), "1 / (1 + math.exp(-a))"),
    Formula(("torch.relu", "torch.nn.functional.relu"), ("a",), "maximum(a, 0)"),
    Formula(("torch.clamp", "torch.clip"), ("a", "min", "max"), "minimum(maximum(a, min), max)"),
    Formula(("torch.clamp", "torch.clip"), ("a", "min"), "maximum(a, min)"),
    Formula(("torch.clamp", "torch.clip"), ("a", "max"), "minimum(a, max)"),
    Formula(("numpy.clip",), ("a", "a_min", "a_max"), "minimum(maximum(a, a_min), a_max)"),
)


def find_formula(qualified: str, places: int, keywords: frozenset[str] = frozenset()) -> Formula | None:
    """The row called so, for that many arguments by place and those by name."""
    return next(
        (
            row
            for row in ROWS
            if qualified in row.names
            and len(row.parameters) == places + len(keywords)
            and keywords == set(row.parameters[places:])
        ),
        None,
    )


def ways_to_call(qualified: str) -> list[str]:
    """How a formula may be called, where `qualified` is one."""
    return [f"`{qualified}({', '.join(row.parameters)})`" for row in ROWS if qualified in row.names]


# What Python's `math` and the libraries have and kernels have not, with what to write instead.
REFUSED: Final = {
    "math.dist": "write it out: `math.hypot(a - c, b - d)`",
    "math.fsum": "add in a loop",
    "math.prod": "multiply in a loop",
    "math.sumprod": "add in a loop",
    "math.comb": "write a loop",
    "math.perm": "write a loop",
    "math.isclose": "compare the distance: `abs(a - b) <= tolerance`",
    "math.ulp": "`math.nextafter(x, math.inf) - x`",
    "math.frexp": "`math.log2` and `math.floor` tell the exponent",
    "math.ldexp": "multiply: `x * 2.0 ** k`",
    "math.modf": "`math.trunc(x)` is the whole part, `math.fmod(x, 1.0)` the rest",
    **{
        f"cmath.{name}": "CUDA's is far off for large numbers: write its formula out, or keep to real numbers"
        for name in ("asin", "acos", "atan", "asinh", "acosh", "atanh")
    },
    "cmath.tan": "divide: `cmath.sin(z) / cmath.cos(z)`",
    "cmath.tanh": "divide: `cmath.sinh(z) / cmath.cosh(z)`",
    "cmath.polar": "its two numbers are `abs(z)` and `cmath.phase(z)`",
    "cmath.isclose": "compare the distance: `abs(a - b) <= tolerance`",
    "numpy.fmod": "use `math.fmod` for floats",
    "torch.fmod": "use `math.fmod` for floats",
    "builtins.divmod": "unpack it on a line of its own: `q, r = divmod(a, b)`",
    "builtins.sum": "add in a loop",
    "builtins.print": "`print` stands on a line of its own",
}
