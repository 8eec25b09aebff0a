"""2x2 max pooling with stride 2 over NCHW, with torch's flat indices."""
import math

import torch
import torch.nn.functional as F
from jaxtyping import Float32, Int64
from torch import Tensor

from py2cu import Index, kernel

K = 2


@kernel
def max_pool2d(
    n: Index["n"],
    c: Index["c"],
    oy: Index["h//2"],
    ox: Index["w//2"],
    x: Float32[Tensor, "n c h w"],
    out: Float32[Tensor, "n c h//2 w//2"],
    where: Int64[Tensor, "n c h//2 w//2"],
):
    w = x.shape[-1]
    plane = x[n, c]
    best, at = -math.inf, -1
    for dy in range(K):
        for dx in range(K):
            y, xx = oy * K + dy, ox * K + dx
            if (v := plane[y, xx]) > best or math.isnan(v):
                best, at = v, y * w + xx
    out[n, c, oy, ox] = best
    where[n, c, oy, ox] = at


KERNEL = max_pool2d


def reference(x):
    return F.max_pool2d(x, 2, return_indices=True)


def cases():
    g = torch.Generator().manual_seed(14)
    yield dict(x=torch.randn(2, 3, 6, 8, generator=g))
    yield dict(x=torch.randn(1, 2, 7, 5, generator=g))
