"""The simulator's fast functions have the errors that CUDA documents, and accept anything where it documents none."""

from __future__ import annotations

import math
from typing import Final

import pytest

from py2cu import fast
from py2cu.dtypes import F32
from py2cu.simulator.values.family import element_class
from py2cu.simulator.values.library_functions import LIBRARY

FAST: Final = LIBRARY["py2cu.fast"]
ULP: Final = 2.0**-23


@pytest.mark.parametrize(
    ("name", "arguments", "error"),
    [
        ("exp", (0.0,), 2 * ULP),
        ("exp", (4.0,), (2 + 1.173 * 4) * ULP * math.exp(4)),
        ("exp", (-math.inf,), 0.0),
        ("log", (0.75,), 2**-21.41),
        ("log", (8.0,), 3 * ULP * math.log(8)),
        ("sin", (3.0,), 2**-21.41),
        ("cos", (-3.0,), 2**-21.19),
        ("div", (1.0, 4.0), 2 * ULP / 4),
        ("sin", (4.0,), math.inf),
        ("cos", (-4.0,), math.inf),
        ("pow", (-2.0, 2.0), math.inf),
        ("pow", (math.inf, 2.0), math.inf),
        ("pow", (0.0, 0.0), math.inf),
        ("div", (1.0, 0.0), math.inf),
        ("div", (1.0, 2.0**127), math.inf),
    ],
)
def test_error_is_the_documented_one(name: str, arguments: tuple[float, ...], error: float) -> None:
    result = FAST[name](*map(element_class(F32), arguments))
    assert result.error == pytest.approx(error, rel=1e-6)
    assert result.dtype is F32


@pytest.mark.parametrize(("name", "count"), [("exp", 1), ("log", 1), ("sin", 1), ("cos", 1), ("pow", 2), ("div", 2)])
def test_in_python_they_are_the_plain_functions(name: str, count: int) -> None:
    plain = (lambda a, b: a / b) if name == "div" else getattr(math, name)
    assert getattr(fast, name)(*(1.5, 0.25)[:count]) == plain(*(1.5, 0.25)[:count])
