"""The nearest centroid of every point, and its squared distance."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from py2cu import Index, kernel


def squared_distance(a, b):
    return sum((u - v) ** 2 for u, v in zip(a, b))


@kernel
def kmeans_assign(
    i: Index["n"],
    points: Float[Tensor, "n d"],
    centroids: Float[Tensor, "k d"],
    labels: Int64[Tensor, "n"],
    distances: Float[Tensor, "n"],
):
    point = points[i]
    best = float("inf")
    label = 0
    for c, centroid in enumerate(centroids):
        dist = squared_distance(point, centroid)
        if dist < best:
            best = dist
            label = c
    labels[i] = label
    distances[i] = best


KERNEL = kmeans_assign
TOLERANCE = dict(rtol=1e-4, atol=1e-5)


def reference(points, centroids):
    d2 = ((points[:, None] - centroids[None]) ** 2).sum(-1)
    distances, labels = d2.min(1)
    return labels, distances


def cases():
    torch.manual_seed(0)
    yield dict(points=torch.randn(40, 5), centroids=torch.randn(6, 5))
    yield dict(points=torch.randn(10, 3, dtype=torch.float64), centroids=torch.randn(4, 3, dtype=torch.float64))
