"""What two processes of `torch.distributed` do with kernels: DTensors, layers under DDP and FSDP2, and first calls.

Each function that `on_processes` runs takes a device: on "cpu" the backend is gloo, on "cuda" it is NCCL, and each
process has a card of its own.
"""

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from jaxtyping import Float, Float32
from torch import Tensor, nn

from py2cu import Index, atomic, kernel, threadIdx
from py2cu.build import cpu_entry, cuda_kernel

PROCESSES = 2


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
def scaled(
    i: Index["n"], j: Index["m"], x: Float32[Tensor, "n m"], b: Float32[Tensor, "m"], out: Float32[Tensor, "n m"]
):
    out[i, j] = x[i, j] * b[j] + 1


@scaled.backward
def scaled_x(
    i: Index["n"],
    j: Index["m"],
    b: Float32[Tensor, "m"],
    grad_out: Float32[Tensor, "n m"],
    grad_x: Float32[Tensor, "n m"],
):
    grad_x[i, j] = grad_out[i, j] * b[j]


@scaled.backward
def scaled_b(j: Index["m"], x: Float32[Tensor, "n m"], grad_out: Float32[Tensor, "n m"], grad_b: Float32[Tensor, "m"]):
    total = 0.0
    for i in range(len(x)):
        total += grad_out[i, j] * x[i, j]
    grad_b[j] = total


@kernel
def bump(i: Index["n"], x: Float32[Tensor, "n"]):
    x[i] += 1


@kernel
def summed(i: Index["n"], x: Float32[Tensor, "n"], total: Float32[Tensor, "1"]):
    atomic.add(total, 0, x[i])


@kernel
def ends(i: Index["n"], x: Float32[Tensor, "n 3"], low: Float32[Tensor, "n"], high: Float32[Tensor, "n"]):
    low[i] = x[i, 0]
    high[i] = x[i, 2]


@kernel(size="32", block=32)
def reversed_block(x: Float32[Tensor, "32"], out: Float32[Tensor, "32"]):
    out[threadIdx.x] = x[31 - threadIdx.x]


def on_processes(meeting: Path, what: Callable[[str], None], device: str = "cpu") -> None:
    """Run `what` in each process. They meet through a file that does not exist yet."""
    mp.spawn(_work, (str(meeting), what, device), nprocs=PROCESSES)


def _work(rank: int, meeting: str, what: Callable[[str], None], device: str) -> None:
    torch.set_num_threads(1)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # the name of the machine may not resolve
    card = torch.device("cuda", rank) if device == "cuda" else None
    if card is not None:
        torch.cuda.set_device(card)
    dist.init_process_group(
        "gloo" if card is None else "nccl",
        init_method=f"file://{meeting}",
        rank=rank,
        world_size=PROCESSES,
        device_id=card,
    )
    what(device)
    dist.barrier()
    dist.destroy_process_group()


