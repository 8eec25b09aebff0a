"""A matrix product: each thread computes one element.

    python examples/matmul.py

A block kernel: it sees blocks and threads and guards the edges itself. `size=` says how many threads are wanted in x
and y, so it is called like any function. The matrices are the handwritten digits of scikit-learn.
"""

import torch
from jaxtyping import Float32
from sklearn.datasets import load_digits
from torch import Tensor

from py2cu import kernel


@kernel(size=("w", "h"), block=(16, 16))
def matmul(
    blockIdx, threadIdx, blockDim, m: Float32[Tensor, "h k"], n: Float32[Tensor, "k w"], out: Float32[Tensor, "h w"],
    h: int, w: int, k: int,
):  # fmt: skip
    """Matrix product, one element a thread."""
    r = blockIdx.y * blockDim.y + threadIdx.y
    c = blockIdx.x * blockDim.x + threadIdx.x
    if r >= h or c >= w:
        return
    o = 0.0
    for i in range(k):
        o += m[r, i] * n[i, c]
    out[r, c] = o


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    digits = torch.from_numpy(load_digits().data).to(device, torch.float32) / 16  # 1797 pictures of 64 pixels
    weights = torch.randn(64, 10, device=device)

    for m, n in [(digits, weights), (digits.T.contiguous(), digits)]:
        torch.testing.assert_close(matmul(m, n), m @ n, rtol=1e-4, atol=1e-4)
        print(f"{m.shape[0]} x {m.shape[1]} by {n.shape[0]} x {n.shape[1]} on {device}: as torch's matmul")
    print(matmul.check())


if __name__ == "__main__":
    main()
