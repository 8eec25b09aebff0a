"""The simulator's stand-ins for functions of torch and NumPy against the functions themselves, element by element."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch

from py2cu.builtins import ROWS, Rule
from py2cu.builtins.formulas import ROWS as FORMULAS
from py2cu.dtypes import F32, I32
from py2cu.runtime.elements import element_class
from py2cu.runtime.stand_ins import members

FLOATS = (0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -3.25, 1e30, -1e30, 1e-30, math.inf, -math.inf, math.nan)
INTEGERS = (0, 1, -1, 7, -13, 2**30)
OF_INTEGERS = ("bitwise_", "invert")
LIBRARIES = {
    "torch": (torch, lambda value, dtype: torch.tensor(value, dtype=getattr(torch, dtype))),
    "numpy": (np, lambda value, dtype: getattr(np, dtype)(value)),
}


def functions() -> list[tuple[str, int]]:
    """Every function of torch and NumPy that kernels have, with a number of arguments."""
    rows = [(name, row.arity[0]) for row in ROWS.values() if row.rule is not Rule.CAST for name in row.names]
    formulas = [(name, len(row.parameters)) for row in FORMULAS for name in row.names]
    return sorted({(n, count) for n, count in rows + formulas if n.rpartition(".")[0] in LIBRARIES and count < 3})


def same(ours: object, theirs: object) -> bool:
    a, b = float(ours), float(theirs)
    return (math.isnan(a) and math.isnan(b)) or a == b or math.isclose(a, b, rel_tol=1e-5)


@pytest.mark.parametrize(("name", "count"), functions(), ids=lambda value: str(value))
@np.errstate(all="ignore")
def test_stand_in_is_the_function(name, count):
    library, _, function = name.rpartition(".")
    module, make = LIBRARIES[library]
    real, stand_in = getattr(module, function), members(library)[function]
    integers = function.startswith(OF_INTEGERS)
    element, dtype, values = (
        (element_class(I32), "int32", INTEGERS) if integers else (element_class(F32), "float32", FLOATS)
    )
    if function.endswith("_shift"):
        values = (0, 1, 7, 30)
    if function in ("pow", "power"):
        values = tuple(value for value in values if not math.isinf(value))  # NumPy's root of -inf is NaN, C's is inf
    for arguments in itertools.product(values, repeat=count):
        ours = stand_in(*map(element, arguments))
        theirs = real(*(make(value, dtype) for value in arguments))
        assert same(ours, theirs), f"{name}{arguments}: {ours}, the function itself says {theirs}"
