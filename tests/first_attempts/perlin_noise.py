"""Fractal gradient noise (Perlin) at arbitrary points."""
import math

import numpy as np
import torch
from jaxtyping import Float32
from torch import Tensor

from py2cu import Index, kernel

GRADIENTS = (
    (1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0),
    (0.7071068, 0.7071068), (-0.7071068, 0.7071068), (0.7071068, -0.7071068), (-0.7071068, -0.7071068),
)


def hash2(x: int, y: int, seed: int) -> int:
    h = (x * 374761393 + y * 668265263 + seed * 144665) & 0xFFFFFFFF
    h = ((h ^ (h >> 13)) * 1274126177) & 0xFFFFFFFF
    return h ^ (h >> 16)


def fade(t):
    return t * t * t * (t * (t * 6 - 15) + 10)


def lerp(a, b, t):
    return a + (b - a) * t


def corner(ix, iy, fx, fy, seed):
    gx, gy = GRADIENTS[hash2(ix, iy, seed) & 7]
    return gx * fx + gy * fy


def perlin(x, y, seed):
    ix, iy = math.floor(x), math.floor(y)
    fx, fy = x - ix, y - iy
    u, v = fade(fx), fade(fy)
    top = lerp(corner(ix, iy, fx, fy, seed), corner(ix + 1, iy, fx - 1, fy, seed), u)
    bottom = lerp(corner(ix, iy + 1, fx, fy - 1, seed), corner(ix + 1, iy + 1, fx - 1, fy - 1, seed), u)
    return lerp(top, bottom, v)


@kernel
def fractal_noise(
    i: Index["n"],
    points: Float32[Tensor, "n 2"],
    out: Float32[Tensor, "n"],
    octaves: int = 4,
    gain: float = 0.5,
    seed: int = 0,
):
    x, y = points[i]
    total, amplitude = 0.0, 1.0
    for octave in range(octaves):
        total += amplitude * perlin(x, y, seed + octave)
        x, y = x * 2, y * 2
        amplitude *= gain
    out[i] = total


KERNEL = fractal_noise
TOLERANCE = dict(rtol=1e-3, atol=1e-4)


def reference(points, octaves=4, gain=0.5, seed=0):
    p = points.numpy().astype(np.float64)
    grads = np.array(GRADIENTS)
    out = np.zeros(len(p))

    def dotg(ix, iy, fx, fy, s):
        idx = [hash2(int(a), int(b), s) & 7 for a, b in zip(ix, iy)]
        return grads[idx, 0] * fx + grads[idx, 1] * fy

    for o in range(octaves):
        x, y = p[:, 0] * 2**o, p[:, 1] * 2**o
        ix, iy = np.floor(x), np.floor(y)
        fx, fy = x - ix, y - iy
        u, v = fade(fx), fade(fy)
        s = seed + o
        top = lerp(dotg(ix, iy, fx, fy, s), dotg(ix + 1, iy, fx - 1, fy, s), u)
        bottom = lerp(dotg(ix, iy + 1, fx, fy - 1, s), dotg(ix + 1, iy + 1, fx - 1, fy - 1, s), u)
        out += gain**o * lerp(top, bottom, v)
    return torch.from_numpy(out).float()


def cases():
    g = torch.Generator().manual_seed(6)
    yield dict(points=torch.randn(40, 2, generator=g) * 5)
    yield dict(points=torch.rand(20, 2, generator=g) * 9, octaves=2, gain=0.7, seed=42)
