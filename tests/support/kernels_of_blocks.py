"""Kernels whose threads work together, free of races: `test_cpu_blocks.py` says what each computes."""

import cmath
import math

import numpy as np
from jaxtyping import Complex128, Float32, Float64, Int32
from torch import Tensor

from py2cu import (
    Constexpr,
    Index,
    all_sync,
    any_sync,
    atomic,
    ballot_sync,
    blockDim,
    blockIdx,
    gridDim,
    kernel,
    laneid,
    local,
    match_any_sync,
    shared,
    shfl_down_sync,
    shfl_sync,
    shfl_up_sync,
    shfl_xor_sync,
    syncgrid,
    syncthreads,
    syncthreads_and,
    syncthreads_count,
    syncthreads_or,
    syncwarp,
    threadfence,
    threadIdx,
)

FULL = 0xFFFFFFFF


@kernel(size="n", block=32)
def half_a_warp(x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    t = threadIdx.x
    v = x[t]
    if laneid < 16:
        v += shfl_down_sync(0xFFFF, v, 8)
    out[t] = v


@kernel(size=("w", "h"), block=(8, 4))
def opposite(out: Int32[Tensor, "h w"], h: int, w: int):
    """The number of the thread that is as far from the end of the block as this one from its begin."""
    numbers = shared(128, np.int32)
    t = threadIdx.y * blockDim.x + threadIdx.x
    numbers[t] = t
    syncthreads()
    r, c = blockIdx.y * blockDim.y + threadIdx.y, blockIdx.x * blockDim.x + threadIdx.x
    if r < h and c < w:
        out[r, c] = numbers[blockDim.x * blockDim.y - 1 - t]


@kernel(size=("w", "h"), block=("wide", 4))
def turned(x: Int32[Tensor, "h w"], out: Int32[Tensor, "h w"], h: int, w: int, wide: int):
    """What the thread holds that is as far from the end of the block as this one from its begin."""
    values = shared(128, np.int32)
    t = threadIdx.y * blockDim.x + threadIdx.x
    r, c = blockIdx.y * blockDim.y + threadIdx.y, blockIdx.x * blockDim.x + threadIdx.x
    values[t] = x[r, c] if r < h and c < w else 0
    syncthreads()
    if r < h and c < w:
        out[r, c] = values[blockDim.x * blockDim.y - 1 - t]


@kernel(size=("w", "h"), block=(16, 16))
def matmul(m: Float32[Tensor, "h k"], n: Float32[Tensor, "k w"], out: Float32[Tensor, "h w"], h: int, w: int, k: int):
    ms = shared((16, 16), np.float32)
    ns = shared((16, 16), np.float32)
    tr, tc = threadIdx.y, threadIdx.x
    r = blockIdx.y * 16 + tr
    c = blockIdx.x * 16 + tc
    o = 0.0
    for start in range(0, k, 16):
        ms[tr, tc] = m[r, start + tc] if r < h and start + tc < k else 0.0
        ns[tr, tc] = n[start + tr, c] if start + tr < k and c < w else 0.0
        syncthreads()
        for i in range(16):
            o += ms[tr, i] * ns[i, tc]
        syncthreads()
    if r < h and c < w:
        out[r, c] = o


@kernel(size=("w", "h"), block=(8, 8))
def matmul_dynamic(
    m: Float32[Tensor, "h k"], n: Float32[Tensor, "k w"], out: Float32[Tensor, "h w"], h: int, w: int, k: int
):
    buf = shared(2 * blockDim.x * blockDim.y, np.float32)
    tw = blockDim.x
    ms, ns = buf[: tw * tw], buf[tw * tw :]
    tr, tc = threadIdx.y, threadIdx.x
    r = blockIdx.y * tw + tr
    c = blockIdx.x * tw + tc
    o = 0.0
    for phase in range(math.ceil(k / tw)):
        start = phase * tw
        ms[tr * tw + tc] = m[r, start + tc] if r < h and start + tc < k else 0.0
        ns[tr * tw + tc] = n[start + tr, c] if start + tr < k and c < w else 0.0
        syncthreads()
        for i in range(tw):
            o += ms[tr * tw + i] * ns[i * tw + tc]
        syncthreads()
    if r < h and c < w:
        out[r, c] = o


@kernel(size=("w", "h"), block=(16, 4))
def matmul_registers(
    m: Float32[Tensor, "h k"], n: Float32[Tensor, "k w"], out: Float32[Tensor, "h w"], h: int, w: int, k: int
):
    """Each thread has four sums."""
    ms = shared((16, 16), np.float32)
    ns = shared((16, 16), np.float32)
    acc = local(4, np.float32)
    c = blockIdx.x * 16 + threadIdx.x
    top = blockIdx.y * 4
    for j in range(4):
        acc[j] = 0.0
    for start in range(0, k, 16):
        for j in range(4):
            row = threadIdx.y + 4 * j
            r = top + row
            ms[row, threadIdx.x] = m[r, start + threadIdx.x] if row < 4 and r < h and start + threadIdx.x < k else 0.0
            ns[row, threadIdx.x] = n[start + row, c] if start + row < k and c < w else 0.0
        syncthreads()
        for j in range(4):
            for i in range(16):
                acc[j] += ms[threadIdx.y, i] * ns[i, threadIdx.x]
        syncthreads()
    if top + threadIdx.y < h and c < w:
        out[top + threadIdx.y, c] = (acc[0] + acc[1] + acc[2] + acc[3]) / 4


@kernel(block=256)
def tree(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "blocks"]):
    """The last rounds within a warp."""
    s = shared(256, np.float32)
    t = threadIdx.x
    s[t] = x[i]
    syncthreads()
    step = 128
    while step > 16:
        if t < step:
            s[t] += s[t + step]
        syncthreads()
        step //= 2
    if t < 32:
        last = 16
        while last > 0:
            v = s[t + last] if t < last else 0.0
            syncwarp()
            s[t] += v
            syncwarp()
            last //= 2
    if t == 0:
        out[blockIdx.x] = s[0]


