"""Blocks that wait for each other: what takes several launches, in one.

    python examples/cooperative.py

After `syncgrid()`, every thread sees what all threads of the grid wrote before. For that, all blocks have to be on the
device at once: the launcher makes a cooperative launch of it, and refuses a grid that does not fit. So the grid is
chosen for the device, not for the input, and threads go over the input in strides of the whole grid.

In `total` each block leaves its sum, and the first block adds these. In `relax` every step reads what the step before
wrote, in this block and in its neighbours.
"""

import numpy as np
import torch
from jaxtyping import Float32
from torch import Tensor

from py2cu import blockDim, blockIdx, gridDim, kernel, shared, syncgrid, syncthreads, threadIdx

THREADS = 256


def block_sum(part, t, value):
    """The sum of the values of a block's threads, of which this is number `t`; `part` has a place for each."""
    part[t] = value
    syncthreads()
    half = THREADS // 2
    while half > 0:
        if t < half:
            part[t] += part[t + half]
        syncthreads()
        half //= 2
    return part[0]


@kernel(size="256 * blocks", block=THREADS)
def total(x: Float32[Tensor, "n"], sums: Float32[Tensor, "blocks"], out: Float32[Tensor, "1"]):
    """The sum of all, in the same order every time."""
    part = shared(THREADS, np.float32)
    t = threadIdx.x
    s = 0.0
    for i in range(blockIdx.x * THREADS + t, len(x), gridDim.x * THREADS):
        s += x[i]
    s = block_sum(part, t, s)
    if t == 0:
        sums[blockIdx.x] = s
    syncgrid()
    if blockIdx.x == 0:
        s = 0.0
        for k in range(t, gridDim.x, THREADS):
            s += sums[k]
        s = block_sum(part, t, s)
        if t == 0:
            out[0] = s


@kernel(size="n", block=THREADS)
def relax(x: Float32[Tensor, "n"], other: Float32[Tensor, "n"], steps: int):
    """So many steps, each of which nears every element but the outermost to the mean of its neighbours.

    They go from `x` to `other` and back: after an even number of them the result is in `x`.
    """
    for step in range(steps):
        for i in range(blockIdx.x * blockDim.x + threadIdx.x, len(x), gridDim.x * blockDim.x):
            inside = 0 < i < len(x) - 1
            if step % 2 == 0:
                other[i] = (x[i - 1] + x[i + 1]) / 2 if inside else x[i]
            else:
                x[i] = (other[i - 1] + other[i + 1]) / 2 if inside else other[i]
        syncgrid()


def relaxed(x: Tensor, steps: int) -> Tensor:
    """`relax` in torch."""
    for _ in range(steps):
        x = torch.cat([x[:1], (x[:-2] + x[2:]) / 2, x[-1:]])
    return x


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = torch.rand(1_000_003, device=device)
    ours = total(x, x.new_empty(64))[0]
    torch.testing.assert_close(ours, x.sum(), rtol=1e-4, atol=0)
    print(f"Sum of {x.numel()} numbers on {device} in one launch: {ours.item():.1f}, torch's {x.sum().item():.1f}")

    rod = torch.rand(10_001, device=device)
    expected = relaxed(rod, 50)
    relax(rod, torch.empty_like(rod), 50)
    torch.testing.assert_close(rod, expected)
    print(f"50 steps over {rod.numel()} numbers on {device} in one launch: as torch's")
    try:
        relax(x.new_empty(10_000_000), x.new_empty(10_000_000), 1)
    except RuntimeError as refusal:
        print(f"A grid that does not fit is refused: {refusal}")
    print(total.check(x[:300], x.new_empty(2)))
    print(relax.check(x[:300], x.new_empty(300), 4))


if __name__ == "__main__":
    main()
