"""Layer norm, or RMS norm with `centre=False`, with optional weight and bias."""

import torch
from jaxtyping import Float
from torch import Tensor

from py2cu import Index, kernel


@kernel
def layer_norm(
    i: Index["rows"],
    x: Float[Tensor, "rows n"],
    out: Float[Tensor, "rows n"],
    weight: Float[Tensor, "n"] | None = None,
    bias: Float[Tensor, "n"] | None = None,
    eps: float = 1e-5,
    centre: bool = True,
):
    row = x[i]
    n = len(row)
    mean = sum(row) / n if centre else 0.0
    var = sum((v - mean) ** 2 for v in row) / n
    rstd = torch.rsqrt(var + eps)
    for j in range(n):
        y = (row[j] - mean) * rstd
        if weight is not None:
            y *= weight[j]
        if bias is not None:
            y += bias[j]
        out[i, j] = y


KERNEL = layer_norm
TOLERANCE = dict(rtol=1e-4, atol=1e-5)


def reference(x, weight=None, bias=None, eps=1e-5, centre=True):
    mean = x.mean(1, keepdim=True) if centre else 0.0
    y = x - mean
    y = y * torch.rsqrt(y.pow(2).mean(1, keepdim=True) + eps)
    if weight is not None:
        y = y * weight
    if bias is not None:
        y = y + bias
    return y


def cases():
    torch.manual_seed(0)
    x = torch.randn(5, 24)
    yield dict(x=x)
    yield dict(x=x, weight=torch.randn(24), bias=torch.randn(24))
    yield dict(x=x, weight=torch.randn(24), centre=False)
