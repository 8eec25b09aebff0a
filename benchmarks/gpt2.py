"""The kernels of `examples/gpt2`, operation by operation, beside torch.compile and eager torch, and a training step.

`python -m benchmarks gpt2`, on a GPU: the sizes of GPT-2 124M in float32 and bfloat16. A time is the median of replays
of a CUDA graph between events; before each, 256 MB are written, so that nothing is left in the L2 cache. Each operation
is checked first, against torch's in float64. `python -m benchmarks gpt2-step` measures a training step in bfloat16, and
its memory.
"""

from __future__ import annotations

import functools
import math
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor
from torch.nn import functional

from benchmarks.table import Row, seconds

sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "gpt2"))

import kernels
import model
from model import GPT2, SIZES, KernelAdamW, Kernels, Torch, TorchAdamW, buckets, layer_norm_gradients

Tensors = tuple[Tensor, ...]
Call = Callable[[], Any]
DTYPES: Final = {"f32": torch.float32, "bf16": torch.bfloat16}
FLUSHED: Final = 256 << 20  # bytes
RUNS: Final = 30


@dataclass(frozen=True)
class Sizes:
    batch: int = 8
    length: int = 1024
    width: int = 768
    heads: int = 12
    vocabulary: int = 50257
    padded: int = 50304
    parameters: int = 124_475_904


@dataclass(frozen=True)
class Operation:
    """Ours and torch's on the same inputs; both return what is compared.

    `caps` bound the ratio to torch.compile in float32 and bfloat16, or to eager torch. `changed` are the places of
    inputs that ours changes, of which the checks take copies.
    """

    name: str
    inputs: Tensors
    ours: Callable[..., Tensors]
    theirs: Callable[..., Tensors]
    caps: tuple[float, float] = (1.15, 1.15)
    beside_eager: bool = False
    changed: tuple[int, ...] = ()


def operations(sizes: Sizes, dtype: torch.dtype, device: str) -> Iterator[Operation]:
    """All operations, with inputs drawn one after the other."""
    rows, c = sizes.batch * sizes.length, sizes.width

    def normal(*shape: int, dtype: torch.dtype = dtype) -> Tensor:
        return torch.randn(shape, device=device, dtype=dtype)

    tokens = torch.randint(sizes.vocabulary, (sizes.batch, sizes.length), device=device)
    table, positions = normal(sizes.padded, c), normal(sizes.length, c)
    yield Operation("encoder forward", (tokens, table, positions), encoder, torch_encoder)

    order, ends = buckets(tokens)
    grad_table = torch.zeros_like(table)
    yield Operation(
        "encoder backward, sorted buckets", (tokens.flatten(), order, ends, normal(rows, c), grad_table),
        token_gradient, torch_token_gradient, (0.20, 0.15), beside_eager=True, changed=(4,),
    )  # fmt: skip

    weight, bias, x, y = normal(c), normal(c), normal(rows, c), normal(rows, c)
    yield Operation("layer norm forward", (x, weight, bias), layer_norm, torch_layer_norm)
    mean, rstd = x.float().mean(1), (x.float().var(1, correction=0) + 1e-5).rsqrt()
    of_norm = x, weight, bias, mean, rstd, normal(rows, c)
    yield Operation("layer norm backward", of_norm, norm_backward, torch_norm_backward)
    yield Operation("residual + layer norm", (x, y, weight, bias), residual, torch_residual)
    yield Operation("residual + layer norm backward", (y, *of_norm), residual_backward, torch_residual_backward)

    scores = normal(sizes.batch * sizes.heads, sizes.length, sizes.length)
    zeros = torch.zeros_like(scores)
    yield Operation(
        "causal softmax forward", (scores, zeros), causal_softmax, torch_causal_softmax, (0.68, 0.80), changed=(1,)
    )
    weights = Torch.causal_softmax(scores, 0.125)
    yield Operation("causal softmax backward", (weights, scores), softmax_backward, torch_softmax_backward)
    del scores, zeros, weights

    hidden, grad_hidden = normal(rows, 4 * c), normal(rows, 4 * c)
    yield Operation("GELU forward", (hidden,), gelu, torch_gelu)
    yield Operation("GELU backward", (hidden, grad_hidden), gelu_backward, torch_gelu_backward)
    yield Operation("bias gradient", (normal(rows, 3 * c),), bias_gradient, torch_bias_gradient)

    targets = torch.randint(sizes.vocabulary, (rows,), device=device)
    classify = functools.partial(classifier, vocabulary=sizes.vocabulary)
    torch_classify = functools.partial(torch_classifier, vocabulary=sizes.vocabulary)
    logits = normal(rows, sizes.padded)
    yield Operation(
        "fused classifier, in place", (logits, targets), classify, torch_classify, (0.70, 0.42), changed=(0,)
    )
    del logits

    master, m = (normal(sizes.parameters, dtype=torch.float32) for _ in range(2))
    state = (master.to(dtype), master, normal(sizes.parameters), m, m.abs(), torch.ones(1, device=device))
    yield Operation("AdamW", state, adamw, torch_adamw, (1.05, 1.05), changed=(0, 1, 3, 4))
    yield Operation("global norm", (state[2],), global_norm, torch_global_norm, (1.05, 1.05))


