"""Sort every short row in place by insertion, carrying a payload."""

import torch
from jaxtyping import Float32, Int32
from torch import Tensor

from py2cu import Index, kernel


@kernel
def insertion_sort(
    i: Index["n"],
    keys: Float32[Tensor, "n m"],
    payload: Int32[Tensor, "n m"],
    descending: bool = False,
):
    row, items = keys[i], payload[i]
    for j in range(1, len(row)):
        key, item = row[j], items[j]
        k = j - 1
        while k >= 0 and (row[k] < key if descending else row[k] > key):
            row[k + 1] = row[k]
            items[k + 1] = items[k]
            k -= 1
        row[k + 1] = key
        items[k + 1] = item


KERNEL = insertion_sort
IN_PLACE = ("keys", "payload")


def reference(keys, payload, descending=False):
    keys, order = torch.sort(keys, dim=1, descending=descending, stable=True)
    return keys, payload.gather(1, order)


def cases():
    torch.manual_seed(0)

    def payload(n, m):
        return torch.arange(m, dtype=torch.int32).repeat(n, 1)

    yield dict(keys=torch.randn(6, 13), payload=payload(6, 13))
    yield dict(keys=torch.randn(3, 8), payload=payload(3, 8), descending=True)
