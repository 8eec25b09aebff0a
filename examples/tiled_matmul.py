"""Matrix products by tiles: the threads of a block load what they share once, and wait for each other.

    python examples/tiled_matmul.py

In a plain matrix product (`matmul.py`) every thread reads a row and a column from global memory, though its neighbours
read the same ones. Here a block of 16 x 16 threads copies a tile of each matrix to shared memory, waits until all of it
is there (`syncthreads`), adds up what the two tiles give, and waits again before the next tiles overwrite them. There
are four forms: tiles of a constant size; tiles that the launch sizes, through the parameters `shared` and `syncb`; a
template on the width of the tile; and 4 x 4 results a thread, kept in registers, so that what is read from shared
memory is used four times.
"""

import math
import threading

import numpy as np
import torch
from jaxtyping import Float32
from torch import Tensor

from py2cu import Constexpr, blockIdx, kernel, local, shared, syncthreads, threadIdx

TILE = 16
PER_THREAD = 4  # rows and columns of results that a thread keeps in registers
SIDE = PER_THREAD * TILE


@kernel(size=("w", "h"), block=(TILE, TILE))
def matmul_static(
    m: Float32[Tensor, "h k"], n: Float32[Tensor, "k w"], out: Float32[Tensor, "h w"], h: int, w: int, k: int
):
    """Matrix product by tiles of a constant size."""
    ms = shared((TILE, TILE), np.float32)
    ns = shared((TILE, TILE), np.float32)
    tr, tc = threadIdx.y, threadIdx.x
    r = blockIdx.y * TILE + tr
    c = blockIdx.x * TILE + tc
    o = 0.0
    for start in range(0, k, TILE):
        # Zeros past the edges add nothing
        ms[tr, tc] = m[r, start + tc] if r < h and start + tc < k else 0.0
        ns[tr, tc] = n[start + tr, c] if start + tr < k and c < w else 0.0
        syncthreads()
        for i in range(TILE):
            o += ms[tr, i] * ns[i, tc]
        syncthreads()  # before the next tiles are written
    if r < h and c < w:
        out[r, c] = o


@kernel(size=("w", "h"), block=("tw", "tw"))
def matmul_dynamic(
    blockIdx, threadIdx, blockDim, shared: Float32[Tensor, "2*tw*tw"], syncb: threading.Barrier,
    m: Float32[Tensor, "h k"], n: Float32[Tensor, "k w"], out: Float32[Tensor, "h w"],
    h: int, w: int, k: int, tw: int,
):  # fmt: skip
    """Matrix product by tiles of `tw` x `tw`, for blocks of as many threads."""
    tc, tr = threadIdx.x, threadIdx.y
    r, c = blockIdx.y * blockDim.y + tr, blockIdx.x * blockDim.x + tc
    sz = tw * tw
    ms, ns = shared[:sz], shared[sz:]
    p = 0.0
    for ph in range(math.ceil(k / tw)):
        idx = ph * tw
        ms[tr * tw + tc] = m[r, tc + idx] if r < h and idx + tc < k else 0.0
        ns[tr * tw + tc] = n[tr + idx, c] if c < w and idx + tr < k else 0.0
        syncb.wait()
        for i in range(tw):
            p += ms[tr * tw + i] * ns[tw * i + tc]
        syncb.wait()
    if r < h and c < w:
        out[r, c] = p


@kernel(size=("w", "h"), block=("tile", "tile"))
def matmul_template(
    m: Float32[Tensor, "h k"], n: Float32[Tensor, "k w"], out: Float32[Tensor, "h w"], h: int, w: int, k: int,
    tile: Constexpr[int] = 16,
):  # fmt: skip
    """Matrix product by tiles whose width the compiler knows, so that it unrolls the inner loop."""
    ms = shared((tile, tile), np.float32)
    ns = shared((tile, tile), np.float32)
    tr, tc = threadIdx.y, threadIdx.x
    r = blockIdx.y * tile + tr
    c = blockIdx.x * tile + tc
    o = 0.0
    for start in range(0, k, tile):
        ms[tr, tc] = m[r, start + tc] if r < h and start + tc < k else 0.0
        ns[tr, tc] = n[start + tr, c] if start + tr < k and c < w else 0.0
        syncthreads()
        for i in range(tile):
            o += ms[tr, i] * ns[i, tc]
        syncthreads()
    if r < h and c < w:
        out[r, c] = o


@kernel(size=("(w + 3) // 4", "(h + 3) // 4"), block=(TILE, TILE))
def matmul_registers(
    m: Float32[Tensor, "h k"], n: Float32[Tensor, "k w"], out: Float32[Tensor, "h w"], h: int, w: int, k: int
):
    """Matrix product with 4 x 4 results a thread: a block makes 64 x 64 of them."""
    ms = shared((SIDE, TILE), np.float32)
    ns = shared((TILE, SIDE), np.float32)
    sums = local((PER_THREAD, PER_THREAD), np.float32)
    column = local(PER_THREAD, np.float32)
    row = local(PER_THREAD, np.float32)
    tr, tc = threadIdx.y, threadIdx.x
    r = blockIdx.y * SIDE + tr
    c = blockIdx.x * SIDE + tc
    for i in range(PER_THREAD):
        for j in range(PER_THREAD):
            sums[i, j] = 0.0

    for start in range(0, k, TILE):
        # Rows and columns of a thread are a tile apart: neighbours read neighbours
        for i in range(PER_THREAD):
            at = i * TILE
            ms[tr + at, tc] = m[r + at, start + tc] if r + at < h and start + tc < k else 0.0
            ns[tr, tc + at] = n[start + tr, c + at] if start + tr < k and c + at < w else 0.0
        syncthreads()
        for p in range(TILE):
            for i in range(PER_THREAD):
                column[i] = ms[tr + i * TILE, p]
                row[i] = ns[p, tc + i * TILE]
            for i in range(PER_THREAD):
                for j in range(PER_THREAD):
                    sums[i, j] += column[i] * row[j]
        syncthreads()

    for i in range(PER_THREAD):
        for j in range(PER_THREAD):
            if r + i * TILE < h and c + j * TILE < w:
                out[r + i * TILE, c + j * TILE] = sums[i, j]


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    m = torch.randn(200, 130, device=device)
    n = torch.randn(130, 170, device=device)

    results = {
        "tiles of a constant size": matmul_static(m, n),
        "tiles that the launch sizes": matmul_dynamic(m, n, tw=8),
        "a template on the width": matmul_template(m, n, tile=8),
        "4 x 4 results a thread": matmul_registers(m, n),
    }
    for form, out in results.items():
        torch.testing.assert_close(out, m @ n, rtol=1e-4, atol=1e-4)
        print(f"Matrix product on {device}, {form}: as torch's")
    print(matmul_static.check())
    print(matmul_dynamic.check())
    print(matmul_template.check())
    print(matmul_registers.check())


if __name__ == "__main__":
    main()