# --- ours, and torch's ---


def encoder(tokens: Tensor, table: Tensor, positions: Tensor) -> Tensors:
    return (kernels.encoder(tokens, table, positions),)


def torch_encoder(tokens: Tensor, table: Tensor, positions: Tensor) -> Tensors:
    return (functional.embedding(tokens, table) + positions,)


def token_gradient(tokens: Tensor, order: Tensor, ends: Tensor, grad: Tensor, grad_table: Tensor) -> Tensors:
    kernels.token_gradient(tokens, order, ends, grad, grad_table)
    return (grad_table,)


def torch_token_gradient(tokens: Tensor, _order: Tensor, _ends: Tensor, grad: Tensor, grad_table: Tensor) -> Tensors:
    if grad.dtype == torch.float64:  # of which `check` wants the value
        return (grad_table.index_add(0, tokens, grad),)
    return (torch.ops.aten.embedding_dense_backward(grad, tokens, len(grad_table), -1, False),)


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensors:
    return (kernels.layer_norm(x, weight, bias)[0],)


def torch_layer_norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensors:
    return (functional.layer_norm(x, weight.shape, weight, bias),)


def norm_backward(x: Tensor, weight: Tensor, _bias: Tensor, mean: Tensor, rstd: Tensor, grad: Tensor) -> Tensors:
    return layer_norm_gradients(x, weight, mean, rstd, grad)


def torch_norm_backward(x: Tensor, weight: Tensor, bias: Tensor, mean: Tensor, rstd: Tensor, grad: Tensor) -> Tensors:
    arguments = grad, x, weight.shape, mean.unsqueeze(1), rstd.unsqueeze(1), weight, bias, [True] * 3
    return torch.ops.aten.native_layer_norm_backward(*arguments)


def residual(x: Tensor, y: Tensor, weight: Tensor, bias: Tensor) -> Tensors:
    return kernels.residual_layer_norm(x, y, weight, bias)[:2]


def torch_residual(x: Tensor, y: Tensor, weight: Tensor, bias: Tensor) -> Tensors:
    total = x + y
    return total, functional.layer_norm(total, weight.shape, weight, bias)


def residual_backward(grad_total: Tensor, *of_norm: Tensor) -> Tensors:
    x, weight, _, *others = of_norm
    return layer_norm_gradients(x, weight, *others, grad_total=grad_total)


def torch_residual_backward(grad_total: Tensor, *of_norm: Tensor) -> Tensors:
    grad_x, *others = torch_norm_backward(*of_norm)
    return grad_x + grad_total, *others


def causal_softmax(scores: Tensor, out: Tensor) -> Tensors:
    kernels.causal_softmax(scores, scale=0.125, out=out)
    return (out,)


def torch_causal_softmax(scores: Tensor, _out: Tensor) -> Tensors:
    return (Torch.causal_softmax(scores, 0.125),)


def softmax_backward(weights: Tensor, grad: Tensor) -> Tensors:
    return (kernels.causal_softmax_backward(weights, grad, scale=0.125),)


def torch_softmax_backward(weights: Tensor, grad: Tensor) -> Tensors:
    return (torch.ops.aten._softmax_backward_data(grad, weights, -1, weights.dtype) * 0.125,)


def gelu(x: Tensor) -> Tensors:
    return (kernels.gelu(x),)


def torch_gelu(x: Tensor) -> Tensors:
    return (functional.gelu(x, approximate="tanh"),)


