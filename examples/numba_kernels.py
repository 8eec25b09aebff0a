"""Kernels of Numba's tutorials as they stand, with `import py2cu.numba as cuda` in place of `from numba import cuda`.

    python examples/numba_kernels.py

Launched, each takes its types from its arguments, as under Numba. Translated, it takes them from a signature:

    py2cu translate examples/numba_kernels.py --kernel cu_mv_product --signature "(f4[:, ::1], f4[::1], f4[::1])"
"""

import math

import numpy as np
import torch

import py2cu.numba as cuda

TPB = 16

# fmt: off

@cuda.jit
def cu_add_vectors(a, b, u):
    # Getting this thread absolute position, i.e., which element this thread will calculate
    tidx = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x # or shortcut: cuda.grid(1)

    # Is this thread in bounds?
    if tidx < a.shape[0]:
        u[tidx] += a[tidx] + b[tidx]


@cuda.jit
def cu_mv_product(m, v, u):
    tidx = cuda.grid(1)

    # Is this thread in bounds?
    if tidx < m.shape[0]:
        # Creating temporary handle for the result
        tmp  = 0.

        # Doing scalar product between row `pos` in A and v
        for i in range(m.shape[1]):
            tmp += m[tidx, i] * v[i]

        # Putting the result into u
        u[tidx] = tmp


@cuda.jit
def sigmoid_forward(input, input_len, out):  # noqa: A002
    cbi,cbd,tid = cuda.blockIdx,cuda.blockDim,cuda.threadIdx
    idx = cbi.x * cbd.x + tid.x

    if idx >= input_len:
        return

    if input[idx] >= 0:
        res = 1. / ( 1. + math.exp(-input[idx]) )
    else:
        res = math.exp(input[idx]) / ( 1. + math.exp(input[idx]) )

    out[idx] = res


@cuda.jit
def sigmoid_backward(input, input_len, out):  # noqa: A002
    cbi,cbd,tid = cuda.blockIdx,cuda.blockDim,cuda.threadIdx
    idx = cbi.x * cbd.x + tid.x

    if idx >= input_len:
        return

    out[idx] = input[idx]*(1-input[idx])

# fmt: on


@cuda.jit
def tiled_matmul(A, B, C):
    shared = cuda.shared.array(0, dtype=np.float32)
    tw = cuda.blockDim.x
    a, b = shared[: tw * tw], shared[tw * tw :]
    c, r = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    total = 0.0
    for start in range(0, A.shape[1], tw):
        a[ty * tw + tx] = A[r, start + tx] if r < A.shape[0] and start + tx < A.shape[1] else 0.0
        b[ty * tw + tx] = B[start + ty, c] if start + ty < B.shape[0] and c < B.shape[1] else 0.0
        cuda.syncthreads()
        for k in range(tw):
            total += a[ty * tw + k] * b[k * tw + tx]
        cuda.syncthreads()
    if r < C.shape[0] and c < C.shape[1]:
        C[r, c] = total


def cdiv(a, b):
    return (a + b - 1) // b


class Sigmoid(torch.autograd.Function):
    """The tutorial's launcher of torch tensors, forward and backward."""

    @staticmethod
    def forward(ctx, x):
        out = torch.zeros_like(x)
        sigmoid_forward[cdiv(x.numel(), TPB), TPB](x, x.numel(), out)
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx, grad):
        (out,) = ctx.saved_tensors
        slope = torch.zeros_like(out)
        sigmoid_backward[cdiv(out.numel(), TPB), TPB](out, out.numel(), slope)
        return grad * slope


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    a, b = torch.randn(2, 1000, device=device)
    u = torch.zeros(1000, device=device)
    cu_add_vectors.forall(1000)(a, b, u)
    torch.testing.assert_close(u, a + b)

    m, v, product = np.random.rand(70, 50), np.random.rand(50), np.zeros(70)
    cu_mv_product[cdiv(70, 32), 32](m, v, product)
    np.testing.assert_allclose(product, m @ v)

    x = torch.tensor([0.3, -100000, 100000, 0.5, -0.5], device=device, requires_grad=True)
    (gradient,) = torch.autograd.grad(Sigmoid.apply(x).sum(), x)
    (expected,) = torch.autograd.grad(torch.sigmoid(x).sum(), x)
    torch.testing.assert_close(gradient, expected)

    left, right = torch.randn(50, 40, device=device), torch.randn(40, 70, device=device)
    out = torch.zeros(50, 70, device=device)
    shared_bytes = 2 * TPB * TPB * 4
    tiled_matmul[(cdiv(70, TPB), cdiv(50, TPB)), (TPB, TPB), 0, shared_bytes](left, right, out)
    torch.testing.assert_close(out, left @ right, rtol=1e-4, atol=1e-4)
    print(f"The five kernels on {device}: as torch and NumPy compute them")
    print(sigmoid_forward.kernel("(float32[::1], int32, float32[::1])").check())


if __name__ == "__main__":
    main()
