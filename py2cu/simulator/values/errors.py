"""Error bounds of computed floats: how far the value in a faithful translation may be from the one in Python.

In: operands with their bounds, and a result. Out: the bound of the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, Protocol

INF: Final = math.inf


class Inexact(Protocol):
    """A float with its error bound."""

    error: float

    def __float__(self) -> float: ...


def error_if_nonfinite(a: Inexact, b: Inexact, error: float) -> float:
    """Replaces an error that is not finite: 0 where an operand is surely NaN, or both are sure and one is infinite."""
    is_nan = any(operand.error < INF and math.isnan(operand) for operand in (a, b))
    is_sure = a.error < INF and b.error < INF and not (math.isfinite(a) and math.isfinite(b))
    return 0.0 if is_nan or is_sure else INF  # rule: error-sure


def propagate_error(
    function: Callable[..., float], arguments: tuple[float, ...], value: float, rounding_error: float
) -> float:
    """The error of `function(*arguments)`: its `rounding_error`, plus how far its arguments' errors move `value`."""
    total = rounding_error
    for place, argument in enumerate(arguments):
        error = getattr(argument, "error", 0.0)
        for shift in (-error, error) if error else ():
            moved = function(*(float(a) + shift * (i == place) for i, a in enumerate(arguments)))
            if moved != value and not (math.isnan(moved) and math.isnan(value)):
                total += abs(moved - value)
    return INF if math.isnan(total) else total


def remainder_error(a: Inexact, b: Inexact) -> float:
    """The error of `a % b`, which jumps by `b` wherever the errors let `a` cross a multiple of `b`."""
    low, high = float(a) - a.error, float(a) + a.error
    if not (abs(low) < INF and abs(high) < INF and b.error < abs(float(b))):
        return INF
    quotients = {end // divisor for end in (low, high) for divisor in (float(b) - b.error, float(b) + b.error)}
    if len(quotients) > 1:
        return abs(float(b)) + b.error
    return a.error + abs(quotients.pop()) * b.error
