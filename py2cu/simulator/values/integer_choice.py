"""Whether the Python integers of a launch may be CPython's own, which take a fraction of the time of `Integer`.

In: the bounds that `choose_widths` has found for all of a kernel's integers, and a launch. Out: the class that they are
of. The values are exact either way. What the bounds prove is that nothing has to be noted: where they hold, and the
compiled kernel counts in 32 bits, none comes near 64.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from py2cu.ir.abi.signature import Signature
from py2cu.simulator.launch import AXES, Launch
from py2cu.simulator.values.checked_int import Integer

SMALL: Final = (1 << 31) - 1


def choose_integer(signature: Signature, dims: Mapping[str, int], launch: Launch) -> type[int]:
    """`int` where the bounds of the kernel's integers hold, as those of its 32-bit instantiation; else `Integer`."""
    values = {name: abs(value) for name, value in dims.items()}
    for thing, shape in (("gridDim", launch.grid), ("blockDim", launch.block)):
        values |= {f"{thing}.{axis}": extent for axis, extent in zip(AXES, shape, strict=True)}
    if signature.bounds is None:
        return Integer
    terms = [(term, n) for bound in signature.bounds for term, n in bound]
    if any(name not in values for term, _ in terms for name in term):
        return Integer
    reached = (sum(n * math.prod(values[name] for name in term) for term, n in bound) for bound in signature.bounds)
    return int if max(reached, default=0) <= SMALL else Integer
