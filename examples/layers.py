"""Layers that train: GELU, SwiGLU, RMS norm and cross entropy, each with its gradients, for every float dtype.

    python examples/layers.py

`@gelu.backward` attaches a kernel that computes a gradient: it names what it needs of the forward, `grad_out` and
`grad_x`. A module is then a few lines of torch, as `RMSNorm` and `Mlp` below. Sums have the dtype of the arrays: for
long rows of float16 or bfloat16, pass float32.
"""

import math

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from py2cu import Index, kernel


@kernel
def gelu(i: Index["..."], x: Float[Tensor, "..."], out: Float[Tensor, "..."]):
    """X times the probability that a normal variable is smaller."""
    out[i] = 0.5 * x[i] * (1 + math.erf(x[i] / math.sqrt(2.0)))


@gelu.backward
def gelu_backward(
    i: Index["..."], x: Float[Tensor, "..."], grad_out: Float[Tensor, "..."], grad_x: Float[Tensor, "..."]
):
    probability = 0.5 * (1 + math.erf(x[i] / math.sqrt(2.0)))
    density = math.exp(-0.5 * x[i] * x[i]) / math.sqrt(2 * math.pi)
    grad_x[i] = grad_out[i] * (probability + x[i] * density)


@kernel
def swiglu(i: Index["..."], gate: Float[Tensor, "..."], x: Float[Tensor, "..."], out: Float[Tensor, "..."]):
    """X times the SiLU of the gate."""
    out[i] = x[i] * gate[i] / (1 + math.exp(-gate[i]))


@swiglu.backward
def swiglu_backward(
    i: Index["..."],
    gate: Float[Tensor, "..."],
    x: Float[Tensor, "..."],
    grad_out: Float[Tensor, "..."],
    grad_gate: Float[Tensor, "..."],
    grad_x: Float[Tensor, "..."],
):
    s = 1 / (1 + math.exp(-gate[i]))
    grad_x[i] = grad_out[i] * gate[i] * s
    grad_gate[i] = grad_out[i] * x[i] * s * (1 + gate[i] * (1 - s))


@kernel
def rms_norm(
    r: Index["rows"],
    x: Float[Tensor, "rows n"],
    weight: Float[Tensor, "n"],
    out: Float[Tensor, "rows n"],
    scale: Float[Tensor, "rows"],
    n: int,
    eps: float = 1e-6,
):
    """Rows over the root of their mean square, times the weights; a thread takes a row."""
    total = x.dtype(0)
    for i in range(n):
        total += x[r, i] * x[r, i]
    s = 1 / math.sqrt(total / n + eps)
    for i in range(n):
        out[r, i] = x[r, i] * s * weight[i]
    scale[r] = s


@rms_norm.backward
def rms_norm_backward(
    r: Index["rows"],
    x: Float[Tensor, "rows n"],
    weight: Float[Tensor, "n"],
    scale: Float[Tensor, "rows"],
    grad_out: Float[Tensor, "rows n"],
    grad_x: Float[Tensor, "rows n"],
    n: int,
):
    dot = x.dtype(0)
    for i in range(n):
        dot += grad_out[r, i] * weight[i] * x[r, i]
    for i in range(n):
        grad_x[r, i] = scale[r] * (grad_out[r, i] * weight[i] - x[r, i] * scale[r] * scale[r] * dot / n)


@rms_norm.backward
def rms_norm_backward_weight(
    i: Index["n"],
    x: Float[Tensor, "rows n"],
    scale: Float[Tensor, "rows"],
    grad_out: Float[Tensor, "rows n"],
    grad_weight: Float[Tensor, "n"],
    rows: int,
):
    total = x.dtype(0)
    for r in range(rows):
        total += grad_out[r, i] * x[r, i] * scale[r]
    grad_weight[i] = total


@kernel
def cross_entropy(
    r: Index["rows"], x: Float[Tensor, "rows n"], target: Int64[Tensor, "rows"], loss: Float[Tensor, "rows"], n: int
):
    """The negative logarithm of the softmax of each row at its target."""
    top = x[r, 0]
    for i in range(1, n):
        top = max(top, x[r, i])
    total = x.dtype(0)
    for i in range(n):
        total += math.exp(x[r, i] - top)
    loss[r] = math.log(total) + top - x[r, target[r]]


@cross_entropy.backward
def cross_entropy_backward(
    r: Index["rows"],
    x: Float[Tensor, "rows n"],
    target: Int64[Tensor, "rows"],
    grad_loss: Float[Tensor, "rows"],
    grad_x: Float[Tensor, "rows n"],
    n: int,
):
    top = x[r, 0]
    for i in range(1, n):
        top = max(top, x[r, i])
    total = x.dtype(0)
    for i in range(n):
        total += math.exp(x[r, i] - top)
    for i in range(n):
        probability = math.exp(x[r, i] - top) / total
        grad_x[r, i] = grad_loss[r] * (probability - (1 if i == target[r] else 0))


class RMSNorm(nn.Module):
    """RMS norm of the last dimension."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x: Tensor) -> Tensor:
        out, _ = rms_norm(x, self.weight)
        return out


class Mlp(nn.Module):
    """Norm, gated hidden layer, activation, output."""

    def __init__(self, size: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.norm = RMSNorm(size)
        self.gate, self.up = nn.Linear(size, hidden), nn.Linear(size, hidden)
        self.down = nn.Linear(hidden, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm(x)
        return self.down(gelu(swiglu(self.gate(x), self.up(x))))


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    points = torch.randn(512, 2, device=device)
    target = ((points[:, 0] * points[:, 1]) > 0).long()
    model = Mlp(2, 16, 2).to(device)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(200):
        loss = cross_entropy(model(points), target).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    correct = (model(points).argmax(1) == target).float().mean().item()
    print(f"Trained on {device}: loss {loss.item():.3f}, {100 * correct:.1f} % of 512 points right")
    x, gate, weight = torch.randn(3, 5), torch.randn(3, 5), torch.randn(5)
    print(gelu.check(x, grad=True))
    print(swiglu.check(gate, x, grad=True))
    print(rms_norm.check(x, weight, grad=True))
    print(cross_entropy.check(x, torch.tensor([0, 4, 2]), grad=True))


if __name__ == "__main__":
    main()