def warp_sum(v):
    offset = 16
    while offset > 0:
        v += shfl_down_sync(FULL, v, offset)
        offset //= 2
    return v


def block_sum(v, t, size):
    """The sum of a block, in its first warp."""
    parts = shared(32, np.float32)
    total = warp_sum(v)
    if laneid == 0:
        parts[t // 32] = total
    syncthreads()
    if t < 32:
        mine = parts[t] if t < size // 32 else 0.0
        total = warp_sum(mine)
    return total


@kernel(size="n", block=128)
def mean(x: Float32[Tensor, "n"], sums: Float32[Tensor, "blocks"], tickets: Int32[Tensor, "1"],
         out: Float32[Tensor, "1"], n: int):  # fmt: skip
    """The block that comes last adds up what the others left."""
    last = shared(1, np.int32)
    i = blockIdx.x * blockDim.x + threadIdx.x
    total = block_sum(x[i] if i < n else 0.0, threadIdx.x, blockDim.x)
    if threadIdx.x == 0:
        sums[blockIdx.x] = total
        threadfence()
        ticket = atomic.add(tickets, 0, 1)
        last[0] = 1 if ticket == gridDim.x - 1 else 0
    syncthreads()
    if last[0] == 1 and threadIdx.x == 0:
        whole = 0.0
        for b in range(gridDim.x):
            whole += sums[b]
        out[0] = whole / n


@kernel(block=128)
def scan(i: Index["n"], x: Int32[Tensor, "n"], out: Int32[Tensor, "n"]):
    """Sums up to each element, a block for itself."""
    s = shared(128, np.int32)
    t = threadIdx.x
    s[t] = x[i]
    syncthreads()
    by = 1
    while by < 128:
        v = s[t - by] if t >= by else 0
        syncthreads()
        s[t] += v
        syncthreads()
        by *= 2
    out[i] = s[t]


@kernel(size="n", block=128)
def histogram(x: Int32[Tensor, "n"], counts: Int32[Tensor, "16"], n: int):
    own = shared(16, np.int32)
    if threadIdx.x < 16:
        own[threadIdx.x] = 0
    syncthreads()
    i = blockIdx.x * blockDim.x + threadIdx.x
    while i < n:
        atomic.add(own, x[i] & 15, 1)
        i += gridDim.x * blockDim.x
    syncthreads()
    if threadIdx.x < 16:
        atomic.add(counts, threadIdx.x, own[threadIdx.x])


@kernel(size="n", block=64)
def sort(x: Int32[Tensor, "n"], out: Int32[Tensor, "n"], tile: Constexpr[int] = 64):
    """Bitonic, a block for itself."""
    s = shared(tile, np.int32)
    t = threadIdx.x
    i = blockIdx.x * tile + t
    s[t] = x[i] if i < x.shape[0] else 1000000
    syncthreads()
    size = 2
    while size <= tile:
        stride = size // 2
        while stride > 0:
            other = t ^ stride
            if other > t:
                a, b = s[t], s[other]
                if (a > b) == (t & size == 0):
                    s[t], s[other] = b, a
            syncthreads()
            stride //= 2
        size *= 2
    if i < out.shape[0]:
        out[i] = s[t]


@kernel(size="n", block=64)
def votes(x: Int32[Tensor, "n"], out: Int32[Tensor, "n 8"]):
    """The size is a multiple of the block."""
    i = blockIdx.x * blockDim.x + threadIdx.x
    out[i, 0] = shfl_sync(FULL, x[i], 3)
    out[i, 1] = shfl_up_sync(FULL, x[i], 2, 8)
    out[i, 2] = shfl_xor_sync(FULL, x[i], 5)
    out[i, 3] = any_sync(FULL, x[i] > 9) + 2 * all_sync(FULL, x[i] > 0)
    out[i, 4] = (ballot_sync(FULL, x[i] > 5) >> 1) & 0xFFFF
    out[i, 5] = match_any_sync(FULL, x[i]) & 0xFFFF
    out[i, 6] = syncthreads_count(x[i] > 5)
    if syncthreads_or(x[i] > 9) and not syncthreads_and(x[i] > 9):
        out[i, 7] = laneid


@kernel(size="n", block=64)
def rounds(x: Int32[Tensor, "n"], out: Int32[Tensor, "n"]):
    """Warps go through a loop at different times: the size is a multiple of the block."""
    i = blockIdx.x * blockDim.x + threadIdx.x
    warp = threadIdx.x // 32
    total = 0
    for k in range(warp, 5 + 3 * warp):
        if k == 2:
            continue
        v = shfl_xor_sync(FULL, x[i], 1)
        if k == 6:
            break
        total += k * v
    if warp == 1:
        out[i] = -total
        return
    out[i] = shfl_down_sync(FULL, total, 1)


@kernel(size="n", block=32)
def own_parameter(x: Float64[Tensor, "n"], out: Float64[Tensor, "n"], scale: float):
    s = shared(32, np.float64)
    i = blockIdx.x * blockDim.x + threadIdx.x
    if threadIdx.x % 2 == 1:
        scale = -scale
    s[threadIdx.x] = x[i] * scale if i < x.shape[0] else 0.0
    syncthreads()
    if i < x.shape[0]:
        out[i] = s[31 - threadIdx.x] + scale


@kernel(size="n", block=32)
def alone(x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    """Shared memory without a barrier: each thread its own element."""
    s = shared(32, np.float32)
    i = blockIdx.x * blockDim.x + threadIdx.x
    if i >= x.shape[0]:
        return
    s[threadIdx.x] = x[i]
    if x[i] < 0:
        out[i] = 0
        return
    out[i] = s[threadIdx.x] * 2


@kernel(size="n", block=64)
def settle(x: Int32[Tensor, "n"], out: Int32[Tensor, "n"]):
    """Each warp until all of its lanes are done: the size is a multiple of the block."""
    i = blockIdx.x * blockDim.x + threadIdx.x
    v = x[i]
    turns = 0
    while any_sync(FULL, v > 0) and turns < 100:
        v -= threadIdx.x // 32 + 1
        turns += 1
    if turns > 3 and ballot_sync(FULL, v == 0) != 0:
        turns = -turns
    out[i] = turns


@kernel(size="n", block=64)
def cumulated(x: Float64[Tensor, "n"], sums: Float64[Tensor, "blocks"], out: Float64[Tensor, "n"]):
    """Sums up to each element: what a block has before its barriers of the grid, it has behind them."""
    part = shared(blockDim.x, np.float64)
    t = threadIdx.x
    i = blockIdx.x * blockDim.x + t
    own = x[i] if i < len(x) else 0.0
    part[t] = own
    syncthreads()
    before = 0.0
    for k in range(t):
        before += part[k]
    if t == blockDim.x - 1:
        sums[blockIdx.x] = before + own
    syncgrid()
    for k in range(blockIdx.x):
        before += sums[k]
    for k in range(3):
        syncgrid()
        if i < len(x):
            if k == 0:
                out[i] = before + own
            elif k == 1:
                part[t] = out[(i + 1) % len(x)]
            else:
                out[i] += part[t]


@kernel(size="n // 4", block=64)
def rotated(x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    """Rows shifted by one element within a block; the last block is not full, and past the end there are zeros."""
    firsts = shared(64, np.float32)
    x4, out4 = x.view(-1, 4), out.view(-1, 4)
    i = blockIdx.x * blockDim.x + threadIdx.x
    a, b, c, d = x4[i]
    firsts[threadIdx.x] = a
    syncthreads()
    out4[i] = b, c, d, firsts[(threadIdx.x + 1) % 64]


@kernel(size="n // 2", block=32, init={"out": 0})
def paired(x: Int32[Tensor, "n"], out: Int32[Tensor, "n"]):
    """A row that is kept while threads wait, and atomics on elements of another."""
    sums = shared(32, np.int32)
    x2, out2 = x.view(-1, 2), out.view(-1, 2)
    i = blockIdx.x * blockDim.x + threadIdx.x
    v = x2[i]
    sums[threadIdx.x] = v[0] + v[1]
    syncthreads()
    atomic.add(out2, (i, 1), sums[31 - threadIdx.x] - v[0])


def once_and_twice(x, i):
    return x[i], 2 * x[i]


@kernel(size="n", block=32)
def kept(x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    """What a function returned is kept while threads wait; past the end it is zeros."""
    s = shared(32, np.float32)
    i = blockIdx.x * blockDim.x + threadIdx.x
    pair = once_and_twice(x, i)
    s[threadIdx.x] = pair[0]
    syncthreads()
    out[i] = pair[1] + s[31 - threadIdx.x]


@kernel(size="n", block=32)
def overwritten(x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    """The right side is read whole before a view of the same memory changes."""
    s = shared(64, np.float32)
    view = s[:32]
    i = blockIdx.x * blockDim.x + threadIdx.x
    view[threadIdx.x] = x[i]
    view[threadIdx.x], before = 1.0, s[threadIdx.x]
    out[i] = before


@kernel(block=32)
def spectrum(i: Index["n"], x: Complex128[Tensor, "n"], out: Complex128[Tensor, "n"]):
    """The discrete Fourier transform of each block, whose last one ends in zeros."""
    values, turns = shared(32, np.complex128), shared(blockDim.x, np.complex64)
    t = threadIdx.x
    values[t] = x[i]
    turns[t] = cmath.exp(-2j * math.pi * (t / 32))
    syncthreads()
    total = 0j
    for k in range(32):
        total += values[k] * turns[k * t % 32]
    out[i] = total
