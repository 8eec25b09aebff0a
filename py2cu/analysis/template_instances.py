"""Evaluates extents for every instance of a template, so that checks can judge blocks and arrays.

In: extents made of numbers and template arguments. Out: their values for every combination of the arguments.
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
    """Each combination, as text for messages (" with `k` = 4"), and its extents; 0 for an extent that divides by 0."""
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
