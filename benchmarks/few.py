"""Launches of few elements: one element a thread beside packs, on the device, of arrays that fit its caches.

`python -m benchmarks few`, on a GPU. A CUDA graph holds a hundred launches. Up to `FEW_ELEMENTS` calls give each thread
one element; the rows beyond show where packs begin to pay.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final
from unittest import mock

import torch
from torch import Tensor

from benchmarks import bandwidth
from benchmarks.gpu import in_turns
from benchmarks.table import Row, compare
from py2cu import Kernel, kernel
from py2cu.call.launchers import launcher
from py2cu.ir.abi.launch import FEW_ELEMENTS

SIZES: Final = (512, FEW_ELEMENTS, 2**15, 2**17, 2**18, 2**20)
LAUNCHES: Final = 100
BLOCK: Final = 128  # of packs
NOISE: Final = 0.03


def rows() -> Iterator[Row]:
    for name, function, make in (
        ("add f32", bandwidth.add, lambda n: [_normal(n), _normal(n), _normal(n)]),
        ("GELU erf f32", bandwidth.gelu_erf, lambda n: [_normal(n), _normal(n)]),
        ("GELU erf f16", bandwidth.gelu_erf, lambda n: [_normal(n).half(), _normal(n).half()]),
        ("grayscale u8, 3 planes", bandwidth.grayscale, lambda n: [_bytes(3, n), _bytes(n)]),
    ):
        single = kernel(function)
        for count in SIZES:
            arrays = make(count)
            calls = single[-(-count // BLOCK), BLOCK], _packed(function, arrays)
            ours, packs = (seconds / LAUNCHES for seconds in in_turns(*(_graph(call, arrays) for call in calls)))
            limit = 1 + NOISE if count <= FEW_ELEMENTS else None
            yield compare(f"{name}, {count:,} elements, one a thread", ours, packs, "packs", limit)


def _packed(function: Callable[..., None], arrays: list[Tensor]) -> Kernel:
    """The kernel whose calls take packs, of however few elements."""
    packed = kernel(function)
    with mock.patch.object(launcher, "FEW_ELEMENTS", 0):
        packed(*arrays)  # the first call writes the launcher
    return packed


def _graph(call: Callable[..., Any], arrays: list[Tensor]) -> Callable[[], None]:
    call(*arrays)
    torch.cuda.synchronize()
    recorded = torch.cuda.CUDAGraph()
    with torch.cuda.graph(recorded):
        for _ in range(LAUNCHES):
            call(*arrays)
    return recorded.replay


def _normal(count: int) -> Tensor:
    return torch.randn(count, device="cuda")


def _bytes(*shape: int) -> Tensor:
    return torch.randint(0, 256, shape, dtype=torch.uint8, device="cuda")
