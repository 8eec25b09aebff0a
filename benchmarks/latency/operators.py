"""Peers of the operator and of recorded calls, written by hand around the same kernels."""

from __future__ import annotations

import functools
from typing import Any, Final

import torch
from torch import Tensor

from benchmarks.latency import kernels

NAMESPACE: Final = "py2cu_benchmarks"


@functools.cache
def by_custom_op() -> Any:
    """An operator by `torch.library.custom_op` that allocates its output and launches `three`."""

    def three(a: Tensor, b: Tensor) -> Tensor:
        out = torch.empty_like(a)
        kernels.three(a, b, out)
        return out

    return torch.library.custom_op(f"{NAMESPACE}::three", three, mutates_args=())


class ByHand(torch.autograd.Function):
    """The product, its forward and its backward kernel; saves what `product` saves."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor) -> Any:
        ctx.save_for_backward(a, b)
        return kernels.product(a, b)

    @staticmethod
    def backward(ctx: Any, grad_out: Tensor) -> Any:
        a, b = ctx.saved_tensors
        return kernels.product_gradients(a, b, grad_out)
