"""Sample a token from every row of logits by the Gumbel-max trick, with uniforms drawn outside."""

import math

import torch
from jaxtyping import Float32, Int64
from torch import Tensor

from py2cu import Index, kernel


def gumbel(u, eps=1e-10):
    return -math.log(-math.log(u + eps) + eps)


@kernel
def gumbel_sample(
    i: Index["batch"],
    logits: Float32[Tensor, "batch vocab"],
    uniform: Float32[Tensor, "batch vocab"],
    token: Int64[Tensor, "batch"],
    temperature: float = 1.0,
):
    best, arg = -float("inf"), 0
    for j, (logit, u) in enumerate(zip(logits[i], uniform[i])):
        score = logit / temperature + gumbel(u)
        if score > best:
            best, arg = score, j
    token[i] = arg


KERNEL = gumbel_sample


def reference(logits, uniform, temperature=1.0):
    g = -torch.log(-torch.log(uniform + 1e-10) + 1e-10)
    return torch.argmax(logits / temperature + g, dim=1)


def cases():
    torch.manual_seed(0)
    yield dict(logits=torch.randn(6, 32), uniform=torch.rand(6, 32))
    yield dict(logits=torch.randn(4, 9), uniform=torch.rand(4, 9), temperature=0.7)
