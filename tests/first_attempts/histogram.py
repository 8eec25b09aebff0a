"""Histogram with equal bins: a private one per block in shared memory, then atomics to global memory."""

import numpy as np
import torch
from jaxtyping import Float32, Int32
from torch import Tensor

from py2cu import atomic, blockDim, blockIdx, kernel, shared, syncthreads, threadIdx

BINS = 64


@kernel(size="n", block=256)
def histogram(x: Float32[Tensor, "n"], counts: Int32[Tensor, "64"], lo: float = 0.0, hi: float = 1.0):
    hist = shared(BINS, np.int32)
    for b in range(threadIdx.x, BINS, blockDim.x):
        hist[b] = 0
    syncthreads()

    i = blockIdx.x * blockDim.x + threadIdx.x
    if i < len(x):
        v = x[i]
        if lo <= v <= hi:
            b = int((v - lo) / (hi - lo) * BINS)
            atomic.add(hist, min(b, BINS - 1), 1)
    syncthreads()

    for b in range(threadIdx.x, BINS, blockDim.x):
        if hist[b] > 0:
            atomic.add(counts, b, hist[b])


KERNEL = histogram
IN_PLACE = ("counts",)


def reference(x, counts, lo=0.0, hi=1.0):
    inside = x[(x >= lo) & (x <= hi)]
    b = ((inside - lo) / (hi - lo) * BINS).int().clamp(max=BINS - 1)
    return (counts + torch.bincount(b, minlength=BINS).int(),)


def cases():
    torch.manual_seed(0)
    yield dict(x=torch.rand(1000), counts=torch.zeros(BINS, dtype=torch.int32))
    yield dict(x=torch.randn(700), counts=torch.zeros(BINS, dtype=torch.int32), lo=-2.0, hi=2.0)
