"""Host functions: what launches a kernel, in Python and in C++.

    python examples/launchers.py

The kernels see the launch. The functions under `@host` check the arguments, allocate the output, compute the grid and
launch; `py2cu translate examples/launchers.py` writes them to `launchers_host.cpp`, as libtorch code. In a program,
they run as Python until their library is built.
"""

import torch
from jaxtyping import Float32, UInt8
from torch import Tensor

from py2cu import blockDim, blockIdx, host, kernel, threadIdx

THREADS = 256
TILE = 16


@kernel
def rgb2grey_k(x: UInt8[Tensor, "3 n"], out: UInt8[Tensor, "n"]):
    """Luminance of a planar RGB picture."""
    i = blockIdx.x * blockDim.x + threadIdx.x
    if i < len(out):
        out[i] = 0.2989 * x[0, i] + 0.5870 * x[1, i] + 0.1140 * x[2, i]


@host
def rgb2grey_pybk(x: UInt8[Tensor, "3 h w"]) -> Tensor:
    """The grey picture of a planar one."""
    _, h, w = x.shape
    n = h * w
    out = torch.empty(n, dtype=x.dtype, device=x.device)
    blocks = (n + THREADS - 1) // THREADS
    rgb2grey_k[blocks, THREADS](x.flatten(1), out)
    return out.view(h, w)


@kernel
def matmul_k(m: Float32[Tensor, "h k"], n: Float32[Tensor, "k w"], out: Float32[Tensor, "h w"]):
    r = blockIdx.y * blockDim.y + threadIdx.y
    c = blockIdx.x * blockDim.x + threadIdx.x
    if r >= out.shape[0] or c >= out.shape[1]:
        return
    o = 0.0
    for i in range(m.shape[1]):
        o += m[r, i] * n[i, c]
    out[r, c] = o


@host
def matmul_2d(m: Float32[Tensor, "h k"], n: Float32[Tensor, "k2 w"]) -> Tensor:
    """The product of two matrices."""
    h, k = m.shape
    k2, w = n.shape
    assert k == k2, "Inner dims must match!"
    out = torch.empty(h, w, dtype=m.dtype, device=m.device)
    threads = (TILE, TILE)
    blocks = ((w + TILE - 1) // TILE, (h + TILE - 1) // TILE)
    matmul_k[blocks, threads](m, n, out)
    return out


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    picture = torch.randint(0, 256, (3, 64, 48), dtype=torch.uint8, device=device)
    print(f"A grey picture of {tuple(rgb2grey_pybk(picture).shape)} on {device}")
    m, n = torch.rand(50, 30, device=device), torch.rand(30, 70, device=device)
    torch.testing.assert_close(matmul_2d(m, n), m @ n)
    print("A product of two matrices: as torch's")
    for launcher in rgb2grey_pybk, matmul_2d:
        launcher.build()
        print(launcher.check())
    try:
        matmul_2d(m, m)
    except AssertionError as error:
        print(f"AssertionError: {error}")


if __name__ == "__main__":
    main()
