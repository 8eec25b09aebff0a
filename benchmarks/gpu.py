"""Throughput on the GPU beside CUDA written by hand as in the lecture. Reports, no targets."""

from __future__ import annotations

import ctypes
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks import lecture
from benchmarks.table import Row


def rows() -> Iterator[Row]:
    import torch

    from benchmarks import kernels

    hand = compiled(lecture.KERNELS)
    picture = torch.randint(0, 256, (3, 16384 * 16384), dtype=torch.uint8, device="cuda")
    yield row("grayscale 3×16384×16384 u8", kernels.rgb2grey, hand.grey, [picture], 16384 * 16384, moved=4 * 16384**2)
    del picture
    a, b = torch.randn(2, 2**28, device="cuda")
    yield row("add 2^28 f32", kernels.add, hand.add, [a, b], 2**28, moved=12 * 2**28)
    yield row("stable sigmoid 2^28 f32", kernels.sigmoid, hand.sigmoid, [a], 2**28, moved=8 * 2**28)
    m, v = torch.randn(100_000, 100, device="cuda"), torch.randn(100, device="cuda")
    yield row("matrix·vector 100000×100 f32", kernels.matvec, hand.matvec, [m, v], 100_000, sizes=(100_000, 100))
    m, n = torch.randn(2, 4096, 4096, device="cuda")
    sizes = (4096, 4096, 4096)
    yield row("matmul 4096³ f32, naive", kernels.matmul, hand.matmul, [m, n], sizes[:2], sizes=sizes, flops=2 * 4096**3)


def row(
    what: str,
    ours: Callable[..., object],
    hand: Any,
    inputs: list[Any],
    shape: int | tuple[int, ...],
    *,
    sizes: tuple[int, ...] = (),
    moved: int = 0,
    flops: int = 0,
) -> Row:
    """Both on the same inputs, in turns."""
    import torch

    out, other = (torch.empty(shape, dtype=inputs[0].dtype, device="cuda") for _ in range(2))
    pointers = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (*inputs, other)]
    extents = sizes or (out.numel(),)
    calls = (lambda: ours(*inputs, out=out), lambda: hand(*pointers, *extents))
    for call in calls:
        call()
    torch.testing.assert_close(out, other)
    mine, theirs = in_turns(*calls)

    def speed(time: float) -> str:
        if moved:
            return f"{moved / time / 1e12:.2f} TB/s"
        return f"{flops / time / 1e12:.2f} TFLOP/s" if flops else f"{time * 1e6:.1f} us"

    return Row(what, speed(mine), f"by hand {speed(theirs)}", mine / theirs)


def in_turns(*calls: Callable[[], object]) -> list[float]:
    """Seconds of each call, the median of seven turns."""
    repeats = max(3, min(200, int(0.1 / events(calls[-1], 3))))
    times = [[events(call, repeats) for call in calls] for _ in range(7)]
    return [statistics.median(side) for side in zip(*times, strict=True)]


def events(call: Callable[[], object], repeats: int) -> float:
    """Seconds of one call, between CUDA events."""
    import torch

    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    start.record()
    for _ in range(repeats):
        call()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / 1e3 / repeats


def compiled(source: str) -> ctypes.CDLL:
    """CUDA as a library for the GPU here."""
    from py2cu.build import toolchain

    place = Path(tempfile.mkdtemp())
    (place / "hand.cu").write_text(source, encoding="utf-8")
    flags = ["-O3", "-arch=native", "-shared", "-Xcompiler=-fPIC"]
    subprocess.run([str(toolchain.find_nvcc()), *flags, "hand.cu", "-o", "hand.so"], cwd=place, check=True)
    return ctypes.CDLL(str(place / "hand.so"))
