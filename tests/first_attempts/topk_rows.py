"""The k largest of every row, by insertion into a small sorted list."""

import math

import torch
from jaxtyping import Float32, Int64
from torch import Tensor

from py2cu import Constexpr, Index, kernel


@kernel
def topk_rows(
    i: Index["n"],
    x: Float32[Tensor, "n m"],
    values: Float32[Tensor, "n k"],
    indices: Int64[Tensor, "n k"],
    k: Constexpr[int] = 4,
):
    best = [-math.inf] * k
    where = [-1] * k
    for j, v in enumerate(x[i]):
        if v <= best[k - 1]:
            continue
        slot = k - 1
        while slot > 0 and best[slot - 1] < v:
            best[slot] = best[slot - 1]
            where[slot] = where[slot - 1]
            slot -= 1
        best[slot] = v
        where[slot] = j
    for s in range(k):
        values[i, s] = best[s]
        indices[i, s] = where[s]


KERNEL = topk_rows


def reference(x, k=4):
    values, indices = torch.topk(x, k, dim=1)
    return values, indices


def cases():
    torch.manual_seed(0)
    yield dict(x=torch.randn(6, 50))
    yield dict(x=torch.randn(3, 20), k=2)
