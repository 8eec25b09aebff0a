"""Choose the class of a launch's Python integers: CPython's `int`, which is several times faster than `CheckedInt`.

In: a launch, and the bounds of all integers of its kernel, from `choose_integer_widths`. Out: the class. Both classes
are exact. If all bounds fit in 32 bits, no integer can leave 64 bits, so there is nothing to report.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from py2cu.ir.abi.signature import Signature
from py2cu.simulator.launch import AXES, Launch
from py2cu.simulator.values.checked_int import CheckedInt

SMALL: Final = (1 << 31) - 1


def choose_int_class(signature: Signature, dims: Mapping[str, int], launch: Launch) -> type[int]:
    """`int` if all integers of the kernel stay within 32 bits by their bounds; else `CheckedInt`."""
    values = {name: abs(value) for name, value in dims.items()}
    for launch_object, shape in (("gridDim", launch.grid), ("blockDim", launch.block)):
        values |= {f"{launch_object}.{axis}": extent for axis, extent in zip(AXES, shape, strict=True)}
    if signature.bounds is None:
        return CheckedInt
    terms = [(term, n) for bound in signature.bounds for term, n in bound]
    if any(name not in values for term, _ in terms for name in term):
        return CheckedInt
    bounds = (sum(n * math.prod(values[name] for name in term) for term, n in bound) for bound in signature.bounds)
    return int if max(bounds, default=0) <= SMALL else CheckedInt  # rule: integer-class
