"""The kernels that are measured."""

import math

from jaxtyping import Float32, UInt8
from torch import Tensor

from py2cu import Index, blockIdx, kernel, shared, syncthreads, threadIdx


@kernel
def rgb2grey(i: Index["n"], x: UInt8[Tensor, "3 n"], out: UInt8[Tensor, "n"]):
    """Luminance of a planar RGB picture."""
    out[i] = 0.2989 * x[0, i] + 0.5870 * x[1, i] + 0.1140 * x[2, i]


@kernel
def add(i: Index["n"], a: Float32[Tensor, "n"], b: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    out[i] = a[i] + b[i]


@kernel
def sigmoid(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    if x[i] >= 0:
        res = 1.0 / (1.0 + math.exp(-x[i]))
    else:
        res = math.exp(x[i]) / (1.0 + math.exp(x[i]))
    out[i] = res


@kernel
def matvec(r: Index["h"], m: Float32[Tensor, "h w"], v: Float32[Tensor, "w"], out: Float32[Tensor, "h"]):
    o = 0.0
    for i in range(m.shape[1]):
        o += m[r, i] * v[i]
    out[r] = o


@kernel(size=("w", "h"), block=(16, 16))
def matmul(
    blockIdx, threadIdx, blockDim, m: Float32[Tensor, "h k"], n: Float32[Tensor, "k w"], out: Float32[Tensor, "h w"],
    h: int, w: int, k: int,
):  # fmt: skip
    r = blockIdx.y * blockDim.y + threadIdx.y
    c = blockIdx.x * blockDim.x + threadIdx.x
    if r >= h or c >= w:
        return
    o = 0.0
    for i in range(k):
        o += m[r, i] * n[i, c]
    out[r, c] = o


@kernel
def matmul_by_index(
    r: Index["h"], c: Index["w"], m: Float32[Tensor, "h k"], n: Float32[Tensor, "k w"], out: Float32[Tensor, "h w"]
):
    o = 0.0
    for i in range(m.shape[1]):
        o += m[r, i] * n[i, c]
    out[r, c] = o


@kernel(size=("w", "h"), block=(16, 16))
def matmul_by_tiles(
    m: Float32[Tensor, "h k"], n: Float32[Tensor, "k w"], out: Float32[Tensor, "h w"], h: int, w: int, k: int
):
    ms = shared((16, 16), "float32")
    ns = shared((16, 16), "float32")
    tr, tc = threadIdx.y, threadIdx.x
    r = blockIdx.y * 16 + tr
    c = blockIdx.x * 16 + tc
    o = 0.0
    for start in range(0, k, 16):
        ms[tr, tc] = m[r, start + tc] if r < h and start + tc < k else 0.0
        ns[tr, tc] = n[start + tr, c] if start + tr < k and c < w else 0.0
        syncthreads()
        for i in range(16):
            o += ms[tr, i] * ns[i, tc]
        syncthreads()
    if r < h and c < w:
        out[r, c] = o
