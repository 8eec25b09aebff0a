"""GPT-2 over one flat buffer of parameters, with kernels.py or with torch alone.

Everything but matrix products, and at 124M attention, is a kernel: `Kernels` puts them behind autograd. `Torch` has the
same operations in torch's own functions, so that both train the same model from the same numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import kernels
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

Shape = tuple[int, ...]
Buckets = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Size:
    layers: int
    heads: int
    width: int
    positions: int
    vocabulary: int
    fused_attention: bool  # torch's, which keeps no scores

    @property
    def shapes(self) -> dict[str, Shape]:
        """Of the parameters, in the order of the buffer: first the matrices, which decay."""
        c, layers = self.width, range(self.layers)
        matrices = {"query_key_value": (3 * c, c), "projection": (c, c), "up": (4 * c, c), "down": (c, 4 * c)}
        vectors: dict[str, Shape] = {f"{name}_bias": shape[:1] for name, shape in matrices.items()}
        for norm in ("norm_1", "norm_2"):
            vectors |= {norm: (c,), f"{norm}_bias": (c,)}
        shapes: dict[str, Shape] = {"tokens": (self.vocabulary, c), "positions": (self.positions, c)}
        shapes |= {f"{layer}.{name}": shape for layer in layers for name, shape in matrices.items()}
        shapes |= {f"{layer}.{name}": shape for layer in layers for name, shape in vectors.items()}
        return shapes | {"norm": (c,), "norm_bias": (c,)}

    @property
    def parameters(self) -> int:
        return sum(map(math.prod, self.shapes.values()))

    @property
    def decayed(self) -> int:
        """How many elements at the start of the buffer decay."""
        return sum(math.prod(shape) for shape in self.shapes.values() if len(shape) == 2)

    def initial(self) -> Tensor:
        """The parameters to start from, in float32, drawn by torch's generator."""
        parts = []
        for name, shape in self.shapes.items():
            if len(shape) == 2:
                deviation = 0.02 / math.sqrt(2 * self.layers) if name.endswith(("projection", "down")) else 0.02
                parts.append(torch.randn(math.prod(shape)) * deviation)
            else:
                parts.append(torch.full(shape, 0.0 if name.endswith("bias") else 1.0))
        return torch.cat(parts)


SIZES = {
    "tiny": Size(layers=2, heads=4, width=64, positions=64, vocabulary=256, fused_attention=False),
    # 50,257 tokens, padded to a multiple of 128
    "124M": Size(layers=12, heads=12, width=768, positions=1024, vocabulary=50304, fused_attention=True),
}


def buckets(tokens: Tensor) -> Buckets:
    """What `kernels.token_gradient` takes: the order that sorts the tokens, and where each bucket of a token ends."""
    ordered, order = tokens.flatten().sort(stable=True)
    starts = torch.searchsorted(ordered, ordered)
    ends = torch.searchsorted(ordered, ordered, right=True)
    ends[starts != torch.arange(len(ends), device=ends.device)] = 0
    return order.int(), ends.int()


