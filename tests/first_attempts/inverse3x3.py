"""Inverse and determinant of a batch of 3x3 matrices."""
import torch
from jaxtyping import Float
from torch import Tensor

from py2cu import Index, kernel


@kernel
def inverse3x3(
    i: Index["batch"],
    m: Float[Tensor, "batch 3 3"],
    inv: Float[Tensor, "batch 3 3"],
    det: Float[Tensor, "batch"],
):
    (a, b, c), (d, e, f), (g, h, k) = m[i]
    A, B, C = e * k - f * h, f * g - d * k, d * h - e * g
    determinant = a * A + b * B + c * C
    scale = 1.0 / determinant
    adjugate = (
        (A, c * h - b * k, b * f - c * e),
        (B, a * k - c * g, c * d - a * f),
        (C, b * g - a * h, a * e - b * d),
    )
    for r, row in enumerate(adjugate):
        for col, value in enumerate(row):
            inv[i, r, col] = value * scale
    det[i] = determinant


KERNEL = inverse3x3
TOLERANCE = dict(rtol=1e-3, atol=1e-4)


def reference(m):
    return torch.linalg.inv(m), torch.linalg.det(m)


def cases():
    g = torch.Generator().manual_seed(8)
    m = torch.randn(9, 3, 3, generator=g) + 3 * torch.eye(3)
    yield dict(m=m)
    yield dict(m=m.double())