def dtensors(device: str) -> None:
    from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor, init_device_mesh

    mesh = init_device_mesh(device, (PROCESSES,))

    def numbers(count: int) -> Tensor:
        return torch.arange(float(count), device=device)

    def spread(tensor: Tensor, placement: Any = None) -> DTensor:
        return distribute_tensor(tensor, mesh, [placement or Replicate()])

    b = numbers(3) + 1
    for rows in (5, 2, 1):
        x = numbers(3 * rows).reshape(rows, 3)
        for placement in (Shard(0), Shard(1), Replicate()):
            result = scaled(spread(x, placement), spread(b))
            assert result.placements == (placement,) or rows < PROCESSES  # too few rows become replicas
            torch.testing.assert_close(result.full_tensor(), scaled(x, b))
            torch.testing.assert_close(silu(spread(x, placement)).full_tensor(), silu(x))
    x = numbers(15).reshape(5, 3)
    parts = DTensor.from_local(x, mesh, [Partial()])
    torch.testing.assert_close(scaled(parts, spread(b)).full_tensor(), scaled(PROCESSES * x, b))
    mixed = scaled(spread(x, Shard(0)), spread(b, Shard(0)))
    torch.testing.assert_close(mixed.full_tensor(), scaled(x, b))

    whole = [each.clone().requires_grad_() for each in (x, b)]
    scaled(*whole).square().mean().backward()
    for placement in (Shard(0), Shard(1)):
        parts_of = [spread(x, placement).requires_grad_(), spread(b).requires_grad_()]
        scaled(*parts_of).square().mean().backward()
        for part, expected in zip(parts_of, whole, strict=True):
            torch.testing.assert_close(part.grad.full_tensor(), expected.grad)

    line = numbers(32)
    flipped = reversed_block(spread(line, Shard(0)))
    assert flipped.placements == (Replicate(),)
    torch.testing.assert_close(flipped.full_tensor(), line.flip(0))

    with torch.inference_mode():
        torch.testing.assert_close(ends(spread(x, Shard(0)))[1].full_tensor(), x[:, 2])
    total = spread(torch.zeros(1, device=device))
    summed(spread(numbers(5), Shard(0)), total)
    assert total.full_tensor().item() == 10
    plane = init_device_mesh(device, (PROCESSES, 1))
    on_plane = scaled(
        distribute_tensor(x, plane, [Shard(0), Shard(1)]), distribute_tensor(b, plane, [Replicate(), Shard(0)])
    )
    assert on_plane.placements == (Shard(0), Shard(1))
    torch.testing.assert_close(on_plane.full_tensor(), scaled(x, b))

    v = spread(numbers(5), Shard(0))
    bump(v)
    torch.testing.assert_close(v.full_tensor(), numbers(5) + 1)
    with pytest.raises(
        RuntimeError, match="bump: `x` is written in place and must be replicated, or sharded along `n`"
    ):
        bump(DTensor.from_local(numbers(5), mesh, [Partial()]))
    with pytest.raises(RuntimeError, match="DTensors cannot be passed with `out=`"):
        scaled(spread(x), spread(b), out=spread(x))
    with pytest.raises(RuntimeError, match="DTensors cannot be passed with an explicit grid"):
        reversed_block[1, 32](spread(line), spread(line))
    with pytest.raises(RuntimeError, match="`b` is a tensor, and `x` a DTensor"):
        scaled(spread(x), b)


class Layer(nn.Module):
    """One hidden layer; its activation is a kernel, or torch's own."""

    def __init__(self, activation: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        torch.manual_seed(7)
        self.first, self.second, self.activation = nn.Linear(8, 16), nn.Linear(16, 1), activation

    def forward(self, x: Tensor) -> Tensor:
        return self.second(self.activation(self.first(x)))


def losses(model: nn.Module, x: Tensor, y: Tensor) -> list[float]:
    """The losses of some steps, each the mean over all processes' halves of the batch."""
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    found = []
    for _ in range(4):
        loss = (model(x) - y).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        shared = loss.detach().clone()
        if dist.is_initialized():
            dist.all_reduce(shared)
            shared /= dist.get_world_size()
        found.append(float(shared))
    return found


def data() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(3)
    return torch.randn(32, 8, generator=generator), torch.randn(32, 1, generator=generator)


def trained(device: str) -> None:
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import init_device_mesh

    x, y = (each.chunk(PROCESSES)[dist.get_rank()].to(device) for each in data())

    def layer(activation: Callable[[Tensor], Tensor]) -> Layer:
        return Layer(activation).to(device)

    expected = losses(nn.parallel.DistributedDataParallel(layer(nn.functional.silu)), x, y)
    assert losses(nn.parallel.DistributedDataParallel(layer(silu)), x, y) == pytest.approx(expected, rel=1e-5)
    model = layer(silu)
    fully_shard(model, mesh=init_device_mesh(device, (PROCESSES,)))
    assert losses(model, x, y) == pytest.approx(expected, rel=1e-5)


def first_call(device: str) -> None:
    """All processes call a kernel that is not in the cache: one of them compiles it."""
    owner: Any = cuda_kernel.CudaInstance if device == "cuda" else cpu_entry.CpuInstance
    compile_instance, compiled = owner.compile, []

    def count(*arguments: Any) -> Any:
        compiled.append(arguments)
        return compile_instance(*arguments)

    owner.compile = count
    x = torch.linspace(-2, 2, 9, device=device)
    dist.barrier()
    result = silu(x)
    dist.all_reduce(result)
    torch.testing.assert_close(result, PROCESSES * nn.functional.silu(x))
    builds = torch.tensor(len(compiled), device=device)
    dist.all_reduce(builds)
    assert builds.item() == 1
