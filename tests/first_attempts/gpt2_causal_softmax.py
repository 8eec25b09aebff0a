"""Causal softmax of scores, online, a warp a row; above the diagonal nothing is read, and `out` keeps its zeros."""

import math

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from py2cu import blockIdx, kernel, shfl_xor_sync, threadIdx

FULL = 0xFFFFFFFF
ROWS = 8


def warp_sum(value):
    offset = 16
    while offset > 0:
        value += shfl_xor_sync(FULL, value, offset)
        offset //= 2
    return value


def warp_max(value):
    offset = 16
    while offset > 0:
        value = max(value, shfl_xor_sync(FULL, value, offset))
        offset //= 2
    return value


@kernel(size="32 * heads * t", block=32 * ROWS, init={"out": 0})
def causal_softmax(x: Float[Tensor, "heads t t"], out: Float[Tensor, "heads t t"], t: int, heads: int, scale: float):
    at, lane = blockIdx.x * ROWS + threadIdx.x // 32, threadIdx.x % 32
    if at >= heads * t:
        return
    h, r = at // t, at % t
    top = np.float32(-math.inf)
    total = np.float32(0)
    for c in range(lane, r + 1, 32):
        v = np.float32(x[h, r, c])
        if v > top:
            total *= math.exp(scale * (top - v))
            top = v
        total += math.exp(scale * (v - top))
    greatest = warp_max(top)
    if top < greatest:
        total *= math.exp(scale * (top - greatest))
    norm = 1 / warp_sum(total)
    for c in range(lane, r + 1, 32):
        out[h, r, c] = math.exp(scale * (np.float32(x[h, r, c]) - greatest)) * norm


@causal_softmax.backward(size="32 * heads * t", block=32 * ROWS)
def causal_softmax_backward(
    out: Float[Tensor, "heads t t"],
    grad_out: Float[Tensor, "heads t t"],
    grad_x: Float[Tensor, "heads t t"],
    t: int,
    heads: int,
    scale: float,
):
    at, lane = blockIdx.x * ROWS + threadIdx.x // 32, threadIdx.x % 32
    if at >= heads * t:
        return
    h, r = at // t, at % t
    dot = np.float32(0)
    for c in range(lane, r + 1, 32):
        dot += np.float32(out[h, r, c]) * np.float32(grad_out[h, r, c])
    dot = warp_sum(dot)
    for c in range(lane, t, 32):
        grad_x[h, r, c] = scale * np.float32(out[h, r, c]) * (np.float32(grad_out[h, r, c]) - dot) if c <= r else 0.0


def run(x, grad_out, scale):
    x.requires_grad_()
    out = causal_softmax(x, scale=scale)
    return out.detach(), *torch.autograd.grad(out, x, grad_out)


KERNEL = run
TOLERANCE = dict(rtol=1e-2, atol=1e-2)


def reference(x, grad_out, scale):
    leaf = x.float().requires_grad_()
    hidden = torch.ones(x.shape[1:], dtype=torch.bool).triu(1)
    out = torch.softmax((leaf * scale).masked_fill(hidden, float("-inf")), -1)
    (grad,) = torch.autograd.grad(out, leaf, grad_out.float())
    return out.detach().to(x.dtype), grad.to(x.dtype)


def cases():
    torch.manual_seed(0)
    for dtype, t in ((torch.float32, 70), (torch.bfloat16, 33)):
        x, grad_out = torch.randn(2, 3, t, t).to(dtype)
        yield dict(x=3 * x, grad_out=grad_out, scale=0.125)
