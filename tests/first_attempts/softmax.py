"""Softmax over the last dimension, one thread per row."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from py2cu import Index, kernel


@kernel
def softmax(
    i: Index["n"],
    x: Float[Tensor, "n m"],
    out: Float[Tensor, "n m"],
    temperature: float = 1.0,
):
    row = x[i]
    top = max(row)
    total = sum(math.exp((v - top) / temperature) for v in row)
    for j, v in enumerate(row):
        out[i, j] = math.exp((v - top) / temperature) / total


KERNEL = softmax
TOLERANCE = dict(rtol=1e-4, atol=1e-6)


def reference(x, temperature=1.0):
    return torch.softmax(x / temperature, dim=-1)


def cases():
    torch.manual_seed(0)
    yield dict(x=torch.randn(7, 33))
    yield dict(x=torch.randn(3, 10, dtype=torch.float64), temperature=0.5)
