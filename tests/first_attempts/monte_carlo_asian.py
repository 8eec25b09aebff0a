"""Monte Carlo of an Asian call: each thread walks one path, its normals from a PCG hash and Box-Muller."""
import math

import numpy as np
import torch
from jaxtyping import Float32
from torch import Tensor

from py2cu import Index, kernel

MASK = 0xFFFFFFFF
TWO_PI = 2 * math.pi


def pcg(x):
    """32 random bits out of 32 bits."""
    state = (x * 747796405 + 2891336453) & MASK
    word = (((state >> ((state >> 28) + 4)) ^ state) * 277803737) & MASK
    return (word >> 22) ^ word


def uniform(bits):
    return ((bits >> 8) + 0.5) / 16777216.0


def normal_pair(key, counter):
    a = pcg(key ^ pcg(counter))
    b = pcg(a)
    radius = math.sqrt(-2.0 * math.log(uniform(a)))
    angle = TWO_PI * uniform(b)
    return radius * math.cos(angle), radius * math.sin(angle)


@kernel
def asian_call(
    path: Index["paths"],
    payoff: Float32[Tensor, "paths"],
    paths: int,
    spot: float = 100.0,
    strike: float = 100.0,
    rate: float = 0.03,
    sigma: float = 0.2,
    years: float = 1.0,
    steps: int = 16,
    seed: int = 1234,
):
    dt = years / steps
    drift = (rate - 0.5 * sigma * sigma) * dt
    vol = sigma * math.sqrt(dt)
    log_s = math.log(spot)
    total = 0.0
    key = pcg(seed + path)
    for step in range(0, steps, 2):
        for z in normal_pair(key, step):
            log_s += drift + vol * z
            total += math.exp(log_s)
    payoff[path] = math.exp(-rate * years) * max(total / steps - strike, 0.0)


KERNEL = asian_call
TOLERANCE = dict(rtol=1e-3, atol=1e-2)


def reference(paths, spot=100.0, strike=100.0, rate=0.03, sigma=0.2, years=1.0, steps=16, seed=1234):
    def h(x):
        state = (x * np.uint64(747796405) + np.uint64(2891336453)) & np.uint64(MASK)
        word = ((state >> ((state >> np.uint64(28)) + np.uint64(4))) ^ state) * np.uint64(277803737) & np.uint64(MASK)
        return (word >> np.uint64(22)) ^ word

    u = lambda bits: ((bits >> np.uint64(8)).astype(np.float64) + 0.5) / 2**24
    key = h(np.arange(paths, dtype=np.uint64) + np.uint64(seed))
    dt = years / steps
    log_s = np.full(paths, np.log(spot))
    total = np.zeros(paths)
    for step in range(0, steps, 2):
        a = h(key ^ h(np.array([step], dtype=np.uint64)))
        b = h(a)
        radius, angle = np.sqrt(-2 * np.log(u(a))), TWO_PI * u(b)
        for z in (radius * np.cos(angle), radius * np.sin(angle)):
            log_s = log_s + (rate - 0.5 * sigma**2) * dt + sigma * np.sqrt(dt) * z
            total += np.exp(log_s)
    return torch.from_numpy(np.exp(-rate * years) * np.maximum(total / steps - strike, 0)).float()


def cases():
    yield dict(paths=100)
    yield dict(paths=33, strike=90.0, sigma=0.4, steps=8, seed=7)
