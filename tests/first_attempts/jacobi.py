"""A weighted Jacobi sweep for the pressure equation, with solid cells."""

import torch
from jaxtyping import Bool, Float32
from torch import Tensor

from py2cu import Index, kernel

NEIGHBOURS = ((-1, 0), (1, 0), (0, -1), (0, 1))


@kernel
def jacobi(
    y: Index["h"],
    x: Index["w"],
    p: Float32[Tensor, "h w"],
    div: Float32[Tensor, "h w"],
    solid: Bool[Tensor, "h w"],
    out: Float32[Tensor, "h w"],
    dx: float = 1.0,
    omega: float = 0.8,
):
    h, w = p.shape
    centre = p[y, x]
    if solid[y, x] or y in (0, h - 1) or x in (0, w - 1):
        out[y, x] = centre
        return
    total = 0.0
    for oy, ox in NEIGHBOURS:
        ny, nx = y + oy, x + ox
        # a solid neighbour has our own pressure (no flow through the wall)
        total += centre if solid[ny, nx] else p[ny, nx]
    new = (total - dx**2 * div[y, x]) / 4
    out[y, x] = (1 - omega) * centre + omega * new


KERNEL = jacobi
TOLERANCE = dict(rtol=1e-4, atol=1e-5)


def reference(p, div, solid, dx=1.0, omega=0.8):
    total = torch.zeros_like(p)
    for oy, ox in NEIGHBOURS:
        shifted = torch.roll(p, (-oy, -ox), (0, 1))
        wall = torch.roll(solid, (-oy, -ox), (0, 1))
        total += torch.where(wall, p, shifted)
    new = (1 - omega) * p + omega * (total - dx**2 * div) / 4
    fixed = solid.clone()
    fixed[0] = fixed[-1] = True
    fixed[:, 0] = fixed[:, -1] = True
    return torch.where(fixed, p, new)


def cases():
    torch.manual_seed(0)
    yield dict(p=torch.randn(12, 15), div=torch.randn(12, 15), solid=torch.rand(12, 15) < 0.2)
    yield dict(p=torch.randn(6, 7), div=torch.randn(6, 7), solid=torch.rand(6, 7) < 0.1, dx=0.5, omega=1.0)
