"""Causal attention, one thread per query row, online softmax."""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float32
from torch import Tensor

from py2cu import Constexpr, Index, kernel


@kernel
def causal_attention(
    h: Index["heads"],
    t: Index["seq"],
    q: Float32[Tensor, "heads seq d"],
    k: Float32[Tensor, "heads seq d"],
    v: Float32[Tensor, "heads seq d"],
    out: Float32[Tensor, "heads seq d"],
    d: Constexpr[int] = 16,
    scale: float | None = None,
):
    if scale is None:
        scale = 1.0 / math.sqrt(d)
    query = q[h, t]
    acc = [0.0] * d
    m = -math.inf
    denom = 0.0
    for s in range(t + 1):
        score = scale * sum(a * b for a, b in zip(query, k[h, s]))
        m_new = max(m, score)
        correction = math.exp(m - m_new)
        p = math.exp(score - m_new)
        denom = denom * correction + p
        for j in range(d):
            acc[j] = acc[j] * correction + p * v[h, s, j]
        m = m_new
    for j, a in enumerate(acc):
        out[h, t, j] = a / denom


KERNEL = causal_attention
TOLERANCE = dict(rtol=1e-3, atol=1e-4)


def reference(q, k, v, scale=None):
    return F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True, scale=scale)[0]


def cases():
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 2, 10, 16)
    yield dict(q=q, k=k, v=v)
    yield dict(q=q, k=k, v=v, scale=0.5)
