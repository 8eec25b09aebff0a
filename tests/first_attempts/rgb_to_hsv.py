"""RGB bytes to HSV bytes as OpenCV has them: H in 0..179, S and V in 0..255."""
import colorsys

import torch
from jaxtyping import UInt8
from torch import Tensor

from py2cu import Index, kernel


def hue(r, g, b, high, delta):
    """The hue in sixths of a turn."""
    if delta == 0:
        return 0.0
    if high == r:
        return ((g - b) / delta) % 6
    if high == g:
        return (b - r) / delta + 2
    return (r - g) / delta + 4


@kernel
def rgb_to_hsv(y: Index["h"], x: Index["w"], image: UInt8[Tensor, "h w 3"], out: UInt8[Tensor, "h w 3"]):
    r, g, b = (int(v) for v in image[y, x])
    high, low = max(r, g, b), min(r, g, b)
    delta = high - low
    s = delta / high if high > 0 else 0.0
    out[y, x, 0] = int(hue(r, g, b, high, delta) * 30 + 0.5) % 180
    out[y, x, 1] = int(s * 255 + 0.5)
    out[y, x, 2] = high


KERNEL = rgb_to_hsv


def reference(image):
    out = torch.empty_like(image)
    for y, row in enumerate(image.tolist()):
        for x, (r, g, b) in enumerate(row):
            h, s, v = colorsys.rgb_to_hsv(r / 255, g / 255, b / 255)
            out[y, x] = torch.tensor([int(h * 180 + 0.5) % 180, int(s * 255 + 0.5), max(r, g, b)])
    return out


TOLERANCE = dict(rtol=0, atol=1)


def cases():
    g = torch.Generator().manual_seed(9)
    yield dict(image=torch.randint(0, 256, (9, 11, 3), dtype=torch.uint8, generator=g))
    yield dict(image=torch.randint(0, 3, (6, 6, 3), dtype=torch.uint8, generator=g) * 100)