class GPT2(nn.Module):
    """The mean loss of predicting `targets`; `operations` are those of `Kernels` or of `Torch`."""

    def __init__(self, size: Size, operations: type[Kernels | Torch], dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        self.size, self.operations, self.dtype = size, operations, dtype
        self.parameters_ = nn.Parameter(size.initial().to(operations.parameters_dtype or dtype))

    def forward(self, tokens: Tensor, targets: Tensor, order: Tensor, ends: Tensor) -> Tensor:
        batch, length = tokens.shape
        if length > self.size.positions:
            raise ValueError(f"the sequences have {length} tokens, the model has {self.size.positions} positions")
        ops, shapes = self.operations, self.size.shapes
        parts = self.parameters_.to(self.dtype).split([math.prod(shape) for shape in shapes.values()])
        of = {name: part.view(shape) for (name, shape), part in zip(shapes.items(), parts, strict=True)}
        x = ops.encode(tokens, of["tokens"], of["positions"], order, ends)
        normed = ops.layer_norm(x, of["0.norm_1"], of["0.norm_1_bias"])
        for layer in range(self.size.layers):
            of_layer = {name.partition(".")[2]: each for name, each in of.items() if name.startswith(f"{layer}.")}
            y = self.attend(normed, of_layer, batch, length)
            x, normed = ops.residual_layer_norm(x, y, of_layer["norm_2"], of_layer["norm_2_bias"])
            hidden = ops.gelu(ops.linear(normed, of_layer["up"], of_layer["up_bias"]))
            y = ops.linear(hidden, of_layer["down"], of_layer["down_bias"])
            norm = f"{layer + 1}.norm_1" if layer + 1 < self.size.layers else "norm"
            x, normed = ops.residual_layer_norm(x, y, of[norm], of[f"{norm}_bias"])
        return ops.loss(normed, of["tokens"], targets.flatten())

    def attend(self, x: Tensor, of: dict[str, Tensor], batch: int, length: int) -> Tensor:
        """Causal self-attention of rows, with its projections."""
        ops = self.operations
        together = ops.linear(x, of["query_key_value"], of["query_key_value_bias"])
        heads = together.view(batch, length, 3, self.size.heads, -1).permute(2, 0, 3, 1, 4)
        q, k, v = heads.unbind()
        if self.size.fused_attention:
            mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = (q @ k.transpose(2, 3)).flatten(0, 1)
            weights = ops.causal_softmax(scores, 1 / math.sqrt(q.shape[3]))
            mixed = weights.view(batch, -1, length, length) @ v
        return ops.linear(mixed.transpose(1, 2).reshape(x.shape), of["projection"], of["projection_bias"])


class Torch:
    """The operations of the model in torch's functions."""

    parameters_dtype = torch.float32  # each step casts them

    @staticmethod
    def encode(tokens: Tensor, table: Tensor, positions: Tensor, _order: Tensor, _ends: Tensor) -> Tensor:
        return (functional.embedding(tokens, table) + positions[: tokens.shape[1]]).flatten(0, 1)

    @staticmethod
    def layer_norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return functional.layer_norm(x, weight.shape, weight, bias)

    @staticmethod
    def residual_layer_norm(x: Tensor, y: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
        total = x + y
        return total, functional.layer_norm(total, weight.shape, weight, bias)

    linear = staticmethod(functional.linear)

    @staticmethod
    def gelu(x: Tensor) -> Tensor:
        return functional.gelu(x, approximate="tanh")

    @staticmethod
    def causal_softmax(scores: Tensor, scale: float) -> Tensor:
        behind = torch.ones(scores.shape[1:], dtype=torch.bool, device=scores.device).triu(1)
        return torch.softmax((scores * scale).masked_fill(behind, -math.inf), -1)

    @staticmethod
    def loss(x: Tensor, table: Tensor, targets: Tensor) -> Tensor:
        return functional.cross_entropy(x @ table.t(), targets)


class Kernels:
    """The operations of the model in kernels."""

    parameters_dtype = None  # the model's: the optimiser has the master weights

    @staticmethod
    def encode(tokens: Tensor, table: Tensor, positions: Tensor, order: Tensor, ends: Tensor) -> Tensor:
        return Encode.apply(tokens, table, positions, order, ends)

    @staticmethod
    def layer_norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return LayerNorm.apply(x, weight, bias)

    @staticmethod
    def residual_layer_norm(x: Tensor, y: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
        return ResidualLayerNorm.apply(x, y, weight, bias)

    @staticmethod
    def linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return Linear.apply(x, weight, bias)

    gelu = kernels.gelu

    @staticmethod
    def causal_softmax(scores: Tensor, scale: float) -> Tensor:
        length, missing = scores.shape[2], -scores.shape[2] % 8
        if missing:  # the rows of the kernel are packs of 16 bytes
            scores = functional.pad(scores, (0, missing, 0, missing))
        return kernels.causal_softmax(scores, scale=scale)[:, :length, :length]

    @staticmethod
    def loss(x: Tensor, table: Tensor, targets: Tensor) -> Tensor:
        return Loss.apply(x, table, targets)


class Encode(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tokens: Tensor, table: Tensor, positions: Tensor, order: Tensor, ends: Tensor) -> Tensor:
        ctx.save_for_backward(tokens, table, positions, order, ends)
        return kernels.encoder(tokens, table, positions).flatten(0, 1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_x: Tensor) -> Any:
        tokens, table, positions, order, ends = ctx.saved_tensors
        grad_table = torch.zeros_like(table)
        kernels.token_gradient(tokens.flatten(), order, ends, grad_x, grad_table)
        of_positions = kernels.position_gradient(grad_x.view(*tokens.shape, -1))
        grad_positions = functional.pad(of_positions, (0, 0, 0, len(positions) - len(of_positions)))
        return None, grad_table, grad_positions, None, None


class LayerNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        out, mean, rstd = kernels.layer_norm(x, weight, bias)
        ctx.save_for_backward(x, weight, mean, rstd)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_out: Tensor) -> Any:
        return layer_norm_gradients(*ctx.saved_tensors, grad_out)


class ResidualLayerNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, weight: Tensor, bias: Tensor) -> Any:
        total, out, mean, rstd = kernels.residual_layer_norm(x, y, weight, bias)
        ctx.save_for_backward(total, weight, mean, rstd)
        return total, out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_total: Tensor, grad_out: Tensor) -> Any:
        grad, *of_norm = layer_norm_gradients(*ctx.saved_tensors, grad_out, grad_total=grad_total)
        return grad, grad, *of_norm


