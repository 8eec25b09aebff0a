"""GPT-2's encoder: the sum of a token's and a position's row; the token table's gradient from sorted buckets."""

import numpy as np
import torch
from jaxtyping import Float, Int32, Int64
from torch import Tensor

from py2cu import Constexpr, Index, blockIdx, kernel, shared, syncthreads, threadIdx

WARPS = 8
SHORT = 16  # a bucket that one warp adds up by itself


@kernel(block=(64, 4, 1))
def encoder(
    b: Index["b"],
    t: Index["t"],
    c: Index["c"],
    tokens: Int64[Tensor, "b t"],
    wte: Float[Tensor, "v c"],
    wpe: Float[Tensor, "positions c"],
    out: Float[Tensor, "b t c"],
):
    out[b, t, c] = wte[tokens[b, t], c] + wpe[t, c]


@kernel
def position_gradient(t: Index["t"], c: Index["c"], grad_out: Float[Tensor, "b t c"], grad_wpe: Float[Tensor, "t c"]):
    total = np.float32(0)
    for b in range(grad_out.shape[0]):
        total += np.float32(grad_out[b, t, c])
    grad_wpe[t, c] = total


@kernel(size="32 * n", block=32 * WARPS)
def token_gradient(
    order: Int32[Tensor, "n"],
    ends: Int32[Tensor, "n"],
    tokens: Int64[Tensor, "n"],
    grad_out: Float[Tensor, "n 32*per_lane"],
    grad_wte: Float[Tensor, "v 32*per_lane"],
    per_lane: Constexpr[int],
):
    """Adds each token's rows of `grad_out` to its row of `grad_wte`.

    `order` sorts the tokens; a bucket from p to `ends[p]` holds one token, and `ends` is 0 where none starts. A warp has
    a short bucket, all warps of the block a long one.
    """
    part = shared((WARPS, 32 * per_lane), np.float32)
    lane, warp = threadIdx.x % 32, threadIdx.x // 32
    first = blockIdx.x * WARPS
    p = first + warp
    if p < len(ends) and p < ends[p] <= p + SHORT:
        total = [np.float32(0)] * per_lane
        for q in range(p, ends[p]):
            for k in range(per_lane):
                total[k] += np.float32(grad_out[order[q], lane + 32 * k])
        token = tokens[order[p]]
        for k in range(per_lane):
            grad_wte[token, lane + 32 * k] += total[k]
    for start in range(first, min(first + WARPS, len(ends))):
        if ends[start] > start + SHORT:
            total = [np.float32(0)] * per_lane
            for q in range(start + warp, ends[start], WARPS):
                for k in range(per_lane):
                    total[k] += np.float32(grad_out[order[q], lane + 32 * k])
            for k in range(per_lane):
                part[warp, lane + 32 * k] = total[k]
            syncthreads()
            token = tokens[order[start]]
            for c in range(threadIdx.x, 32 * per_lane, 32 * WARPS):
                grad_wte[token, c] += sum(part[w, c] for w in range(WARPS))
            syncthreads()


def run(tokens, wte, wpe, grad_out, grad_wte):
    out = encoder(tokens, wte, wpe)
    n = tokens.numel()
    ordered, order = tokens.view(-1).sort(stable=True)
    starts = torch.searchsorted(ordered, ordered)
    ends = torch.searchsorted(ordered, ordered, right=True)
    ends[starts != torch.arange(n)] = 0
    grad_wte = grad_wte.clone()
    token_gradient(order.int(), ends.int(), tokens.view(-1), grad_out.view(n, -1), grad_wte)
    return out, position_gradient(grad_out), grad_wte


KERNEL = run
TOLERANCE = dict(rtol=1e-2, atol=1e-2)


def reference(tokens, wte, wpe, grad_out, grad_wte):
    rows = grad_out.float().flatten(0, 1)
    added = grad_wte.float().index_add(0, tokens.view(-1), rows)
    out = wte[tokens] + wpe[: tokens.shape[1]]
    return out, grad_out.float().sum(0).to(wte.dtype), added.to(wte.dtype)


def cases():
    torch.manual_seed(0)
    for dtype in (torch.float32, torch.bfloat16):
        tokens = torch.randint(0, 20, (3, 21))
        tokens[1:, :15] = 7
        table, grad_table = torch.randn(2, 20, 64).to(dtype)
        yield dict(
            tokens=tokens, wte=table, wpe=torch.randn(30, 64).to(dtype), grad_out=torch.randn(3, 21, 64).to(dtype),
            grad_wte=grad_table,
        )
