"""A histogram: each block counts for itself in shared memory, and adds its counts to the result at the end.

    python examples/histogram.py

Many threads may find the same value at once, so that a plain `counts[v] += 1` loses some. `atomic.add` does not: no
other thread comes between its reading and its writing. Threads that add to one place wait for each other, though.
Counting in a histogram of the block's own keeps this within the block and off global memory.
"""

import numpy as np
import torch
from jaxtyping import Int32, UInt8
from torch import Tensor

from py2cu import atomic, blockDim, blockIdx, gridDim, kernel, shared, syncthreads, threadIdx

THREADS = 256
BINS = 256


@kernel(size="(n + 15) // 16", block=THREADS, init={"counts": 0})
def histogram(x: UInt8[Tensor, "n"], counts: Int32[Tensor, "256"]):
    """How often each byte occurs; a thread looks at 16 of them."""
    mine = shared(BINS, np.int32)
    t = threadIdx.x
    for b in range(t, BINS, THREADS):
        mine[b] = 0
    syncthreads()
    for i in range(blockIdx.x * blockDim.x + t, len(x), gridDim.x * blockDim.x):
        atomic.add(mine, x[i], 1)
    syncthreads()
    for b in range(t, BINS, THREADS):
        atomic.add(counts, b, mine[b])


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = (torch.randn(1_000_000, device=device) * 30 + 128).clamp(0, 255).to(torch.uint8)
    counts = histogram(x)
    assert torch.equal(counts, torch.bincount(x, minlength=BINS).int())
    print(f"Counted {x.numel()} bytes on {device}; the most frequent is {counts.argmax().item()}")
    print(histogram.check())


if __name__ == "__main__":
    main()
