"""The fused classifier: losses of all rows, and in place of the logits their gradients; a block a row."""

import math

import numpy as np
import torch
from jaxtyping import Float, Float32, Int64
from torch import Tensor

from py2cu import blockIdx, kernel, shared, shfl_xor_sync, syncthreads, threadIdx

FULL = 0xFFFFFFFF
THREADS = 512
WARPS = THREADS // 32


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


@kernel(size="THREADS * rows", block=THREADS)
def classifier(
    logits: Float[Tensor, "rows padded"],
    targets: Int64[Tensor, "rows"],
    losses: Float32[Tensor, "rows"],
    grad_loss: float,
    vocabulary: int,
):
    """The columns from `vocabulary` on are padding: they take no part, and get no gradient."""
    tops = shared(WARPS, np.float32)
    totals = shared(WARPS, np.float32)
    r, t = blockIdx.x, threadIdx.x
    top = np.float32(-math.inf)
    total = np.float32(0)
    for c in range(t, vocabulary, THREADS):
        v = np.float32(logits[r, c])
        if v > top:
            total *= math.exp(top - v)
            top = v
        total += math.exp(v - top)
    greatest = warp_max(top)
    if top < greatest:
        total *= math.exp(top - greatest)
    total = warp_sum(total)
    if t % 32 == 0:
        tops[t // 32] = greatest
        totals[t // 32] = total
    syncthreads()
    top = max(tops[w] for w in range(WARPS))
    total = np.float32(0)
    for w in range(WARPS):
        if tops[w] > -math.inf:
            total += totals[w] * math.exp(tops[w] - top)
    target = targets[r]
    if t == 0:
        losses[r] = math.log(total) + top - np.float32(logits[r, target])
    syncthreads()
    for c in range(t, logits.shape[1], THREADS):
        if c < vocabulary:
            probability = math.exp(np.float32(logits[r, c]) - top) / total
            logits[r, c] = (probability - (1.0 if c == target else 0.0)) * grad_loss
        else:
            logits[r, c] = 0.0


def run(logits, targets, grad_loss, vocabulary):
    losses = classifier(logits, targets, grad_loss=grad_loss, vocabulary=vocabulary)
    return losses, logits


KERNEL = run
TOLERANCE = dict(rtol=1e-2, atol=1e-2)


def reference(logits, targets, grad_loss, vocabulary):
    leaf = logits.float().requires_grad_()
    losses = torch.nn.functional.cross_entropy(leaf[:, :vocabulary], targets, reduction="none")
    (grad,) = torch.autograd.grad(losses.sum() * grad_loss, leaf)
    return losses.detach(), grad.to(logits.dtype)


def cases():
    torch.manual_seed(0)
    for dtype, rows, padded, vocabulary in ((torch.float32, 5, 1200, 1111), (torch.bfloat16, 3, 128, 100)):
        logits = 3 * torch.randn(rows, padded)
        targets = torch.randint(0, vocabulary, (rows,))
        yield dict(logits=logits.to(dtype), targets=targets, grad_loss=0.25, vocabulary=vocabulary)
