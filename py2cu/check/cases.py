"""Invent arguments for a kernel from its signature: the cases of `check`.

In: a `Signature` and a seed. Out: `Case`s, the same for the same seed: sizes 0, 1, odd, one less and one more than a
block, several blocks; random values, each dtype's extremes, infinities and NaN, and tame values that serve as indices
and divisors. Outputs are poisoned, or filled as `init=` says.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import torch

from py2cu.check.redzones import poison
from py2cu.dtypes import DType, Kind
from py2cu.ir.abi.dims import bind_dims
from py2cu.ir.abi.parameters import Parameter, Role
from py2cu.ir.abi.signature import Signature, evaluate
from py2cu.ir.expressions import Expr
from py2cu.ir.types import ArrayType, ElementType, Name, PythonType
from py2cu.ir.visit import names_in
from py2cu.options import MAX_THREADS, Values, is_launchable
from py2cu.simulator import OutOfRange
from py2cu.tensor_bits import as_bits

WORK_LIMIT: Final = 20_000  # elements and threads: what CPython runs in a fraction of a second
WAITING_WORK: Final = 8  # how much more a thread is that others wait for
GROWTH_LIMIT: Final = 1 << 16  # elements along one dimension
INNER_SIZES: Final = (3, 1, 5, 0, 7, 4)  # dimensions that no launch axis runs over
FLOATS: Final = (0.5, -1.25, 2.0, 0.1, 3.75, 1e-3, 1.0)
INTEGERS: Final = (1, 2, 3, 1, 4, 2, 0)
BETWEEN_HALVES: Final = (1 + 2**-11 + 2**-40, 1 + 2**-8 + 2**-40)  # a double nearer to one than float32 can tell
BLOCK_VALUES: Final = (8, 1, 16, 3, 32, 4)
SMALL_VALUES: Final = (1, 2, 4, 8, 16)
TAME: Final = "tame"  # whole numbers are indices of every array
SMALL: Final = "small"  # and shifts of every type
GIVEN: Final = "given"  # by the user
# Which sizes (by place in the lists of sizes) meet which values.
PLAN: Final = (
    (1, "random"), (2, "random"), (3, "random"), (4, "random"), (5, "random"), (0, "random"),
    (2, TAME), (4, "extreme"), (4, "non-finite"),
)  # fmt: skip

Argument = torch.Tensor | int | float | bool | complex


@dataclass(frozen=True, slots=True)
class Case:
    """One call: every argument by name, arrays on the CPU. `strided` inputs are to be laid out with gaps.

    `sizes` are the values of dimensions and template arguments, `seed` is that of the values.
    """

    sizes: Mapping[str, int]
    values: str
    arguments: Mapping[str, Argument]
    strided: bool = False
    seed: int = 0

    def __str__(self) -> str:
        scalars = {name: value for name, value in self.arguments.items() if not isinstance(value, torch.Tensor)}
        named = ", ".join(f"{name}={value}" for name, value in (dict(self.sizes) | scalars).items())
        layout = ", strided inputs" if self.strided else ""
        return f"{named or 'no sizes'}, {self.values} values{layout}"


def invent_cases(signature: Signature, seed: int = 0) -> Iterator[Case]:
    """The cases of `signature`; those whose extents would be negative are left out.

    Empty arrays come last: torch gives them no memory, and reading past one ends the process before a report.
    """
    cases = _planned_cases(signature, seed)
    return iter(sorted(cases, key=lambda case: any(0 in v.shape for v in _tensors(case))))


def _tensors(case: Case) -> list[torch.Tensor]:
    return [value for value in case.arguments.values() if isinstance(value, torch.Tensor)]


def _planned_cases(signature: Signature, seed: int) -> Iterator[Case]:
    plan = [(place, values, False) for place, values in PLAN if values != "non-finite" or _has_floats(signature)]
    if signature.strided:
        plan.append((2, "random", True))
    for number, (place, values, strided) in enumerate(plan):
        sizes = choose_sizes(signature, place, number)
        case = make_case(signature, sizes, values, seed + number, strided=strided)
        if case is not None:
            yield case


MAX_ELEMENTS: Final = 2**26
"""The most elements of an invented array: extents that are constants may be of any size."""


def make_case(
    signature: Signature, sizes: Mapping[str, int], values: str, seed: int, *, strided: bool = False
) -> Case | None:
    """One case; None where an extent is negative or divided by zero, or an array has more than `MAX_ELEMENTS`."""
    dims = dict(sizes)
    scalars = [p for p in signature.parameters if not p.is_array and p.name not in sizes]
    defaults = {p.name: p.default.value for p in scalars if p.default is not None and seed % 3 == 0}
    free = {p.name: _free_scalar(p, seed) for p in scalars} | defaults
    dims |= {name: value for name, value in free.items() if isinstance(value, int)}
    extents = (sizes[name] for name in dimension_names(signature) if sizes.get(name))
    draw = ValueGenerator(values, seed, bound=min(extents, default=4))
    arguments: dict[str, Argument] = {}
    for parameter in signature.parameters:
        type_ = parameter.type
        if isinstance(type_, ArrayType):
            shape = _shape(type_, dims)
            if shape is None:
                return None
            arguments[parameter.name] = _fill(signature, parameter, draw.array(type_.dtype, shape))
        elif isinstance(type_, ElementType) and parameter.name not in {**sizes, **defaults}:
            arguments[parameter.name] = draw.array(type_.dtype, [1]).item()
        else:
            arguments[parameter.name] = free[parameter.name] if parameter.name in free else sizes[parameter.name]
    return Case(dict(sizes), values, arguments, strided, seed)


def _shape(type_: ArrayType, dims: dict[str, int]) -> list[int] | None:
    try:
        shape = [evaluate(dim, dims) for dim in type_.dims]
    except ValueError:
        return None
    return shape if all(extent >= 0 for extent in shape) and math.prod(shape) <= MAX_ELEMENTS else None


def _fill(signature: Signature, parameter: Parameter, drawn: torch.Tensor) -> torch.Tensor:
    """The array as the kernel meets it: drawn, or for an output its initial value or poison."""
    initial = dict(signature.inits).get(parameter.name)
    if parameter.role is not Role.OUTPUT:
        return drawn
    return poison(drawn) if initial is None else drawn.fill_(initial)


def given_case(signature: Signature, arguments: Mapping[str, Argument]) -> Case:
    """The user's own arguments as a case: tensors cloned to the CPU, dimensions and absent outputs filled in.

    Raises:
        ValueError: shapes that contradict each other, or a missing input.
    """
    complete = {n: v.detach().cpu().clone() if isinstance(v, torch.Tensor) else v for n, v in arguments.items()}
    dims = bind_dims(signature, complete)
    for parameter in signature.parameters:
        type_ = parameter.type
        if isinstance(type_, ArrayType) and parameter.name not in complete:
            shape = [evaluate(dim, dims) for dim in type_.dims]
            empty = torch.empty(shape, dtype=getattr(torch, type_.dtype.name))
            complete[parameter.name] = _fill(signature, parameter, empty)
        elif parameter.name in dims:
            complete.setdefault(parameter.name, dims[parameter.name])
    return Case({name: dims[name] for name in dimension_names(signature) if name in dims}, GIVEN, complete)


def enlarge(signature: Signature, case: Case, error: BaseException | None, seed: int) -> Case | None:
    """`case` with a larger array where its Python went past the end of one whose extent no launch axis runs over.

    A flat array of `3 * n` elements that is annotated `"m"` is found to be large enough this way. None where nothing
    may grow, or it would grow too far.
    """
    if not isinstance(error, OutOfRange) or not 0 <= error.index < GROWTH_LIMIT:
        return None
    type_ = next((p.type for p in signature.arrays if p.name == error.array), None)
    if not isinstance(type_, ArrayType):  # one that the kernel makes
        return None
    dim = type_.dims[error.axis]
    if not isinstance(dim, Name) or dim.id in {**_axis_of(signature), **signature.constexprs}:
        return None
    sizes = {**case.sizes, dim.id: max(error.index + 1, 2 * case.sizes[dim.id])}
    return make_case(signature, sizes, case.values, seed, strided=case.strided)


def scale_down(signature: Signature, case: Case, fits: Callable[[int], bool]) -> Case | None:
    """`case` with dimensions halved until its work `fits`; itself where it does, None where no dimension is left."""
    rows = _rows_of(signature)
    fixed = {*signature.constexprs, *(name for extent in signature.block for name in names_in(extent))}
    known = {name: size for name, size in case.sizes.items() if name in fixed}
    sizes = {name: size // rows.get(name, 1) for name, size in case.sizes.items() if name not in fixed}
    scaled = {**case.sizes, **_shrink(signature, sizes, known, fits)}
    if scaled == case.sizes:
        return case if fits(work_of(signature, scaled)) else None
    return make_case(signature, scaled, case.values, case.seed, strided=case.strided)


def _free_scalar(parameter: Parameter, number: int) -> int | float | bool | complex:
    """The value of a scalar that is no dimension."""
    kind = parameter.type.kind if isinstance(parameter.type, PythonType) else Kind.INT
    if kind is Kind.BOOL:
        return number % 2 == 0
    if kind is Kind.COMPLEX:
        return complex(FLOATS[number % len(FLOATS)], FLOATS[(number + 1) % len(FLOATS)])
    choices: tuple[int | float, ...] = FLOATS if kind is Kind.FLOAT else INTEGERS
    return choices[number % len(choices)]


def _has_floats(signature: Signature) -> bool:
    return any(isinstance(p.type, ArrayType) and p.type.dtype.kind >= Kind.FLOAT for p in signature.inputs)


# --- sizes --------------------------------------------------------------------------------------------------------


def axis_sizes(block: int) -> tuple[int, ...]:
    """Sizes along an axis whose block is `block` wide."""
    odd = 37 if block > 64 else 7 if block > 8 else 5
    return (0, 1, odd, max(block - 1, 0), block + 1, 3 * block + 5)


def choose_sizes(signature: Signature, place: int, number: int = 0) -> dict[str, int]:
    """A size for every dimension name. Lists are rotated by dimension, so that no picture is square.

    Template arguments have few values, of which case `number` has one each.
    """
    axes = _axis_of(signature)
    known = choose_constexprs(signature, number)
    known |= choose_block(signature, known, place)
    shape = (*(evaluate(extent, known) for extent in signature.block), 1, 1)
    sizes: dict[str, int] = {}
    for ordinal, name in enumerate(name for name in dimension_names(signature) if name not in known):
        if name in axes:
            choices = axis_sizes(shape[axes[name]])
        else:  # threads that wait for each other go through it in steps of a block
            choices = axis_sizes(shape[0]) if signature.has_barrier else INNER_SIZES
        sizes[name] = choices[(place + ordinal) % len(choices)]
    return known | _shrink(signature, sizes, known, lambda work: work <= WORK_LIMIT)


def _rows_of(signature: Signature) -> dict[str, int]:
    """What dimensions are multiples of, since arrays are viewed in rows."""
    extents = [(name, row) for array, row in signature.vector_widths for name in names_in(_extent(signature, array))]
    return dict(sorted(extents, key=lambda extent: extent[1]))  # the longest, where there are several


def _extent(signature: Signature, array: str) -> Expr:
    type_ = signature.parameter(array).type
    assert isinstance(type_, ArrayType)
    return type_.dims[0]


def choose_constexprs(signature: Signature, number: int) -> dict[str, int]:
    """A value for every template argument, of those that there are instances for; each gets its turn."""
    chosen = {}
    for name, constexpr in signature.constexprs.items():
        chosen[name] = constexpr.values[number % len(constexpr.values)]
        number //= len(constexpr.values)
    return chosen


def choose_block(signature: Signature, known: dict[str, int], place: int) -> dict[str, int]:
    """A value for every name that the block is made of and only a call tells, such that it can be launched."""
    names = {name for extent in signature.block for name in names_in(extent)} - known.keys()
    fine = [value for value in BLOCK_VALUES if _is_launched(signature, known | dict.fromkeys(names, value))]
    return dict.fromkeys(names, fine[place % len(fine)] if fine else 1)


def _is_launched(signature: Signature, sizes: dict[str, int]) -> bool:
    """True where these sizes make a block that the kernel is for."""
    shape = tuple(evaluate(extent, sizes) for extent in signature.block)
    return is_launchable(shape) and math.prod(shape) <= min((MAX_THREADS, *signature.launch_bounds[:1]))


def small_values(signature: Signature) -> Values:
    """Numbers for the template arguments that have no instance, such that every block of them can be launched."""
    ints = signature.constexpr_ints
    lacking = [name for name, constexpr in ints.items() if not constexpr.values]
    most = {name: constexpr.most for name, constexpr in ints.items()}

    def is_fine(value: int) -> bool:
        sizes = most | dict.fromkeys(lacking, value)
        return _is_launched(signature, sizes)

    # Instances are compiled for every combination: of many, few values each.
    return {name: tuple(value for value in SMALL_VALUES[:: len(lacking)] if is_fine(value)) for name in lacking}


def dimension_names(signature: Signature) -> tuple[str, ...]:
    """Every name that an extent or the size of the launch reads, in order of first appearance."""
    extents = [dim for p in signature.arrays if isinstance(p.type, ArrayType) for dim in p.type.dims]
    extents += [index.extent for index in signature.indices]
    extents += signature.size or ()
    extents += signature.block
    return tuple(dict.fromkeys(itertools.chain.from_iterable(map(names_in, extents))))


def _axis_of(signature: Signature) -> dict[str, int]:
    """The launch axis (0 for x) that runs over each dimension."""
    runs = [("xyz".index(index.axis), index.extent) for index in signature.indices]
    runs += list(enumerate(signature.size or ()))
    return {name: axis for axis, extent in reversed(runs) for name in names_in(extent)}


def _shrink(
    signature: Signature, sizes: dict[str, int], known: dict[str, int], fits: Callable[[int], bool]
) -> dict[str, int]:
    """Halve dimensions until the work `fits`: inner ones first, for the block edges matter most.

    Those of arrays that are viewed in rows are counted in rows till then.
    """
    axes, rows = _axis_of(signature), _rows_of(signature)

    def elements() -> dict[str, int]:
        return {name: size * rows.get(name, 1) for name, size in sizes.items()}

    while not fits(work_of(signature, known | elements())) and any(size > 1 for size in sizes.values()):
        inner = [name for name in sizes if name not in axes and sizes[name] > 2]
        largest = max(inner or sizes, key=lambda name: sizes[name])
        sizes[largest] = sizes[largest] // 2 | 1
    return elements()


def work_of(signature: Signature, sizes: Mapping[str, int]) -> int:
    """A measure of what a case takes: the elements of an array that had every dimension, or the threads that are
    wanted, whichever is more.
    """
    elements = math.prod(max(1, size) for size in sizes.values())
    try:
        threads = math.prod([evaluate(extent, dict(sizes)) for extent in signature.size or ()])
    except ValueError:  # the case will be left out
        return elements
    return max(elements, threads * (WAITING_WORK if signature.has_barrier else 1))


# --- values -------------------------------------------------------------------------------------------------------


class ValueGenerator:
    """A seeded source of elements of one flavour: random, tame, small, extreme or non-finite."""

    def __init__(self, values: str, seed: int, bound: int) -> None:
        self._values = values
        self._bound = bound  # tame integers stay below it, so that they can index
        self._generator = torch.Generator().manual_seed(seed)

    def array(self, dtype: DType, shape: list[int]) -> torch.Tensor:
        """A fresh contiguous tensor."""
        if dtype.kind is Kind.COMPLEX:
            return torch.view_as_complex(self.array(dtype.part, [*shape, 2]))
        kind: torch.dtype = getattr(torch, dtype.name)
        if self._values in (TAME, SMALL):
            return self._tame(dtype, shape).to(kind)
        drawn = self._random(dtype, shape).to(kind)
        if self._values == "random" or not drawn.numel():
            return drawn
        special = torch.tensor(self._special(dtype), dtype=kind)
        picked = special[self._integers(0, len(special), shape)]
        # As bits: torch has few operations on its wide unsigned types.
        return torch.where(self._integers(0, 4, shape) > 0, as_bits(picked), as_bits(drawn)).view(kind)

    def _integers(self, low: int, high: int, shape: list[int]) -> torch.Tensor:
        return torch.randint(low, high, shape, generator=self._generator)

    def _random(self, dtype: DType, shape: list[int]) -> torch.Tensor:
        if dtype.kind is Kind.FLOAT:
            return 3 * torch.randn(shape, generator=self._generator, dtype=torch.float64)
        # Wide integers stay moderate: they are counts and indices more often than bit patterns.
        reach = 1 << 16 if dtype.bits <= 16 else 1000
        return self._integers(max(int(dtype.low), -reach), min(int(dtype.high), reach) + 1, shape)

    def _tame(self, dtype: DType, shape: list[int]) -> torch.Tensor:
        if dtype.kind is Kind.FLOAT:
            return 0.5 + 1.5 * torch.rand(shape, generator=self._generator, dtype=torch.float64)
        if dtype.kind is Kind.BOOL:
            return self._integers(0, 2, shape)
        # Positive where it can be, to divide by; below every extent, to index with; small: to shift by.
        limit = 8 if self._values == SMALL else 128
        return self._integers(min(1, self._bound - 1), min(self._bound, limit), shape)

    def _special(self, dtype: DType) -> list[float]:
        if dtype.kind is not Kind.FLOAT:
            return [dtype.low, dtype.high, 0, 1] + ([-1] if dtype.signed else [])
        tiny = torch.finfo(getattr(torch, dtype.name)).smallest_normal
        finite = [0.0, -0.0, 1.0, -1.0, dtype.high, dtype.low, tiny, -tiny, tiny / 4, *BETWEEN_HALVES]
        return finite if self._values == "extreme" else [*finite, math.inf, -math.inf, math.nan]
