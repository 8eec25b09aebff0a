"""GELU by tanh, and its gradient."""

import math

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from py2cu import Index, kernel

SCALE = math.sqrt(2 / math.pi)


@kernel
def gelu(i: Index["..."], x: Float[Tensor, "..."], out: Float[Tensor, "..."]):
    v = np.float32(x[i])
    out[i] = 0.5 * v * (1 + math.tanh(SCALE * (v + 0.044715 * v * v * v)))


@gelu.backward
def gelu_backward(
    i: Index["..."], x: Float[Tensor, "..."], grad_out: Float[Tensor, "..."], grad_x: Float[Tensor, "..."]
):
    v = np.float32(x[i])
    tanh = math.tanh(SCALE * (v + 0.044715 * v * v * v))
    slope = 0.5 * (1 + tanh) + 0.5 * v * (1 - tanh * tanh) * SCALE * (1 + 3 * 0.044715 * v * v)
    grad_x[i] = slope * np.float32(grad_out[i])


def run(x, grad_out):
    x.requires_grad_()
    out = gelu(x)
    return out.detach(), *torch.autograd.grad(out, x, grad_out)


KERNEL = run
TOLERANCE = dict(rtol=1e-2, atol=1e-2)


def reference(x, grad_out):
    leaf = x.float().requires_grad_()
    out = torch.nn.functional.gelu(leaf, approximate="tanh")
    (grad,) = torch.autograd.grad(out, leaf, grad_out.float())
    return out.detach().to(x.dtype), grad.to(x.dtype)


def cases():
    torch.manual_seed(0)
    for dtype in (torch.float32, torch.bfloat16):
        x, grad_out = torch.randn(2, 3, 5, 17).to(dtype)
        yield dict(x=2 * x, grad_out=grad_out)
