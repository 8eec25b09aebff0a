"""Symmetric int8 quantisation with one scale a row."""

import torch
from jaxtyping import Float32, Int8
from torch import Tensor

from py2cu import Index, kernel


@kernel
def quantise_int8(
    i: Index["n"],
    x: Float32[Tensor, "n m"],
    q: Int8[Tensor, "n m"],
    scales: Float32[Tensor, "n"],
):
    row = x[i]
    amax = max(abs(v) for v in row)
    scale = max(amax, 1e-8) / 127.0
    scales[i] = scale
    for j, v in enumerate(row):
        q[i, j] = int(torch.clamp(torch.round(v / scale), -128, 127))


KERNEL = quantise_int8
TOLERANCE = dict(rtol=1e-5, atol=1e-6)


def reference(x):
    scale = x.abs().amax(1).clamp(min=1e-8) / 127.0
    q = torch.round(x / scale[:, None]).clamp(-128, 127).to(torch.int8)
    return q, scale


def cases():
    torch.manual_seed(0)
    yield dict(x=torch.randn(5, 40))
    x = torch.randn(3, 16)
    x[1] = 0
    yield dict(x=x)
