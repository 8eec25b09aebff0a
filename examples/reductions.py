"""Sums of many numbers: threads add their own, then the block adds up its threads.

    python examples/reductions.py

A block first goes through the input in strides of the whole grid, so that any number of blocks covers any length.

In `tree_sums`, half of its threads then add what the other half has, then a quarter, and so on: eight steps for 256
threads, and a barrier after each. One number a block is left, and a second launch with one block adds these.

In `warp_sums` the 32 threads of a warp, which go in step, pass their numbers straight from register to register:
`shfl_down_sync` gives each the number of the lane `offset` further on. Only the sums of the warps go through shared
memory, and one barrier is enough. The block adds its sum to the result itself, and no other thread comes between:
`atomic.add`.
"""

import numpy as np
import torch
from jaxtyping import Float32
from torch import Tensor

from py2cu import (
    atomic,
    blockDim,
    blockIdx,
    gridDim,
    host,
    kernel,
    shared,
    shfl_down_sync,
    syncthreads,
    threadIdx,
    warpSize,
)

THREADS = 256
WARPS = THREADS // 32
FULL = 0xFFFFFFFF


@kernel(size="256 * blocks", block=THREADS)
def tree_sums(x: Float32[Tensor, "n"], out: Float32[Tensor, "blocks"]):
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


def warp_sum(value):
    """The sum of the warp's values, to its first lane."""
    offset = warpSize // 2
    while offset > 0:
        value += shfl_down_sync(FULL, value, offset)
        offset //= 2
    return value


@kernel(size="(n + 15) // 16", block=THREADS, init={"out": 0})
def warp_sums(x: Float32[Tensor, "n"], out: Float32[Tensor, "1"]):
    """The sum of all; blocks add theirs in any order. A thread adds 16 of the numbers."""
    part = shared(WARPS, np.float32)
    t = threadIdx.x
    s = np.float32(0.0)
    for i in range(blockIdx.x * blockDim.x + t, len(x), gridDim.x * blockDim.x):
        s += x[i]
    s = warp_sum(s)
    if t % warpSize == 0:
        part[t // warpSize] = s
    syncthreads()
    if t < warpSize:  # the first warp
        s = warp_sum(part[t] if t < WARPS else 0.0)
        if t == 0:
            atomic.add(out, 0, s)


@host
def total(x: Float32[Tensor, "n"], blocks: int = 128) -> Tensor:
    """The sum of `x` by two launches: one sum a block, and the sum of these."""
    parts = x.new_empty(blocks)
    tree_sums(x, parts)
    out = x.new_empty(1)
    tree_sums(parts, out)
    return out[0]


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = torch.rand(1_000_003, device=device)
    for ways, ours in ("a tree in each block", total(x)), ("shuffles in each warp", warp_sums(x)[0]):
        torch.testing.assert_close(ours, x.sum(), rtol=1e-4, atol=0)
        print(f"Sum of {x.numel()} numbers on {device} by {ways}: {ours.item():.1f}, torch's {x.sum().item():.1f}")
    print(tree_sums.check(x[:300], x.new_empty(2)))
    print(warp_sums.check(x[:5000]))


if __name__ == "__main__":
    main()
