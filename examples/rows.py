"""Softmax and layer norm of rows, forward and backward, for every float dtype: one block a row.

    python examples/rows.py

A thread takes every 128th element of its row, so rows may have any length. The threads of a block compute the maximum
and the sums of the row together: `block_sum` and `block_max` are device functions with barriers, which every thread
calls. Sums have the dtype of the arrays: for long rows of float16 or bfloat16, pass float32.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from py2cu import blockIdx, kernel, shared, syncthreads, threadIdx

THREADS = 128


def block_sum(part, t, value):
    """The sum over all threads, returned to each of them; `part` has an element for each thread."""
    part[t] = value
    syncthreads()
    half = THREADS // 2
    while half > 0:
        if t < half:
            part[t] += part[t + half]
        syncthreads()
        half //= 2
    result = part[0]
    syncthreads()  # before `part` is used again
    return result


def block_max(part, t, value):
    """The maximum over all threads, returned to each of them."""
    part[t] = value
    syncthreads()
    half = THREADS // 2
    while half > 0:
        if t < half and part[t + half] > part[t]:
            part[t] = part[t + half]
        syncthreads()
        half //= 2
    result = part[0]
    syncthreads()
    return result


@kernel(size="128 * rows", block=THREADS)
def softmax(x: Float[Tensor, "rows n"], out: Float[Tensor, "rows n"], n: int):
    """exp(x) over its sum, row by row; the maximum is taken off first, so that exp does not overflow."""
    part = shared(THREADS, x.dtype)
    r, t = blockIdx.x, threadIdx.x
    top = x.dtype(-math.inf)
    for i in range(t, n, THREADS):
        if x[r, i] > top:
            top = x[r, i]
    top = block_max(part, t, top)
    total = x.dtype(0)
    for i in range(t, n, THREADS):
        total += math.exp(x[r, i] - top)
    total = block_sum(part, t, total)
    for i in range(t, n, THREADS):
        out[r, i] = math.exp(x[r, i] - top) / total


@softmax.backward(size="128 * rows", block=THREADS)
def softmax_backward(
    out: Float[Tensor, "rows n"], grad_out: Float[Tensor, "rows n"], grad_x: Float[Tensor, "rows n"], n: int
):
    """`out` is what the forward kernel returned."""
    part = shared(THREADS, out.dtype)
    r, t = blockIdx.x, threadIdx.x
    dot = out.dtype(0)
    for i in range(t, n, THREADS):
        dot += out[r, i] * grad_out[r, i]
    dot = block_sum(part, t, dot)
    for i in range(t, n, THREADS):
        grad_x[r, i] = out[r, i] * (grad_out[r, i] - dot)


@kernel(size="128 * rows", block=THREADS)
def layer_norm(
    x: Float[Tensor, "rows n"], weight: Float[Tensor, "n"], bias: Float[Tensor, "n"], eps: float,
    out: Float[Tensor, "rows n"], mean: Float[Tensor, "rows"], scale: Float[Tensor, "rows"], n: int,
):  # fmt: skip
    """Rows of mean 0 and variance 1, times the weights, plus the bias; `mean` and `scale` are kept for the backward."""
    part = shared(THREADS, x.dtype)
    r, t = blockIdx.x, threadIdx.x
    s = x.dtype(0)
    for i in range(t, n, THREADS):
        s += x[r, i]
    m = block_sum(part, t, s) / n
    s = x.dtype(0)
    for i in range(t, n, THREADS):
        s += (x[r, i] - m) * (x[r, i] - m)
    k = 1 / math.sqrt(block_sum(part, t, s) / n + eps)
    for i in range(t, n, THREADS):
        out[r, i] = (x[r, i] - m) * k * weight[i] + bias[i]
    if t == 0:
        mean[r] = m
        scale[r] = k


@layer_norm.backward(size="128 * rows", block=THREADS)
def layer_norm_backward(
    x: Float[Tensor, "rows n"], weight: Float[Tensor, "n"], mean: Float[Tensor, "rows"],
    scale: Float[Tensor, "rows"], grad_out: Float[Tensor, "rows n"], grad_x: Float[Tensor, "rows n"], n: int,
):  # fmt: skip
    """The gradient of the rows."""
    part = shared(THREADS, x.dtype)
    r, t = blockIdx.x, threadIdx.x
    m, k = mean[r], scale[r]
    s = x.dtype(0)
    dot = x.dtype(0)
    for i in range(t, n, THREADS):
        g = grad_out[r, i] * weight[i]
        s += g
        dot += g * (x[r, i] - m) * k
    s = block_sum(part, t, s) / n
    dot = block_sum(part, t, dot) / n
    for i in range(t, n, THREADS):
        grad_x[r, i] = k * (grad_out[r, i] * weight[i] - s - (x[r, i] - m) * k * dot)


@layer_norm.backward(size=("n", 8), block=(32, 8))
def layer_norm_backward_weights(
    x: Float[Tensor, "rows n"], mean: Float[Tensor, "rows"], scale: Float[Tensor, "rows"],
    grad_out: Float[Tensor, "rows n"], grad_weight: Float[Tensor, "n"], grad_bias: Float[Tensor, "n"],
    rows: int, n: int,
):  # fmt: skip
    """The gradients of weights and bias: a block takes 32 columns, which 8 rows of threads go down together."""
    weights = shared((8, 32), x.dtype)
    biases = shared((8, 32), x.dtype)
    tr, tc = threadIdx.y, threadIdx.x
    c = blockIdx.x * 32 + tc
    gw = x.dtype(0)
    gb = x.dtype(0)
    if c < n:
        for r in range(tr, rows, 8):
            gw += grad_out[r, c] * (x[r, c] - mean[r]) * scale[r]
            gb += grad_out[r, c]
    weights[tr, tc] = gw
    biases[tr, tc] = gb
    syncthreads()
    if tr == 0 and c < n:
        for k in range(1, 8):
            gw += weights[k, tc]
            gb += biases[k, tc]
        grad_weight[c] = gw
        grad_bias[c] = gb


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = torch.randn(100, 333, device=device, requires_grad=True)
    weight, bias = torch.randn(2, 333, device=device, requires_grad=True).unbind()
    wanted = torch.randn(100, 333, device=device)

    ours, theirs = softmax(x), torch.softmax(x, 1)
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(torch.autograd.grad(ours, x, wanted), torch.autograd.grad(theirs, x, wanted))
    print(f"Softmax of {x.shape[0]} rows on {device} and its gradient: as torch's")

    leaves = (x, weight, bias)
    ours, theirs = layer_norm(*leaves, 1e-5)[0], torch.nn.functional.layer_norm(x, (333,), weight, bias)
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)
    gradients = zip(torch.autograd.grad(ours, leaves, wanted), torch.autograd.grad(theirs, leaves, wanted), strict=True)
    for mine, torchs in gradients:
        torch.testing.assert_close(mine, torchs, rtol=1e-4, atol=1e-4)
    print(f"Layer norm of {x.shape[0]} rows on {device} and its gradients: as torch's")

    few, up = torch.randn(2, 3, 333, device=device)
    weight, bias = weight.detach(), bias.detach()
    _, mean, scale = layer_norm(few, weight, bias, 1e-5)
    print(softmax.check(few))
    print(softmax_backward.check(softmax(few), up))
    print(layer_norm.check(few, weight, bias, 1e-5))
    print(layer_norm_backward.check(few, weight, mean, scale, up))
    print(layer_norm_backward_weights.check(few, mean, scale, up))


if __name__ == "__main__":
    main()
