"""Where tensors lie in memory: whether the elements of one overlap, and whether two tensors do.

In: tensors with any strides. Out: False only where no two elements share memory. The torch binding has the same rules.
For launchers, `MemoryLines` writes the quick tests by bounds; only where these meet, the functions here are asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import torch

from py2cu.call.launchers.extents import ExtentLines, if_given
from py2cu.ir.abi.launch import LaunchProgram
from py2cu.ir.abi.parameters import Parameter
from py2cu.ir.abi.signature import Signature
from py2cu.records import record

Axes = list[tuple[int, int]]


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


def are_same(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors of one shape and dtype have the same elements."""
    return a.data_ptr() == b.data_ptr() and _axes(a) == _axes(b)  # rule: in-place-same


def _axes(tensor: torch.Tensor) -> Axes:
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
    return overlap(written, other) and not (in_place and are_same(written, other))


# --- in launchers ---------------------------------------------------------------------------------------------------


@record(frozen=True, slots=True)
class MemoryLines:
    """The lines of a launcher about memory."""

    signature: Signature
    program: LaunchProgram
    extents: ExtentLines
    on_grid: bool

    def lines(self, arrays: Sequence[Parameter], given: Sequence[Parameter]) -> Iterator[str]:
        """Addresses `p_x`, alignment, strides `t_…`, and overlaps of written arrays among those that a call gives."""
        for parameter in arrays:
            address = f"v_{parameter.name}.data_ptr()"
            is_optional = parameter.may_be_none
            yield f"p_{parameter.name} = {f'0 if v_{parameter.name} is None else ' * is_optional}{address}"
        if given:
            yield f"if not ({' and '.join(f'p_{p.name}' for p in given)}):"
            yield f"    require_memory({', '.join(f'v_{p.name}' for p in given)})"
        widths = dict(self.signature.vector_widths)
        for parameter in (p for p in arrays if p.name in self.signature.aligned):
            yield f"if p_{parameter.name} % {widths[parameter.name] * self._size(parameter)}: raise misfit"
        for parameter in (p for p in arrays if p.name in self.signature.strided):
            yield from self._strides(parameter)
        pairs = [*self.signature.apart({p.name for p in given})]
        for parameter in dict.fromkeys(chain.from_iterable(pairs)):
            yield from self._end(parameter)
        for written, other in pairs:
            yield self._apart(written, other)  # rule: launcher-overlap

    def _size(self, parameter: Parameter) -> int:
        return max(self.signature.dtype(parameter.name).bits, 8) // 8

    def _strides(self, parameter: Parameter) -> Iterator[str]:
        """The strides of an array, 0 where there are no neighbours."""
        name = parameter.name
        extents = self.extents.of(name)
        strides = [f"r_{name}_{axis}" for axis in range(len(extents))]
        if strides:
            zeros = f"{' = '.join(strides)} = 0"
            lines = [f"{' '.join(f'{stride},' for stride in strides)} = stride_{name}"]
            lines += [f"if not ({self.extents.elements(name)}): {zeros}"] if len(strides) > 1 else []
            lines += [f"if {extent} < 2: {stride} = 0" for extent, stride in zip(extents, strides, strict=True)]
            if parameter.may_be_none:
                yield zeros
            yield from if_given(parameter, lines)
        for stride in self.program.strides:
            if stride.array == name:
                yield f"t_{stride.name} = {strides[stride.axis]}"

    def _end(self, parameter: Parameter) -> Iterator[str]:
        """`e_x`: the address behind the last element of `x`."""
        name, size, elements = parameter.name, self._size(parameter), self.extents.elements(parameter.name)
        extents = self.extents.of(name)
        strides = [f"r_{name}_{axis}" for axis in range(len(extents))]
        length = f"{elements} * {size}"
        if name in self.signature.strided and strides:
            spans = [f"({extent} - 1) * {stride}" for extent, stride in zip(extents, strides, strict=True)]
            length = f"(1 + {' + '.join(spans)}) * {size} if {elements} else 0"
        is_left_out = f"0 if v_{name} is None else " * parameter.may_be_none
        yield f"l_{name} = {is_left_out}{length}"
        yield f"e_{name} = p_{name} + l_{name}"

    def _apart(self, written: Parameter, other: Parameter) -> str:
        one, two = written.name, other.name
        in_place = not self.on_grid and (one, two) in self.signature.in_place
        test = f"p_{one} < e_{two} and p_{two} < e_{one}"
        if in_place and not {one, two} & {*self.signature.strided}:
            test += f" and p_{one} != p_{two}"  # contiguous arrays of one shape
        return f"if {test} and meet(v_{one}, v_{two}, {in_place}): raise misfit"