def blocks_for(count: int, of_block: int, most: int) -> int:
    """How many blocks share `count`, each of them at least `of_block`."""
    return max(1, min(count // of_block, most))


def layer_norm_gradients(
    x: Tensor, weight: Tensor, mean: Tensor, rstd: Tensor, grad_out: Tensor, grad_total: Tensor | None = None
) -> Any:
    blocks = blocks_for(len(x), kernels.NORM_WARPS, 256)
    partial = mean.new_empty(blocks, 2 * x.shape[1])
    *gradients, _ = kernels.layer_norm_backward(  # and the tickets
        x, weight, mean, rstd, grad_out, grad_total=grad_out if grad_total is None else grad_total,
        with_total=grad_total is not None, partial=partial,
    )  # fmt: skip
    return tuple(gradients)


class Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return torch.addmm(bias, x, weight.t())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_out: Tensor) -> Any:
        x, weight = ctx.saved_tensors
        return grad_out @ weight, grad_out.t() @ x, kernels.bias_gradient(grad_out)


class Loss(torch.autograd.Function):
    """The logits become their gradients in the forward, so that memory holds one of the two."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, table: Tensor, targets: Tensor) -> Tensor:
        logits = x @ table.t()
        losses = kernels.classifier(logits, targets, grad_loss=1 / len(targets), vocabulary=len(table))
        ctx.save_for_backward(logits, x, table)
        return losses.mean()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_loss: Tensor) -> Any:
        grad_logits, x, table = ctx.saved_tensors
        factor = grad_loss.to(x.dtype)
        scaled = x * factor  # the first kernel of this thread: cuBLAS would warn that there is no CUDA context yet
        return grad_logits @ table * factor, grad_logits.t() @ scaled, None


class TorchAdamW:
    """Torch's AdamW over the buffer, with gradients clipped to the norm 1."""

    def __init__(self, model: GPT2, lr: float) -> None:
        self.parameters, self.decayed, self.lr = model.parameters_, model.size.decayed, lr
        fused = self.parameters.is_cuda
        options = {"fused": fused, "capturable": fused}  # a CUDA graph may record it
        self.optimiser = torch.optim.AdamW([self.parameters], lr, (0.9, 0.95), weight_decay=0.0, **options)

    def step(self) -> None:
        nn.utils.clip_grad_norm_([self.parameters], 1.0)
        self.parameters.data[: self.decayed] *= 1 - self.lr * 0.1
        self.optimiser.step()
        self.optimiser.zero_grad()


def sum_of_squares(x: Tensor) -> Tensor:
    partial = x.new_empty(blocks_for(len(x), 16 * kernels.THREADS, 1056), dtype=torch.float32)
    return kernels.sum_of_squares(x, partial=partial, ticket=torch.zeros(1, dtype=torch.int32, device=x.device))


class KernelAdamW:
    """The same by kernels; parameters of bfloat16 have master weights."""

    def __init__(self, model: GPT2, lr: float) -> None:
        self.parameters, self.decayed, self.lr = model.parameters_, model.size.decayed, lr
        self.m, self.v = (torch.zeros_like(self.parameters, dtype=torch.float32) for _ in range(2))
        self.master = self.parameters.detach().float() if self.parameters.dtype == torch.bfloat16 else None
        self.steps = 0

    def step(self) -> None:
        self.steps += 1
        parameters, gradients = self.parameters.detach(), self.parameters.grad
        state = {"m": self.m, "v": self.v, "squares": sum_of_squares(gradients)}
        numbers = {"step": self.steps, "decayed": self.decayed, "lr": self.lr}
        if self.master is None:
            kernels.adamw(parameters=parameters, gradients=gradients, **state, **numbers)
        else:
            state["master"] = self.master
            kernels.adamw_of_halves(parameters=parameters, gradients=gradients, **state, **numbers, seed=self.steps)
        self.parameters.grad = None
