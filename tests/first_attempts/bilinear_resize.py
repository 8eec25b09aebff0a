"""Bilinear resize of a (c, h, w) picture, like F.interpolate with align_corners=False."""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float32
from torch import Tensor

from py2cu import Index, kernel


def lerp(a, b, t):
    return a + (b - a) * t


def source(o, scale, size):
    """The two source positions of an output position, and the weight of the second."""
    s = max((o + 0.5) * scale - 0.5, 0.0)
    lo = int(math.floor(s))
    hi = min(lo + 1, size - 1)
    return lo, hi, s - lo


@kernel
def bilinear_resize(
    c: Index["c"],
    y: Index["oh"],
    x: Index["ow"],
    img: Float32[Tensor, "c h w"],
    out: Float32[Tensor, "c oh ow"],
    oh: int,
    ow: int,
):
    _, h, w = img.shape
    y0, y1, ty = source(y, h / oh, h)
    x0, x1, tx = source(x, w / ow, w)
    plane = img[c]
    top = lerp(plane[y0, x0], plane[y0, x1], tx)
    bottom = lerp(plane[y1, x0], plane[y1, x1], tx)
    out[c, y, x] = lerp(top, bottom, ty)


KERNEL = bilinear_resize
TOLERANCE = dict(rtol=1e-4, atol=1e-5)


def reference(img, oh, ow):
    return F.interpolate(img[None], size=(oh, ow), mode="bilinear", align_corners=False)[0]


def cases():
    torch.manual_seed(0)
    img = torch.rand(3, 9, 14)
    yield dict(img=img, oh=20, ow=17)
    yield dict(img=img, oh=5, ow=6)
