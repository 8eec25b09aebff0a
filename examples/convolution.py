"""A convolution whose filter lies in constant memory, which all threads read at once.

    python examples/convolution.py

`FILTER` is a tuple of constants of the module: the CUDA has it as a `__constant__` array. All threads of a warp read
the same element of it at the same time, which constant memory serves at the speed of a register. The picture comes by
tiles through shared memory, with a border of two pixels around each.
"""

import numpy as np
import torch
from jaxtyping import Float32
from torch import Tensor

from py2cu import blockIdx, kernel, shared, syncthreads, threadIdx

FILTER = (  # the second derivative of a bell curve, in both directions: finds edges
    (0.0, 0.0, -1.0, 0.0, 0.0),
    (0.0, -1.0, -2.0, -1.0, 0.0),
    (-1.0, -2.0, 16.0, -2.0, -1.0),
    (0.0, -1.0, -2.0, -1.0, 0.0),
    (0.0, 0.0, -1.0, 0.0, 0.0),
)
RADIUS = 2
TILE = 16
WIDE = TILE + 2 * RADIUS


@kernel(size=("w", "h"), block=(TILE, TILE))
def convolve(x: Float32[Tensor, "h w"], out: Float32[Tensor, "h w"], h: int, w: int):
    """The filter at every pixel; outside the picture there are zeros."""
    tile = shared((WIDE, WIDE), np.float32)
    tr, tc = threadIdx.y, threadIdx.x
    top, left = blockIdx.y * TILE, blockIdx.x * TILE
    for i in range(tr, WIDE, TILE):
        for j in range(tc, WIDE, TILE):
            r, c = top + i - RADIUS, left + j - RADIUS
            tile[i, j] = x[r, c] if 0 <= r < h and 0 <= c < w else 0.0
    syncthreads()
    s = 0.0
    for i in range(2 * RADIUS + 1):
        for j in range(2 * RADIUS + 1):
            s += FILTER[i][j] * tile[tr + i, tc + j]
    if top + tr < h and left + tc < w:
        out[top + tr, left + tc] = s


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    weights = torch.tensor(FILTER, device=device)
    for shape in (16, 16), (200, 301):
        x = torch.rand(shape, device=device)
        theirs = torch.nn.functional.conv2d(x[None, None], weights[None, None], padding=RADIUS)[0, 0]
        torch.testing.assert_close(convolve(x), theirs, rtol=1e-4, atol=1e-4)
        print(f"Convolution of {shape[0]} x {shape[1]} on {device}: as torch's")
    print(convolve.check())


if __name__ == "__main__":
    main()
