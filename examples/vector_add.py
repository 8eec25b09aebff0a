"""The sum of two vectors: the smallest kernel.

    python examples/vector_add.py

`vector_add` is called once for each element. `vector_add_block` computes its index from block and thread, and has no
guard for the threads past the end: the translator adds it and says so.
"""

import torch
from jaxtyping import Float32
from torch import Tensor

from py2cu import Index, blockDim, blockIdx, kernel, threadIdx


@kernel
def vector_add(i: Index["n"], a: Float32[Tensor, "n"], b: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    out[i] = a[i] + b[i]


@kernel(size="n")
def vector_add_block(a: Float32[Tensor, "n"], b: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    i = blockIdx.x * blockDim.x + threadIdx.x
    out[i] = a[i] + b[i]


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    a, b = torch.randn(2, 1_000_000, device=device)

    assert torch.equal(vector_add(a, b), a + b)
    assert torch.equal(vector_add_block(a, b), a + b)

    out = torch.empty_like(a)
    vector_add[a.numel() // 256 + 1, 256](a, b, out)  # the launch by hand: blocks, threads of a block
    assert torch.equal(out, a + b)

    print(f"Added {a.numel()} numbers on {device}, bit for bit as torch does")
    print(vector_add.check())
    print(vector_add_block.check())


if __name__ == "__main__":
    main()
