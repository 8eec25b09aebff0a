"""Builtins that are defined by a short formula: NumPy's and torch's names of operators, and functions that C lacks.

A row's text is Python over its parameters. The front end substitutes the arguments, the simulator evaluates the text:
both compute the same. `maximum`, `minimum` and `trunc` are torch's; `part.…` are functions that only
formulas call, such as those for the two results of `math.modf` (`SPLITS`).

In a formula of several steps, torch computes integers in float32, and rounds halves only after the last step.
"""

from __future__ import annotations

import ast
from ast import literal_eval
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from py2cu.builtins import numba
from py2cu.source import parsed_expression


@dataclass(frozen=True, slots=True)
class Formula:
    """A builtin and its formula; `names` are qualified, `parameters` are also the keywords of a call.

    `in_float32`: operands are converted to their common float type, halves to float32; the result is converted back.
    `defaults`: the values of parameters that a call may leave out.
    `options`: keywords that a call passes as constant strings, each with the string that selects this row.
    """

    names: tuple[str, ...]
    parameters: tuple[str, ...]
    text: str
    in_float32: bool = False
    defaults: Mapping[str, int | float] = field(default_factory=dict, hash=False)
    options: Mapping[str, str] = field(default_factory=dict, hash=False)

    def takes(self, places: int, keywords: Iterable[str], options: Mapping[str, str]) -> bool:
        """True if a call with `places` positional arguments, these keywords and these strings is a call of this row."""
        by_name = set(keywords)
        missing = {*self.parameters[places:]} - by_name
        return (
            places <= len(self.parameters)
            and by_name <= {*self.parameters[places:]}
            and missing <= self.defaults.keys()
            and options == self.options
        )

    def uses_once(self, parameter: str) -> bool:
        """True if the formula always computes the parameter, and names it once."""
        nodes = [*ast.walk(parsed_expression(self.text))]
        names = [node.id for node in nodes if isinstance(node, ast.Name)]
        return names.count(parameter) == 1 and not any(isinstance(node, ast.IfExp | ast.BoolOp) for node in nodes)

    def signature(self, qualified: str) -> str:
        """`torch.nn.functional.elu(a, alpha=1.0)`."""
        plain = (f"{name}={self.defaults[name]}" if name in self.defaults else name for name in self.parameters)
        return f"{qualified}({', '.join((*plain, *(f'{name}={text!r}' for name, text in self.options.items())))})"


@dataclass(frozen=True, slots=True)
class PairFormula:
    """A function with two results, which the assignment unpacks: an example of their names, and a formula for each."""

    names: tuple[str, ...]
    parameters: tuple[str, ...]
    results: str
    texts: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Fold:
    """A reduction over two tuples of one length.

    `each` combines the items `a` and `b` at one position, `both` the results of two positions.
    """

    names: tuple[str, ...]
    each: str
    both: str


FOLDS: Final = (Fold(("math.dist",), "a - b", "math.hypot(a, b)"),)
"""The result for one place is `both` of it and 0.0."""


def find_fold(qualified: str) -> Fold | None:
    """The row of this name."""
    return next((row for row in FOLDS if qualified in row.names), None)


def _both(text: str, *names: str, parameters: tuple[str, ...] = ("a", "b")) -> Formula:
    """A formula that NumPy and torch have under the same names."""
    return Formula(tuple(f"{library}.{name}" for library in ("numpy", "torch") for name in names), parameters, text)


def _one(text: str, *names: str) -> Formula:
    return _both(text, *names, parameters=("a",))


def _steps(text: str, *names: str, parameters: tuple[str, ...] = ("a",), **options: str) -> Formula:
    """A formula of several steps."""
    return Formula(names, parameters, text, in_float32=True, options=options)  # rule: float32-formula


def _activation(name: str, parameters: str, text: str, *others: str, in_float32: bool = False) -> Formula:
    """A function of `torch.nn.functional`; `parameters` are written as in a `def`, `others` are names elsewhere."""
    split = [parameter.partition("=") for parameter in parameters.split(", ")]
    defaults = {parameter: literal_eval(value) for parameter, _, value in split if value}
    names = (f"torch.nn.functional.{name}", *others)
    return Formula(names, tuple(parameter for parameter, _, _ in split), text, in_float32, defaults)


_GELU: Final = "torch.nn.functional.gelu"
_GELU_EXACT: Final = "0.5 * a * (1 + math.erf(a * 0.7071067811865476))"
_GELU_TANH: Final = "0.5 * a * (1 + math.tanh(0.7978845608028654 * (a + 0.044715 * a * a * a)))"
_CLAMP: Final = "minimum(maximum(a, min_val), max_val)"

