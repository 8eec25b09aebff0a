"""Batched tridiagonal systems by Thomas' algorithm; `upper` and `rhs` are overwritten, `rhs` by the solution."""
import torch
from jaxtyping import Float64
from torch import Tensor

from py2cu import Index, kernel


@kernel
def thomas(
    s: Index["systems"],
    lower: Float64[Tensor, "systems n"],
    diag: Float64[Tensor, "systems n"],
    upper: Float64[Tensor, "systems n"],
    rhs: Float64[Tensor, "systems n"],
):
    n = diag.shape[1]
    a, b, c, d = lower[s], diag[s], upper[s], rhs[s]
    c[0] /= b[0]
    d[0] /= b[0]
    for i in range(1, n):
        pivot = b[i] - a[i] * c[i - 1]
        c[i] /= pivot
        d[i] = (d[i] - a[i] * d[i - 1]) / pivot
    for i in reversed(range(n - 1)):
        d[i] -= c[i] * d[i + 1]


KERNEL = thomas
IN_PLACE = ("upper", "rhs")
TOLERANCE = dict(rtol=1e-8, atol=1e-9)


def reference(lower, diag, upper, rhs):
    n = diag.shape[1]
    m = torch.diag_embed(diag) + torch.diag_embed(upper[:, :-1], 1) + torch.diag_embed(lower[:, 1:], -1)
    x = torch.linalg.solve(m, rhs)
    c = upper.clone()
    c[:, 0] /= diag[:, 0]
    for i in range(1, n):
        c[:, i] = upper[:, i] / (diag[:, i] - lower[:, i] * c[:, i - 1])
    return c, x


def cases():
    g = torch.Generator().manual_seed(7)
    for s, n in ((5, 8), (3, 1)):
        r = lambda: torch.randn(s, n, generator=g, dtype=torch.float64)
        yield dict(lower=r(), diag=r() + 6, upper=r(), rhs=r())
