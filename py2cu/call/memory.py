"""Where tensors lie in memory: whether the elements of one overlap, and whether two tensors do.

In: tensors with any strides. Out: False only where no two elements share memory. The torch binding has the same rules.
"""

from __future__ import annotations

import torch

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