_ACTIVATIONS: Final = (
    _activation("silu", "a", "a / (1 + math.exp(-a))", in_float32=True),
    _steps(_GELU_EXACT, _GELU),
    _steps(_GELU_EXACT, _GELU, approximate="none"),
    _steps(_GELU_TANH, _GELU, approximate="tanh"),
    _activation("softplus", "a", "a if a > 20 else math.log1p(math.exp(a))", in_float32=True),
    _activation(
        "softplus",
        "a, beta, threshold=20",
        "a if a * beta > threshold else math.log1p(math.exp(a * beta)) / beta",
        in_float32=True,
    ),
    _activation("logsigmoid", "a", "minimum(a, 0) - math.log1p(math.exp(-math.fabs(a)))", in_float32=True),
    _activation("relu6", "a", "minimum(maximum(a, 0), 6)"),
    _activation("elu", "a", "a if a >= 0 else math.expm1(a)", in_float32=True),  # rule: zero-of-elu
    _activation("elu", "a, alpha", "a if a >= 0 else alpha * math.expm1(a)", in_float32=True),
    _activation("leaky_relu", "a", "a if a > 0 else 0.01 * a", in_float32=True),
    _activation("leaky_relu", "a, negative_slope", "a if a > 0 else negative_slope * a", in_float32=True),
    _activation("hardtanh", "a", "minimum(maximum(a, -1), 1)"),
    _activation("hardtanh", "a, min_val=-1, max_val=1", _CLAMP),
    _activation("hardsigmoid", "a", "minimum(maximum(a + 3, 0), 6) / 6", in_float32=True),
    _activation("hardswish", "a", "a * minimum(maximum(a + 3, 0), 6) / 6", in_float32=True),
    _activation("mish", "a", "a * math.tanh(math.log1p(math.exp(a)))", in_float32=True),
    _activation(
        "selu", "a", "1.0507009873554805 * a if a >= 0 else 1.7580993408473766 * math.expm1(a)", "torch.selu",
        in_float32=True,
    ),
    _activation(
        "celu", "a, alpha=1", "a if a >= 0 else alpha * math.expm1(a / alpha)", "torch.celu", in_float32=True
    ),
    _activation("prelu", "a, weight", "a if a > 0 else weight * a", "torch.prelu", in_float32=True),
    _activation("softsign", "a", "a / (abs(a) + 1)"),
    _activation("tanhshrink", "a", "a - math.tanh(a)"),
    _activation("hardshrink", "a, lambd=0.5", "a - a if abs(a) <= lambd else a", "torch.hardshrink"),
    _activation(
        "softshrink", "a, lambd=0.5", "a - lambd if a > lambd else (a + lambd if -a > lambd else a * 0)"
    ),
    _activation("threshold", "a, threshold, value", "value if a <= threshold else a", "torch.threshold"),
)  # fmt: skip

