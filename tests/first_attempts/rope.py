"""Rotary position embedding on pairs (j, j + dim/2), as in Llama."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from py2cu import Index, kernel


def rotate(a, b, angle):
    c, s = math.cos(angle), math.sin(angle)
    return a * c - b * s, a * s + b * c


@kernel
def rope(
    t: Index["seq"],
    h: Index["heads"],
    j: Index["dim // 2"],
    x: Float[Tensor, "seq heads dim"],
    positions: Int[Tensor, "seq"],
    out: Float[Tensor, "seq heads dim"],
    base: float = 10000.0,
):
    half = x.shape[-1] // 2
    theta = positions[t] * base ** (-j / half)
    out[t, h, j], out[t, h, j + half] = rotate(x[t, h, j], x[t, h, j + half], theta)


KERNEL = rope
TOLERANCE = dict(rtol=1e-3, atol=1e-4)


def reference(x, positions, base=10000.0):
    half = x.shape[-1] // 2
    freqs = base ** (-torch.arange(half, dtype=torch.float64) / half)
    angle = (positions[:, None] * freqs)[:, None, :]
    c, s = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * c - b * s, a * s + b * c], dim=-1)


def cases():
    torch.manual_seed(0)
    yield dict(x=torch.randn(9, 2, 16), positions=torch.arange(9))
    yield dict(x=torch.randn(4, 3, 8), positions=torch.tensor([5, 0, 2, 7]), base=500.0)
