"""Choose sizes for the dimensions and template arguments of a kernel.

In: a `Signature`, and the number of a case. Out: a size for every name: 0, 1, odd, one less and one more than a block,
several blocks, as far as the work of the case stays small.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from typing import Final

from py2cu.ir.abi.launch import FEW_ELEMENTS
from py2cu.ir.abi.signature import Signature, evaluate
from py2cu.ir.expressions import Expr
from py2cu.ir.types import ArrayType
from py2cu.ir.visit import names_in
from py2cu.options import MAX_THREADS, Values, is_launchable

WORK_LIMIT: Final = 20_000  # elements and threads, which CPython runs in a fraction of a second
WAITING_WORK: Final = 8  # how much more a thread costs if threads wait for each other
INNER_SIZES: Final = (3, 1, 5, 0, 7, 4)  # of dimensions that no launch axis runs over
MANY_ELEMENTS: Final = 100_000  # of the largest array, in a launch whose threads may compute several
BLOCK_VALUES: Final = (8, 1, 16, 3, 32, 4)
SMALL_VALUES: Final = (1, 2, 4, 8, 16)


def axis_sizes(block: int) -> tuple[int, ...]:
    """Sizes to try along an axis whose block is `block` wide: 0, 1, odd, around one block, and several blocks."""
    odd = 37 if block > 64 else 7 if block > 8 else 5
    return (0, 1, odd, max(block - 1, 0), block + 1, 3 * block + 5)


def choose_sizes(signature: Signature, index: int, number: int = 0) -> dict[str, int]:
    """A size for every dimension name and template argument.

    `index` selects a size from the list for a dimension; the list is rotated for each dimension, so that no image is
    square. `number` selects among the values of template arguments.
    """
    axes = axis_by_dimension(signature)
    fixed = choose_constexprs(signature, number)
    fixed |= choose_block(signature, fixed, index)
    shape = (*(evaluate(extent, fixed) for extent in signature.block), 1, 1)
    sizes: dict[str, int] = {}
    for ordinal, name in enumerate(name for name in dimension_names(signature) if name not in fixed):
        if name in axes:
            choices = axis_sizes(shape[axes[name]])
        else:  # a block with barriers loops over it in steps of its size
            choices = axis_sizes(shape[0]) if signature.has_barrier else INNER_SIZES
        sizes[name] = choices[(index + ordinal) % len(choices)]
    return fixed | shrink(signature, sizes, fixed, lambda work: work <= WORK_LIMIT)


def choose_many(signature: Signature, number: int, *, is_ragged: bool) -> dict[str, int] | None:
    """Sizes of a launch with more than `FEW_ELEMENTS`, of which a thread on a GPU may compute several.

    One dimension, of the x axis if that has one, is a multiple of 16, or one more than that if `is_ragged`. None if no
    dimension makes the launch as large without an array of more than `MANY_ELEMENTS`.
    """
    axes, rows = axis_by_dimension(signature), row_lengths(signature)
    fixed = {*signature.constexprs, *(name for extent in signature.block for name in names_in(extent))}
    names = sorted(axes.keys() - fixed, key=lambda name: (axes[name], name))
    for name, index in itertools.product(names, range(2, len(INNER_SIZES))):
        chosen = choose_sizes(signature, index, number)
        chosen = {each: max(size, rows.get(each, 1)) for each, size in chosen.items()}
        multiples = ((16 * packs + is_ragged) * rows.get(name, 1) for packs in range(1, FEW_ELEMENTS // 4))
        grown = (chosen | {name: size} for size in multiples)
        sizes = next((sizes for sizes in grown if _threads(signature, sizes) > FEW_ELEMENTS), None)
        if sizes and _elements(signature, sizes) <= MANY_ELEMENTS:
            return sizes
    return None


def row_lengths(signature: Signature) -> dict[str, int]:
    """The row length of each dimension whose array is viewed in rows: the dimension is a multiple of it."""
    extents = [(name, row) for array, row in signature.vector_widths for name in names_in(_extent(signature, array))]
    return dict(sorted(extents, key=lambda extent: extent[1]))  # the longest row wins


def _extent(signature: Signature, array: str) -> Expr:
    type_ = signature.parameter(array).type
    assert isinstance(type_, ArrayType)
    return type_.dims[-1]


def choose_constexprs(signature: Signature, number: int) -> dict[str, int]:
    """A value for every template argument, one of its instances; consecutive numbers take turns through all."""
    values = {}
    for name, constexpr in signature.constexprs.items():
        values[name] = constexpr.values[number % len(constexpr.values)]
        number //= len(constexpr.values)
    return values


def choose_block(signature: Signature, known: dict[str, int], index: int) -> dict[str, int]:
    """A value for every name in the block's extents that is not `known`, such that the block can be launched."""
    names = {name for extent in signature.block for name in names_in(extent)} - known.keys()
    valid = [value for value in BLOCK_VALUES if _can_launch(signature, known | dict.fromkeys(names, value))]
    return dict.fromkeys(names, valid[index % len(valid)] if valid else 1)


