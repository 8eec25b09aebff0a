"""The LLTM cell of PyTorch's tutorial on extensions: torch calls alone, and with its gates in one kernel.

    python examples/lltm.py

`lltm_forward` is the tutorial's C++, in Python: `py2cu translate examples/lltm.py` writes it back to `lltm_host.cpp`.
In `lltm_fused` one kernel computes the three gates, the new cell and the new state; its backward is another kernel.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import elu

from py2cu import Index, host, kernel


@host
def lltm_forward(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor):  # noqa: A002
    X = torch.cat([old_h, input], dim=1)

    gate_weights = torch.addmm(bias, X, weights.transpose(0, 1))
    gates = gate_weights.chunk(3, dim=1)

    input_gate = torch.sigmoid(gates[0])
    output_gate = torch.sigmoid(gates[1])
    candidate_cell = elu(gates[2], alpha=1.0)

    new_cell = old_cell + candidate_cell * input_gate
    new_h = torch.tanh(new_cell) * output_gate

    return new_h, new_cell, input_gate, output_gate, candidate_cell, X, gate_weights


def sigmoid(v):
    return 1 / (1 + math.exp(-v))


def elu_of(v):
    return v if v > 0 else math.expm1(v)


@kernel
def lltm_gates(
    r: Index["b"],
    c: Index["s"],
    gates: Float[Tensor, "b 3*s"],
    old_cell: Float[Tensor, "b s"],
    new_h: Float[Tensor, "b s"],
    new_cell: Float[Tensor, "b s"],
):
    """The new state and the new cell, from the weighted inputs of the three gates."""
    s = old_cell.shape[1]
    cell = old_cell[r, c] + elu_of(gates[r, 2 * s + c]) * sigmoid(gates[r, c])
    new_cell[r, c] = cell
    new_h[r, c] = math.tanh(cell) * sigmoid(gates[r, s + c])


@lltm_gates.backward
def lltm_gates_grad(
    r: Index["b"],
    c: Index["s"],
    gates: Float[Tensor, "b 3*s"],
    new_cell: Float[Tensor, "b s"],
    grad_new_h: Float[Tensor, "b s"],
    grad_new_cell: Float[Tensor, "b s"],
    grad_gates: Float[Tensor, "b 3*s"],
    grad_old_cell: Float[Tensor, "b s"],
):
    s = new_cell.shape[1]
    i, o, g = sigmoid(gates[r, c]), sigmoid(gates[r, s + c]), elu_of(gates[r, 2 * s + c])
    t = math.tanh(new_cell[r, c])
    d_cell = grad_new_cell[r, c] + grad_new_h[r, c] * o * (1 - t * t)
    grad_old_cell[r, c] = d_cell
    grad_gates[r, c] = d_cell * g * i * (1 - i)
    grad_gates[r, s + c] = grad_new_h[r, c] * t * o * (1 - o)
    grad_gates[r, 2 * s + c] = d_cell * i * (1.0 if gates[r, 2 * s + c] > 0 else g + 1)


@host
def lltm_fused(
    input: Float[Tensor, "b f"],  # noqa: A002
    weights: Float[Tensor, "3*s s+f"],
    bias: Float[Tensor, "3*s"],
    old_h: Float[Tensor, "b s"],
    old_cell: Float[Tensor, "b s"],
):
    """The new state and the new cell."""
    X = torch.cat([old_h, input], dim=1)
    gates = torch.addmm(bias, X, weights.transpose(0, 1))
    new_h, new_cell = lltm_gates(gates, old_cell)
    return new_h, new_cell


class LLTM(nn.Module):
    """A recurrent cell."""

    def __init__(self, features: int, state: int) -> None:
        super().__init__()
        bound = 1 / math.sqrt(state)
        self.weights = nn.Parameter(torch.empty(3 * state, state + features).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.zeros(3 * state))

    def forward(self, x: Tensor, old_h: Tensor, old_cell: Tensor) -> tuple[Tensor, Tensor]:
        new_h, new_cell = lltm_fused(x, self.weights, self.bias, old_h, old_cell)
        return new_h, new_cell


def train(device: str, steps: int = 100) -> list[float]:
    """Learn to add up four numbers, shown one by one; the losses."""
    torch.manual_seed(0)
    cell, readout = LLTM(1, 32).to(device), nn.Linear(32, 1).to(device)
    optimiser = torch.optim.Adam([*cell.parameters(), *readout.parameters()], lr=0.01)
    losses = []
    for _ in range(steps):
        numbers = torch.rand(64, 4, device=device)
        h = c = torch.zeros(64, 32, device=device)
        for step in range(4):
            h, c = cell(numbers[:, step : step + 1], h, c)
        loss = nn.functional.mse_loss(readout(h).squeeze(1), numbers.sum(1))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return losses


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    shapes = (3, 5), (12, 9), (12,), (3, 4), (3, 4)
    given = [torch.randn(shape, dtype=torch.float64, device=device, requires_grad=True) for shape in shapes]
    for function in lltm_forward, lltm_fused:
        function.build()
        print(function.check(*given))
    for ours, torchs in zip(lltm_fused(*given), lltm_forward(*given), strict=False):
        torch.testing.assert_close(ours, torchs)
    torch.autograd.gradcheck(lltm_fused, given)
    print("The fused cell: as torch's, and its gradients are those of numerical differentiation")
    losses = train(device)
    print(f"Trained for {len(losses)} steps on {device}: loss {losses[0]:.3f}, then {losses[-1]:.3f}")


if __name__ == "__main__":
    main()
