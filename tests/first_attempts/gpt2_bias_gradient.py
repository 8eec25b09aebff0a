"""The gradient of a bias: sums of columns. Blocks share the rows; the last block of a column group adds up."""

import numpy as np
import torch
from jaxtyping import Float, Float32, Int32
from torch import Tensor

from py2cu import atomic, blockIdx, kernel, shared, syncthreads, threadfence, threadIdx

WARPS = 8
CHUNKS = 32  # of rows


@kernel(size=("c", "WARPS * CHUNKS"), block=(32, WARPS), init={"tickets": 0})
def bias_gradient(
    grad_out: Float[Tensor, "rows c"],
    grad_bias: Float[Tensor, "c"],
    partial: Float32[Tensor, "CHUNKS c"],
    tickets: Int32[Tensor, "(c+31)//32"],
):
    part = shared((WARPS, 32), np.float32)
    is_last = shared(1, np.int32)
    lane, warp = threadIdx.x, threadIdx.y
    c = blockIdx.x * 32 + lane
    total = np.float32(0)
    if c < len(grad_bias):
        for r in range(blockIdx.y * WARPS + warp, len(grad_out), WARPS * CHUNKS):
            total += np.float32(grad_out[r, c])
    part[warp, lane] = total
    syncthreads()
    if warp == 0 and c < len(grad_bias):
        partial[blockIdx.y, c] = sum(part[w, lane] for w in range(WARPS))
    threadfence()
    syncthreads()
    if warp == 0 and lane == 0:
        is_last[0] = int(atomic.add(tickets, blockIdx.x, 1) == CHUNKS - 1)
    syncthreads()
    if is_last[0] > 0 and warp == 0 and c < len(grad_bias):
        grad_bias[c] = sum(partial[k, c] for k in range(CHUNKS))


def run(grad_out):
    return bias_gradient(grad_out, torch.empty(CHUNKS, grad_out.shape[1]))[0]


KERNEL = run
TOLERANCE = dict(rtol=1e-2, atol=1e-2)


def reference(grad_out):
    return grad_out.float().sum(0).to(grad_out.dtype)


def cases():
    torch.manual_seed(0)
    for dtype, rows, n in ((torch.float32, 500, 100), (torch.bfloat16, 37, 64)):
        yield dict(grad_out=torch.randn(rows, n).to(dtype))