ROWS: Final = (
    Formula(("math.hypot",), ("a", "b", "c"), "math.hypot(math.hypot(a, b), c)"),
    Formula(("math.hypot",), ("a", "b", "c", "d"), "math.hypot(math.hypot(math.hypot(a, b), c), d)"),
    _both("a + b", "add"),
    _both("a - b", "subtract"),
    _both("a * b", "multiply"),
    _both("a / b", "divide", "true_divide"),
    _both("a // b", "floor_divide"),
    _both("a % b", "remainder"),
    _both("a ** b", "pow"),
    Formula(("numba.cuda.selp",), ("a", "b", "c"), "b if a else c"),
    *(
        Formula((f"numba.cuda.{name}",), ("mask", value), f"int32(py2cu.{name}(mask, {value}))")
        for name, value in (("ballot_sync", "predicate"), ("match_any_sync", "value"))
    ),
    Formula(
        ("numba.cuda.eq_sync",),
        ("mask", "predicate"),
        "py2cu.all_sync(mask, predicate) == py2cu.any_sync(mask, predicate)",
    ),
    Formula(("numba.cuda.lanemask_lt",), (), "(1 << py2cu.laneid()) - 1"),
    Formula(("numpy.mod",), ("a", "b"), "a % b"),
    Formula(("numpy.power",), ("a", "b"), "a ** b"),
    Formula(("torch.sub",), ("a", "b"), "a - b"),
    Formula(("torch.mul",), ("a", "b"), "a * b"),
    Formula(("torch.div",), ("a", "b"), "a / b"),
    Formula(("torch.div", "torch.divide"), ("a", "b"), "a // b", options={"rounding_mode": "floor"}),
    Formula(("builtins.pow",), ("a", "b"), "a ** b"),
    _both("a & b", "bitwise_and"),
    _both("a | b", "bitwise_or"),
    _both("a ^ b", "bitwise_xor"),
    _both("a << b", "bitwise_left_shift"),
    _both("a >> b", "bitwise_right_shift"),
    Formula(("numpy.left_shift",), ("a", "b"), "a << b"),
    Formula(("numpy.right_shift",), ("a", "b"), "a >> b"),
    _one("~a", "bitwise_not"),
    Formula(("numpy.invert",), ("a",), "~a"),
    _one("-a", "negative"),
    Formula(("torch.neg",), ("a",), "-a"),
    _one("+a", "positive"),
    _both("bool(a) and bool(b)", "logical_and"),
    _both("bool(a) or bool(b)", "logical_or"),
    _both("bool(a) != bool(b)", "logical_xor"),
    _one("not a", "logical_not"),
    _both("a < b", "less"),
    _both("a <= b", "less_equal"),
    _both("a > b", "greater"),
    _both("a >= b", "greater_equal"),
    Formula(("torch.lt",), ("a", "b"), "a < b"),
    Formula(("torch.le",), ("a", "b"), "a <= b"),
    Formula(("torch.gt",), ("a", "b"), "a > b"),
    Formula(("torch.ge",), ("a", "b"), "a >= b"),
    Formula(("numpy.equal", "torch.eq"), ("a", "b"), "a == b"),
    Formula(("numpy.not_equal", "torch.ne", "torch.not_equal"), ("a", "b"), "a != b"),
    _both("b if a else c", "where", parameters=("a", "b", "c")),
    _one("a ** 2", "square"),
    _one("1 / a", "reciprocal"),
    _one("a * 57.29577951308232", "rad2deg"),
    _one("a * 0.017453292519943295", "deg2rad"),
    Formula(("numpy.degrees", "math.degrees"), ("a",), "a * 57.29577951308232"),
    Formula(("numpy.radians", "math.radians"), ("a",), "a * 0.017453292519943295"),
    _steps("1 if a == 0 else math.sin(math.pi * a) / (math.pi * a)", "numpy.sinc", "torch.sinc"),
    Formula(("torch.heaviside",), ("a", "values"), "values if a == 0 else bool(a > 0)"),
    _one("math.isinf(a) and a > 0", "isposinf"),
    _one("math.isinf(a) and a < 0", "isneginf"),
    _both("a if a >= b or b != b else b", "fmax"),
    _both("a if a <= b or b != b else b", "fmin"),
    _steps(
        "a if math.isinf(a) and a == b else maximum(a, b) + math.log1p(math.exp(-math.fabs(a - b)))",
        "numpy.logaddexp",
        "torch.logaddexp",
        parameters=("a", "b"),
    ),
    Formula(("math.log",), ("a", "base"), "math.log(a) / math.log(base)"),
    Formula(("cmath.log",), ("a", "base"), "cmath.log(a) / cmath.log(base)"),
    Formula(("cmath.phase", "numpy.angle"), ("a",), "math.atan2(a.imag, a.real)"),
    Formula(("cmath.rect",), ("r", "phi"), "complex(r * math.cos(phi), r * math.sin(phi))"),
    Formula(("cmath.isnan",), ("a",), "math.isnan(a.real) or math.isnan(a.imag)"),
    Formula(("cmath.isinf",), ("a",), "math.isinf(a.real) or math.isinf(a.imag)"),
    Formula(("cmath.isfinite",), ("a",), "math.isfinite(a.real) and math.isfinite(a.imag)"),
    _steps("1 / math.sqrt(a)", "py2cu.rsqrt", "torch.rsqrt"),
    _steps("1 / (1 + math.exp(-a))", "torch.sigmoid", "torch.nn.functional.sigmoid", "torch.special.expit"),
    Formula(("torch.relu", "torch.nn.functional.relu"), ("a",), "maximum(a, 0)"),
    Formula(("torch.frac",), ("a",), "a - trunc(a)"),
    _steps(
        "a + weight * (b - a) if math.fabs(weight) < 0.5 else b - (b - a) * (1 - weight)",
        "torch.lerp",
        parameters=("a", "b", "weight"),
    ),
    _steps("math.log(a / (1 - a))", "torch.logit", "torch.special.logit"),
    # rule: zero-of-xlogy
    _steps("0 if a == 0 and b == b else a * math.log(b)", "torch.xlogy", "torch.special.xlogy", parameters=("a", "b")),
    _steps("0 if a == 0 and b == b else a * math.log1p(b)", "torch.special.xlog1py", parameters=("a", "b")),
    *_ACTIVATIONS,
    Formula(("torch.clamp_min",), ("a", "min"), "maximum(a, min)"),
    Formula(("torch.clamp_max",), ("a", "max"), "minimum(a, max)"),
    Formula(("torch.clamp", "torch.clip"), ("a", "min", "max"), "minimum(maximum(a, min), max)"),
    Formula(("torch.clamp", "torch.clip"), ("a", "min"), "maximum(a, min)"),
    Formula(("torch.clamp", "torch.clip"), ("a", "max"), "minimum(a, max)"),
    Formula(("numpy.clip",), ("a", "a_min", "a_max"), "minimum(maximum(a, a_min), a_max)"),
    *(Formula((name,), parameters, text) for name, parameters, text in numba.FORMULAS),
)
_BY_NAME: Final[dict[str, list[Formula]]] = {}
for _row in ROWS:
    for _name in _row.names:
        _BY_NAME.setdefault(_name, []).append(_row)

