"""Gravitational acceleration of every body, all pairs, softened."""

import torch
from jaxtyping import Float
from torch import Tensor

from py2cu import Index, kernel


@kernel
def nbody(
    i: Index["n"],
    pos: Float[Tensor, "n 3"],
    mass: Float[Tensor, "n"],
    acc: Float[Tensor, "n 3"],
    g: float = 1.0,
    softening: float = 1e-2,
):
    px, py, pz = pos[i]
    ax, ay, az = 0.0, 0.0, 0.0
    for j, m in enumerate(mass):
        qx, qy, qz = pos[j]
        dx, dy, dz = qx - px, qy - py, qz - pz
        r2 = dx * dx + dy * dy + dz * dz + softening**2
        f = g * m * r2**-1.5
        ax += f * dx
        ay += f * dy
        az += f * dz
    for k, a in enumerate((ax, ay, az)):
        acc[i, k] = a


KERNEL = nbody
TOLERANCE = dict(rtol=1e-3, atol=1e-3)


def reference(pos, mass, g=1.0, softening=1e-2):
    d = pos[None] - pos[:, None]
    r2 = (d * d).sum(-1) + softening**2
    return (g * mass[None, :, None] * d * r2[..., None] ** -1.5).sum(1)


def cases():
    torch.manual_seed(0)
    yield dict(pos=torch.randn(20, 3), mass=torch.rand(20))
    yield dict(pos=torch.randn(7, 3, dtype=torch.float64), mass=torch.rand(7, dtype=torch.float64), softening=0.1)
