"""Functions of floats that CUDA has and Python lacks: `fma`, `rsqrt`, `opmath`, and the fast ones.

`fast.exp` is `__expf` of float32, and of halves, which compute in float32. In Python, on the CPU and of float64 the
fast functions are the plain ones: CUDA has none for double. Their errors are those that CUDA documents, in ulps of
float32; a result without a documented error has the error NaN.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any, Final

from py2cu.builtins.public import PY2CU, F, builtin, placeholder, public
from py2cu.builtins.registry import Builtin, Rule, register

_LIBRARY: Final = "py2cu.fast"
_TURN: Final = (-math.pi, math.pi)
_POSITIVE: Final = (math.ulp(0.0), sys.float_info.max)
_POWER: Final = "2 + 0.7 * abs(b) * (2 + 3 * abs(math.log2(a)))"
"""Of `exp2f(b * __log2f(a))`: the error of the logarithm, up to 2 ulps, grows with the exponent."""


@public
@placeholder
def fma(a: Any, b: Any, c: Any) -> Any:
    """`a * b + c`, rounded once; `math.fma` of Python 3.13, whose row it has (`math.py`)."""


@public
@placeholder
def rsqrt(value: Any) -> Any:
    """`1 / math.sqrt(value)`; its row is a formula (`formulas.py`)."""


@builtin(Rule.OPMATH, PY2CU, in_python=True)
def opmath(value: Any) -> Any:
    """`value` in the type that torch computes in, `at::opmath_type`: float32 for halves; any other number as it is."""
    if str(getattr(value, "dtype", "")).removeprefix("torch.") not in ("float16", "bfloat16"):
        return value
    return value.float() if hasattr(value, "float") else value.astype("float32")


def _fast(
    error: str, reference: str = "", beyond: str = "", domain: tuple[float, float] | None = None, **fields: Any
) -> Callable[[F], F]:
    """Enter the row of the decorated method, whose name is that of CUDA's function between `__` and `f`.

    `error` is the one within `domain`; beyond it there is none.
    """
    if domain is not None:
        error = f"{error} if {domain[0]!r} <= a <= {domain[1]!r} else math.nan"

    def enter(method: F) -> F:
        name, parameters = method.__name__, method.__code__.co_varnames[1 : method.__code__.co_argcount]
        spelling = {"float": f"__{name}f", "double": name}
        count = len(parameters)
        reference_ = reference or f"math.{name}({', '.join('ab'[:count])})"
        register(
            [
                Builtin(
                    (f"{_LIBRARY}.{name}",), Rule.FLOAT, (count, count), fields.pop("spelling", spelling),
                    parameters=parameters, folds=False, reference=reference_, beyond=beyond, error=error,
                    domain=domain, **fields,
                )
            ]
        )  # fmt: skip
        return method

    return enter


class Fast:
    """Functions that trade accuracy and range for speed."""

    __name__ = "fast"

    def __reduce__(self) -> str:
        return self.__name__

    @_fast("(2 + abs(1.173 * a)) * abs(value) if abs(a) < math.inf else 0.0", range=(0.0, math.inf))
    def exp(self, value: Any) -> float:
        """`math.exp(value)`, within 2 + 1.173 * |value| ulps."""
        return math.exp(value)

    @_fast("2**1.59 if 0.5 <= a <= 2 else 3 * abs(value)")
    def log(self, value: Any) -> float:
        """`math.log(value)`, within 3 ulps; within 2**-21.41 from 0.5 to 2."""
        return math.log(value)

    @_fast("2**1.59", domain=_TURN)
    def sin(self, value: Any) -> float:
        """`math.sin(value)`, within 2**-21.41 from -pi to pi."""
        return math.sin(value)

    @_fast("2**1.81", domain=_TURN)
    def cos(self, value: Any) -> float:
        """`math.cos(value)`, within 2**-21.19 from -pi to pi."""
        return math.cos(value)

    @_fast(f"({_POWER}) * abs(value)", beyond="power_ieee(a, b)", domain=_POSITIVE)
    def pow(self, base: Any, exponent: Any) -> float:
        """`math.pow(base, exponent)` of a positive base, as `exp2(exponent * log2(base))`."""
        return math.pow(base, exponent)

    @_fast(
        "2 * abs(value) if 2.0**-126 <= abs(b) <= 2.0**126 else math.nan", "a / b", "a * math.copysign(math.inf, b)",
        spelling={"float": "__fdividef"}, operator="/",
    )  # fmt: skip
    def div(self, a: Any, b: Any) -> Any:
        """`a / b`, within 2 ulps for |b| from 2**-126 to 2**126."""
        return a / b


fast = public(Fast())
