"""Attention without the matrix of all weights: keys come by tiles, and the softmax is corrected as they come.

    python examples/attention.py

softmax(q k^T) v needs the maximum and the sum of each row of q k^T, which would not fit in fast memory. The online
softmax keeps, for each query, the maximum so far, the sum of exp(score - maximum), and the values weighted likewise.
When a new key beats the maximum, what was added up so far is scaled down. A thread has one query; the threads of a
block load tiles of keys and values to shared memory together.
"""

import math

import numpy as np
import torch
from jaxtyping import Float32
from torch import Tensor

from py2cu import Constexpr, blockIdx, kernel, local, shared, syncthreads, threadIdx

QUERIES = 64  # a block, and so threads
KEYS = 32  # a tile


@kernel(size=("queries", "heads"), block=(QUERIES, 1))
def attention(
    q: Float32[Tensor, "heads queries d"], k: Float32[Tensor, "heads keys d"], v: Float32[Tensor, "heads keys d"],
    out: Float32[Tensor, "heads queries d"], queries: int, keys: int, d: Constexpr[int] = 32,
):  # fmt: skip
    """softmax(q k^T / sqrt(d)) v, for each head."""
    ks = shared((KEYS, d), np.float32)
    vs = shared((KEYS, d), np.float32)
    query = local(d, np.float32)
    result = local(d, np.float32)
    head = blockIdx.y
    t = threadIdx.x
    i = blockIdx.x * QUERIES + t
    scale = np.float32(1.0 / math.sqrt(d))
    for c in range(d):
        query[c] = q[head, i, c] * scale if i < queries else 0.0
        result[c] = 0.0
    top = np.float32(-math.inf)
    total = np.float32(0.0)
    for start in range(0, keys, KEYS):
        count = min(KEYS, keys - start)
        for at in range(t, count * d, QUERIES):
            ks[at // d, at % d] = k[head, start + at // d, at % d]
            vs[at // d, at % d] = v[head, start + at // d, at % d]
        syncthreads()
        for j in range(count):
            score = np.float32(0.0)
            for c in range(d):
                score += query[c] * ks[j, c]
            if score > top:
                # The first time this is exp(-inf), 0, and there is nothing to scale
                correction = math.exp(top - score)
                total *= correction
                for c in range(d):
                    result[c] *= correction
                top = score
            weight = math.exp(score - top)
            total += weight
            for c in range(d):
                result[c] += weight * vs[j, c]
        syncthreads()  # before the next tiles are written
    if i < queries:
        for c in range(d):
            out[head, i, c] = result[c] / total


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    for heads, queries, keys, d in (8, 200, 300, 32), (2, 65, 33, 64):
        q = torch.randn(heads, queries, d, device=device)
        k, v = torch.randn(2, heads, keys, d, device=device)
        theirs = torch.nn.functional.scaled_dot_product_attention(q, k, v)
        torch.testing.assert_close(attention(q, k, v, d=d), theirs, rtol=1e-4, atol=1e-5)
        print(f"{heads} heads, {queries} queries, {keys} keys of {d} on {device}: as torch's")
    print(attention.check())


if __name__ == "__main__":
    main()
