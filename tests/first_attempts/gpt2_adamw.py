"""AdamW over flat buffers; bfloat16 parameters have master weights, and are rounded at random."""

import math

import numpy as np
import torch
from jaxtyping import BFloat16, Float32
from torch import Tensor

from py2cu import Index, kernel


def mixed(i, seed):
    """32 bits at random: a hash of the index and the seed."""
    h = np.uint32(i) * np.uint32(0xD2A80A3F) + np.uint32(seed)
    h ^= h >> 9
    h += np.uint32(0xA884F197)
    h ^= h >> 11
    h *= np.uint32(0x6C736F4B)
    h ^= h >> 13
    h += np.uint32(0xB79F3ABB)
    h ^= h >> 15
    h *= np.uint32(0x1B56C4F5)
    return h ^ (h >> 17)


def stochastic(value, i, seed):
    """One of the two neighbours of `value` in bfloat16, the nearer one more often."""
    bits = value.view(np.uint32) + (mixed(i, seed) & np.uint32(0xFFFF))
    return (bits & np.uint32(0xFFFF0000)).view(np.float32)


@kernel
def adamw(
    i: Index["n"],
    parameters: BFloat16[Tensor, "n"],
    master: Float32[Tensor, "n"],
    gradients: BFloat16[Tensor, "n"],
    m: Float32[Tensor, "n"],
    v: Float32[Tensor, "n"],
    squares: Float32[Tensor, "1"],
    step: int,
    decayed: int,
    seed: int,
    lr: float = 1e-3,
    beta1: float = 0.9,
    beta2: float = 0.95,
    eps: float = 1e-8,
    weight_decay: float = 0.1,
    greatest_norm: float = 1.0,
):
    """The first `decayed` elements decay; gradients of a norm above the greatest one, by `squares`, are scaled to it."""
    norm = math.sqrt(squares[0])
    g = np.float32(gradients[i])
    if norm > greatest_norm:
        g *= greatest_norm / norm
    m[i] = beta1 * m[i] + (1 - beta1) * g
    v[i] = beta2 * v[i] + (1 - beta2) * g * g
    p = master[i]
    if i < decayed:
        p *= 1 - lr * weight_decay
    p -= lr * (m[i] / (1 - beta1**step)) / (math.sqrt(v[i] / (1 - beta2**step)) + eps)
    master[i] = p
    parameters[i] = stochastic(p, i, seed)


KERNEL = adamw
IN_PLACE = ("parameters", "master", "m", "v")
TOLERANCE = dict(rtol=1e-2, atol=1e-5)


def reference(parameters, master, gradients, m, v, squares, step, decayed, seed, lr=1e-3):
    g = gradients.float() * min(1.0, 1 / math.sqrt(squares.item()))
    m = 0.9 * m + 0.1 * g
    v = 0.95 * v + 0.05 * g * g
    master = master.clone()
    master[:decayed] *= 1 - lr * 0.1
    master -= lr * (m / (1 - 0.9**step)) / ((v / (1 - 0.95**step)).sqrt() + 1e-8)
    return master.bfloat16(), master, m, v


def cases():
    torch.manual_seed(0)
    for n, step in ((50, 1), (33, 7)):
        master, gradients, m = torch.randn(3, n)
        yield dict(
            parameters=master.bfloat16(), master=master, gradients=gradients.bfloat16(), m=m, v=torch.rand(n),
            squares=(gradients**2).sum().view(1), step=step, decayed=20, seed=1234,
        )
