"""y = alpha * A @ x (+ beta * y0) for a CSR matrix."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from py2cu import Index, kernel


@kernel
def csr_matvec(
    i: Index["n"],
    crow: Int[Tensor, "n+1"],
    col: Int[Tensor, "nnz"],
    values: Float[Tensor, "nnz"],
    x: Float[Tensor, "m"],
    y: Float[Tensor, "n"],
    alpha: float = 1.0,
):
    start, end = crow[i], crow[i + 1]
    y[i] = alpha * sum(values[k] * x[col[k]] for k in range(start, end))


KERNEL = csr_matvec
TOLERANCE = dict(rtol=1e-4, atol=1e-5)


def reference(crow, col, values, x, alpha=1.0):
    n = len(crow) - 1
    dense = torch.zeros(n, len(x), dtype=values.dtype)
    rows = torch.repeat_interleave(torch.arange(n), (crow[1:] - crow[:-1]).long())
    dense[rows, col.long()] = values
    return alpha * (dense @ x)


def cases():
    torch.manual_seed(0)
    a = torch.randn(12, 9) * (torch.rand(12, 9) < 0.3)
    csr = a.to_sparse_csr()
    crow, col, values = csr.crow_indices(), csr.col_indices(), csr.values()
    x = torch.randn(9)
    yield dict(crow=crow, col=col, values=values, x=x)
    yield dict(crow=crow.int(), col=col.int(), values=values, x=x, alpha=2.5)
