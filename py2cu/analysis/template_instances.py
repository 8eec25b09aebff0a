"""What extents are in each instance of a template: blocks and arrays are judged by it.

In: extents of numbers and template arguments. Out: their values, for every choice of the arguments in them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

from py2cu import ir
from py2cu.ir.abi.parameters import Constexpr
from py2cu.ir.abi.signature import evaluate
from py2cu.ir.visit import names_in


def instances(
    extents: tuple[ir.Expr, ...], constexprs: Mapping[str, Constexpr]
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Every choice, as messages say it, ` with k = 4`, and the extents with it: 0 for what is divided by 0."""
    names = tuple(dict.fromkeys(name for extent in extents for name in names_in(extent)))
    for values in itertools.product(*(constexprs[name].values for name in names)):
        chosen = dict(zip(names, values, strict=True))
        choice = ", ".join(f"`{name}` = {value}" for name, value in chosen.items())
        yield f" with {choice}" if choice else "", tuple(_evaluated(extent, chosen) for extent in extents)


def _evaluated(extent: ir.Expr, values: dict[str, int]) -> int:
    try:
        return evaluate(ir.as_extent(extent), values)
    except ValueError:
        return 0
