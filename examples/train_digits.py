"""A network on handwritten digits whose activation, norm and loss are kernels, beside the same network of torch.

    python examples/train_digits.py
    torchrun --nproc-per-node 2 examples/train_digits.py

Both start from the same seed and see the same batches. The kernels run eagerly and under `torch.compile`, which sees
each of them as one operator. Under torchrun each process computes gradients of its part of a batch. The seconds include
builds. The digits are those of scikit-learn: 1,797 pictures of 8 by 8 pixels.
"""

import math
import os
import time

import torch
import torch.distributed as dist
from jaxtyping import Float, Int64
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn import functional

from py2cu import Index, kernel

SMOOTHING = 0.1
RANK, PROCESSES = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))  # torchrun sets them


@kernel
def silu(i: Index["..."], x: Float[Tensor, "..."], out: Float[Tensor, "..."]):
    out[i] = x[i] / (1 + math.exp(-x[i]))


@silu.backward
def silu_backward(
    i: Index["..."], x: Float[Tensor, "..."], grad_out: Float[Tensor, "..."], grad_x: Float[Tensor, "..."]
):
    s = 1 / (1 + math.exp(-x[i]))
    grad_x[i] = grad_out[i] * s * (1 + x[i] * (1 - s))


@kernel
def standardise(
    r: Index["rows"],
    x: Float[Tensor, "rows n"],
    out: Float[Tensor, "rows n"],
    scale: Float[Tensor, "rows"],
    n: int,
    eps: float = 1e-5,
):
    """Rows of mean 0 and variance 1: layer norm without weights."""
    total = x.dtype(0)
    for i in range(n):
        total += x[r, i]
    mean = total / n
    squares = x.dtype(0)
    for i in range(n):
        squares += (x[r, i] - mean) * (x[r, i] - mean)
    s = 1 / math.sqrt(squares / n + eps)
    for i in range(n):
        out[r, i] = (x[r, i] - mean) * s
    scale[r] = s


@standardise.backward
def standardise_backward(
    r: Index["rows"],
    out: Float[Tensor, "rows n"],
    scale: Float[Tensor, "rows"],
    grad_out: Float[Tensor, "rows n"],
    grad_x: Float[Tensor, "rows n"],
    n: int,
):
    total = out.dtype(0)
    dot = out.dtype(0)
    for i in range(n):
        total += grad_out[r, i]
        dot += grad_out[r, i] * out[r, i]
    for i in range(n):
        grad_x[r, i] = scale[r] * (grad_out[r, i] - total / n - out[r, i] * dot / n)


@kernel
def smoothed_loss(
    r: Index["rows"], x: Float[Tensor, "rows n"], target: Int64[Tensor, "rows"], loss: Float[Tensor, "rows"], n: int
):
    """Cross entropy of each row with a target that has `SMOOTHING` of its probability spread over all classes."""
    top = x[r, 0]
    mean = x.dtype(0)
    for i in range(n):
        top = max(top, x[r, i])
        mean += x[r, i] / n
    total = x.dtype(0)
    for i in range(n):
        total += math.exp(x[r, i] - top)
    loss[r] = math.log(total) + top - (1 - SMOOTHING) * x[r, target[r]] - SMOOTHING * mean


@smoothed_loss.backward
def smoothed_loss_backward(
    r: Index["rows"],
    x: Float[Tensor, "rows n"],
    target: Int64[Tensor, "rows"],
    grad_loss: Float[Tensor, "rows"],
    grad_x: Float[Tensor, "rows n"],
    n: int,
):
    top = x[r, 0]
    for i in range(n):
        top = max(top, x[r, i])
    total = x.dtype(0)
    for i in range(n):
        total += math.exp(x[r, i] - top)
    for i in range(n):
        wanted = (1 - SMOOTHING if i == target[r] else 0.0) + SMOOTHING / n
        grad_x[r, i] = grad_loss[r] * (math.exp(x[r, i] - top) / total - wanted)


class Network(nn.Module):
    """Two layers; its activation, norm and loss are kernels, or torch's own functions."""

    def __init__(self, *, of_kernels: bool) -> None:
        super().__init__()
        self.of_kernels = of_kernels
        self.hidden, self.head = nn.Linear(64, 64), nn.Linear(64, 10)

    def logits(self, x: Tensor) -> Tensor:
        x = self.hidden(x)
        if self.of_kernels:
            return self.head(silu(standardise(x)[0]))
        return self.head(functional.silu(functional.layer_norm(x, x.shape[1:])))

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        """The loss."""
        if self.of_kernels:
            return smoothed_loss(self.logits(x), target).mean()
        return functional.cross_entropy(self.logits(x), target, label_smoothing=SMOOTHING)


def train(pictures: Tensor, digits: Tensor, *, of_kernels: bool, compiled: bool) -> tuple[float, float, float]:
    """The last loss (of this process's part), the accuracy on pictures that training did not see, and the seconds."""
    torch.manual_seed(0)
    network = Network(of_kernels=of_kernels).to(pictures.device)
    loss_of = torch.compile(network, fullgraph=True) if compiled else network
    if PROCESSES > 1:
        loss_of = nn.parallel.DistributedDataParallel(loss_of)
    optimiser = torch.optim.Adam(network.parameters(), lr=0.01)
    seen, unseen = slice(0, 1400), slice(1400, None)
    start = time.perf_counter()
    for _ in range(15):
        for batch in torch.randperm(1400).split(140):
            part = batch[RANK::PROCESSES]
            loss = loss_of(pictures[seen][part], digits[seen][part])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    right = network.logits(pictures[unseen]).argmax(1) == digits[unseen]
    return loss.item(), right.double().mean().item(), time.perf_counter() - start


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if PROCESSES > 1:
        if device == "cuda":
            torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        dist.init_process_group("nccl" if device == "cuda" else "gloo")
    data = load_digits()
    pictures = torch.tensor(data.data, dtype=torch.float32, device=device) / 16
    digits = torch.tensor(data.target, dtype=torch.int64, device=device)
    accuracies = []
    if RANK == 0:
        print(f"{'15 epochs on ' + device:<24} {'loss':>7} {'accuracy':>9} {'seconds':>8}")
    for name, of_kernels, compiled in (
        ("torch", False, False), ("kernels", True, False), ("kernels, torch.compile", True, True)
    ):  # fmt: skip
        loss, accuracy, seconds = train(pictures, digits, of_kernels=of_kernels, compiled=compiled)
        accuracies.append(accuracy)
        if RANK == 0:
            print(f"{name:<24} {loss:>7.4f} {100 * accuracy:>7.2f} % {seconds:>8.1f}")
    assert max(accuracies) - min(accuracies) < 0.01, accuracies
    if PROCESSES > 1:
        dist.destroy_process_group()
    if RANK > 0:
        return
    x = torch.randn(3, 5, device=device)
    print(silu.check(x, grad=True))
    print(standardise.check(x, grad=True))
    print(smoothed_loss.check(x, torch.tensor([0, 4, 2], device=device), grad=True))


if __name__ == "__main__":
    main()
