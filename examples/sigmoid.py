"""The sigmoid and its gradient, numerically stable: no `exp` overflows.

    python examples/sigmoid.py

The second kernel is the backward of the first, so that a model with it can be trained.
"""

import math

import torch
from jaxtyping import Float32
from torch import Tensor

from py2cu import Index, kernel


@kernel
def sigmoid(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    # exp() of a large positive number overflows, so each sign has its own formula
    if x[i] >= 0:
        res = 1.0 / (1.0 + math.exp(-x[i]))
    else:
        res = math.exp(x[i]) / (1.0 + math.exp(x[i]))
    out[i] = res


@sigmoid.backward
def sigmoid_backward(
    i: Index["n"], out: Float32[Tensor, "n"], grad_out: Float32[Tensor, "n"], grad_x: Float32[Tensor, "n"]
):
    """`out` is what the forward kernel returned."""
    grad_x[i] = grad_out[i] * out[i] * (1 - out[i])


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = torch.tensor([0.3, -100000.0, 100000.0, 0.5, -0.5], device=device)
    torch.testing.assert_close(sigmoid(x), torch.sigmoid(x))

    data = torch.randn(1000, device=device, requires_grad=True)
    (ours,) = torch.autograd.grad(sigmoid(data).square().sum(), data)
    (theirs,) = torch.autograd.grad(torch.sigmoid(data).square().sum(), data)
    torch.testing.assert_close(ours, theirs)

    print(f"sigmoid({x.tolist()}) on {device} is {[round(y, 4) for y in sigmoid(x).tolist()]}")
    print("Its gradient is torch's")
    print(sigmoid.check(grad=True))
    print(sigmoid_backward.check())


if __name__ == "__main__":
    main()
