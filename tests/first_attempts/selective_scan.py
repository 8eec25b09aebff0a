"""Mamba's selective scan: one thread per channel, the state in registers."""
import math

import torch
import torch.nn.functional as F
from jaxtyping import Float32
from torch import Tensor

from py2cu import Constexpr, Index, kernel


def softplus(x):
    return x if x > 20.0 else math.log1p(math.exp(x))


def silu(x):
    return x / (1.0 + math.exp(-x))


@kernel
def selective_scan(
    b: Index["batch"],
    d: Index["dim"],
    u: Float32[Tensor, "batch dim length"],
    delta: Float32[Tensor, "batch dim length"],
    A: Float32[Tensor, "dim N"],
    B: Float32[Tensor, "batch N length"],
    C: Float32[Tensor, "batch N length"],
    D: Float32[Tensor, "dim"],
    z: Float32[Tensor, "batch dim length"],
    delta_bias: Float32[Tensor, "dim"],
    out: Float32[Tensor, "batch dim length"],
    N: Constexpr[int] = 16,
):
    state = [0.0] * N
    a = A[d]
    skip, bias = D[d], delta_bias[d]
    for t, x in enumerate(u[b, d]):
        dt = softplus(delta[b, d, t] + bias)
        y = skip * x
        for n in range(N):
            state[n] = math.exp(dt * a[n]) * state[n] + dt * B[b, n, t] * x
            y += state[n] * C[b, n, t]
        out[b, d, t] = y * silu(z[b, d, t])


KERNEL = selective_scan
TOLERANCE = dict(rtol=1e-4, atol=1e-5)


def reference(u, delta, A, B, C, D, z, delta_bias):
    dt = F.softplus(delta + delta_bias[:, None])
    h = torch.zeros(u.shape[0], *A.shape)
    ys = []
    for t in range(u.shape[2]):
        h = torch.exp(dt[:, :, t, None] * A) * h + dt[:, :, t, None] * B[:, None, :, t] * u[:, :, t, None]
        ys.append((h * C[:, None, :, t]).sum(-1) + D * u[:, :, t])
    return torch.stack(ys, -1) * F.silu(z)


def cases():
    g = torch.Generator().manual_seed(3)
    r = lambda *s: torch.randn(*s, generator=g)
    for b, d, l, n in ((2, 3, 7, 16), (1, 5, 9, 4)):
        yield dict(u=r(b, d, l), delta=r(b, d, l), A=-r(d, n).exp(), B=r(b, n, l), C=r(b, n, l), D=r(d),
                   z=r(b, d, l), delta_bias=r(d))
