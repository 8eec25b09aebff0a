"""The kernels of GPT-2's training, forward and backward, for float32 and bfloat16: all of it but matrix products.

    python examples/gpt2/kernels.py

A warp has a row in the layer norms and in the causal softmax, a block a row of the classifier. Memory is accessed in
packs of 16 bytes: `W` elements, 4 of float32 and 8 of bfloat16. The lanes of a warp take neighbouring packs, so that a
warp reads whole lines. Rows of layer norm stay in registers: their length is 32 times the template argument
`per_lane`, 24 for GPT-2's 768; where a row is shorter than 32 packs, some lanes have none. All sums accumulate in
float32.

Sums over rows take one launch. For the gradient of a bias a block adds up some columns to the end. The gradients of
layer norm and the global norm use tickets: each block writes its partial sum to `partial` and takes a ticket; the block
with the last ticket adds up all partial sums, in an order that is the same in every run, unlike that of atomic
additions. The caller allocates `partial`, whose first extent is the number of blocks, and tickets of 0, which
`layer_norm_backward` makes itself.

`layer_norm.simulate(x, weight, bias)` runs a kernel under a debugger, thread by thread.
"""

import math

import numpy as np
import torch
from jaxtyping import BFloat16, Float32, Int32, Int64
from torch import Tensor

from py2cu import (
    Constexpr,
    Index,
    atomic,
    blockIdx,
    gridDim,
    kernel,
    local,
    opmath,
    shared,
    shfl_xor_sync,
    syncthreads,
    threadfence,
    threadIdx,
    unroll,
)

# The arrays that a kernel has in both dtypes
Elements = Float32[Tensor, "..."] | BFloat16[Tensor, "..."]
Numbers = Float32[Tensor, "n"] | BFloat16[Tensor, "n"]
Matrix = Float32[Tensor, "rows c"] | BFloat16[Tensor, "rows c"]
Vector = Float32[Tensor, "c"] | BFloat16[Tensor, "c"]
Rows = Float32[Tensor, "rows 32*per_lane"] | BFloat16[Tensor, "rows 32*per_lane"]  # of which a warp has one
Row = Float32[Tensor, "32*per_lane"] | BFloat16[Tensor, "32*per_lane"]
Sequences = Float32[Tensor, "b t c"] | BFloat16[Tensor, "b t c"]
Positions = Float32[Tensor, "positions c"] | BFloat16[Tensor, "positions c"]
PositionGradients = Float32[Tensor, "t c"] | BFloat16[Tensor, "t c"]
Table = Float32[Tensor, "v c"] | BFloat16[Tensor, "v c"]
TokenRows = Float32[Tensor, "n 32*per_lane"] | BFloat16[Tensor, "n 32*per_lane"]
TableRows = Float32[Tensor, "v 32*per_lane"] | BFloat16[Tensor, "v 32*per_lane"]
Scores = Float32[Tensor, "heads t t"] | BFloat16[Tensor, "heads t t"]

FULL = 0xFFFFFFFF  # all lanes of a warp
LOG2E = 1 / math.log(2)  # exp(x) is exp2(LOG2E * x): a multiply-add and one instruction
THREADS = 512  # of a block, where a block has a row or adds up for the whole grid
BLOCK_WARPS = THREADS // 32

# --- what the threads of a warp, a block and a grid do together ---


def warp_sum(value):
    """The sum over the warp, to each lane."""
    offset = 16
    while offset > 0:
        value += shfl_xor_sync(FULL, value, offset)
        offset //= 2
    return value


def warp_max(value):
    """The maximum over the warp, to each lane."""
    offset = 16
    while offset > 0:
        value = max(value, shfl_xor_sync(FULL, value, offset))
        offset //= 2
    return value


