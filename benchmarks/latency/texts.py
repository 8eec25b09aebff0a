"""The files that are edited, with a place for the constant that an edit changes."""

from __future__ import annotations

from typing import Final

HEAD: Final = """\
import math
from jaxtyping import Float32, UInt8
from torch import Tensor
from py2cu import Index, blockIdx, kernel, shared, syncthreads, threadIdx

EDITED = {edited}
"""
EDITS: Final = {
    "add": """
@kernel
def add(i: Index["n"], a: Float32[Tensor, "n"], b: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    out[i] = a[i] + b[i] + EDITED
""",
    "grayscale": """
@kernel
def grayscale(i: Index["n"], x: UInt8[Tensor, "3 n"], out: UInt8[Tensor, "n"]):
    out[i] = int(0.2989 * x[0, i] + 0.587 * x[1, i] + 0.114 * x[2, i] + EDITED)
""",
    "tiled matmul": """
T = 16


@kernel(block=(T, T), size=("w", "h"))
def matmul(a: Float32[Tensor, "h k"], b: Float32[Tensor, "k w"], out: Float32[Tensor, "h w"]):
    ty, tx = threadIdx.y, threadIdx.x
    r, c = blockIdx.y * T + ty, blockIdx.x * T + tx
    left, right = shared((T, T), "float32"), shared((T, T), "float32")
    total = EDITED
    for start in range(0, a.shape[1], T):
        left[ty, tx] = a[r, start + tx] if r < a.shape[0] and start + tx < a.shape[1] else 0.0
        right[ty, tx] = b[start + ty, c] if c < b.shape[1] and start + ty < a.shape[1] else 0.0
        syncthreads()
        for k in range(T):
            total += left[ty, k] * right[k, tx]
        syncthreads()
    if r < out.shape[0] and c < out.shape[1]:
        out[r, c] = total
""",
    "softmax": """
THREADS = 128


@kernel(block=THREADS, size="rows * 128")
def softmax(x: Float32[Tensor, "rows cols"], out: Float32[Tensor, "rows cols"]):
    part = shared(THREADS, "float32")
    t, r = threadIdx.x, blockIdx.x
    most = -math.inf
    for c in range(t, x.shape[1], THREADS):
        most = max(most, x[r, c])
    part[t] = most
    syncthreads()
    half = THREADS // 2
    while half > 0:
        if t < half:
            part[t] = max(part[t], part[t + half])
        syncthreads()
        half //= 2
    most = part[0]
    syncthreads()
    total = EDITED
    for c in range(t, x.shape[1], THREADS):
        total += math.exp(x[r, c] - most)
    part[t] = total
    syncthreads()
    half = THREADS // 2
    while half > 0:
        if t < half:
            part[t] += part[t + half]
        syncthreads()
        half //= 2
    for c in range(t, x.shape[1], THREADS):
        out[r, c] = math.exp(x[r, c] - most) / part[0]
""",
    "forward and backward": """
@kernel
def squared(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    out[i] = x[i] * x[i] + EDITED * x[i]


@squared.backward
def gradient(
    i: Index["n"], x: Float32[Tensor, "n"], grad_out: Float32[Tensor, "n"], grad_x: Float32[Tensor, "n"]
):
    grad_x[i] = grad_out[i] * (2 * x[i] + EDITED)
""",
}
TRITON: Final = """\
import triton
import triton.language as tl


@triton.jit
def add(a, b, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(a + i, i < n) + tl.load(b + i, i < n) + {edited}, i < n)
"""
