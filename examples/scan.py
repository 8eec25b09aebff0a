"""Running sums: out[i] = x[0] + ... + x[i], first within blocks, then over all of them.

    python examples/scan.py

In a block every thread adds the sum that stands 1 before its own, then 2 before, then 4: after eight steps it has the
sum of all 256 up to its own. A step reads from one half of a shared array and writes to the other, so that one barrier
a step is enough. Blocks do not wait for each other; what comes before a block is known only after the launch. So there
are three: the scan of each block, the scan of the blocks' totals, and adding these.
"""

import numpy as np
import torch
from jaxtyping import Float32
from torch import Tensor

from py2cu import blockDim, blockIdx, host, kernel, shared, syncthreads, threadIdx

THREADS = 256


@kernel(size="n", block=THREADS)
def scan_blocks(x: Float32[Tensor, "n"], out: Float32[Tensor, "n"], totals: Float32[Tensor, "blocks"]):
    """The running sums within each block, and what each block adds up to."""
    sums = shared((2, THREADS), np.float32)
    t = threadIdx.x
    i = blockIdx.x * blockDim.x + t
    s = x[i] if i < len(x) else 0.0
    source = 0
    sums[source, t] = s
    syncthreads()
    step = 1
    while step < THREADS:
        if t >= step:
            s += sums[source, t - step]
        source = 1 - source
        sums[source, t] = s
        syncthreads()
        step *= 2
    if i < len(x):
        out[i] = s
    if t == THREADS - 1:
        totals[blockIdx.x] = s


@kernel(size="n", block=THREADS)
def add_totals(out: Float32[Tensor, "n"], totals: Float32[Tensor, "blocks"]):
    """Adds to each block what the blocks before it add up to."""
    i = blockIdx.x * blockDim.x + threadIdx.x
    if blockIdx.x == 0 or i >= len(out):
        return
    out[i] += totals[blockIdx.x - 1]


@host
def scan(x: Float32[Tensor, "n"]) -> Tensor:
    """The running sums of `x`, of any length."""
    blocks = (x.numel() + THREADS - 1) // THREADS
    out = torch.empty_like(x)
    totals = x.new_empty(blocks)
    scan_blocks(x, out, totals)
    if blocks > 1:
        add_totals(out, scan(totals))
    return out


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    for n in 1, 256, 1000, 100_001:
        x = torch.rand(n, device=device)
        torch.testing.assert_close(scan(x), x.cumsum(0), rtol=1e-4, atol=1e-4)
        print(f"Running sums of {n} numbers on {device}: as torch's cumsum")
    print(scan_blocks.check(x[:1000], torch.empty_like(x[:1000]), x.new_empty(4)))
    print(add_totals.check(x[:1000].clone(), x[:4].clone()))


if __name__ == "__main__":
    main()
