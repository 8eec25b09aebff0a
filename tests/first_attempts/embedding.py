"""Embedding lookup with an optional bias and a padding index."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from py2cu import Index, kernel


@kernel
def embedding(
    b: Index["batch"],
    t: Index["seq"],
    j: Index["dim"],
    tokens: Int64[Tensor, "batch seq"],
    table: Float[Tensor, "vocab dim"],
    out: Float[Tensor, "batch seq dim"],
    bias: Float[Tensor, "dim"] | None = None,
    padding_idx: int = -1,
):
    token = tokens[b, t]
    value = table[token, j] if token != padding_idx else 0.0
    if bias is not None:
        value += bias[j]
    out[b, t, j] = value


KERNEL = embedding


def reference(tokens, table, bias=None, padding_idx=-1):
    out = table[tokens] * (tokens != padding_idx)[..., None]
    if bias is not None:
        out = out + bias
    return out


def cases():
    torch.manual_seed(0)
    tokens = torch.randint(0, 11, (2, 6))
    table = torch.randn(11, 8)
    yield dict(tokens=tokens, table=table)
    yield dict(tokens=tokens, table=table, bias=torch.randn(8), padding_idx=3)