def gelu_backward(x: Tensor, grad: Tensor) -> Tensors:
    return (kernels.gelu_backward(x, grad),)


def torch_gelu_backward(x: Tensor, grad: Tensor) -> Tensors:
    return (torch.ops.aten.gelu_backward(grad, x, approximate="tanh"),)


def bias_gradient(grad: Tensor) -> Tensors:
    return (kernels.bias_gradient(grad),)


def torch_bias_gradient(grad: Tensor) -> Tensors:
    return (grad.sum(0),)


def classifier(logits: Tensor, targets: Tensor, *, vocabulary: int) -> Tensors:
    losses = kernels.classifier(logits, targets, grad_loss=1 / len(targets), vocabulary=vocabulary)
    return losses, logits


def torch_classifier(logits: Tensor, targets: Tensor, *, vocabulary: int) -> Tensors:
    """The softmax in float32, or in float64 where that comes in; the gradient is written out."""
    wide = logits if logits.dtype == torch.float64 else logits.float()
    logs = torch.log_softmax(wide[:, :vocabulary], -1)
    losses = -logs.gather(1, targets[:, None])[:, 0]
    hot = targets[:, None] == torch.arange(vocabulary, device=logits.device)
    grad = ((logs.exp() - hot.to(logs.dtype)) / len(targets)).to(logits.dtype)
    return losses, functional.pad(grad, (0, logits.shape[1] - vocabulary))


