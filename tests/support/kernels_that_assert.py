"""Kernels whose assertions fail on the CPU: an element, a block, pieces between barriers, blocks that wait."""

import numpy as np
from jaxtyping import Float32, Int32
from torch import Tensor

from py2cu import (
    Constexpr,
    Index,
    atomic,
    blockDim,
    blockIdx,
    kernel,
    shared,
    syncgrid,
    syncthreads,
    threadfence,
    threadIdx,
)


def checked(v):
    assert v > -5, 'above "-5"'
    return v


@kernel
def of_elements(r: Index["h"], c: Index["w"], x: Float32[Tensor, "h w"], out: Float32[Tensor, "h w"]):
    assert x[r, c] != 0
    out[r, c] = checked(x[r, c])


@kernel
def of_values(i: Index["n"], x: Int32[Tensor, "n"], y: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    assert x[i] < 8, f"{i}: {x[i]:3d} of {len(x)}, 100% {y[i]:.2f}"
    assert y[i] >= 0, x[i]
    assert i < 5, f"at most {5}"
    out[i] = y[i]


@kernel
def of_a_template(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"], low: Constexpr[int]):
    assert x[i] > low, "above the limit"
    out[i] = x[i]


@kernel(size="n", block=32)
def of_blocks(x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    i = blockIdx.x * blockDim.x + threadIdx.x
    if i < len(x):
        assert x[i] > 0, "positive"
        out[i] = x[i]


@kernel(size="n", block=32)
def of_pieces(x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    tile = shared(32, np.float32)
    i = blockIdx.x * blockDim.x + threadIdx.x
    tile[threadIdx.x] = x[i] if i < len(x) else 1
    syncthreads()
    v = checked(tile[31 - threadIdx.x])
    assert v > 0, "positive"
    syncthreads()
    if i < len(x):
        out[i] = v


@kernel(size="n", block=32)
def of_a_grid(x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    i = blockIdx.x * blockDim.x + threadIdx.x
    if i < len(x):
        assert x[i] > 0, "positive"
        out[i] = x[i]
    syncgrid()
    if i < len(x):
        out[i] += x[len(x) - 1 - i]
    syncgrid()


@kernel(size="n", block=32, init={"turn": 0})
def of_blocks_in_order(x: Float32[Tensor, "n"], out: Float32[Tensor, "n"], turn: Int32[Tensor, "1"]):
    """Each block waits for those before it."""
    i = blockIdx.x * blockDim.x + threadIdx.x
    if threadIdx.x == 0:
        while atomic.add(turn, 0, 0) < blockIdx.x:
            pass
        threadfence()
    syncthreads()
    if i < len(x):
        assert x[i] > 0, "positive"
        out[i] = x[i]
    syncthreads()
    if threadIdx.x == 0:
        threadfence()
        atomic.add(turn, 0, 1)


@kernel(size="n", block=32, init={"turn": 0})
def of_threads_in_order(x: Float32[Tensor, "n"], out: Float32[Tensor, "n"], turn: Int32[Tensor, "(n+31)//32"]):
    """Each thread waits for the one behind it."""
    i = blockIdx.x * blockDim.x + threadIdx.x
    if i >= len(x):
        return
    last = min(blockDim.x, len(x) - blockIdx.x * blockDim.x) - 1
    while atomic.add(turn, blockIdx.x, 0) != last - threadIdx.x:
        pass
    assert x[i] > 0, "positive"
    out[i] = x[i]
    atomic.add(turn, blockIdx.x, 1)


@kernel(size="n", block=32, init={"turn": 0})
def of_a_grid_in_order(x: Float32[Tensor, "n"], out: Float32[Tensor, "n"], turn: Int32[Tensor, "1"]):
    i = blockIdx.x * blockDim.x + threadIdx.x
    if threadIdx.x == 0:
        while atomic.add(turn, 0, 0) < blockIdx.x:
            pass
        threadfence()
    if i < len(x):
        assert x[i] > 0, "positive"
        out[i] = x[i]
    if threadIdx.x == 0:
        threadfence()
        atomic.add(turn, 0, 1)
    syncgrid()
