"""A transpose that reads rows and writes rows: a tile in shared memory turns them.

    python examples/transpose.py

Threads side by side should touch elements side by side in global memory, in reading and in writing. A plain transpose
can do only one. Here 32 x 8 threads read a tile of 32 x 32 row by row, wait, and write it column by column. The tile's
rows are 33 long: with 32, the elements of a column would all lie in one bank of shared memory, and be read one after
the other.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from py2cu import blockIdx, kernel, shared, syncthreads, threadIdx

TILE = 32
ROWS = 8  # of threads: each moves TILE / ROWS elements


@kernel(size=("w", "(h + 3) // 4"), block=(TILE, ROWS))
def transpose(x: Float[Tensor, "h w"], out: Float[Tensor, "w h"], h: int, w: int):
    """Rows become columns, by tiles."""
    tile = shared((TILE, TILE + 1), x.dtype)
    tr, tc = threadIdx.y, threadIdx.x
    top, left = blockIdx.y * TILE, blockIdx.x * TILE
    for i in range(tr, TILE, ROWS):
        if top + i < h and left + tc < w:
            tile[i, tc] = x[top + i, left + tc]
    syncthreads()
    for i in range(tr, TILE, ROWS):
        if left + i < w and top + tc < h:
            out[left + i, top + tc] = tile[tc, i]


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    for shape in (32, 32), (1, 100), (1000, 333):
        x = torch.randn(shape, device=device)
        assert torch.equal(transpose(x), x.T)
        print(f"Transposed {shape[0]} x {shape[1]} on {device}")
    print(transpose.check())


if __name__ == "__main__":
    main()
