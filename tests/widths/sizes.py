"""Calls of a kernel whose arrays and launches are on both sides of what a checked `int` holds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from py2cu.check import Case, make_case
from py2cu.check.cases import Argument
from py2cu.check.draw import SMALL
from py2cu.check.redzones import SLICED, TRANSPOSED, Redzone
from py2cu.check.sizes import choose_sizes, dimension_names
from py2cu.ir.abi.signature import Signature, evaluate
from py2cu.ir.types import ArrayType
from py2cu.ir.visit import names_in

MOST_THREADS: Final = 6_000  # where CPython runs each
MOST_ELEMENTS: Final = 200_000
_STEPS: Final = 200
_ROW: Final = 16  # a multiple of all rows that arrays are viewed in


def cases(signature: Signature, bits: int, threads: int = MOST_THREADS) -> Iterator[Case]:
    """Calls whose largest size fits `bits` or not, by little or by much; an `unsigned` does not hold the last."""
    most = 2 ** (bits - 1) - 1
    for instance in signature.instances[:1] or (signature,):
        made: set[tuple[int, ...]] = set()
        for seed, least in enumerate((most // 2, most - most // 8, most + 1, 2 * most + 2, 5 * most)):
            sizes = grown(instance, choose_sizes(instance, 1, seed), least, seed % 3, threads)
            if sizes is None or tuple(sizes.values()) in made or blocks(instance, sizes) > most:
                continue
            made.add(tuple(sizes.values()))
            case = make_case(instance, sizes, SMALL, seed)
            if case is not None:
                yield replace(case, arguments=laid_out(instance, case, (SLICED, TRANSPOSED)[seed % 2]))


def laid_out(signature: Signature, case: Case, layout: str) -> dict[str, Argument]:
    """The arguments of a case, with the arrays that may have any strides in this layout."""
    strided = {name: case.arguments[name] for name in signature.strided if name in case.arguments}
    views = {name: Redzone(tensor, "cpu", layout).view for name, tensor in strided.items()}
    return {**case.arguments, **views}


def grown(signature: Signature, sizes: Mapping[str, int], least: int, lean: int, threads: int) -> dict[str, int] | None:
    """`sizes`, with dimensions grown from 1 until the largest array or launch has `least` elements; None where it
    has more than so many `threads`. The greater `lean` is, the less do later dimensions grow.
    """
    fixed = {*signature.constexprs, *(name for extent in signature.block for name in names_in(extent))}
    free = [name for name in dimension_names(signature) if name not in fixed]
    found = {**sizes, **dict.fromkeys(free, _ROW if signature.vector_widths else 1)}
    for _ in range(_STEPS):
        elements, launched = extents(signature, found)
        if launched > threads or elements > MOST_ELEMENTS:
            return None
        if max(elements, launched) >= least or not free:
            return found
        name = min(free, key=lambda name: found[name] * (1 + lean * free.index(name)))
        found[name] += max(1, found[name] // 8)
        if signature.vector_widths:
            found[name] = -(-found[name] // _ROW) * _ROW
    return None


def extents(signature: Signature, sizes: Mapping[str, int]) -> tuple[int, int]:
    """The elements of the largest array and the threads of the launch; of what is negative, none."""
    try:
        shapes = [p.type.dims for p in signature.arrays if isinstance(p.type, ArrayType)]
        elements = [math.prod(evaluate(dim, dict(sizes)) for dim in shape) for shape in shapes]
        launch = [evaluate(extent, dict(sizes)) for extent in signature.size or ()]
    except ValueError:
        return 0, 0
    return max(elements, default=0), math.prod(launch)


def blocks(signature: Signature, sizes: Mapping[str, int]) -> int:
    """The most blocks of a launch on an axis."""
    dims = dict(sizes)
    axes = zip(signature.size or (), signature.block, strict=False)
    return max((-(-evaluate(extent, dims) // evaluate(block, dims)) for extent, block in axes), default=0)
