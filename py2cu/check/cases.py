"""Make the cases of `check`: invented arguments of a kernel, or the user's own.

In: a `Signature`, and a seed or arguments. Out: `Case`s, the same for the same seed. `sizes` chooses their dimensions,
`draw` their values. Outputs hold poison, or their `init=` value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import torch

from py2cu.call.layout import allocate_outputs
from py2cu.check import draw
from py2cu.check.draw import EXTREME, NON_FINITE, RANDOM, TAME, ValueGenerator
from py2cu.check.redzones import CONTIGUOUS, EXPANDED, SLICED, TRANSPOSED, poison
from py2cu.check.sizes import (
    axis_by_dimension,
    choose_many,
    choose_sizes,
    dimension_names,
    row_lengths,
    shrink,
    work_of,
)
from py2cu.dtypes import Kind
from py2cu.ir.abi.dims import bind_dims
from py2cu.ir.abi.parameters import Parameter, Role
from py2cu.ir.abi.signature import Signature, evaluate
from py2cu.ir.types import ArrayType, ElementType, Name
from py2cu.ir.visit import names_in
from py2cu.simulator import OutOfRange

GROWTH_LIMIT: Final = 1 << 16  # elements along one dimension
USER: Final = "given"  # the flavour of a user's own arguments: reports say "given values"
# The invented cases: an index into the lists of sizes, and the flavour of the values.
PLAN: Final = (
    (1, RANDOM), (2, RANDOM), (3, RANDOM), (4, RANDOM), (5, RANDOM), (0, RANDOM),
    (2, TAME), (4, EXTREME), (4, NON_FINITE),
)  # fmt: skip

Argument = torch.Tensor | int | float | bool | complex


@dataclass(frozen=True, slots=True)
class Case:
    """One call: every argument by name, arrays on the CPU. `layout` is that of the compiled kernel's strided arrays.

    `left_out` are the optional parameters that are None, which `arguments` lacks. `sizes` are the values of dimensions
    and template arguments; `values` is the flavour of the other values, which are drawn from `seed`.
    """

    sizes: Mapping[str, int]
    values: str
    arguments: Mapping[str, Argument]
    layout: str = CONTIGUOUS
    seed: int = 0
    left_out: tuple[str, ...] = ()

    def __str__(self) -> str:
        scalars = {name: value for name, value in self.arguments.items() if not isinstance(value, torch.Tensor)}
        shown: dict[str, object] = {**self.sizes, **scalars, **dict.fromkeys(self.left_out)}
        named = ", ".join(f"{name}={value}" for name, value in shown.items())
        layout = f", {self.layout} arrays" if self.layout else ""
        return f"{named or 'no sizes'}, {self.values} values{layout}"

    def layout_of(self, name: str, signature: Signature) -> str:
        """The layout of an array; one that is written is sliced where others are expanded."""
        if name not in signature.strided:
            return CONTIGUOUS
        is_read = signature.parameter(name).role is Role.INPUT
        return SLICED if self.layout == EXPANDED and not is_read else self.layout


def invent_cases(signature: Signature, seed: int = 0, *, on_gpu: bool = False) -> Iterator[Case]:
    """The cases of `signature`, without those whose extents would be negative.

    A GPU gets more of them, since there the threads of a large launch may compute several elements each.

    Empty arrays come last: torch allocates no memory for them, and a kernel that reads past one ends the process before
    there is a report.
    """
    cases = [*_planned_cases(signature, seed), *(_large_cases(signature, seed) if on_gpu else ())]
    return iter(sorted(cases, key=lambda case: any(0 in v.shape for v in _tensors(case))))


def _tensors(case: Case) -> list[torch.Tensor]:
    return [value for value in case.arguments.values() if isinstance(value, torch.Tensor)]


def _planned_cases(signature: Signature, seed: int) -> Iterator[Case]:
    plan = [(index, values, CONTIGUOUS) for index, values in PLAN if values != NON_FINITE or _has_floats(signature)]
    if signature.strided:
        plan += [(2, RANDOM, SLICED), (3, RANDOM, TRANSPOSED), (4, RANDOM, EXPANDED)]
    for number, (index, values, layout) in enumerate(plan):
        sizes = choose_sizes(signature, index, number)
        left_out = choose_left_out(signature, number)
        case = make_case(signature, sizes, values, seed + number, layout=layout, left_out=left_out)
        if case is not None:
            yield case


def _large_cases(signature: Signature, seed: int) -> Iterator[Case]:
    """Two cases of an index kernel, with rows that are multiples of every pack, and with others."""
    for number, is_ragged in enumerate((False, True) if signature.indices else ()):  # rule: check-large
        sizes = choose_many(signature, number, is_ragged=is_ragged)
        if sizes and (case := make_case(signature, sizes, RANDOM, seed + number)) is not None:
            yield case


MAX_ELEMENTS: Final = 2**26
"""The most elements of an invented array: extents that are constants may be of any size."""


def make_case(
    signature: Signature,
    sizes: Mapping[str, int],
    values: str,
    seed: int,
    *,
    layout: str = CONTIGUOUS,
    left_out: tuple[str, ...] = (),
) -> Case | None:
    """One case; None where an extent is negative or divided by zero, or an array has more than `MAX_ELEMENTS`."""
    dims = dict(sizes)
    scalars = [p for p in signature.parameters if not p.is_array and p.name not in sizes and p.name not in left_out]
    defaults = {p.name: p.default.value for p in scalars if p.default is not None and seed % 3 == 0}
    free = {p.name: draw.scalar(p, seed) for p in scalars} | defaults
    dims |= {name: value for name, value in free.items() if isinstance(value, int)}
    extents = (sizes[name] for name in dimension_names(signature) if sizes.get(name))
    generator = ValueGenerator(values, seed, bound=min(extents, default=4))
    domains = {name: (low, high) for name, low, high in signature.domains}
    arguments: dict[str, Argument] = {}
    for parameter in signature.parameters:
        type_ = parameter.type
        if parameter.name in left_out:
            continue
        if isinstance(type_, ArrayType):
            shape = _shape(type_, dims, seed)
            if shape is None:
                return None
            drawn = generator.array(type_.dtype, shape, domains.get(parameter.name))
            if layout == EXPANDED and parameter.name in signature.strided and shape:
                drawn = drawn[:1].expand(drawn.shape).clone(memory_format=torch.contiguous_format)
            arguments[parameter.name] = _fill(signature, parameter, drawn)
        elif isinstance(type_, ElementType) and parameter.name not in {**sizes, **defaults}:
            arguments[parameter.name] = generator.array(type_.dtype, [1]).item()
        else:
            arguments[parameter.name] = free[parameter.name] if parameter.name in free else sizes[parameter.name]
    return Case(dict(sizes), values, arguments, layout, seed, left_out)


def choose_left_out(signature: Signature, number: int) -> tuple[str, ...]:
    """The optional parameters that a case leaves out: consecutive numbers count through all choices."""
    optional = (p.name for p in signature.parameters if p.may_be_none)
    return tuple(name for place, name in enumerate(optional) if number >> place & 1)


def _shape(type_: ArrayType, dims: dict[str, int], seed: int) -> list[int] | None:
    """The shape of an invented array; equal leading extents for equal sizes and seeds."""
    try:
        shape = [evaluate(dim, dims) for dim in type_.dims]
    except ValueError:
        return None
    if not all(extent >= 0 for extent in shape) or math.prod(shape) > MAX_ELEMENTS:
        return None
    return [*_leading_shape(shape[0], seed), *shape[1:]] if type_.leading else shape


def _leading_shape(size: int, seed: int) -> list[int]:
    """Any number of extents whose product is `size`."""
    if size == 1 and seed % 4 == 0:
        return []
    factor = next((n for n in range(2, size) if size % n == 0), 1)
    return ([size], [1, size], [factor, size // factor], [size, 1])[seed % 4]


def _fill(signature: Signature, parameter: Parameter, drawn: torch.Tensor) -> torch.Tensor:
    """The array before the launch: `drawn`, or for an output its initial value or poison."""
    initial = dict(signature.inits).get(parameter.name)
    if parameter.role is not Role.OUTPUT:
        return drawn
    return poison(drawn) if initial is None else drawn.fill_(initial)


def user_case(signature: Signature, arguments: Mapping[str, Argument]) -> Case:
    """The user's own arguments as a case: tensors cloned to the CPU, dimensions and absent outputs added.

    Raises:
        ValueError: shapes that contradict each other, or a missing input.
    """
    complete = {n: v.detach().cpu().clone() if isinstance(v, torch.Tensor) else v for n, v in arguments.items()}
    dims = bind_dims(signature, complete)
    with torch.device("cpu"):
        with_outputs = allocate_outputs(signature, complete)
    for name in with_outputs.keys() - complete.keys() - dict(signature.inits).keys():
        poison(with_outputs[name])
    for parameter in signature.parameters:
        if not parameter.is_array and parameter.name in dims:
            with_outputs.setdefault(parameter.name, dims[parameter.name])
    sizes = {name: dims[name] for name in dimension_names(signature) if name in dims}
    left_out = tuple(p.name for p in signature.parameters if p.may_be_none and p.name not in arguments)
    return Case(sizes, USER, with_outputs, left_out=left_out)


def enlarge(signature: Signature, case: Case, error: BaseException | None, seed: int) -> Case | None:
    """`case` with a larger array, if its Python ran past the end of an array whose extent the launch does not fix.

    For instance, a flat array of `3 * n` elements may be annotated `"m"`. None if no array may grow, or if it would
    grow too far.
    """
    if not isinstance(error, OutOfRange) or not 0 <= error.index < GROWTH_LIMIT:
        return None
    type_ = next((p.type for p in signature.arrays if p.name == error.array), None)
    if not isinstance(type_, ArrayType):  # an array that the kernel makes
        return None
    dim = type_.dims[error.axis]
    if not isinstance(dim, Name) or dim.id in {**axis_by_dimension(signature), **signature.constexprs}:
        return None
    sizes = {**case.sizes, dim.id: max(error.index + 1, 2 * case.sizes[dim.id])}
    return make_case(signature, sizes, case.values, seed, layout=case.layout, left_out=case.left_out)


def scale_down(signature: Signature, case: Case, fits: Callable[[int], bool]) -> Case | None:
    """`case` with dimensions halved until its work `fits`; itself if it does already, None if none can shrink."""
    rows = row_lengths(signature)
    fixed = {*signature.constexprs, *(name for extent in signature.block for name in names_in(extent))}
    fixed_sizes = {name: size for name, size in case.sizes.items() if name in fixed}
    sizes = {name: size // rows.get(name, 1) for name, size in case.sizes.items() if name not in fixed}
    scaled = {**case.sizes, **shrink(signature, sizes, fixed_sizes, fits)}
    if scaled == case.sizes:
        return case if fits(work_of(signature, scaled)) else None
    return make_case(signature, scaled, case.values, case.seed, layout=case.layout, left_out=case.left_out)


def _has_floats(signature: Signature) -> bool:
    return any(isinstance(p.type, ArrayType) and p.type.dtype.kind >= Kind.FLOAT for p in signature.inputs)
