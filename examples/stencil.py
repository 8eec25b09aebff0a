"""Stencils: every element becomes a sum of its neighbours, which a block loads once, with a halo around them.

    python examples/stencil.py

The neighbours of a block's outermost elements belong to other blocks. This halo is loaded to shared memory too: in one
dimension the first threads load a few elements more, in two dimensions the threads go over the larger tile in strides.
"""

import numpy as np
import torch
from jaxtyping import Float32
from torch import Tensor

from py2cu import blockDim, blockIdx, kernel, shared, syncthreads, threadIdx

RADIUS = 3
THREADS = 256
TILE = 16
WIDE = TILE + 2


@kernel(size="n", block=THREADS)
def smooth(x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    """The mean of 7 neighbours; past the ends there are zeros."""
    near = shared(THREADS + 2 * RADIUS, np.float32)
    t = threadIdx.x
    i = blockIdx.x * blockDim.x + t
    near[t + RADIUS] = x[i] if i < len(x) else 0.0
    if t < RADIUS:  # the halo, left and right
        near[t] = x[i - RADIUS] if i >= RADIUS else 0.0
        near[t + RADIUS + THREADS] = x[i + THREADS] if i + THREADS < len(x) else 0.0
    syncthreads()
    s = 0.0
    for k in range(2 * RADIUS + 1):
        s += near[t + k]
    if i < len(x):
        out[i] = s / (2 * RADIUS + 1)


@kernel(size=("w", "h"), block=(TILE, TILE))
def diffuse(x: Float32[Tensor, "h w"], rate: float, out: Float32[Tensor, "h w"], h: int, w: int):
    """A step of heat's diffusion: each element nears the mean of its neighbours. Nothing leaves at the border."""
    tile = shared((WIDE, WIDE), np.float32)
    tr, tc = threadIdx.y, threadIdx.x
    top, left = blockIdx.y * TILE - 1, blockIdx.x * TILE - 1
    for i in range(tr * TILE + tc, WIDE * WIDE, TILE * TILE):
        near_r = min(max(top + i // WIDE, 0), h - 1)
        near_c = min(max(left + i % WIDE, 0), w - 1)
        tile[i // WIDE, i % WIDE] = x[near_r, near_c]
    syncthreads()
    r, c = top + 1 + tr, left + 1 + tc
    if r < h and c < w:
        here = tile[tr + 1, tc + 1]
        around = tile[tr, tc + 1] + tile[tr + 2, tc + 1] + tile[tr + 1, tc] + tile[tr + 1, tc + 2]
        out[r, c] = here + rate * (around - 4 * here)


def diffused(x: Tensor, rate: float) -> Tensor:
    """`diffuse` in torch."""
    p = torch.nn.functional.pad(x[None, None], (1, 1, 1, 1), mode="replicate")[0, 0]
    return x + rate * (p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4 * x)


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = torch.randn(10_001, device=device)
    means = torch.nn.functional.avg_pool1d(x[None], 2 * RADIUS + 1, stride=1, padding=RADIUS)[0]
    torch.testing.assert_close(smooth(x), means)
    print(f"Means of 7 neighbours on {device}: as torch's")

    plate = torch.rand(100, 75, device=device)
    torch.testing.assert_close(diffuse(plate, 0.2), diffused(plate, 0.2))
    print(f"A step of diffusion on {device}: as torch's")
    print(smooth.check())
    print(diffuse.check())


if __name__ == "__main__":
    main()
