"""A kernel for each way in which the CPU's text starts threads."""

from jaxtyping import Float32, Int32
from torch import Tensor

from py2cu import Constexpr, Index, atomic, blockIdx, kernel, threadfence, threadIdx


@kernel
def scaled(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    out[i] = 2 * x[i]


@kernel(size="rows", block=2)
def summed(blockIdx, threadIdx, blockDim, x: Float32[Tensor, "rows n"], out: Float32[Tensor, "rows"]):
    row = blockIdx.x * blockDim.x + threadIdx.x
    if row < len(out):
        total = 0.0
        for k in range(x.shape[1]):
            total += x[row, k]
        out[row] = total


@kernel
def grown(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"], by: Constexpr[int]):
    out[i] = x[i] + by


@kernel(size="n", block=1, init={"count": 0})
def taken_in_turns(turn: Int32[Tensor, "n"], count: Int32[Tensor, ""]):
    """Each block waits until all before it have counted."""
    if threadIdx.x == 0:
        while atomic.add(count, (), 0) != blockIdx.x:
            pass
        threadfence()
        turn[blockIdx.x] = 1
        atomic.add(count, (), 1)
