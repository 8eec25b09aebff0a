"""Escape times of the Mandelbrot set."""
import torch
from jaxtyping import Int32
from torch import Tensor

from py2cu import Index, kernel


@kernel
def mandelbrot(
    y: Index["h"],
    x: Index["w"],
    out: Int32[Tensor, "h w"],
    h: int,
    w: int,
    centre: complex = -0.5 + 0j,
    width: float = 3.0,
    max_iter: int = 100,
):
    step = width / w
    c = centre + complex((x - w / 2) * step, (y - h / 2) * step)
    z = 0j
    n = 0
    while n < max_iter and abs(z) <= 2.0:
        z = z * z + c
        n += 1
    out[y, x] = n


KERNEL = mandelbrot


def reference(h, w, centre=-0.5 + 0j, width=3.0, max_iter=100):
    out = torch.zeros(h, w, dtype=torch.int32)
    step = width / w
    for y in range(h):
        for x in range(w):
            c = centre + complex((x - w / 2) * step, (y - h / 2) * step)
            z, n = 0j, 0
            while n < max_iter and abs(z) <= 2.0:
                z = z * z + c
                n += 1
            out[y, x] = n
    return out


def cases():
    yield dict(h=17, w=23)
    yield dict(h=16, w=16, centre=-0.743 + 0.11j, width=0.1, max_iter=40)
