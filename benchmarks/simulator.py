"""The simulator's speed: element operations a second.

An element operation is a load, a store, or one arithmetic operation, comparison or function call of which an operand
is an element. Indices, loops and what else Python does on the way are paid for and not counted. Time is the thread's
own: CPython runs on one core, and others may run beside it.

Threads that wait for each other are held against what the lecture does: the same Python on plain tensors, with one OS
thread for each of a block's 256 and a `threading.Barrier`, in the lecture's small size of a tiled product.
"""

import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace

import torch
from jaxtyping import Float32, Int32
from torch import Tensor

from benchmarks import table
from benchmarks.kernels import matmul, rgb2grey, sigmoid
from benchmarks.table import Row
from py2cu import Index, kernel

TARGET = 300e3  # operations a second
THREADS_TARGET = 20.0  # times the speed of OS threads
TILE = 16
RUNS = 7


@kernel
def hashed(i: Index["n"], x: Int32[Tensor, "n"], out: Int32[Tensor, "n"]):
    v = x[i]
    for _ in range(4):
        v = (v * 31 + 7) ^ (v >> 3)
    out[i] = v


@kernel
def box_blur(r: Index["h"], c: Index["w"], x: Float32[Tensor, "h w"], radius: int, out: Float32[Tensor, "h w"]):
    total = 0.0
    count = 0
    for y in range(max(r - radius, 0), min(r + radius + 1, x.shape[0])):
        for z in range(max(c - radius, 0), min(c + radius + 1, x.shape[1])):
            total += x[y, z]
            count += 1
    out[r, c] = total / count


def rows() -> Iterator[Row]:
    n, side, inner = 4000, 48, 50
    bytes_, numbers = torch.randint(0, 256, (3, n), dtype=torch.uint8), torch.randn(n)
    picture, left, right = torch.rand(side, side), torch.randn(24, inner), torch.randn(inner, 24)
    words = torch.randint(-(2**31), 2**31, (n,), dtype=torch.int32)
    window = int(sum(min(i + 4, side) - max(i - 3, 0) for i in range(side)) ** 2)  # pixels that all blurs read
    yield row("grayscale u8", lambda: rgb2grey.simulate(bytes_), 9 * n)
    yield row("matmul f32", lambda: matmul.simulate(left, right), 24 * 24 * (4 * inner + 1))
    yield row("hash i32, wrapping", lambda: hashed.simulate(words), 18 * n)
    yield row("box blur f32", lambda: box_blur.simulate(picture, 3), 2 * window + 2 * side * side)
    yield from against_os_threads()
    yield row("stable sigmoid f32", lambda: sigmoid.simulate(numbers), count_sigmoid(numbers))


@kernel
def tiled(
    blockIdx, threadIdx, blockDim, gridDim, shared: Float32[Tensor, "512"], syncb: threading.Barrier,
    m: Float32[Tensor, "h k"], n: Float32[Tensor, "k w"], out: Float32[Tensor, "h w"], h: int, w: int, k: int, tw: int,
):  # fmt: skip
    tc, tr = threadIdx.x, threadIdx.y
    r, c = blockIdx.y * blockDim.y + tr, blockIdx.x * blockDim.x + tc
    ms, ns = shared[: tw * tw], shared[tw * tw :]
    p = 0.0
    for ph in range((k + tw - 1) // tw):
        ms[tr * tw + tc] = m[r, tc + ph * tw] if r < h and tc + ph * tw < k else 0.0
        ns[tr * tw + tc] = n[tr + ph * tw, c] if c < w and tr + ph * tw < k else 0.0
        syncb.wait()
        for i in range(tw):
            p += ms[tr * tw + i] * ns[tw * i + tc]
        syncb.wait()
    if r < h and c < w:
        out[r, c] = p


def against_os_threads() -> Iterator[Row]:
    m, n, out = torch.rand(4, 256), torch.rand(256, 4), torch.zeros(4, 4)
    given = m, n, out, 4, 4, 256, TILE
    alone = table.median(lambda: elapsed(lambda: os_threads(given)), 3)
    for sanitize in (False, True):
        call = partial(tiled.simulate[1, (TILE, TILE)], *given, sanitize=sanitize)
        call()
        ratio = alone / table.median(partial(elapsed, call), 3)
        what = "simulate tiled matmul 4×256×4, times as fast as OS threads"
        if sanitize:
            yield Row(f"{what}, sanitized", f"{ratio:.1f}×")
        else:
            yield Row(what, f"{ratio:.1f}×", target=f"≥ {THREADS_TARGET:.0f}×", met=ratio >= THREADS_TARGET)


def os_threads(given: tuple[object, ...]) -> None:
    """One block, as the lecture runs it."""
    shared, barrier = torch.zeros(2 * TILE * TILE), threading.Barrier(TILE * TILE)
    here, size = SimpleNamespace(x=0, y=0), SimpleNamespace(x=TILE, y=TILE)
    places = [SimpleNamespace(x=x, y=y) for y in range(TILE) for x in range(TILE)]
    arguments = [(here, at, size, here, shared, barrier, *given) for at in places]
    threads = [threading.Thread(target=tiled.python, args=each) for each in arguments]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def elapsed(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def count_sigmoid(x: torch.Tensor) -> int:
    """Two loads, a comparison, a store; then `-`, `exp`, `+`, `/`, or a load more, `exp` twice, `+`, `/`."""
    positive = int((x >= 0).sum())
    return 8 * positive + 9 * (len(x) - positive)


def row(what: str, call: Callable[[], object], operations: int) -> Row:
    call()
    rate = operations / table.median(lambda: once(call), RUNS)
    target = f"≥ {TARGET / 1e3:.0f} k/s"
    return Row(f"simulate {what}, element operations", f"{rate / 1e3:.0f} k/s", target=target, met=rate >= TARGET)


def once(call: Callable[[], object]) -> float:
    started = time.thread_time()
    call()
    return time.thread_time() - started
