"""A cascade of biquads (second-order sections, as SciPy's sosfilt) along every channel."""
import torch
from jaxtyping import Float32
from torch import Tensor

from py2cu import Index, kernel

MAX_SECTIONS = 8


@kernel
def sosfilt(
    c: Index["channels"],
    x: Float32[Tensor, "channels t"],
    sos: Float32[Tensor, "sections 6"],
    y: Float32[Tensor, "channels t"],
    gain: float = 1.0,
):
    sections = len(sos)
    assert sections <= MAX_SECTIONS, "too many sections"
    z1 = [0.0] * MAX_SECTIONS
    z2 = [0.0] * MAX_SECTIONS
    for t, v in enumerate(x[c]):
        v *= gain
        for s, (b0, b1, b2, _, a1, a2) in enumerate(sos):
            w = b0 * v + z1[s]
            z1[s] = b1 * v - a1 * w + z2[s]
            z2[s] = b2 * v - a2 * w
            v = w
        y[c, t] = v


KERNEL = sosfilt
TOLERANCE = dict(rtol=1e-4, atol=1e-5)


def reference(x, sos, gain=1.0):
    v = x.double() * gain
    for b0, b1, b2, _, a1, a2 in sos.double().tolist():
        out = torch.zeros_like(v)
        z1 = z2 = torch.zeros(v.shape[0], dtype=torch.float64)
        for t in range(v.shape[1]):
            w = b0 * v[:, t] + z1
            z1, z2 = b1 * v[:, t] - a1 * w + z2, b2 * v[:, t] - a2 * w
            out[:, t] = w
        v = out
    return v.float()


def cases():
    g = torch.Generator().manual_seed(12)
    sos = torch.tensor([[0.2, 0.4, 0.2, 1.0, -0.5, 0.3], [1.0, -1.0, 0.25, 1.0, 0.2, -0.1]])
    yield dict(x=torch.randn(3, 25, generator=g), sos=sos)
    yield dict(x=torch.randn(2, 10, generator=g), sos=sos[:1].clone(), gain=0.5)
