"""Sums of many numbers: threads add their own, then the block adds up its threads as a tree.

    python examples/reductions.py

A block first goes through the input in strides of the whole grid, so that any number of blocks covers any length. Then
half of its threads add what the other half has, then a quarter, and so on: eight steps for 256 threads, a barrier
before each. One number a block is left. A second launch with one block adds these (`total`), or each block adds its
own to the result, which no other thread can come between: `atomic.add` (`total_at_once`).
"""

import numpy as np
import torch
from jaxtyping import Float32
from torch import Tensor

from py2cu import atomic, blockDim, blockIdx, gridDim, kernel, shared, syncthreads, threadIdx

THREADS = 256


@kernel(block=THREADS)
def block_sums(x: Float32[Tensor, "n"], out: Float32[Tensor, "blocks"]):
    """One sum a block."""
    part = shared(THREADS, np.float32)
    t = threadIdx.x
    s = 0.0
    for i in range(blockIdx.x * blockDim.x + t, len(x), gridDim.x * blockDim.x):
        s += x[i]
    part[t] = s
    syncthreads()
    half = THREADS // 2
    while half > 0:
        if t < half:
            part[t] += part[t + half]
        syncthreads()
        half //= 2
    if t == 0:
        out[blockIdx.x] = part[0]


@kernel(size="n", block=THREADS, init={"out": 0})
def sum_of_products(x: Float32[Tensor, "n"], y: Float32[Tensor, "n"], out: Float32[Tensor, "1"]):
    """The scalar product of two vectors; blocks add their parts in any order."""
    part = shared(THREADS, np.float32)
    t = threadIdx.x
    i = blockIdx.x * blockDim.x + t
    part[t] = x[i] * y[i] if i < len(x) else 0.0
    syncthreads()
    half = THREADS // 2
    while half > 0:
        if t < half:
            part[t] += part[t + half]
        syncthreads()
        half //= 2
    if t == 0:
        atomic.add(out, 0, part[0])


def total(x: Tensor, blocks: int = 128) -> Tensor:
    """The sum of `x` by two launches: one sum a block, and the sum of these."""
    parts = x.new_empty(blocks)
    block_sums[blocks, THREADS](x, parts)
    out = x.new_empty(1)
    block_sums[1, THREADS](parts, out)
    return out[0]


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x, y = torch.rand(2, 1_000_003, device=device)

    torch.testing.assert_close(total(x), x.sum(), rtol=1e-4, atol=0)
    torch.testing.assert_close(sum_of_products(x, y)[0], x @ y, rtol=1e-4, atol=0)

    print(f"Sum of {x.numel()} numbers on {device}: {total(x).item():.1f}, torch's {x.sum().item():.1f}")
    print(block_sums.check(x[:3000], x.new_empty(4)))
    print(sum_of_products.check())


if __name__ == "__main__":
    main()