def adamw(parameters: Tensor, master: Tensor, grad: Tensor, m: Tensor, v: Tensor, squares: Tensor) -> Tensors:
    numbers = {"step": 7, "decayed": len(master) // 2, "lr": 1e-3, "m": m, "v": v, "squares": squares}
    if parameters.dtype == torch.bfloat16:
        kernels.adamw_of_halves(parameters=parameters, master=master, gradients=grad, seed=7, **numbers)
        return master, m, v
    kernels.adamw(parameters=parameters, gradients=grad, **numbers)
    return parameters, m, v


def torch_adamw(parameters: Tensor, master: Tensor, grad: Tensor, m: Tensor, v: Tensor, squares: Tensor) -> Tensors:
    """In place, too; bfloat16 is rounded to the nearest."""
    norm = squares[0].sqrt()
    grad = grad.to(m.dtype) * torch.where(norm > 1, 1 / norm, 1)
    m.mul_(0.9).add_(grad, alpha=0.1)
    v.mul_(0.95).add_(grad * grad, alpha=0.05)
    kept = master if parameters.dtype == torch.bfloat16 else parameters
    decays = torch.arange(len(kept), device=kept.device) < len(kept) // 2
    kept.mul_(torch.where(decays, 1 - 1e-3 * 0.1, 1))
    kept.sub_(1e-3 * (m / (1 - 0.9**7)) / ((v / (1 - 0.95**7)).sqrt() + 1e-8))
    if kept is master:
        parameters.copy_(master)
    return kept, m, v


def global_norm(grad: Tensor) -> Tensors:
    return (model.sum_of_squares(grad),)


def torch_global_norm(grad: Tensor) -> Tensors:
    return (torch.linalg.vector_norm(grad, dtype=torch.promote_types(grad.dtype, torch.float32)).square().view(1),)


# --- checks and times ---


def check(operation: Operation, dtype: torch.dtype) -> None:
    """Compare ours with torch's in float64, to the rounding of the dtype."""
    mine = [each.clone() if at in operation.changed else each for at, each in enumerate(operation.inputs)]
    wide = [each.double() if each.is_floating_point() else each for each in operation.inputs]
    tolerance = 1e-4 if dtype == torch.float32 else 2e-2
    for got, expected in zip(operation.ours(*mine), operation.theirs(*wide), strict=True):
        scale = expected.abs().max().item()
        torch.testing.assert_close(
            got.double(), expected, rtol=tolerance, atol=tolerance * scale, msg=lambda text: f"{operation.name}: {text}"
        )


def graph(call: Call) -> Call:
    """Replays of the launches of a call, recorded after some calls that build and choose."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(stream)
    recorded = torch.cuda.CUDAGraph()
    with torch.cuda.graph(recorded):
        call()
    return recorded.replay


def medians(calls: Sequence[Call]) -> list[float]:
    """Seconds on the GPU of each call, in turns, with a flushed L2. The host's part passes while the flush runs."""
    flushed = torch.empty(FLUSHED, dtype=torch.uint8, device="cuda")
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(RUNS):
        for call, of_call in zip(calls, times, strict=True):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            flushed.zero_()
            start.record()
            call()
            end.record()
            torch.cuda.synchronize()
            of_call.append(start.elapsed_time(end) / 1e3)
    return [statistics.median(of_call) for of_call in times]


def rows() -> Iterator[Row]:
    for place, (name, dtype) in enumerate(DTYPES.items()):
        ratios = []
        for operation in operations(Sizes(), dtype, "cuda"):
            row = _row(operation, name, dtype, operation.caps[place])
            if not operation.beside_eager and row.ratio is not None:
                ratios.append(row.ratio)
            yield row
        mean, cap = math.exp(statistics.fmean(map(math.log, ratios))), (1.00, 0.92)[place]
        yield Row(f"geometric mean, {name}", "", "torch.compile", mean, f"ratio ≤ {cap:g}", mean <= cap)


def _row(operation: Operation, name: str, dtype: torch.dtype, cap: float) -> Row:
    check(operation, dtype)
    torch._dynamo.reset()
    compiled = torch.compile(operation.theirs, dynamic=False)
    functions = (operation.ours, operation.theirs, *(() if operation.beside_eager else (compiled,)))
    calls = [functools.partial(function, *operation.inputs) for function in functions]
    for call in calls:
        call()
    # Eager torch's backward of an embedding waits for the GPU, which no graph records
    ours, eager, *others = medians([graph(calls[0]), *(calls[1:] if operation.beside_eager else map(graph, calls[1:]))])
    peer = others[0] if others else eager
    theirs = f"eager {seconds(eager)}" + (f", torch.compile {seconds(peer)}" if others else "")
    return Row(f"{operation.name}, {name}", seconds(ours), theirs, ours / peer, f"ratio ≤ {cap:g}", ours / peer <= cap)


@dataclass(frozen=True)
class Step:
    """Seconds of a training step, medians, from a graph and launch by launch, and the bytes that it takes at most."""

    recorded: float  # launch by launch where no graph records it
    launched: float
    memory: int


def rows_of_step() -> Iterator[Row]:
    """A step of training of 124M, and the greatest memory that it takes.

    A graph records the step, as it does operations; launch by launch the host may be the limit. Eager torch waits for
    the GPU in the backward of the embedding, which no graph records.
    """
    ours, eager, compiled = step_of(Kernels), step_of(Torch, recorded=False), step_of(Torch, compiled=True)
    for name, theirs, cap in ("torch.compile", compiled.recorded, 1.10), ("eager", eager.launched, 0.90):
        ratio = ours.recorded / theirs
        peer = f"{name} {seconds(theirs)}"
        yield Row("training step, bf16", seconds(ours.recorded), peer, ratio, f"ratio ≤ {cap:g}", ratio <= cap)
    for name, theirs in ("torch.compile", compiled.launched), ("eager", eager.launched):
        peer = f"{name} {seconds(theirs)}"
        yield Row("training step, bf16, without a graph", seconds(ours.launched), peer, ours.launched / theirs)
    ratio = ours.memory / eager.memory
    sizes = f"{ours.memory / 1e9:.2f} GB", f"eager {eager.memory / 1e9:.2f} GB"
    yield Row("memory of a step, bf16", *sizes, ratio, "ratio ≤ 1", ratio <= 1)


def step_of(operations_: type[Kernels | Torch], *, compiled: bool = False, recorded: bool = True) -> Step:
    """Measure a step of 8 sequences."""
    size = SIZES["124M"]
    torch._dynamo.reset()
    torch.cuda.empty_cache()
    torch.manual_seed(0)
    network = GPT2(size, operations_, torch.bfloat16).cuda()
    optimiser = (KernelAdamW if operations_ is Kernels else TorchAdamW)(network, 1e-4)
    loss_of: Any = torch.compile(network, fullgraph=True) if compiled else network
    tokens = torch.randint(size.vocabulary, (8, size.positions), device="cuda")
    arguments = tokens, tokens.roll(-1, 1), *buckets(tokens)

    def step() -> None:
        loss_of(*arguments).backward()
        optimiser.step()

    step()
    torch.cuda.reset_peak_memory_stats()
    step()
    memory = torch.cuda.max_memory_allocated()
    launched = medians([step])[0]
    return Step(medians([graph(step)])[0] if recorded else launched, launched, memory)