_ALL_MATCH: Final = "py2cu.match_any_sync(mask, value) == int(mask) & 4294967295"

SPLITS: Final = (
    PairFormula(("builtins.divmod", "numpy.divmod"), ("a", "b"), "q, r", ("a // b", "a % b")),
    PairFormula(("math.modf", "numpy.modf"), ("a",), "part, whole", ("part.fraction(a)", "part.whole(a)")),
    PairFormula(("math.frexp",), ("a",), "mantissa, exponent", ("part.mantissa(a)", "part.exponent(a)")),
    PairFormula(
        ("numba.cuda.match_all_sync",),
        ("mask", "value"),
        "lanes, is_same",
        (f"int32(py2cu.ballot_sync(mask, {_ALL_MATCH}))", _ALL_MATCH),
    ),
    *(PairFormula((name,), numba.parameters(texts[0]), "first, second", texts) for name, texts in numba.PAIRS.items()),
)


def formula_names() -> tuple[str, ...]:
    """Every qualified name of a formula."""
    return (*_BY_NAME, *(name for row in SPLITS for name in row.names))


def find_pair_formula(qualified: str | None, places: int) -> PairFormula | None:
    """The row of this name that takes `places` arguments."""
    return next((row for row in SPLITS if qualified in row.names and len(row.parameters) == places), None)


def way_to_unpack(qualified: str) -> str | None:
    """A line that unpacks the two results of `qualified`; None for any other function."""
    calls = (f"`{row.results} = {qualified}({', '.join(row.parameters)})`" for row in SPLITS if qualified in row.names)
    return next(calls, None)


def find_formula(
    qualified: str, places: int, keywords: Iterable[str] = (), options: Mapping[str, str] | None = None
) -> Formula | None:
    """The row of this name that takes `places` positional arguments, these keywords and these strings by keyword."""
    if keywords and qualified.startswith(("math.", "cmath.")):  # they take positional arguments only
        return None
    rows = _BY_NAME.get(qualified, ())
    return next((row for row in rows if row.takes(places, keywords, options or {})), None)


def ways_to_call(qualified: str) -> list[str]:
    """The calls that the formulas called `qualified` accept; none for any other name."""
    return [f"`{row.signature(qualified)}`" for row in _BY_NAME.get(qualified, ())]


# Functions of Python and of the libraries that kernels do not have, each with what to write instead.
REFUSED: Final = {
    **{
        f"numba.cuda.{name}": hint
        for name, hint in {
            "const.array_like": "assign it on a line of its own: `taps = cuda.const.array_like(TAPS)`",
            "atomic.compare_and_swap": "`cuda.atomic.cas(x, 0, old, value)`",
            "random": "write the generator out: Philox and xorshift are a few lines of masked integers",
            "cg.this_grid": "keep it in a local, or call its `sync` at once",
            "nanosleep": "leave it out",
            "to_device": "call it before the launch",
            "libdevice.nan": "`math.nan`",
            "libdevice.nanf": "`np.float32(math.nan)`",
        }.items()
    },
    "math.fsum": "add in a loop",
    "math.prod": "multiply in a loop",
    "math.sumprod": "add in a loop",
    "math.comb": "write a loop",
    "math.perm": "write a loop",
    "math.isclose": "compare the distance: `abs(a - b) <= tolerance`",
    "math.ulp": "`math.nextafter(x, math.inf) - x`",
    **{
        f"cmath.{name}": "CUDA's is inaccurate for large numbers: write the formula out, or use real numbers"
        for name in ("asin", "acos", "atan", "asinh", "acosh", "atanh")
    },
    "cmath.tan": "divide: `cmath.sin(z) / cmath.cos(z)`",
    "cmath.tanh": "divide: `cmath.sinh(z) / cmath.cosh(z)`",
    "cmath.polar": "its two numbers are `abs(z)` and `cmath.phase(z)`",
    "cmath.isclose": "compare the distance: `abs(a - b) <= tolerance`",
    "numpy.fmod": "use `math.fmod` for floats",
    "torch.fmod": "use `math.fmod` for floats",
    "builtins.sum": "add in a loop",
    "builtins.print": "`print` stands on a line of its own",
}
