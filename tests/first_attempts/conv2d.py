"""Direct 2D convolution, NCHW, stride 1, no padding, optional bias."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from py2cu import Index, kernel


@kernel
def conv2d(
    b: Index["batch"],
    o: Index["cout"],
    y: Index["h-kh+1"],
    x: Index["w-kw+1"],
    inp: Float[Tensor, "batch cin h w"],
    weight: Float[Tensor, "cout cin kh kw"],
    out: Float[Tensor, "batch cout h-kh+1 w-kw+1"],
    bias: Float[Tensor, "cout"] | None = None,
):
    _, cin, kh, kw = weight.shape
    acc = 0.0 if bias is None else bias[o]
    for c in range(cin):
        for dy in range(kh):
            for dx in range(kw):
                acc += inp[b, c, y + dy, x + dx] * weight[o, c, dy, dx]
    out[b, o, y, x] = acc


KERNEL = conv2d
TOLERANCE = dict(rtol=1e-3, atol=1e-4)


def reference(inp, weight, bias=None):
    return F.conv2d(inp, weight, bias)


def cases():
    torch.manual_seed(0)
    inp = torch.randn(2, 3, 9, 11)
    weight = torch.randn(4, 3, 3, 2)
    yield dict(inp=inp, weight=weight)
    yield dict(inp=inp, weight=weight, bias=torch.randn(4))
