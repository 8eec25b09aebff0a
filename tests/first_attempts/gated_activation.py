"""Gated linear units of any rank and dtype: SwiGLU, GeGLU and its tanh approximation."""
import enum
import math

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from py2cu import Index, kernel

SQRT_2_OVER_PI = math.sqrt(2 / math.pi)


class Act(enum.IntEnum):
    SILU = 0
    GELU = 1
    GELU_TANH = 2


def gelu_tanh(x):
    return 0.5 * x * (1.0 + math.tanh(SQRT_2_OVER_PI * (x + 0.044715 * x**3)))


@kernel
def glu(
    i: Index["..."],
    gate: Float[Tensor, "..."],
    up: Float[Tensor, "..."],
    out: Float[Tensor, "..."],
    act: int = Act.SILU,
):
    g = float(gate[i])
    match act:
        case Act.SILU:
            a = g / (1.0 + math.exp(-g))
        case Act.GELU:
            a = 0.5 * g * (1.0 + math.erf(g * math.sqrt(0.5)))
        case _:
            a = gelu_tanh(g)
    out[i] = a * up[i]


KERNEL = glu
TOLERANCE = dict(rtol=2e-2, atol=1e-3)


def reference(gate, up, act=Act.SILU):
    g = gate.double()
    a = {
        Act.SILU: lambda: F.silu(g),
        Act.GELU: lambda: F.gelu(g),
        Act.GELU_TANH: lambda: F.gelu(g, approximate="tanh"),
    }[act]()
    return (a * up.double()).to(gate.dtype)


def cases():
    g = torch.Generator().manual_seed(13)
    r = lambda *s: torch.randn(*s, generator=g)
    yield dict(gate=r(2, 3, 5), up=r(2, 3, 5))
    yield dict(gate=r(7), up=r(7), act=Act.GELU)
    yield dict(gate=r(2, 2, 3, 4).half(), up=r(2, 2, 3, 4).half(), act=Act.GELU_TANH)
