"""The functions of the libraries that a kernel may call, typed: NumPy's, torch's, and the formulas of the language.

In: a library's name and a function's. Out: `LIBRARY`, a table for each of `math`, `cmath`, `numpy` and `torch`. A
function of elements gives elements; `formulas.py` defines those that are a short formula of others.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any, Final

from py2cu.builtins.formulas import ROWS as FORMULAS
from py2cu.builtins.formulas import SPLITS, Formula, find_formula
from py2cu.dtypes import F32
from py2cu.simulator.state import THREAD
from py2cu.simulator.values import float_parts
from py2cu.simulator.values.complex_elements import ComplexElement
from py2cu.simulator.values.family import Element, element_class
from py2cu.simulator.values.float_elements import FloatElement
from py2cu.simulator.values.math_functions import (
    ANALYTIC,
    BINARY,
    BUILTINS,
    CMATH,
    COMPLEX,
    MATH,
    PREDICATES,
    UNARY,
    Function,
    common_element_class,
    float_class,
    python_complex,
)

# What torch and NumPy call math's functions.
SYNONYMS: Final = {
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2", "arcsinh": "asinh", "arccosh": "acosh",
    "arctanh": "atanh", "float_power": "pow", "power": "pow",
}  # fmt: skip
_STEPS: Final[dict[str, Callable[[float], int]]] = {
    "floor": math.floor, "ceil": math.ceil, "trunc": math.trunc, "fix": math.trunc, "round": round, "rint": round,
}  # fmt: skip


def _rounding(name: str) -> Function:
    """Torch's `floor` and the like keep the element type."""
    step: Callable[[float], int] = _STEPS[name]

    def call(value: Any) -> Any:
        if not isinstance(value, float) or not math.isfinite(value):
            return value
        result = math.copysign(step(float(value)), value)  # a zero keeps the sign
        if not isinstance(value, FloatElement):
            return result
        moved = value.error and abs(step(float(value) + value.error) - step(float(value) - value.error))
        return value.with_error(result, moved)

    return call


def _is_negative(value: Any) -> bool:
    """`signbit`."""
    if math.isnan(value):
        THREAD.tainted = True
    return math.copysign(1.0, float(value)) < 0


def _propagating_nan(name: str) -> Function:
    """Torch's `minimum` or `maximum`: as Python's `min` or `max`, but NaN if either operand is NaN."""
    select = BUILTINS[name]

    def call(a: Any, b: Any) -> Any:
        chosen = select(a, b)
        nan = next((value for value in (a, b) if isinstance(value, float) and math.isnan(value)), None)
        return chosen if nan is None else chosen.__class__(nan)

    return call


def _sign(of_nan: float) -> Function:
    """`sign`, which is `of_nan` for NaN."""

    def call(value: Any) -> Any:
        if isinstance(value, float) and math.isnan(value):
            return value.__class__(of_nan)
        return value.__class__((value > 0) - (value < 0))

    return call


PROPAGATING: Final = {"minimum": _propagating_nan("min"), "maximum": _propagating_nan("max")}


@cache
def _function_of(formula: Formula) -> Function:
    """The function that a formula's row defines."""
    defaults = formula.defaults
    parameters = (f"{name}={defaults[name]!r}" if name in defaults else name for name in formula.parameters)
    function = _compile_formula(tuple(parameters), formula.text)
    return _in_float32(function) if formula.in_float32 else function


def _in_float32(function: Function) -> Function:
    """`function`, computed in float32 if the common dtype of its arguments is a half; the result has that dtype."""

    def call(*args: Any, **named: Any) -> Any:
        common = common_element_class((*args, *named.values()))
        if common is None or issubclass(common, ComplexElement):
            return function(*args, **named)
        narrow = float_class(common)
        wide = element_class(F32) if narrow.dtype.is_half else narrow

        def widened(value: Any) -> Any:
            return wide.from_operand(narrow.from_operand(value)) if isinstance(value, Element) else value

        result = function(*map(widened, args), **{name: widened(value) for name, value in named.items()})
        return narrow.convert(result)

    return call


@cache
def _compile_formula(parameters: tuple[str, ...], text: str) -> Function:
    """The text of a formula as a function of `parameters`."""
    names = {
        "math": SimpleNamespace(**{**vars(math), **MATH}), "cmath": SimpleNamespace(**CMATH), "part": float_parts,
        "complex": python_complex, "trunc": _rounding("trunc"), **PROPAGATING,
    }  # fmt: skip
    function: Function = eval(f"lambda {', '.join(parameters)}: ({text})", names)
    return function


def _formula(qualified: str, otherwise: Function | None = None) -> Function:
    """The function of this qualified name: the formula that takes the arguments of a call, or `otherwise`."""

    def call(*args: Any, **named: Any) -> Any:
        options = {name: value for name, value in named.items() if isinstance(value, str)}
        numbers = {name: value for name, value in named.items() if name not in options}
        row = find_formula(qualified, len(args), numbers, options)
        if row is not None:
            return _function_of(row)(*args, **numbers)
        if otherwise is None:
            raise TypeError(f"a kernel cannot call {qualified} with these arguments")
        return otherwise(*args, **named)

    return call


def _formulas(*modules: str) -> dict[str, Function]:
    """The functions of `modules` that formulas define."""
    split = [name.rpartition(".") for row in FORMULAS for name in row.names]
    plain = CMATH if "cmath" in modules else MATH
    return {name: _formula(f"{module}.{name}", plain.get(name)) for module, _, name in split if module in modules}


def _pair_functions(module: str) -> dict[str, Function]:
    """The functions of `module` that return two numbers."""
    split = [(row, *name.rpartition(".")) for row in SPLITS for name in row.names]
    return {
        name: _compile_formula(row.parameters, ", ".join(row.texts))
        for row, library, _, name in split
        if library == module
    }


_MATH: Final[dict[str, Function]] = {**MATH, **_formulas("math"), **_pair_functions("math")}
_CMATH: Final[dict[str, Function]] = {**CMATH, **_formulas("cmath")}


def _analytic(name: str) -> Function:
    """Torch's and NumPy's function of real and of complex numbers."""
    of_real, of_complex = _MATH[name], _CMATH[name]
    return lambda value: (of_complex if isinstance(value, COMPLEX) else of_real)(value)


_COMMON: Final[dict[str, Function]] = {
    **{name: function for name, function in _MATH.items() if name in (*UNARY, *BINARY, *PREDICATES, "nextafter")},
    **{synonym: _MATH[name] for synonym, name in SYNONYMS.items()},
    **{name: _analytic(name) for name in ANALYTIC},
    **{synonym: _analytic(name) for synonym, name in SYNONYMS.items() if name in ANALYTIC},
    **{name: _rounding(name) for name in _STEPS},
    "real": operator.attrgetter("real"), "imag": operator.attrgetter("imag"),
    **{name: operator.methodcaller("conjugate") for name in ("conj", "conjugate", "conj_physical")},
    **PROPAGATING,
    "abs": abs, "absolute": abs, "signbit": _is_negative,
}  # fmt: skip
LIBRARY: Final[dict[str, dict[str, Function]]] = {
    "math": _MATH,
    "cmath": _CMATH,
    "torch": {
        **_COMMON, "sign": _sign(0.0), "sgn": _sign(0.0),
        **_formulas("torch", "torch.nn.functional", "torch.special"),
    },
    "numpy": {
        **_COMMON, "sign": _sign(math.nan), "ldexp": float_parts.load_exponent,
        **_formulas("numpy"), **_pair_functions("numpy"),
    },
}  # fmt: skip
