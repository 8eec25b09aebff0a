"""One radix-2 Stockham stage of an FFT over every row of a batch."""
import cmath
import math

import torch
from jaxtyping import Complex64
from torch import Tensor

from py2cu import Index, kernel


def twiddle(k, n):
    return cmath.exp(-2j * math.pi * k / n)


def butterfly(a, b, w):
    t = w * b
    return a + t, a - t


@kernel
def fft_stage(
    row: Index["batch"],
    i: Index["n//2"],
    x: Complex64[Tensor, "batch n"],
    out: Complex64[Tensor, "batch n"],
    span: int = 1,
):
    """`span` is 1, 2, 4, ... n/2, from the first stage to the last."""
    half = x.shape[1] // 2
    k = i % span
    lo, hi = butterfly(x[row, i], x[row, i + half], twiddle(k, 2 * span))
    j = (i - k) * 2 + k
    out[row, j] = lo
    out[row, j + span] = hi


KERNEL = fft_stage
TOLERANCE = dict(rtol=1e-4, atol=1e-4)


def reference(x, span=1):
    n = x.shape[1]
    i = torch.arange(n // 2)
    k = i % span
    w = torch.polar(torch.ones(n // 2, dtype=torch.float64), -math.pi * k.double() / span).to(torch.complex64)
    a, t = x[:, : n // 2], w * x[:, n // 2 :]
    out = torch.empty_like(x)
    j = (i - k) * 2 + k
    out[:, j] = a + t
    out[:, j + span] = a - t
    return out


def cases():
    g = torch.Generator().manual_seed(2)
    x = torch.randn(3, 16, dtype=torch.complex64, generator=g)
    for span in (1, 2, 8):
        yield dict(x=x, span=span)
