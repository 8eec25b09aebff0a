"""Where tensors lie in memory: whether the elements of one overlap, and whether two tensors do.

In: tensors with any strides. Out: False only where no two elements share memory. The torch binding has the same rules.
For launchers, `memory_lines` writes the quick tests by bounds; only where these meet, the functions here are asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import torch

from py2cu.call.launchers.extents import ExtentLines
from py2cu.ir.abi.parameters import Parameter


def overlaps_itself(tensor: torch.Tensor) -> bool:
    """Whether two elements may have one address: some stride is less than what the smaller strides span."""
    span = 1
    for stride, extent in sorted(_axes(tensor)):
        if stride < span:
            return True
        span += (extent - 1) * stride
    return False


def overlap(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors may share memory.

    Columns of one matrix do not: modulo the stride of its rows, the elements of each lie in an interval of their own.
    """
    start, other = a.data_ptr(), b.data_ptr()
    if not (start < other + _bytes(b) and other < start + _bytes(a)):
        return False
    size = a.element_size()
    periods = {stride for stride, _ in (*_axes(a), *_axes(b))} - {0} if size == b.element_size() else set()
    for period in periods:
        distance = (other - start) % (period * size)
        if distance >= _bytes(a, period) and distance + _bytes(b, period) <= period * size:
            return False
    return True


def _axes(tensor: torch.Tensor) -> list[tuple[int, int]]:
    """The strides and extents of the axes on which there are neighbours."""
    if tensor.numel() == 0:
        return []
    return [(stride, extent) for stride, extent in zip(tensor.stride(), tensor.shape, strict=True) if extent > 1]


def _bytes(tensor: torch.Tensor, period: int = 0) -> int:
    """The bytes from the first element to the last, without the axes whose stride is a multiple of `period`."""
    if tensor.numel() == 0:
        return 0
    inner = ((extent - 1) * stride for stride, extent in _axes(tensor) if not period or stride % period)
    return (1 + sum(inner)) * tensor.element_size()


def meet(written: torch.Tensor, other: torch.Tensor, in_place: bool) -> bool:
    """Whether two arrays share memory, but for one array in two places that may be one."""
    if in_place and written.data_ptr() == other.data_ptr() and _axes(written) == _axes(other):  # rule: in-place-same
        return False
    return overlap(written, other)


# --- in launchers ---------------------------------------------------------------------------------------------------


def memory_lines(
    extents: ExtentLines, arrays: Sequence[Parameter], given: Sequence[Parameter], *, on_grid: bool
) -> Iterator[str]:
    """Lines that read addresses `p_x` and strides `t_…`, and check alignment and the overlaps of written arrays."""
    signature, widths = extents.signature, dict(extents.signature.vector_widths)
    for parameter in arrays:
        yield f"p_{parameter.name} = v_{parameter.name}.data_ptr()"
    if given:
        yield f"if not ({' and '.join(f'p_{p.name}' for p in given)}):"
        yield f"    require_memory({', '.join(f'v_{p.name}' for p in given)})"
    for name in (p.name for p in arrays if p.name in signature.aligned):
        yield f"if p_{name} % {widths[name] * signature.dtype(name).itemsize}: raise misfit"
    for parameter in (p for p in arrays if p.name in signature.strided):
        yield from _strides(extents, parameter)
    pairs = [*signature.apart({p.name for p in given})]
    for parameter in dict.fromkeys(chain.from_iterable(pairs)):
        name = parameter.name
        yield f"l_{name} = {_length(extents, name)}"
        yield f"e_{name} = p_{name} + l_{name}"  # the address behind the last element
    for one, two in ((written.name, other.name) for written, other in pairs):
        in_place = not on_grid and (one, two) in signature.in_place
        test = f"p_{one} < e_{two} and p_{two} < e_{one}"
        if in_place and not {one, two} & {*signature.strided}:
            test += f" and p_{one} != p_{two}"  # contiguous arrays of one shape
        yield f"if {test} and meet(v_{one}, v_{two}, {in_place}): raise misfit"  # rule: launcher-overlap


def _strides(extents: ExtentLines, parameter: Parameter) -> Iterator[str]:
    """`r_x_0`, `r_x_1`: the strides of an array, 0 where there are no neighbours."""
    name = parameter.name
    axes = extents.of(name)
    strides = [f"r_{name}_{axis}" for axis in range(len(axes))]
    if strides:
        yield f"{' '.join(f'{stride},' for stride in strides)} = stride_{name}"
        if len(strides) > 1:
            yield f"if not ({extents.elements(name)}): {' = '.join(strides)} = 0"
        yield from (f"if {extent} < 2: {stride} = 0" for extent, stride in zip(axes, strides, strict=True))
    for stride in extents.program.strides:
        if stride.array == name:
            yield f"t_{stride.name} = {strides[stride.axis]}"


def _length(extents: ExtentLines, name: str) -> str:
    """The bytes from the first element of an array to the last."""
    size, elements = extents.signature.dtype(name).itemsize, extents.elements(name)
    spans = [f"({extent} - 1) * r_{name}_{axis}" for axis, extent in enumerate(extents.of(name))]
    if name in extents.signature.strided and spans:
        return f"(1 + {' + '.join(spans)}) * {size} if {elements} else 0"
    return f"{elements} * {size}"
