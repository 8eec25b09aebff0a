"""The bit mask of NMS: which later boxes does each box suppress? 32 boxes to a word."""
import torch
from jaxtyping import Float32, Int32, Int64
from torch import Tensor

from py2cu import Index, kernel

WORD = 32


def iou(p, q):
    px1, py1, px2, py2 = p
    qx1, qy1, qx2, qy2 = q
    w = min(px2, qx2) - max(px1, qx1)
    h = min(py2, qy2) - max(py1, qy1)
    if w <= 0 or h <= 0:
        return 0.0
    inter = w * h
    return inter / ((px2 - px1) * (py2 - py1) + (qx2 - qx1) * (qy2 - qy1) - inter)


@kernel
def nms_mask(
    i: Index["n"],
    word: Index["(n+31)//32"],
    boxes: Float32[Tensor, "n 4"],
    label: Int32[Tensor, "n"],
    mask: Int64[Tensor, "n (n+31)//32"],
    threshold: float = 0.5,
):
    n = boxes.shape[0]
    bits = 0
    first = word * WORD
    for j in range(max(first, i + 1), min(first + WORD, n)):
        if label[i] == label[j] and iou(boxes[i], boxes[j]) > threshold:
            bits |= 1 << (j - first)
    mask[i, word] = bits


KERNEL = nms_mask


def reference(boxes, label, threshold=0.5):
    n = len(boxes)
    lt = torch.maximum(boxes[:, None, :2], boxes[None, :, :2])
    rb = torch.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
    inter = (rb - lt).clamp(min=0).prod(-1)
    area = (boxes[:, 2:] - boxes[:, :2]).prod(-1)
    hit = inter / (area[:, None] + area[None] - inter) > threshold
    hit &= label[:, None] == label[None]
    hit = hit.triu(1)
    out = torch.zeros(n, (n + 31) // 32, dtype=torch.int64)
    for j in range(n):
        out[:, j // 32] |= hit[:, j].long() << (j % 32)
    return out


def cases():
    g = torch.Generator().manual_seed(1)
    for n in (10, 70):
        xy = torch.rand(n, 2, generator=g) * 4
        wh = torch.rand(n, 2, generator=g) * 2 + 1
        yield dict(
            boxes=torch.cat([xy, xy + wh], 1),
            label=torch.randint(0, 2, (n,), generator=g, dtype=torch.int32),
            threshold=0.4,
        )
