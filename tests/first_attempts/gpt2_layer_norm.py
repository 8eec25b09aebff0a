"""Layer norm, a warp a row that stays in registers; the backward sums over rows in one launch, the last block adds up."""

import math

import numpy as np
import torch
from jaxtyping import Float, Float32, Int32
from torch import Tensor

from py2cu import Constexpr, atomic, blockIdx, gridDim, kernel, shared, shfl_xor_sync, syncthreads, threadfence, threadIdx

FULL = 0xFFFFFFFF
ROWS = 4  # a block of the forward
BLOCKS = 128  # of the backward
WARPS = 16


def warp_sum(value):
    offset = 16
    while offset > 0:
        value += shfl_xor_sync(FULL, value, offset)
        offset //= 2
    return value


def is_last_block(ticket, is_last):
    """Whether all other blocks have come here; what they wrote before can be read then."""
    threadfence()
    syncthreads()
    if threadIdx.x == 0:
        is_last[0] = int(atomic.add(ticket, 0, 1) == gridDim.x - 1)
    syncthreads()
    return is_last[0] > 0


@kernel(size="32 * rows", block=32 * ROWS)
def layer_norm(
    x: Float[Tensor, "rows 32*per_lane"],
    weight: Float[Tensor, "32*per_lane"],
    bias: Float[Tensor, "32*per_lane"],
    out: Float[Tensor, "rows 32*per_lane"],
    mean: Float32[Tensor, "rows"],
    rstd: Float32[Tensor, "rows"],
    per_lane: Constexpr[int],
    eps: float = 1e-5,
):
    r, lane = blockIdx.x * ROWS + threadIdx.x // 32, threadIdx.x % 32
    if r >= len(x):
        return
    row = [np.float32(x[r, lane + 32 * k]) for k in range(per_lane)]
    m = warp_sum(sum(row)) / (32 * per_lane)
    s = 1 / math.sqrt(warp_sum(sum((v - m) ** 2 for v in row)) / (32 * per_lane) + eps)
    for k in range(per_lane):
        c = lane + 32 * k
        out[r, c] = (row[k] - m) * s * np.float32(weight[c]) + np.float32(bias[c])
    if lane == 0:
        mean[r] = m
        rstd[r] = s


@kernel(size="BLOCKS * 32 * WARPS", block=32 * WARPS, init={"ticket": 0})
def layer_norm_backward(
    x: Float[Tensor, "rows 32*per_lane"],
    weight: Float[Tensor, "32*per_lane"],
    mean: Float32[Tensor, "rows"],
    rstd: Float32[Tensor, "rows"],
    grad_out: Float[Tensor, "rows 32*per_lane"],
    grad_x: Float[Tensor, "rows 32*per_lane"],
    grad_weight: Float[Tensor, "32*per_lane"],
    grad_bias: Float[Tensor, "32*per_lane"],
    partial: Float32[Tensor, "BLOCKS 2 32*per_lane"],
    ticket: Int32[Tensor, "1"],
    per_lane: Constexpr[int],
):
    part = shared((WARPS, 32 * per_lane), np.float32)
    is_last = shared(1, np.int32)
    lane, warp = threadIdx.x % 32, threadIdx.x // 32
    of_weight = [np.float32(0)] * per_lane
    of_bias = [np.float32(0)] * per_lane
    for r in range(blockIdx.x * WARPS + warp, len(x), BLOCKS * WARPS):
        normed = [(np.float32(x[r, lane + 32 * k]) - mean[r]) * rstd[r] for k in range(per_lane)]
        up = [np.float32(grad_out[r, lane + 32 * k]) for k in range(per_lane)]
        scaled = [up[k] * np.float32(weight[lane + 32 * k]) for k in range(per_lane)]
        total = warp_sum(sum(scaled)) / (32 * per_lane)
        dot = warp_sum(sum(a * b for a, b in zip(scaled, normed))) / (32 * per_lane)
        for k in range(per_lane):
            grad_x[r, lane + 32 * k] = rstd[r] * (scaled[k] - total - normed[k] * dot)
            of_weight[k] += up[k] * normed[k]
            of_bias[k] += up[k]
    for k in range(per_lane):
        part[warp, lane + 32 * k] = of_weight[k]
    syncthreads()
    for c in range(threadIdx.x, 32 * per_lane, 32 * WARPS):
        partial[blockIdx.x, 0, c] = sum(part[w, c] for w in range(WARPS))
    syncthreads()
    for k in range(per_lane):
        part[warp, lane + 32 * k] = of_bias[k]
    syncthreads()
    for c in range(threadIdx.x, 32 * per_lane, 32 * WARPS):
        partial[blockIdx.x, 1, c] = sum(part[w, c] for w in range(WARPS))
    if is_last_block(ticket, is_last):
        for c in range(threadIdx.x, 32 * per_lane, 32 * WARPS):
            grad_weight[c] = sum(partial[b, 0, c] for b in range(BLOCKS))
            grad_bias[c] = sum(partial[b, 1, c] for b in range(BLOCKS))


def run(x, weight, bias, grad_out):
    out, mean, rstd = layer_norm(x, weight, bias)
    partial = torch.empty(BLOCKS, 2, x.shape[1])
    grad_x, grad_weight, grad_bias, _ = layer_norm_backward(x, weight, mean, rstd, grad_out, partial)
    return out, grad_x, grad_weight, grad_bias


KERNEL = run
TOLERANCE = dict(rtol=1e-2, atol=2e-2)


def reference(x, weight, bias, grad_out):
    leaves = [v.float().requires_grad_() for v in (x, weight, bias)]
    out = torch.nn.functional.layer_norm(leaves[0], x.shape[1:], leaves[1], leaves[2])
    results = out, *torch.autograd.grad(out, leaves, grad_out.float())
    return tuple(v.detach().to(x.dtype) for v in results)


def cases():
    torch.manual_seed(0)
    for dtype, rows, n in ((torch.float32, 37, 96), (torch.bfloat16, 9, 64)):
        x, grad_out = torch.randn(2, rows, n).to(dtype)
        weight, bias = torch.randn(2, n).to(dtype)
        yield dict(x=x, weight=weight, bias=bias, grad_out=grad_out)