def _can_launch(signature: Signature, sizes: dict[str, int]) -> bool:
    """Whether these sizes make a block that the device and the kernel's launch bounds admit."""
    shape = tuple(evaluate(extent, sizes) for extent in signature.block)
    # rule: bounds-of-check
    return is_launchable(shape) and math.prod(shape) <= min((MAX_THREADS, *signature.launch_bounds[:1]))


def small_values(signature: Signature) -> Values:
    """Values for the template arguments without instances, such that every block of them can be launched."""
    ints = signature.constexpr_ints
    names = [name for name, constexpr in ints.items() if not constexpr.values]
    most = {name: constexpr.most for name, constexpr in ints.items()}

    def can_launch(value: int) -> bool:
        return _can_launch(signature, most | dict.fromkeys(names, value))

    # Every combination is compiled: the more arguments, the fewer values each.
    return {name: tuple(value for value in SMALL_VALUES[:: len(names)] if can_launch(value)) for name in names}


def dimension_names(signature: Signature) -> tuple[str, ...]:
    """Every name in an extent, the size of the launch or the block, in order of first appearance."""
    extents = [dim for p in signature.arrays if isinstance(p.type, ArrayType) for dim in p.type.dims]
    extents += [index.extent for index in signature.indices]
    extents += signature.size or ()
    extents += signature.block
    return tuple(dict.fromkeys(itertools.chain.from_iterable(map(names_in, extents))))


def axis_by_dimension(signature: Signature) -> dict[str, int]:
    """The launch axis (0 for x) that runs over each dimension."""
    runs = [("xyz".index(index.axis), index.extent) for index in signature.indices]
    runs += list(enumerate(signature.size or ()))
    return {name: axis for axis, extent in reversed(runs) for name in names_in(extent)}


def shrink(
    signature: Signature, sizes: dict[str, int], fixed: dict[str, int], fits: Callable[[int], bool]
) -> dict[str, int]:
    """Halve dimensions until the work `fits`: inner ones first, since the edges of blocks matter most.

    `fixed` are dimensions that stay. The result is in elements; `sizes` of arrays that are viewed in rows are in rows.
    """
    axes, rows = axis_by_dimension(signature), row_lengths(signature)

    def elements() -> dict[str, int]:
        return {name: size * rows.get(name, 1) for name, size in sizes.items()}

    while not fits(work_of(signature, fixed | elements())) and any(size > 1 for size in sizes.values()):
        inner = [name for name in sizes if name not in axes and sizes[name] > 2]
        largest = max(inner or sizes, key=lambda name: sizes[name])
        sizes[largest] = sizes[largest] // 2 | 1  # odd: the last block is partial
    return elements()


def work_of(signature: Signature, sizes: Mapping[str, int]) -> int:
    """A measure of a case's cost: the elements of an array with every dimension, or the number of threads, if more."""
    elements = math.prod(max(1, size) for size in sizes.values())
    return max(elements, _threads(signature, sizes) * (WAITING_WORK if signature.has_barrier else 1))


def _threads(signature: Signature, sizes: Mapping[str, int]) -> int:
    """The threads of a launch; 0 where an extent is negative, or divided by 0: `make_case` drops the case."""
    try:
        return math.prod([max(0, evaluate(extent, dict(sizes))) for extent in signature.size or ()])
    except ValueError:
        return 0


def _elements(signature: Signature, sizes: Mapping[str, int]) -> int:
    """The elements of the largest array."""
    types = (p.type for p in signature.arrays if isinstance(p.type, ArrayType))
    return max(math.prod(evaluate(dim, dict(sizes)) for dim in type_.dims) for type_ in types)
