"""Inclusive or exclusive cumulative sum along each row."""

import torch
from jaxtyping import Num
from torch import Tensor

from py2cu import Index, kernel


@kernel
def cumsum_rows(
    i: Index["n"],
    x: Num[Tensor, "n m"],
    out: Num[Tensor, "n m"],
    *,
    exclusive: bool = False,
    reverse: bool = False,
):
    m = x.shape[1]
    total = 0
    for step in range(m):
        j = m - 1 - step if reverse else step
        if exclusive:
            out[i, j] = total
            total += x[i, j]
        else:
            total += x[i, j]
            out[i, j] = total


KERNEL = cumsum_rows
TOLERANCE = dict(rtol=1e-4, atol=1e-5)


def reference(x, exclusive=False, reverse=False):
    y = x.flip(1) if reverse else x
    c = torch.cumsum(y, 1)
    if exclusive:
        c = c - y
    return c.flip(1) if reverse else c


def cases():
    torch.manual_seed(0)
    yield dict(x=torch.randn(5, 19))
    yield dict(x=torch.randint(-9, 9, (4, 12)), exclusive=True)
    yield dict(x=torch.randn(3, 8), exclusive=True, reverse=True)
