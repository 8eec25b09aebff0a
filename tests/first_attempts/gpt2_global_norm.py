"""The sum of the squares of a flat buffer: each block's part, added up by the last block, the same in every run."""

import numpy as np
import torch
from jaxtyping import Float, Float32, Int32
from torch import Tensor

from py2cu import atomic, blockIdx, kernel, shared, shfl_xor_sync, syncthreads, threadfence, threadIdx

FULL = 0xFFFFFFFF
THREADS = 512
BLOCKS = 1056
WARPS = THREADS // 32


def warp_sum(value):
    offset = 16
    while offset > 0:
        value += shfl_xor_sync(FULL, value, offset)
        offset //= 2
    return value


def block_sum(part, value):
    """The sum over the block, to each thread."""
    value = warp_sum(value)
    if threadIdx.x % 32 == 0:
        part[threadIdx.x // 32] = value
    syncthreads()
    total = sum(part[w] for w in range(WARPS))
    syncthreads()
    return total


@kernel(size="BLOCKS * THREADS", block=THREADS, init={"ticket": 0})
def sum_of_squares(
    x: Float[Tensor, "4*n"],
    out: Float32[Tensor, "1"],
    partial: Float32[Tensor, "BLOCKS"],
    ticket: Int32[Tensor, "1"],
):
    part = shared(WARPS, np.float32)
    is_last = shared(1, np.int32)
    x4 = x.view(-1, 4)
    total = np.float32(0)
    for i in range(blockIdx.x * THREADS + threadIdx.x, len(x4), BLOCKS * THREADS):
        a, b, c, d = x4[i]
        total += np.float32(a) ** 2 + np.float32(b) ** 2 + np.float32(c) ** 2 + np.float32(d) ** 2
    total = block_sum(part, total)
    if threadIdx.x == 0:
        partial[blockIdx.x] = total
        threadfence()
        is_last[0] = int(atomic.add(ticket, 0, 1) == BLOCKS - 1)
    syncthreads()
    if is_last[0] > 0:
        total = np.float32(0)
        for b in range(threadIdx.x, BLOCKS, THREADS):
            total += partial[b]
        total = block_sum(part, total)
        if threadIdx.x == 0:
            out[0] = total


def run(x):
    return sum_of_squares(x)[0]


KERNEL = run
TOLERANCE = dict(rtol=1e-4, atol=1e-4)


def reference(x):
    return (x.double() ** 2).sum().float().view(1)


def cases():
    torch.manual_seed(0)
    for dtype, n in ((torch.float32, 5000), (torch.bfloat16, 64)):
        yield dict(x=torch.randn(n).to(dtype))
