"""The kernels that `numba_cuda.py` measures, as people write them for Numba."""

import math

import numpy as np
from numba import cuda, float32

TILE = 16


@cuda.jit
def vector_add(a, b, out):
    i = cuda.grid(1)
    if i < out.shape[0]:
        out[i] = a[i] + b[i]


@cuda.jit
def sigmoid_forward(x, n, out):
    i = cuda.grid(1)
    if i >= n:
        return
    if x[i] >= 0:
        out[i] = np.float32(1) / (np.float32(1) + math.exp(-x[i]))
    else:
        out[i] = math.exp(x[i]) / (np.float32(1) + math.exp(x[i]))


@cuda.jit
def matrix_vector(m, v, out):
    row = cuda.grid(1)
    if row < m.shape[0]:
        total = np.float32(0)
        for k in range(m.shape[1]):
            total += m[row, k] * v[k]
        out[row] = total


@cuda.jit
def histogram(x, bins):
    for i in range(cuda.grid(1), x.shape[0], cuda.gridsize(1)):
        cuda.atomic.add(bins, x[i], 1)


@cuda.jit
def tiled_matmul(a, b, out):
    left = cuda.shared.array((TILE, TILE), float32)
    right = cuda.shared.array((TILE, TILE), float32)
    column, row = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    total = np.float32(0)
    for start in range(0, a.shape[1], TILE):
        left[ty, tx] = a[row, start + tx]
        right[ty, tx] = b[start + ty, column]
        cuda.syncthreads()
        for k in range(TILE):
            total += left[ty, k] * right[k, tx]
        cuda.syncthreads()
    out[row, column] = total
