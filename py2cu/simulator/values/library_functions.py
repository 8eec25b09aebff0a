"""The functions of the libraries that a kernel may call, typed: NumPy's, torch's, and the formulas of the language.

In: the rows of `py2cu.builtins`. Out: `LIBRARY`, a table of functions for each library. A function of elements gives
elements.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Iterator
from functools import cache, reduce
from types import SimpleNamespace
from typing import Any, Final

from py2cu.builtins import ROWS, Builtin, Rule
from py2cu.builtins.formulas import FOLDS, SPLITS, Fold, Formula, find_formula
from py2cu.builtins.formulas import ROWS as FORMULAS
from py2cu.builtins.methods import methods
from py2cu.dtypes import DTYPES, F32
from py2cu.simulator.state import THREAD
from py2cu.simulator.values import float_parts
from py2cu.simulator.values.bit_functions import byte_perm, function_of_bits, high_product
from py2cu.simulator.values.complex_elements import ComplexElement
from py2cu.simulator.values.directed_rounding import directed
from py2cu.simulator.values.family import Element, element_class
from py2cu.simulator.values.math_functions import (
    BUILTINS,
    COMPLEX,
    Function,
    as_function,
    common_element_class,
    copy_sign,
    float_class,
    function_of_complex,
    function_of_floats,
    function_of_integers,
    next_after,
    predicate,
    python_complex,
    rounding,
    step,
)


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


TYPED: Final = SimpleNamespace(
    copy_sign=copy_sign, next_after=next_after, load_exponent=float_parts.load_exponent, is_negative=_is_negative,
    nan_min=_propagating_nan("min"), nan_max=_propagating_nan("max"), sign=_sign(0.0), sign_or_nan=_sign(math.nan),
    fraction=float_parts.fraction, whole=float_parts.whole, mantissa=float_parts.mantissa,
    exponent=float_parts.exponent, quotient_bits=float_parts.quotient_bits, directed=directed,
    high_product=high_product, byte_perm=byte_perm,
)  # fmt: skip
"""The functions of elements that the texts of rows call."""


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
        wide = element_class(F32) if narrow.dtype.is_half else narrow  # rule: formula-wide

        def widened(value: Any) -> Any:
            # rule: formula-widened
            return wide.from_operand(narrow.from_operand(value)) if isinstance(value, Element) else value

        result = function(*map(widened, args), **{name: widened(value) for name, value in named.items()})
        return narrow.convert(result)  # rule: formula-narrowed

    return call


@cache
def _compile_formula(parameters: tuple[str, ...], text: str) -> Function:
    """The text of a formula as a function of `parameters`, which may be elements."""
    names = {
        "math": SimpleNamespace(**{**vars(math), **_plain("math")}), "cmath": SimpleNamespace(**_plain("cmath")),
        "part": SimpleNamespace(**_plain("part")), "complex": python_complex,
        "py2cu": SimpleNamespace(fast=SimpleNamespace(**_plain("py2cu.fast"))),
        **{name: _plain("torch")[name] for name in ("minimum", "maximum")},
        **{name: _plain("numpy")[name] for name in ("trunc", "floor", "ceil", "rint")},
        **{name: _plain("py2cu")[name] for name in ("popc", "clz", "ffs", "brev")},
        **{dtype.name: element_class(dtype) for dtype in DTYPES},
    }  # fmt: skip
    return as_function(parameters, text, names)


@cache
def _plain(*libraries: str) -> dict[str, Function]:
    """The functions of `libraries` that rows without a formula define."""
    return {
        name: function
        for row in ROWS.values()
        for library, name in _split(row.names)
        if library in libraries and (function := _typed(row)) is not None
    }


def _split(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Each name as a library and a function of it."""
    for qualified in names:
        library, _, name = qualified.rpartition(".")
        yield library, name


@cache
def _typed(row: Builtin) -> Function | None:
    """The function that a row defines; None for those that Python has for elements, too, such as casts."""
    if "typed." in row.reference:
        return as_function("abc"[: row.arity[1]], row.reference, {"typed": TYPED})
    match row.rule:
        case Rule.FLOAT | Rule.ELEMENTS if row.reference or row.python:
            return function_of_floats(row)
        case Rule.ANALYTIC:
            return _analytic(row.name)
        case Rule.COMPLEX:
            return function_of_complex(row.name)
        case Rule.PREDICATE:
            return predicate(row)
        case Rule.INTEGRAL:
            return step(row)
        case Rule.WHOLE:
            return function_of_integers(row)  # rule: function-checked
        case Rule.ROUNDED:
            return rounding(row)
        case Rule.BITS | Rule.WORD:
            return function_of_bits(row)
        case Rule.MAGNITUDE:
            return abs
        case Rule.PART:
            return operator.attrgetter(row.name)
        case Rule.SAME:
            return operator.methodcaller(row.name)
        case _:
            return None


def _analytic(name: str) -> Function:
    """Torch's and NumPy's function of real and of complex numbers."""

    def call(value: Any) -> Any:
        library = "cmath" if isinstance(value, COMPLEX) else "math"
        return LIBRARY[library][name](value)

    return call


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


def _formulas(*libraries: str) -> dict[str, Function]:
    """The functions of `libraries` that formulas define."""
    plain = _plain(*libraries)
    return {
        name: _formula(f"{library}.{name}", plain.get(name))
        for row in FORMULAS
        for library, name in _split(row.names)
        if library in libraries
    }


def _pair_functions(library: str) -> dict[str, Function]:
    """The functions of `library` that return two numbers."""
    return {
        name: _compile_formula(row.parameters, ", ".join(row.texts))
        for row in SPLITS
        for home, name in _split(row.names)
        if home == library
    }


def _fold(row: Fold) -> Function:
    """The function of two tuples that a row defines."""
    each, both = (_compile_formula(("a", "b"), text) for text in (row.each, row.both))

    def call(first: Any, second: Any) -> Any:
        values = [each(a, b) for a, b in zip(first, second, strict=True)]
        return reduce(both, values[1:] or [0.0], values[0])

    return call


def _folds(library: str) -> dict[str, Function]:
    """The functions of two tuples of `library`."""
    return {name: _fold(row) for row in FOLDS for home, name in _split(row.names) if home == library}


def _functions(*libraries: str) -> dict[str, Function]:
    """The functions of `libraries`, by name."""
    return {**_plain(*libraries), **_formulas(*libraries), **_pair_functions(libraries[0]), **_folds(libraries[0])}


NUMBA: Final = ("numba.cuda", "numba.cuda.fp16", "numba.cuda.libdevice")
LIBRARY: Final[dict[str, dict[str, Function]]] = {
    **{library: _functions(library) for library in ("math", "cmath", "numpy", "py2cu", "py2cu.fast", *NUMBA)},
    "torch": _functions("torch", "torch.nn.functional", "torch.special"),
}


def _as_method(function: Function) -> Function:
    """`function` as an attribute of a class, which passes the element as the first argument."""
    return lambda element, *args, **named: function(element, *args, **named)


def _add_methods() -> None:
    """Give element classes the functions of torch that elements have as methods."""
    for name in methods():
        for dtype in DTYPES:
            if not hasattr(element_class(dtype), name):
                setattr(element_class(dtype), name, _as_method(LIBRARY["torch"][name]))


_add_methods()
