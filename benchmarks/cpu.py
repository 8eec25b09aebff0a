"""The kernel on the CPU beside the same loop in numba, on as many threads; and threads that work together."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence

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
    def grey(x, out):  # the kernel's own line; numba takes its constants as doubles
        for i in numba.prange(out.shape[0]):
            out[i] = 0.2989 * x[0, i] + 0.5870 * x[1, i] + 0.1140 * x[2, i]

    @numba.njit(parallel=True)
    def grey_in_floats(x, out):  # with float32 constants, as the kernel computes
        for i in numba.prange(out.shape[0]):
            out[i] = red * x[0, i] + green * x[1, i] + blue * x[2, i]

    picture = torch.randint(0, 256, (3, 4096 * 4096), dtype=torch.uint8)
    ours, theirs = (torch.empty(4096 * 4096, dtype=torch.uint8) for _ in range(2))
    array, result = picture.numpy(), theirs.numpy()
    source = torch.empty(2 * 4096 * 4096, dtype=torch.uint8).random_()  # read and written: as many bytes as the kernel
    target = torch.empty_like(source)
    calls = (
        lambda: rgb2grey(picture, out=ours),
        lambda: grey(array, result),
        lambda: grey_in_floats(array, result),
        lambda: target.copy_(source),
    )
    for call in calls:
        call()
    turns = [in_turns(calls, backwards=bool(turn % 2)) for turn in range(20)]
    for peer in (grey, grey_in_floats):
        ours.zero_()
        rgb2grey(picture, out=ours)
        peer(array, result)
        # Doubles round elsewhere, which moves a pixel in thousands by one.
        assert int((ours.short() - theirs.short()).abs().max()) <= 1, "the timed calls do not do the work"
    yield from in_rows(turns, f"grayscale 3×4096×4096 u8, CPU, {threads} threads")


def rows_of_tiles() -> Iterator[Row]:
    """The matrix product by tiles, whose threads wait for each other, beside the one that only loops."""
    import torch

    from benchmarks.kernels import matmul_by_index, matmul_by_tiles

    threads = len(os.sched_getaffinity(0))
    torch.set_num_threads(threads)
    m, n, tiled, plain = (torch.randn(1024, 1024) for _ in range(4))

    def by_tiles() -> None:
        matmul_by_tiles(m, n, out=tiled)

    def by_index() -> None:
        matmul_by_index(m, n, out=plain)

    calls = (by_tiles, by_index)
    for call in calls:
        call()
    torch.testing.assert_close(tiled, plain)
    turns = [tuple(once(call) for call in calls) for _ in range(5)]
    mine, theirs = (min(side) for side in zip(*turns, strict=True))
    ratio = mine / theirs
    what = f"matrix product 1024³ f32 by 16×16 tiles, CPU, {threads} threads"
    yield Row(what, table.seconds(mine), f"without tiles {table.seconds(theirs)}", ratio, "ratio ≤ 6", ratio <= 6)


def in_rows(turns: list[tuple[float, ...]], what: str) -> Iterator[Row]:
    """The ratio is the median of each turn's own, since a shared machine is now in cache and now waits for memory."""
    mine, doubles, floats, copy = (statistics.median(side) for side in zip(*turns, strict=True))
    for place, (peer, name) in enumerate(
        [(doubles, "numba, same line"), (floats, "numba, float32 constants")], start=1
    ):
        ratios = sorted(turn[0] / turn[place] for turn in turns)
        ratio = statistics.median(ratios)
        spread = f"{name} {table.seconds(peer)} ({ratios[2]:.2f} to {ratios[-3]:.2f})"
        aim = ("ratio ≤ 1", ratio <= 1) if place == 1 else ()
        yield Row(what, table.seconds(mine), spread, ratio, *aim)
    copies = sorted(turn[-1] for turn in turns)
    extremes = f"{table.seconds(copies[0])} to {table.seconds(copies[-1])}"
    yield Row("  a copy of as many bytes, for scale", table.seconds(copy), extremes)


def in_turns(calls: Sequence[Callable[[], object]], *, backwards: bool) -> tuple[float, ...]:
    """Seconds of each call, several runs in a row: the idle threads of one keep spinning, and would slow the next."""
    times = {}
    for call in reversed(calls) if backwards else calls:
        time.sleep(0.02)
        times[call] = table.median(lambda call=call: once(call), 5)
    return tuple(times[call] for call in calls)


def once(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
