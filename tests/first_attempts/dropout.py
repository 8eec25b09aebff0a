"""Dropout whose mask is a hash of the element's position and a seed."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from py2cu import Index, kernel

MASK = 0xFFFFFFFF


def hash32(x):
    """lowbias32 by Chris Wellons."""
    x &= MASK
    x ^= x >> 16
    x = (x * 0x7FEB352D) & MASK
    x ^= x >> 15
    x = (x * 0x846CA68B) & MASK
    x ^= x >> 16
    return x


def uniform(seed, i):
    return (hash32(i ^ hash32(seed)) >> 8) / (1 << 24)


@kernel
def dropout(
    i: Index["n"],
    x: Float[Tensor, "n"],
    out: Float[Tensor, "n"],
    kept: Bool[Tensor, "n"],
    p: float = 0.5,
    seed: int = 0,
):
    keep = uniform(seed, i) >= p
    kept[i] = keep
    out[i] = x[i] / (1.0 - p) if keep else 0.0


KERNEL = dropout
TOLERANCE = dict(rtol=1e-5, atol=1e-6)


def reference(x, p=0.5, seed=0):
    kept = torch.tensor([uniform(seed, i) >= p for i in range(len(x))])
    return torch.where(kept, x / (1.0 - p), torch.zeros_like(x)), kept


def cases():
    torch.manual_seed(0)
    yield dict(x=torch.randn(200))
    yield dict(x=torch.randn(100), p=0.1, seed=1234)
