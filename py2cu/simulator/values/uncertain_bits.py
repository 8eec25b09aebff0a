"""Integers made of the bits of a float with a rounding error, with a bound on their own error.

bits = p.view(torch.uint32)                     p is known to 3 ulps: the bits, give or take 3
bits + noise, bits >> 8, bits & 0xFFFF0000      the error bound of the least and the greatest operand
(bits & 0xFFFF0000).view(torch.float32)         a float with the distance to the floats of both extremes
bits ^ seed                                     an infinite error: any bits

In: a class of integer elements. Out: `define_uncertain`, a subclass whose elements carry an `error`, which their
arithmetic propagates. Every other use, as an index or in a comparison, reads `value` and taints the thread: its further
results are not compared. Arrays that such integers do not reach are compared as usual.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable
from typing import Any, Final

from py2cu.dtypes import DType
from py2cu.simulator.state import THREAD
from py2cu.simulator.values.integer_elements import IntElement

_RAW: Final[Any] = IntElement.__dict__["value"]
_BETWEEN: Final[dict[str, Callable[[int, int], int]]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "rshift": operator.rshift, "lshift": operator.lshift,
}  # fmt: skip
"""Operators whose results for all operands lie between those for the least and the greatest ones."""
_OTHERS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "and": operator.and_, "or": operator.or_, "xor": operator.xor, "floordiv": operator.floordiv, "mod": operator.mod,
    "pow": operator.pow, "truediv": operator.truediv,
}  # fmt: skip


def define_uncertain(cls: Any) -> Callable[[int, float], Any]:
    """Define the subclass of `cls` with an error; return a function that makes an element of a value and an error."""

    def tainting(element: Any) -> Any:
        THREAD.tainted = True
        return _RAW.__get__(element)

    namespace: dict[str, Any] = {"__slots__": ("error",), "value": property(tainting)}
    for name, function in (_BETWEEN | _OTHERS).items():
        namespace[f"__{name}__"], namespace[f"__r{name}__"] = _in_both_orders(name, function)
    namespace["__neg__"] = lambda element: 0 - element
    namespace["__invert__"] = lambda element: (-1 if cls.dtype.signed else int(cls.dtype.high)) - element
    subclass: Any = type(cls.__name__, (cls,), namespace)

    def uncertain(value: int, error: float) -> Any:
        if not error:
            return cls.from_stored(value)
        element = object.__new__(subclass)
        _RAW.__set__(element, value)
        element.error = error
        return element

    return uncertain


def raw_value(element: Any) -> Any:
    """The value of an element; an integer with an error does not taint the thread."""
    return _RAW.__get__(element) if isinstance(element, IntElement) else element.value


def cast(element: IntElement, cls: Any) -> Any:
    """An integer in another dtype; its error becomes infinite if only some of what it may be wraps around."""
    value, error = raw_value(element), element.error
    if error < math.inf:
        least, greatest = (value + shift - int(cls.dtype.low) >> cls.dtype.bits for shift in (-int(error), int(error)))
        error = error if least == greatest else math.inf  # rule: bits-wrap
    return cls.uncertain(cls.wrapped(value).value, error)


def _in_both_orders(name: str, function: Callable[[Any, Any], Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    def compute(a: Any, b: Any) -> Any:
        result = function(_plain(a), _plain(b))
        if isinstance(result, IntElement):
            return type(result).uncertain(result.value, _error(name, a, b, result))
        if hasattr(result, "with_error"):
            return result.with_error(float(result), math.inf)
        THREAD.tainted = True
        return result

    return compute, lambda b, a: compute(a, b)


def _plain(operand: Any) -> Any:
    return operand.from_stored(raw_value(operand)) if isinstance(operand, IntElement) else operand


def _error(name: str, a: Any, b: Any, result: IntElement) -> float:
    """How far the result may be from `result`; infinite where this has no use, or where it may wrap around."""
    extremes = [_extremes(operand) for operand in (a, b)]
    if None in extremes or name not in (*_BETWEEN, "and") or (name.endswith("shift") and len(extremes[1] or ()) > 1):
        return math.inf
    if name == "and":
        mask = next((each[0] for each in extremes if each is not None and len(each) == 1), None)
        known = next((each for each in extremes if each is not None and len(each) == 2), ())
        if mask is None or not _is_kept_in_order(mask, known, result.dtype):
            return math.inf
    compute: Callable[[int, int], int] = operator.and_ if name == "and" else _BETWEEN[name]
    results = [compute(x, y) for x, y in itertools.product(*(each or () for each in extremes))]
    if min(results) < result.dtype.low or max(results) > result.dtype.high:
        return math.inf
    return max(abs(each - result.value) for each in results)


def _extremes(operand: Any) -> tuple[int, ...] | None:
    """The least and the greatest value of an operand, or the only one; None where nothing bounds it."""
    value = int(raw_value(operand)) if isinstance(operand, IntElement) else int(operand)
    error = operand.error if isinstance(operand, IntElement) else 0
    if error == math.inf:
        return None
    return (value - int(error), value + int(error)) if error else (value,)


def _is_kept_in_order(mask: int, between: tuple[int, ...], dtype: DType) -> bool:
    """Whether `&` with `mask` keeps the order of the integers between two: it clears the lowest bits, or keeps only
    the lowest ones, and all others are equal.
    """
    cleared = ~mask & (1 << dtype.bits) - 1
    if not cleared & cleared + 1:
        return True
    return not mask & mask + 1 and between[0] & ~mask == between[-1] & ~mask
