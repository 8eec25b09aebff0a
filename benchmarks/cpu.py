"""The kernel on the CPU beside the same loop in numba, on as many threads."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator

from benchmarks import table
from benchmarks.table import Row


def rows() -> Iterator[Row]:
    import numba
    import numpy as np
    import torch

    from benchmarks.kernels import rgb2grey

    threads = len(os.sched_getaffinity(0))
    numba.set_num_threads(threads)
    torch.set_num_threads(threads)
    red, green, blue = np.float32(0.2989), np.float32(0.5870), np.float32(0.1140)

    @numba.njit(parallel=True)
    def grey(x, out):
        for i in numba.prange(out.shape[0]):
            out[i] = red * x[0, i] + green * x[1, i] + blue * x[2, i]

    picture = torch.randint(0, 256, (3, 4096 * 4096), dtype=torch.uint8)
    ours, theirs = (torch.empty(4096 * 4096, dtype=torch.uint8) for _ in range(2))
    array, result = picture.numpy(), theirs.numpy()
    grey(array, result)
    rgb2grey(picture, out=ours)
    assert torch.equal(ours, theirs)
    mine = lambda: once(lambda: rgb2grey(picture, out=ours))  # noqa: E731
    peer = lambda: once(lambda: grey(array, result))  # noqa: E731
    # In turns of several runs: the idle threads of one keep spinning for a while, and would slow the other.
    turns = [(in_a_turn(mine), in_a_turn(peer)) for _ in range(5)]
    times = [statistics.median(side) for side in zip(*turns, strict=True)]
    yield table.compare(f"grayscale 3×4096×4096 u8, CPU, {threads} threads", *times, "numba", 1.1)


def in_a_turn(measure: Callable[[], float]) -> float:
    time.sleep(0.05)
    return table.median(measure, 11)


def once(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
