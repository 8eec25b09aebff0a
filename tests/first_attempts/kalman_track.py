"""A predict-and-update step of many constant-velocity trackers, in place."""
import torch
from jaxtyping import Bool, Float32
from torch import Tensor

from py2cu import Index, kernel


@kernel
def kalman_step(
    i: Index["tracks"],
    state: Float32[Tensor, "tracks 2"],
    cov: Float32[Tensor, "tracks 2 2"],
    measured: Float32[Tensor, "tracks"],
    seen: Bool[Tensor, "tracks"],
    dt: float = 0.1,
    q: float = 0.5,
    r: float = 0.2,
):
    pos, vel = state[i]
    (p00, p01), (p10, p11) = cov[i]

    # predict: F P F' + Q
    pos += dt * vel
    p00 += dt * (p01 + p10 + dt * p11) + q * dt**4 / 4
    p01 += dt * p11 + q * dt**3 / 2
    p10 += dt * p11 + q * dt**3 / 2
    p11 += q * dt**2

    if seen[i]:
        s = p00 + r
        k0, k1 = p00 / s, p10 / s
        innovation = measured[i] - pos
        pos += k0 * innovation
        vel += k1 * innovation
        p00, p01, p10, p11 = (1 - k0) * p00, (1 - k0) * p01, p10 - k1 * p00, p11 - k1 * p01

    state[i] = pos, vel
    cov[i, 0] = p00, p01
    cov[i, 1] = p10, p11


KERNEL = kalman_step
IN_PLACE = ("state", "cov")
TOLERANCE = dict(rtol=1e-4, atol=1e-5)


def reference(state, cov, measured, seen, dt=0.1, q=0.5, r=0.2):
    F = torch.tensor([[1.0, dt], [0.0, 1.0]])
    Q = q * torch.tensor([[dt**4 / 4, dt**3 / 2], [dt**3 / 2, dt**2]])
    H = torch.tensor([[1.0, 0.0]])
    x = (F @ state[..., None])
    P = F @ cov @ F.T + Q
    S = H @ P @ H.T + r
    K = P @ H.T / S
    x2 = x + K * (measured[:, None, None] - H @ x)
    P2 = (torch.eye(2) - K @ H) @ P
    mask = seen[:, None, None]
    return torch.where(mask, x2, x)[..., 0], torch.where(mask, P2, P)


def cases():
    g = torch.Generator().manual_seed(5)
    n = 11
    L = torch.randn(n, 2, 2, generator=g)
    yield dict(
        state=torch.randn(n, 2, generator=g),
        cov=L @ L.mT + 0.1 * torch.eye(2),
        measured=torch.randn(n, generator=g),
        seen=torch.rand(n, generator=g) > 0.3,
    )
