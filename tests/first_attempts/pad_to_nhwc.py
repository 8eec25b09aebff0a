"""NCHW to NHWC with reflected or constant padding, in one pass."""
import torch
import torch.nn.functional as F
from jaxtyping import Float32
from torch import Tensor

from py2cu import Index, kernel


def reflect(i, n):
    if i < 0:
        i = -i
    if i >= n:
        i = 2 * (n - 1) - i
    return i


@kernel
def pad_to_nhwc(
    b: Index["b"],
    y: Index["h+2*pad"],
    x: Index["w+2*pad"],
    c: Index["c"],
    src: Float32[Tensor, "b c h w"],
    dst: Float32[Tensor, "b h+2*pad w+2*pad c"],
    pad: int = 1,
    value: float = 0.0,
    mirror: bool = False,
):
    *_, h, w = src.shape
    sy, sx = y - pad, x - pad
    if mirror:
        sy, sx = reflect(sy, h), reflect(sx, w)
    inside = 0 <= sy < h and 0 <= sx < w
    dst[b, y, x, c] = src[b, c, sy, sx] if inside else value


KERNEL = pad_to_nhwc


def reference(src, pad=1, value=0.0, mirror=False):
    p = (pad,) * 4
    out = F.pad(src, p, mode="reflect") if mirror else F.pad(src, p, value=value)
    return out.permute(0, 2, 3, 1).contiguous()


def cases():
    g = torch.Generator().manual_seed(15)
    src = torch.randn(2, 3, 4, 5, generator=g)
    yield dict(src=src)
    yield dict(src=src, pad=2, value=-1.5)
    yield dict(src=src, pad=2, mirror=True)
