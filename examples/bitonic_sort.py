"""Sorting by a fixed pattern of comparisons, which suits threads that all do the same.

    python examples/bitonic_sort.py

A bitonic sort compares pairs at a distance and swaps those that stand wrong. Which pairs, and in which direction,
depends on the positions only: runs of 2 are sorted, alternately upward and downward, merged to runs of 4, of 8, ... .
`sort_rows` does it all in shared memory, one block a row. `compare_pairs` is one step of it in global memory, for rows
that no block can hold: a launch is the barrier between steps.
"""

import math

import numpy as np
import torch
from jaxtyping import Float32
from torch import Tensor

from py2cu import Index, blockIdx, kernel, shared, syncthreads, threadIdx

WIDTH = 512  # the longest row; half as many threads
PAIRS = WIDTH // 2


@kernel(size="256 * rows", block=PAIRS)
def sort_rows(x: Float32[Tensor, "rows n"], out: Float32[Tensor, "rows n"], n: int):
    """Each row sorted; a row has 512 elements at most."""
    row = shared(WIDTH, np.float32)
    r = blockIdx.x
    t = threadIdx.x
    for i in range(t, WIDTH, PAIRS):
        row[i] = x[r, i] if i < n else math.inf
    run = 2
    while run <= WIDTH:
        distance = run // 2
        while distance > 0:
            syncthreads()
            # The first of the thread's pair: `t` with a 0 put in where the distance has its 1
            a = 2 * t - (t & (distance - 1))
            b = a + distance
            upward = a & run == 0
            if (row[a] > row[b]) == upward:
                row[a], row[b] = row[b], row[a]
            distance //= 2
        run *= 2
    syncthreads()
    for i in range(t, n, PAIRS):
        out[r, i] = row[i]


@kernel
def compare_pairs(t: Index["n // 2"], x: Float32[Tensor, "n"], run: int, distance: int):
    """One step over the whole array: pairs at `distance`, within runs of `run`."""
    assert distance > 0 and distance & (distance - 1) == 0, "a power of two"
    a = 2 * t - (t & (distance - 1))
    b = a + distance
    upward = a & run == 0
    if (x[a] > x[b]) == upward:
        x[a], x[b] = x[b], x[a]


def sort(x: Tensor) -> Tensor:
    """`x` sorted, of any length."""
    n = x.numel()
    width = 1 << max(n - 1, 0).bit_length()
    padded = torch.cat([x, x.new_full((width - n,), math.inf)])
    run = 2
    while run <= width:
        distance = run // 2
        while distance > 0:
            compare_pairs(padded, run=run, distance=distance)
            distance //= 2
        run *= 2
    return padded[:n]


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    rows = torch.randn(20, 300, device=device)
    assert torch.equal(sort_rows(rows), rows.sort().values)
    print(f"Sorted {rows.shape[0]} rows of {rows.shape[1]} on {device}, in shared memory")

    x = torch.randn(100_000, device=device)
    assert torch.equal(sort(x), x.sort().values)
    print(f"Sorted {x.numel()} numbers on {device}, a launch a step")
    print(sort_rows.check(rows))
    print(compare_pairs.check(x[:64].clone(), run=8, distance=2))


if __name__ == "__main__":
    main()
