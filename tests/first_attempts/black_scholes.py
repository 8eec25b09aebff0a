"""European options: prices and the call's delta."""
import math

import torch
from jaxtyping import Float32
from torch import Tensor

from py2cu import Index, kernel

INV_SQRT2 = 1 / math.sqrt(2)

cdf = lambda x: 0.5 * (1.0 + math.erf(x * INV_SQRT2))


def d1_d2(s, k, t, r, sigma):
    vol = sigma * math.sqrt(t)
    d1 = (math.log(s / k) + (r + 0.5 * sigma**2) * t) / vol
    return d1, d1 - vol


@kernel
def black_scholes(
    i: Index["n"],
    spot: Float32[Tensor, "n"],
    strike: Float32[Tensor, "n"],
    years: Float32[Tensor, "n"],
    call: Float32[Tensor, "n"],
    put: Float32[Tensor, "n"],
    delta: Float32[Tensor, "n"],
    rate: float = 0.02,
    sigma: float = 0.3,
):
    s, k, t = spot[i], strike[i], years[i]
    d1, d2 = d1_d2(s, k, t, rate, sigma)
    discounted = k * math.exp(-rate * t)
    call[i] = s * cdf(d1) - discounted * cdf(d2)
    put[i] = discounted * cdf(-d2) - s * cdf(-d1)
    delta[i] = cdf(d1)


KERNEL = black_scholes
TOLERANCE = dict(rtol=1e-3, atol=1e-3)


def reference(spot, strike, years, rate=0.02, sigma=0.3):
    s, k, t = spot.double(), strike.double(), years.double()
    n = torch.special.ndtr
    vol = sigma * t.sqrt()
    d1 = ((s / k).log() + (rate + 0.5 * sigma**2) * t) / vol
    d2 = d1 - vol
    disc = k * torch.exp(-rate * t)
    return (
        (s * n(d1) - disc * n(d2)).float(),
        (disc * n(-d2) - s * n(-d1)).float(),
        n(d1).float(),
    )


def cases():
    g = torch.Generator().manual_seed(4)
    r = lambda lo, hi: torch.rand(50, generator=g) * (hi - lo) + lo
    yield dict(spot=r(5, 30), strike=r(1, 100), years=r(0.25, 10))
    yield dict(spot=r(5, 30), strike=r(1, 100), years=r(0.25, 10), rate=0.05, sigma=0.1)
