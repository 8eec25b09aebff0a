"""Evaluation of constants: operators, comparisons, and library functions of constant arguments.

    INF = float("inf")    LAST = len(TABLE) - 1    ROOT = math.sqrt(2)    WIDE = np.iinfo(np.int32).max

In: numbers that the source shows. Out: the result, or None. No user code runs: these are Python's own functions.
"""

from __future__ import annotations

import enum
import math
import operator
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any, Final, TypeVar

import libcst as cst

from py2cu.builtins import ROWS
from py2cu.diagnostics import Reporter
from py2cu.dtypes import DType, Kind, find_dtype
from py2cu.frontend.names.operators import SYMBOLS
from py2cu.ir.operators import COMPARISONS
from py2cu.live import is_integer_member
from py2cu.source import Span

Real = bool | int | float
Number = Real | complex
Constants = tuple["Constants | Real", ...]
Value = Number | str | Constants
T = TypeVar("T")

MAX_NUMBERS: Final = 64 * 1024 // 4  # of a table, to fit constant memory
_LARGE: Final = 2**128  # larger numbers are not evaluated: no constant of a kernel needs them

_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "builtins.len": len, "builtins.range": range, "math.degrees": math.degrees, "math.radians": math.radians,
    **{key: row.python for key, row in ROWS.items() if row.folds and row.python is not None},
}  # fmt: skip
_OF_TUPLES: Final = frozenset(["builtins.len", "builtins.max", "builtins.min"])
_LIMITS: Final[dict[str, Callable[[DType], Real]]] = {
    "iinfo.max": lambda dtype: int(dtype.high), "iinfo.min": lambda dtype: int(dtype.low),
    "iinfo.bits": lambda dtype: dtype.bits, "finfo.max": lambda dtype: dtype.high, "finfo.min": lambda dtype: dtype.low,
    "finfo.eps": lambda dtype: dtype.epsilon,
}  # fmt: skip


def call(function: str, values: Iterable[object]) -> Value | None:
    """The result of a function, by its qualified name, on constants; None if it is not known here, or would raise."""
    arguments = list(values)
    if len(arguments) == 1 and isinstance(arguments[0], str):
        return as_float(arguments[0]) if function == "builtins.float" else code_of(function, arguments[0])
    if function not in _FUNCTIONS or any(value is None or isinstance(value, str) for value in arguments):
        return None
    if function == "builtins.range":
        numbers_in = _tried(range, *arguments)
        return as_constants(numbers_in) if numbers_in is not None and len(numbers_in) <= MAX_NUMBERS else None
    if len(arguments) == 1 and isinstance(arguments[0], tuple):
        return _tried(_FUNCTIONS[function], arguments[0]) if function in _OF_TUPLES else None
    return compute(_FUNCTIONS[function], *arguments)


def code_of(function: str, text: str) -> int | None:
    """What `ord` makes of one character; None for other functions and texts."""
    return ord(text) if function == "builtins.ord" and len(text) == 1 else None


def as_float(text: str) -> float | None:
    """The float that Python reads in `text`."""
    try:
        return float(text)
    except ValueError:
        return None


def compare(signs: Iterable[cst.BaseCompOp], operands: Iterable[object]) -> bool | None:
    """The result of `a < b < c` for constants; None if it depends on an unknown operand."""
    for sign, (left, right) in zip(signs, pairwise(operands), strict=True):
        if left is None or right is None or type(sign) not in SYMBOLS:
            return None
        result = _tried(COMPARISONS[SYMBOLS[type(sign)]], left, right)
        if result is not True:
            return result if isinstance(result, bool) else None
    return True


def item(table: object, at: object) -> Constants | Real | None:
    """One item of a tuple of constants; None if there is no such item."""
    if isinstance(table, tuple) and isinstance(at, int) and -len(table) <= at < len(table):
        constant: Constants | Real = table[at]
        return constant
    return None


def rounds_alike(dtype: DType, number: Real) -> bool:
    """True if NumPy's `dtype(number)` and a kernel's cast agree; for halves they may not, since NumPy rounds once."""
    return dtype.holds(number) and not dtype.is_half and dtype.kind is not Kind.COMPLEX


def limit(function: str, dtype_name: str, attribute: str) -> tuple[DType, Real] | None:
    """The dtype and the value of a limit such as `np.iinfo(np.int32).max`; None if there is no such limit."""
    dtype = find_dtype(dtype_name.rpartition(".")[2])
    name = f"{function.rpartition('.')[2]}.{attribute}"
    if dtype is None or name not in _LIMITS or dtype.kind is not (Kind.INT if name.startswith("i") else Kind.FLOAT):
        return None
    return dtype, _LIMITS[name](dtype)


def as_constants(values: Iterable[object]) -> Constants | None:
    """The values as a tuple; None unless all are numbers or such tuples, and fit constant memory."""
    constants: list[Constants | Real] = []
    count = 0
    for value in values:
        item = as_constants(value) if isinstance(value, tuple) else plain(value)
        if not isinstance(item, bool | int | float | tuple) or isinstance(item, enum.Enum):
            return None
        constants.append(item)
        count += sum(1 for _ in numbers(item))
        if count > MAX_NUMBERS:
            return None
    return tuple(constants)


def plain(value: T) -> T | int:
    """The integer that a member of an `IntEnum` is; any other value unchanged."""
    return int(value) if is_integer_member(value) else value


def numbers(value: Constants | Real) -> Iterator[Real]:
    """The numbers of a tuple and of those in it, in order."""
    if isinstance(value, tuple):
        for item in value:
            yield from numbers(item)
    else:
        yield value


def shape_of(table: Constants) -> tuple[int, ...] | None:
    """The extents of a tuple of tuples; None if rows differ in length."""
    inner = {shape_of(item) if isinstance(item, tuple) else () for item in table}
    if len(inner) > 1 or None in inner:
        return None
    return (len(table), *(inner.pop() or () if inner else ()))


def compute_or_join(function: Callable[..., Any], left: object, right: object) -> Value | None:
    """The result of an operator on numbers, or the tuple that `+` makes of two, or `*` of one and a number."""
    if not isinstance(left, tuple) and not isinstance(right, tuple):
        return compute(function, left, right)
    counts = [abs(side) for side in (left, right) if isinstance(side, int)]
    is_small = not counts or counts[0] <= MAX_NUMBERS
    joined = _tried(function, left, right) if function in (operator.add, operator.mul) and is_small else None
    return as_constants(joined) if isinstance(joined, tuple) else None


def compute(function: Callable[..., Any], *operands: object) -> Number | None:
    """The result of `function`; None unless the operands are numbers, small enough to be computed quickly."""
    values = [operand for operand in operands if isinstance(operand, Number)]
    if len(values) < len(operands) or any(isinstance(number, int) and abs(number) > _LARGE for number in values):
        return None
    if function in (operator.pow, operator.lshift) and isinstance(values[0], int) and abs(values[1]) > 128:
        return None
    result = _tried(function, *values)
    return result if isinstance(result, Number) else None


def _tried(function: Callable[..., Any], *operands: object) -> Any:
    try:
        return function(*operands)
    except (ArithmeticError, TypeError, ValueError):
        return None


def check_64_bits(value: Real, reporter: Reporter, span: Span) -> Real:
    """`value`; 0, after a diagnostic, if it is an integer of more than 64 bits."""
    if not isinstance(value, int) or -(2**63) <= value < 2**64:  # rule: constant-in-64-bits
        return value
    hint = "kernels compute integers in 64 bits: use a float, or a smaller number"
    reporter.error("P305", "this constant does not fit 64 bits", span, hint)
    return 0