def block_sum(part, value):
    """The sum over the block, to each thread; `part` has an element for each warp."""
    value = warp_sum(value)
    if threadIdx.x % 32 == 0:
        part[threadIdx.x // 32] = value
    syncthreads()
    total = sum(part[w] for w in range(BLOCK_WARPS))
    syncthreads()  # before `part` is used again
    return total


def is_last_block(ticket, blocks, is_last):
    """Whether this block is the last of `blocks` that take a ticket; it then sees what the others wrote before."""
    syncthreads()
    if threadIdx.x == 0:
        threadfence()  # what this block wrote comes before its ticket
        is_last[0] = int(atomic.add(ticket, 0, 1) == blocks - 1)
        threadfence()  # orders the reads below after the last ticket
    syncthreads()
    return is_last[0] > 0


# --- encoder: the row of a token plus the row of its position ---

BUCKET_WARPS = 8
SHORT = 16  # tokens of a bucket that one warp adds up by itself


@kernel(block=(32, 8, 1))
def encoder(
    b: Index["b"], t: Index["t"], c: Index["c"],
    tokens: Int64[Tensor, "b t"], wte: Table, wpe: Positions,
    out: Sequences,
):  # fmt: skip
    out[b, t, c] = wte[tokens[b, t], c] + wpe[t, c]


@kernel(block=(32, 8))
def position_gradient(t: Index["t"], j: Index["c // 4"], grad_out: Sequences, grad_wpe: PositionGradients):
    """The sums over the batch; `j` counts packs of float32, of which bfloat16 has half as many."""
    W = 16 // grad_out.itemsize
    grad_outs = grad_out.view(grad_out.shape[0], grad_out.shape[1], -1, W)
    grad_wpes = grad_wpe.view(grad_wpe.shape[0], -1, W)
    if j < grad_wpes.shape[1]:
        total = [np.float32(0)] * W
        for b in range(len(grad_outs)):
            for k, v in enumerate(grad_outs[b, t, j]):
                total[k] += opmath(v)
        grad_wpes[t, j] = tuple(total)


def holds_one_token(tokens, order, start, end):
    """Whether a bucket has one token, which is greater than the one before: no other bucket has it."""
    token = tokens[order[start]]
    return tokens[order[end - 1]] == token and (start == 0 or tokens[order[start - 1]] < token)


@kernel(size="32 * n", block=32 * BUCKET_WARPS)
def token_gradient(
    tokens: Int64[Tensor, "n"], order: Int32[Tensor, "n"], ends: Int32[Tensor, "n"],
    grad_out: TokenRows, grad_wte: TableRows, per_lane: Constexpr[int] = 24,
):  # fmt: skip
    """Adds the rows of `grad_out` to the rows of `grad_wte` of their tokens, without atomics.

    `order` sorts the tokens. A bucket of one token goes from p to `ends[p]`, which is 0 where no bucket starts. A warp
    adds up a short bucket, and all warps of the block a long one.
    """
    W = 16 // grad_out.itemsize
    grad_outs, grad_wtes = grad_out.view(grad_out.shape[0], -1, W), grad_wte.view(grad_wte.shape[0], -1, W)
    packs = 32 * per_lane // W
    part = shared((BUCKET_WARPS, (per_lane + W - 1) // W * W, 32), np.float32)
    lane, warp = threadIdx.x % 32, threadIdx.x // 32
    first = blockIdx.x * BUCKET_WARPS
    at = first + warp
    if at < len(ends) and at < ends[at] <= at + SHORT:
        assert holds_one_token(tokens, order, at, int(ends[at])), "a token has one bucket"
        total = [np.float32(0)] * ((per_lane + W - 1) // W * W)
        for q in range(at, ends[at]):
            for p in range((per_lane + W - 1) // W):
                if lane + 32 * p < packs:
                    for k, v in enumerate(grad_outs[order[q], lane + 32 * p]):
                        total[W * p + k] += opmath(v)
        token = tokens[order[at]]
        for p in range((per_lane + W - 1) // W):
            j = lane + 32 * p
            if j < packs:
                grad_wtes[token, j] = tuple(opmath(v) + total[W * p + k] for k, v in enumerate(grad_wtes[token, j]))
    for start in range(first, min(first + BUCKET_WARPS, len(ends))):
        if ends[start] > start + SHORT:
            assert holds_one_token(tokens, order, start, int(ends[start])), "a token has one bucket"
            total = [np.float32(0)] * ((per_lane + W - 1) // W * W)
            for q in range(start + warp, ends[start], BUCKET_WARPS):
                for p in range((per_lane + W - 1) // W):
                    if lane + 32 * p < packs:
                        for k, v in enumerate(grad_outs[order[q], lane + 32 * p]):
                            total[W * p + k] += opmath(v)
            for k in range(len(total)):
                part[warp, k, lane] = total[k]
            syncthreads()
            token = tokens[order[start]]
            for j in range(threadIdx.x, packs, 32 * BUCKET_WARPS):
                added = [sum(part[w, W * (j // 32) + k, j % 32] for w in range(BUCKET_WARPS)) for k in range(W)]
                grad_wtes[token, j] = tuple(opmath(v) + a for v, a in zip(grad_wtes[token, j], added, strict=True))
            syncthreads()  # before `part` is used again


# --- layer norm ---

ROWS = 4  # of a block of the forward
NORM_WARPS = 8  # of a block of the backward
GROUP = 16  # blocks of the backward, whose parts are added up before those of others


def standardise(row, packs, W, eps):
    """Subtract the mean from a row of `packs`, of which a lane has every 32nd; return it and 1 / standard deviation."""
    lane = threadIdx.x % 32
    mean = warp_sum(sum(row)) / (packs * W)
    for p in range(len(row) // W):
        if lane + 32 * p < packs:
            for k in range(W):
                row[W * p + k] -= mean
    return mean, 1 / math.sqrt(warp_sum(sum(v**2 for v in row)) / (packs * W) + eps)


@kernel(size="32 * rows", block=32 * ROWS)
def layer_norm(
    x: Rows, weight: Row, bias: Row, out: Rows, mean: Float32[Tensor, "rows"], rstd: Float32[Tensor, "rows"],
    per_lane: Constexpr[int] = 24, eps: float = 1e-5,
):  # fmt: skip
    """Rows of mean 0 and variance 1, times the weights, plus the bias; the backward takes `mean` and `rstd`."""
    r, lane = blockIdx.x * ROWS + threadIdx.x // 32, threadIdx.x % 32
    if r >= len(x):
        return
    W = 16 // x.itemsize
    xs, outs = x.view(x.shape[0], -1, W), out.view(out.shape[0], -1, W)
    weights, biases = weight.view(-1, W), bias.view(-1, W)
    row = local((per_lane + W - 1) // W * W, np.float32)  # the packs of a lane
    for k in range(len(row)):
        row[k] = 0  # where a short row has no pack
    for p in range((per_lane + W - 1) // W):
        if lane + 32 * p < len(weights):
            for k, v in enumerate(xs[r, lane + 32 * p]):
                row[W * p + k] = opmath(v)
    m, s = standardise(row, len(weights), W, eps)
    for p in range((per_lane + W - 1) // W):
        j = lane + 32 * p
        if j < len(weights):
            outs[r, j] = tuple(
                row[W * p + k] * s * opmath(w) + opmath(b)
                for k, (w, b) in enumerate(zip(weights[j], biases[j], strict=True))
            )
    if lane == 0:
        mean[r] = m
        rstd[r] = s


@kernel(size="32 * rows", block=32 * ROWS)
def residual_layer_norm(
    x: Rows, y: Rows, weight: Row, bias: Row, total: Rows, out: Rows,
    mean: Float32[Tensor, "rows"], rstd: Float32[Tensor, "rows"], per_lane: Constexpr[int] = 24, eps: float = 1e-5,
):  # fmt: skip
    """The sum of `x` and `y`, and its layer norm."""
    r, lane = blockIdx.x * ROWS + threadIdx.x // 32, threadIdx.x % 32
    if r >= len(x):
        return
    W = 16 // x.itemsize
    xs, ys = x.view(x.shape[0], -1, W), y.view(y.shape[0], -1, W)
    totals, outs = total.view(total.shape[0], -1, W), out.view(out.shape[0], -1, W)
    weights, biases = weight.view(-1, W), bias.view(-1, W)
    row = local((per_lane + W - 1) // W * W, np.float32)
    for k in range(len(row)):
        row[k] = 0
    for p in range((per_lane + W - 1) // W):
        j = lane + 32 * p
        if j < len(weights):
            for k, (a, b) in enumerate(zip(xs[r, j], ys[r, j], strict=True)):
                row[W * p + k] = opmath(a) + opmath(b)
            totals[r, j] = tuple(row[W * p + k] for k in range(W))
    m, s = standardise(row, len(weights), W, eps)
    for p in range((per_lane + W - 1) // W):
        j = lane + 32 * p
        if j < len(weights):
            outs[r, j] = tuple(
                row[W * p + k] * s * opmath(w) + opmath(b)
                for k, (w, b) in enumerate(zip(weights[j], biases[j], strict=True))
            )
    if lane == 0:
        mean[r] = m
        rstd[r] = s


@kernel(size="blocks * 32 * NORM_WARPS", block=32 * NORM_WARPS, launch_bounds=(32 * NORM_WARPS, 2), init={"tickets": 0})
def layer_norm_backward(
    x: Rows, weight: Row, mean: Float32[Tensor, "rows"], rstd: Float32[Tensor, "rows"], grad_out: Rows,
    grad_x: Rows, grad_weight: Row, grad_bias: Row,
    partial: Float32[Tensor, "blocks 64*per_lane"], tickets: Int32[Tensor, "1+(blocks+15)//16"],
    grad_total: Rows, per_lane: Constexpr[int] = 24, with_total: Constexpr[bool] = True,
):  # fmt: skip
    """The gradients of `x`, weights and bias; `with_total` adds `grad_total`, that of the residual stream, to `grad_x`.

    Each warp walks over its rows and accumulates the gradients of weights and bias in registers. The last block of each
    group sums the group's partial results, and the last group sums those of all groups.
    """
    W = 16 // x.itemsize
    xs, grad_xs = x.view(x.shape[0], -1, W), grad_x.view(grad_x.shape[0], -1, W)
    grad_outs, weights = grad_out.view(grad_out.shape[0], -1, W), weight.view(-1, W)
    grad_totals = grad_total.view(grad_total.shape[0], -1, W)
    F = 16 // partial.itemsize
    partials = partial.view(partial.shape[0], -1, F)
    part = shared((NORM_WARPS, (per_lane + W - 1) // W * W, 32), np.float32)
    is_last = shared(1, np.int32)
    lane, warp = threadIdx.x % 32, threadIdx.x // 32
    of_weight = [np.float32(0)] * ((per_lane + W - 1) // W * W)
    of_bias = [np.float32(0)] * ((per_lane + W - 1) // W * W)
    for r in range(blockIdx.x * NORM_WARPS + warp, len(x), gridDim.x * NORM_WARPS):
        normed = [np.float32(0)] * ((per_lane + W - 1) // W * W)
        scaled = [np.float32(0)] * ((per_lane + W - 1) // W * W)
        for p in range((per_lane + W - 1) // W):
            j = lane + 32 * p
            if j < len(weights):
                for k, (v, up, w) in enumerate(zip(xs[r, j], grad_outs[r, j], weights[j], strict=True)):
                    normed[W * p + k] = (opmath(v) - mean[r]) * rstd[r]
                    scaled[W * p + k] = opmath(up) * opmath(w)
                    of_weight[W * p + k] += opmath(up) * normed[W * p + k]
                    of_bias[W * p + k] += opmath(up)
        average = warp_sum(sum(scaled)) / (32 * per_lane)
        dot = warp_sum(sum(a * b for a, b in zip(scaled, normed, strict=True))) / (32 * per_lane)
        for p in range((per_lane + W - 1) // W):
            j = lane + 32 * p
            if j < len(weights):
                grad = [rstd[r] * (scaled[W * p + k] - average - normed[W * p + k] * dot) for k in range(W)]
                if with_total:
                    for k, v in enumerate(grad_totals[r, j]):
                        grad[k] += opmath(v)
                grad_xs[r, j] = tuple(grad)
    for which in unroll(range(2)):
        for k in range(len(of_bias)):
            part[warp, k, lane] = of_weight[k] if which == 0 else of_bias[k]
        syncthreads()
        for k in range(warp, len(of_bias), NORM_WARPS):
            c = W * (lane + 32 * (k // W)) + k % W
            if c < 32 * per_lane:
                partial[blockIdx.x, 32 * per_lane * which + c] = sum(part[w, k, lane] for w in range(NORM_WARPS))
        syncthreads()
    first = blockIdx.x // GROUP * GROUP
    end = min(first + GROUP, gridDim.x)
    if is_last_block(tickets[1 + blockIdx.x // GROUP :], end - first, is_last):
        for j in range(threadIdx.x, partials.shape[1], 32 * NORM_WARPS):
            total = [np.float32(0)] * F
            for block in range(first, end):
                for k, v in enumerate(partials[block, j]):
                    total[k] += v
            partials[first, j] = tuple(total)
        if is_last_block(tickets, len(tickets) - 1, is_last):
            for j in range(threadIdx.x, partials.shape[1], 32 * NORM_WARPS):
                total = [np.float32(0)] * F
                for block in range(0, gridDim.x, GROUP):
                    for k, v in enumerate(partials[block, j]):
                        total[k] += v
                for k in range(F):
                    if F * j < 32 * per_lane:
                        grad_weight[F * j + k] = total[k]
                    else:
                        grad_bias[F * j + k - 32 * per_lane] = total[k]


# --- causal softmax of the scores of attention ---

SCORE_ROWS = 8  # of a block


@kernel(size="32 * heads * t", block=32 * SCORE_ROWS, init={"out": 0})
def causal_softmax(x: Scores, out: Scores, t: int, heads: int, scale: float):
    """The softmax of `scale * x` up to the diagonal. Packs behind it are not read or written: `out` keeps its zeros.

    Online: a lane keeps its maximum so far, and the sum of exp(scale * (score - maximum)), which is scaled down where a
    greater score comes. Only a pack across the diagonal is masked.
    """
    at, lane = blockIdx.x * SCORE_ROWS + threadIdx.x // 32, threadIdx.x % 32
    if at >= heads * t:
        return
    h, r = at // t, at % t
    W = 16 // x.itemsize
    xs, outs = x.view(x.shape[0], x.shape[1], -1, W), out.view(out.shape[0], out.shape[1], -1, W)
    factor = np.float32(LOG2E * scale)
    top = np.float32(-math.inf)
    total = np.float32(0)
    for j in range(lane, r // W + 1, 32):
        row = [opmath(v) for v in xs[h, r, j]]
        if W * j + W > r + 1:
            for k in range(W):
                if W * j + k > r:
                    row[k] = -math.inf
        greatest = max(row)
        if greatest > top:
            total *= math.exp2(factor * top - factor * greatest)
            top = greatest
        total += sum(math.exp2(factor * v - factor * top) for v in row)
    greatest = warp_max(top)
    if top < greatest:  # also of a lane behind the diagonal, whose maximum is -inf
        total *= math.exp2(factor * top - factor * greatest)
    shift = factor * greatest + math.log2(warp_sum(total))
    for j in range(lane, r // W + 1, 32):
        row = [math.exp2(factor * opmath(v) - shift) for v in xs[h, r, j]]
        if W * j + W > r + 1:
            for k in range(W):
                if W * j + k > r:
                    row[k] = 0.0
        outs[h, r, j] = tuple(row)


@causal_softmax.backward(size="32 * heads * t", block=32 * SCORE_ROWS)
def causal_softmax_backward(
    out: Scores, grad_out: Scores, grad_x: Scores,
    t: int, heads: int, scale: float,
):  # fmt: skip
    at, lane = blockIdx.x * SCORE_ROWS + threadIdx.x // 32, threadIdx.x % 32
    if at >= heads * t:
        return
    h, r = at // t, at % t
    W = 16 // out.itemsize
    outs, grad_outs = out.view(out.shape[0], out.shape[1], -1, W), grad_out.view(out.shape[0], out.shape[1], -1, W)
    grad_xs = grad_x.view(grad_x.shape[0], grad_x.shape[1], -1, W)
    dot = np.float32(0)
    for j in range(lane, r // W + 1, 32):
        row = [opmath(v) * opmath(g) for v, g in zip(outs[h, r, j], grad_outs[h, r, j], strict=True)]
        dot += sum(row[k] if W * j + k <= r else 0.0 for k in range(W))
    dot = warp_sum(dot)
    for j in range(lane, t // W, 32):
        if W * j <= r:
            row = [
                scale * opmath(v) * (opmath(g) - dot) for v, g in zip(outs[h, r, j], grad_outs[h, r, j], strict=True)
            ]
            grad_xs[h, r, j] = tuple(v if W * j + k <= r else 0.0 for k, v in enumerate(row))
        else:
            grad_xs[h, r, j] = tuple(0.0 for _ in range(W))


# --- GELU, by tanh ---

SCALE = math.sqrt(2 / math.pi)


@kernel
def gelu(i: Index["..."], x: Elements, out: Elements):
    v = opmath(x[i])
    out[i] = 0.5 * v * (1 + math.tanh(SCALE * (v + 0.044715 * v * v * v)))


@gelu.backward
def gelu_backward(i: Index["..."], x: Elements, grad_out: Elements, grad_x: Elements):
    v = opmath(x[i])
    tanh = math.tanh(SCALE * (v + 0.044715 * v * v * v))
    slope = 0.5 * (1 + tanh) + 0.5 * v * (1 - tanh * tanh) * SCALE * (1 + 3 * 0.044715 * v * v)
    grad_x[i] = slope * opmath(grad_out[i])


# --- the gradient of a bias ---

COLUMN_WARPS = 32


@kernel(
    size="32 * COLUMN_WARPS * ((c + 31) // 32)", block=32 * COLUMN_WARPS, launch_bounds=(32 * COLUMN_WARPS, 1)
)  # fmt: skip
def bias_gradient(grad_out: Matrix, grad_bias: Vector):
    """The sums of all columns. A block has 32 columns; a warp reads `W` rows of them at a time, `32 // W` packs each.

    The bound of one block a multiprocessor leaves a thread the registers for eight packs, which it loads at a time.
    """
    W = 16 // grad_out.itemsize
    grad_outs = grad_out.view(grad_out.shape[0], -1, W)
    part = shared((COLUMN_WARPS, 32), np.float32)
    packs = 32 // W  # of a row, in this block
    lane, warp = threadIdx.x % 32, threadIdx.x // 32
    j = blockIdx.x * packs + lane % packs
    total = [np.float32(0)] * W
    if j < grad_outs.shape[1]:
        for r in unroll(range(W * warp + lane // packs, len(grad_out), W * COLUMN_WARPS), 8):
            for k, v in enumerate(grad_outs[r, j]):
                total[k] += opmath(v)
    offset = 16
    while offset >= packs:  # lanes that are `packs` apart have the same columns
        for k in range(W):
            total[k] += shfl_xor_sync(FULL, total[k], offset)
        offset //= 2
    if lane < packs:
        for k in range(W):
            part[warp, W * lane + k] = total[k]
    syncthreads()
    c = blockIdx.x * 32 + lane
    if warp == 0 and c < len(grad_bias):
        grad_bias[c] = sum(part[w, lane] for w in range(COLUMN_WARPS))


# --- the classifier: softmax, cross entropy and its gradient ---


@kernel(size="1024 * rows", block=1024)
def classifier(
    logits: Matrix, targets: Int64[Tensor, "rows"], losses: Float32[Tensor, "rows"], grad_loss: float, vocabulary: int
):  # fmt: skip
    """The losses of all rows; the gradients of the logits, times `grad_loss`, take the place of the logits.

    Columns from `vocabulary` on are padding: they take no part, and their gradient is 0. The softmax is online. The
    second loop goes backwards: what the first one read last is still in the cache.
    """
    W = 16 // logits.itemsize
    packs = logits.view(logits.shape[0], -1, W)
    tops = shared(32, np.float32)
    totals = shared(32, np.float32)
    r, t = blockIdx.x, threadIdx.x
    target = targets[r]
    of_target = opmath(logits[r, target])
    top = np.float32(-math.inf)
    total = np.float32(0)
    for j in range(t, (vocabulary + W - 1) // W, 1024):
        row = [opmath(v) for v in packs[r, j]]
        if W * j + W > vocabulary:
            for k in range(W):
                if W * j + k >= vocabulary:
                    row[k] = -math.inf
        greatest = max(row)
        if greatest > top:
            total *= math.exp2(LOG2E * top - LOG2E * greatest)
            top = greatest
        total += sum(math.exp2(LOG2E * v - LOG2E * top) for v in row)
    greatest = warp_max(top)
    if top < greatest:
        total *= math.exp2(LOG2E * top - LOG2E * greatest)
    total = warp_sum(total)
    if t % 32 == 0:
        tops[t // 32] = greatest
        totals[t // 32] = total
    syncthreads()  # also: all threads have read the target's logit
    greatest = warp_max(tops[t % 32])
    total = warp_sum(totals[t % 32] * math.exp2(LOG2E * tops[t % 32] - LOG2E * greatest))
    shift = greatest + math.log(total)
    for j in range(packs.shape[1] - 1 - t, -1, -1024):
        row = [grad_loss * math.exp2(LOG2E * opmath(v) - LOG2E * shift) for v in packs[r, j]]
        if W * j + W > vocabulary:
            for k in range(W):
                if W * j + k >= vocabulary:
                    row[k] = 0.0
        packs[r, j] = tuple(row)
    syncthreads()  # the target's pack has been written
    if t == 0:
        losses[r] = shift - of_target
        logits[r, target] = grad_loss * (math.exp2(LOG2E * of_target - LOG2E * shift) - 1)


# --- the optimiser ---


def noise(i, seed):
    """32 bits at random: a hash of the element and the seed, Squirrel's, as in llm.c."""
    h = np.uint32(i) * np.uint32(0xD2A80A3F) + np.uint32(seed)
    h ^= h >> 9
    h += np.uint32(0xA884F197)
    h ^= h >> 11
    h *= np.uint32(0x6C736F4B)
    h ^= h >> 13
    h += np.uint32(0xB79F3ABB)
    h ^= h >> 15
    h *= np.uint32(0x1B56C4F5)
    return h ^ (h >> 17)


def rounded_at_random(value, i, seed):
    """One of the two bfloat16 around `value`, the nearer one more often: over many steps small updates are not lost."""
    bits = value.view(np.uint32) + (noise(i, seed) & np.uint32(0xFFFF))
    return (bits & np.uint32(0xFFFF0000)).view(np.float32)


def clipped(g, squares, greatest_norm):
    """The gradient scaled such that the norm of all, the root of `squares`, is at most `greatest_norm`."""
    norm = math.sqrt(squares)
    return g * (greatest_norm / norm) if norm > greatest_norm else g


@kernel
def adamw(
    i: Index["n"],
    parameters: Float32[Tensor, "n"], gradients: Float32[Tensor, "n"], m: Float32[Tensor, "n"], v: Float32[Tensor, "n"],
    squares: Float32[Tensor, "1"], step: int, decayed: int, lr: float,
    *, beta1: float = 0.9, beta2: float = 0.95, eps: float = 1e-8, weight_decay: float = 0.1,
    greatest_norm: float = 1.0,
):  # fmt: skip
    """One step of AdamW over a flat buffer; weight decay applies to its first `decayed` elements."""
    g = clipped(gradients[i], squares[0], greatest_norm)
    m[i] = beta1 * m[i] + (1 - beta1) * g
    v[i] = beta2 * v[i] + (1 - beta2) * g * g
    p = parameters[i]
    if i < decayed:
        p *= 1 - lr * weight_decay
    parameters[i] = p - lr * (m[i] / (1 - beta1**step)) / (math.sqrt(v[i] / (1 - beta2**step)) + eps)


@kernel
def adamw_of_halves(
    i: Index["n"],
    parameters: BFloat16[Tensor, "n"], master: Float32[Tensor, "n"], gradients: BFloat16[Tensor, "n"],
    m: Float32[Tensor, "n"], v: Float32[Tensor, "n"],
    squares: Float32[Tensor, "1"], step: int, decayed: int, seed: int, lr: float,
    *, beta1: float = 0.9, beta2: float = 0.95, eps: float = 1e-8, weight_decay: float = 0.1,
    greatest_norm: float = 1.0,
):  # fmt: skip
    """The same with master weights in float32, from which the parameters are rounded at random."""
    g = clipped(opmath(gradients[i]), squares[0], greatest_norm)
    m[i] = beta1 * m[i] + (1 - beta1) * g
    v[i] = beta2 * v[i] + (1 - beta2) * g * g
    p = master[i]
    if i < decayed:
        p *= 1 - lr * weight_decay
    p -= lr * (m[i] / (1 - beta1**step)) / (math.sqrt(v[i] / (1 - beta2**step)) + eps)
    master[i] = p
    parameters[i] = rounded_at_random(p, i, seed)


@kernel(size="blocks * THREADS", block=THREADS)
def sum_of_squares(
    x: Numbers, out: Float32[Tensor, "1"], partial: Float32[Tensor, "blocks"],
    ticket: Int32[Tensor, "1"],
):  # fmt: skip
    """The square of the norm of one buffer."""
    part = shared(BLOCK_WARPS, np.float32)
    is_last = shared(1, np.int32)
    W = 16 // x.itemsize
    packs = x.view(-1, W)
    total = np.float32(0)
    for i in range(blockIdx.x * THREADS + threadIdx.x, len(packs), gridDim.x * THREADS):
        total += sum(opmath(v) ** 2 for v in packs[i])
    total = block_sum(part, total)
    if threadIdx.x == 0:
        partial[blockIdx.x] = total
    if is_last_block(ticket, gridDim.x, is_last):
        total = np.float32(0)
        for k in range(threadIdx.x, len(partial), THREADS):
            total += partial[k]
        total = block_sum(part, total)
        if threadIdx.x == 0:
            out[0] = total


def main() -> None:
    """Compare each kernel with its Python, on small arguments in both dtypes."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    for dtype in (torch.float32, torch.bfloat16):
        wte, wpe, x, y = (torch.randn(size, 64, device=device).to(dtype) for size in (9, 5, 10, 10))
        tokens = torch.tensor([[4, 1, 4, 8, 1], [4, 4, 0, 7, 4]], device=device)
        order = tokens.flatten().argsort(stable=True).int()
        ends = torch.tensor([1, 3, 0, 8, 0, 0, 0, 0, 9, 10], dtype=torch.int32, device=device)
        zeros, tickets = torch.zeros(2, 64, device=device), torch.zeros(2, dtype=torch.int32, device=device)
        print(encoder.check(tokens, wte, wpe))
        print(position_gradient.check(x.view(2, 5, 64)))
        print(token_gradient.check(tokens.flatten(), order, ends, x, wte))
        weight, bias = wpe[:2].clone()
        _, mean, rstd = layer_norm(x, weight, bias)
        print(layer_norm.check(x, weight, bias))
        print(residual_layer_norm.check(x, y, weight, bias))
        partial = zeros.new_empty(2, 128)
        of_norm = {"x": x, "weight": weight, "mean": mean, "rstd": rstd, "grad_out": y, "partial": partial}
        print(layer_norm_backward.check(**of_norm, grad_total=y))
        scores, grad = torch.randn(2, 2, 40, 40, device=device).to(dtype)
        print(causal_softmax.check(scores, scale=0.5))
        print(causal_softmax_backward.check(causal_softmax(scores, scale=0.5), grad, scale=0.5))
        print(gelu.check(x))
        print(gelu_backward.check(x, y))
        print(bias_gradient.check(x))
        logits = torch.randn(2, 640, device=device).to(dtype)
        print(classifier.check(logits, tokens[0, :2], grad_loss=0.5, vocabulary=600))
        print(sum_of_squares.check(x.flatten(), partial=zeros[:, 0].clone(), ticket=tickets[:1]))
        p, m, squares = x.float().flatten(), y.float().flatten(), torch.ones(1, device=device)
        numbers = {"m": m, "v": m.abs(), "squares": squares, "step": 3, "decayed": 100, "lr": 1e-3}
        if dtype == torch.float32:
            print(adamw.check(parameters=p, gradients=m, **numbers))
        else:
            halves = {"parameters": x.flatten(), "master": p, "gradients": y.flatten(), "seed": 3}
            print(adamw_of_halves.check(**halves, **numbers))


if __name__ == "__main__":
    main()
