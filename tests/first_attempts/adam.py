"""One AdamW step in place."""

import math

import torch
from jaxtyping import Float32
from torch import Tensor

from py2cu import Index, kernel


@kernel
def adam(
    i: Index["n"],
    p: Float32[Tensor, "n"],
    g: Float32[Tensor, "n"],
    m: Float32[Tensor, "n"],
    v: Float32[Tensor, "n"],
    step: int = 1,
    *,
    lr: float = 1e-3,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-8,
    weight_decay: float = 0.0,
):
    grad = g[i]
    p[i] *= 1 - lr * weight_decay
    m[i] = beta1 * m[i] + (1 - beta1) * grad
    v[i] = beta2 * v[i] + (1 - beta2) * grad**2
    m_hat = m[i] / (1 - beta1**step)
    v_hat = v[i] / (1 - beta2**step)
    p[i] -= lr * m_hat / (math.sqrt(v_hat) + eps)


KERNEL = adam
IN_PLACE = ("p", "m", "v")
TOLERANCE = dict(rtol=1e-4, atol=1e-6)


def reference(p, g, m, v, step=1, lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0):
    p = p * (1 - lr * weight_decay)
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * g * g
    m_hat = m / (1 - beta1**step)
    v_hat = v / (1 - beta2**step)
    p = p - lr * m_hat / (v_hat.sqrt() + eps)
    return p, m, v


def cases():
    torch.manual_seed(0)
    yield dict(p=torch.randn(50), g=torch.randn(50), m=torch.zeros(50), v=torch.zeros(50))
    yield dict(
        p=torch.randn(30), g=torch.randn(30), m=torch.randn(30), v=torch.rand(30), step=7, lr=1e-2, weight_decay=0.1
    )
