"""Pairwise IoU (or GIoU) of two sets of detection boxes."""
import torch
from jaxtyping import Float32
from torch import Tensor

from py2cu import Index, kernel


def area(box):
    x1, y1, x2, y2 = box
    return max(x2 - x1, 0.0) * max(y2 - y1, 0.0)


@kernel
def box_iou(
    i: Index["n"],
    j: Index["m"],
    a: Float32[Tensor, "n 4"],
    b: Float32[Tensor, "m 4"],
    out: Float32[Tensor, "n m"],
    *,
    generalized: bool = False,
    eps: float = 1e-7,
):
    ax1, ay1, ax2, ay2 = a[i]
    bx1, by1, bx2, by2 = b[j]
    inter = max(min(ax2, bx2) - max(ax1, bx1), 0.0) * max(min(ay2, by2) - max(ay1, by1), 0.0)
    union = area(a[i]) + area(b[j]) - inter
    iou = inter / (union + eps)
    if generalized:
        hull = (max(ax2, bx2) - min(ax1, bx1)) * (max(ay2, by2) - min(ay1, by1))
        iou -= (hull - union) / (hull + eps)
    out[i, j] = iou


KERNEL = box_iou
TOLERANCE = dict(rtol=1e-4, atol=1e-5)


def reference(a, b, generalized=False, eps=1e-7):
    lt = torch.maximum(a[:, None, :2], b[None, :, :2])
    rb = torch.minimum(a[:, None, 2:], b[None, :, 2:])
    inter = (rb - lt).clamp(min=0).prod(-1)
    area_a = (a[:, 2:] - a[:, :2]).clamp(min=0).prod(-1)
    area_b = (b[:, 2:] - b[:, :2]).clamp(min=0).prod(-1)
    union = area_a[:, None] + area_b[None] - inter
    iou = inter / (union + eps)
    if generalized:
        lo = torch.minimum(a[:, None, :2], b[None, :, :2])
        hi = torch.maximum(a[:, None, 2:], b[None, :, 2:])
        hull = (hi - lo).prod(-1)
        iou = iou - (hull - union) / (hull + eps)
    return iou


def boxes(n, g):
    xy = torch.rand(n, 2, generator=g) * 10
    wh = torch.rand(n, 2, generator=g) * 5 + 0.1
    return torch.cat([xy, xy + wh], 1)


def cases():
    g = torch.Generator().manual_seed(0)
    yield dict(a=boxes(7, g), b=boxes(5, g))
    yield dict(a=boxes(3, g), b=boxes(9, g), generalized=True)
