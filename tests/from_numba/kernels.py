"""Kernels as people write them for Numba, each with a launch: what runs under Numba's simulator runs under py2cu.

`CASES` maps the name of a kernel to its grid, its block, and a function that makes its arguments. Kernels in `OWN` use
names that Numba's simulator lacks: py2cu's is their reference.
"""

from __future__ import annotations

import math

import numba
import numpy as np
from numba import cuda, float32, int32, int64, void

TPB = 8
SCALE = 3
TABLE = (1, 4, 9, 16)
WEIGHTS = ((1, 2), (3, 4))

CASES = {}
OWN = set()


def case(grid, block, *arguments, own=False, shared=0):
    """Enter the kernel below, under `@cuda.jit`, with its launch."""

    def enter(kernel):
        name = kernel.py_func.__name__ if hasattr(kernel, "py_func") else kernel.fn.__name__
        launch = (grid, block, 0, shared) if shared else (grid, block)
        CASES[name] = kernel, launch, arguments
        if own:
            OWN.add(name)
        return kernel

    return enter


def floats(*shape):
    return lambda: np.linspace(-3, 3, math.prod(shape), dtype=np.float32).reshape(shape)


def positive(*shape):
    return lambda: np.linspace(0.1, 4, math.prod(shape), dtype=np.float32).reshape(shape)


def doubles(*shape):
    return lambda: np.linspace(-2, 5, math.prod(shape)).reshape(shape)


def ints(*shape, dtype=np.int32):
    return lambda: ((np.arange(math.prod(shape)) * 37) % 101 - 50).astype(dtype).reshape(shape)


def naturals(*shape, dtype=np.int32, below=8):
    return lambda: ((np.arange(math.prod(shape)) * 13) % below).astype(dtype).reshape(shape)


def zeros(*shape, dtype=np.float32):
    return lambda: np.zeros(shape, dtype)


def number(value):
    return lambda: value


# --- where a thread is ---


@case(4, 16, floats(50), floats(50), zeros(50))
@cuda.jit
def vector_add(a, b, u):
    tidx = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    if tidx < a.shape[0]:
        u[tidx] += a[tidx] + b[tidx]


@case(4, 16, floats(50), zeros(50))
@cuda.jit
def by_grid(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = x[i] * x[i]


@case((3, 2), (4, 8), floats(10, 12), zeros(10, 12))
@cuda.jit
def by_grid_2(x, out):
    i, j = cuda.grid(2)
    if i < x.shape[0] and j < x.shape[1]:
        out[i, j] = x[i, j] + i * 2 + j


@case((2, 2, 2), (2, 2, 2), zeros(4, 4, 4, dtype=np.int32))
@cuda.jit
def by_grid_3(out):
    i, j, k = cuda.grid(3)
    if i < out.shape[0] and j < out.shape[1] and k < out.shape[2]:
        out[i, j, k] = 100 * i + 10 * j + k


@case((2, 2), (3, 4), ints(5, 7), zeros(5, 7, dtype=np.int32))
@cuda.jit
def tuple_as_index(x, out):
    at = cuda.grid(2)
    if at[0] < x.shape[0] and at[1] < x.shape[1]:
        out[at] = x[at] * 3
        cuda.atomic.max(out, at, x[at[0], at[1]] + 40)


@case((2, 2, 2), (2, 2, 2), zeros(4, 4, 4, dtype=np.int32))
@cuda.jit
def grid_as_tuple(out):
    at = cuda.grid(3)
    if at[0] < 4 and at[1] < 4 and at[2] < 4:
        out[at[0], at[1], at[2]] = at[0] + at[1] * at[2]


@case(2, 8, floats(100), zeros(100))
@cuda.jit
def grid_stride(x, out):
    for i in range(cuda.grid(1), x.shape[0], cuda.gridsize(1)):
        out[i] = x[i] + x[i]


@case((2, 3), (4, 2), zeros(2, dtype=np.int64))
@cuda.jit
def grid_sizes(out):
    w, h = cuda.gridsize(2)
    i, j = cuda.grid(2)
    if i == 0 and j == 0:
        out[0] = w
        out[1] = h


@case(3, 10, floats(25), number(25), zeros(25))
@cuda.jit
def sigmoid_forward(input, input_len, out):  # noqa: A002
    cbi, cbd, tid = cuda.blockIdx, cuda.blockDim, cuda.threadIdx
    idx = cbi.x * cbd.x + tid.x

    if idx >= input_len:
        return

    if input[idx] >= 0:
        res = np.float32(1.0) / (np.float32(1.0) + math.exp(-input[idx]))
    else:
        res = math.exp(input[idx]) / (np.float32(1.0) + math.exp(input[idx]))

    out[idx] = res


@case(3, 10, floats(25), number(25), zeros(25))
@cuda.jit
def sigmoid_backward(input, input_len, out):  # noqa: A002
    cbi, cbd, tid = cuda.blockIdx, cuda.blockDim, cuda.threadIdx
    idx = cbi.x * cbd.x + tid.x
    if idx >= input_len:
        return
    out[idx] = input[idx] * (1 - input[idx])


@case((2, 2), (2, 3), zeros(24, dtype=np.int32))
@cuda.jit
def all_axes(out):
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    block = cuda.blockIdx.x + cuda.blockIdx.y * cuda.gridDim.x
    i = block * (cuda.blockDim.x * cuda.blockDim.y) + ty * cuda.blockDim.x + tx
    out[i] = tx + 10 * ty + 100 * cuda.blockIdx.x + 1000 * cuda.blockIdx.y


@case(1, 1, zeros(3, dtype=np.int32))
@cuda.jit
def single_thread(out):
    for i in range(3):
        out[i] = i + 1


# --- signatures ---


@case(2, 8, floats(12), number(3))
@cuda.jit("void(float32[:], int32)")
def typed_by_text(x, n):
    i = cuda.grid(1)
    if i < x.shape[0]:
        x[i] *= n


@case(2, 8, floats(12), floats(12))
@cuda.jit(void(float32[:], float32[:]))
def typed_by_objects(x, out):
    i = cuda.grid(1)
    if i < x.shape[0]:
        out[i] = x[i] - out[i]


@case(2, 8, ints(12), number(4))
@cuda.jit((int32[::1], numba.int64))
def typed_by_tuple(x, n):
    i = cuda.grid(1)
    if i < x.shape[0]:
        x[i] = x[i] + n


@case(2, 8, doubles(12))
@cuda.jit("(f8[::1],)")
def typed_by_codes(x):
    i = cuda.grid(1)
    if i < x.shape[0]:
        x[i] = x[i] * x[i] - 1


# --- device functions ---


@cuda.jit(device=True)
def clip(v, low, high):
    return min(max(v, low), high)


@cuda.jit(device=True)
def halves(v):
    return v // 2, v - v // 2


@cuda.jit("float32(float32, float32)", device=True)
def difference(a, b):
    return a - b


@cuda.jit(device=True)
def store(array, at, value):
    array[at] = value


@case(2, 8, ints(16), zeros(16, dtype=np.int32))
@cuda.jit
def calls_device(x, out):
    i = cuda.grid(1)
    out[i] = clip(x[i], -20, 20)


@case(2, 8, ints(16, dtype=np.int64), zeros(16, 2, dtype=np.int64))
@cuda.jit
def calls_for_tuple(x, out):
    i = cuda.grid(1)
    low, high = halves(x[i])
    out[i, 0] = low
    out[i, 1] = high


@case(2, 8, floats(16), zeros(16))
@cuda.jit
def calls_typed(x, out):
    i = cuda.grid(1)
    out[i] = difference(x[i], x[0])


@case(2, 8, zeros(16, dtype=np.int32))
@cuda.jit
def calls_with_array(out):
    i = cuda.grid(1)
    store(out, i, 3 * i)


# --- shared, local and constant memory ---


@case(4, TPB, floats(32), zeros(32))
@cuda.jit
def reversed_in_block(x, out):
    tile = cuda.shared.array(shape=TPB, dtype=float32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    tile[t] = x[i]
    cuda.syncthreads()
    out[i] = tile[TPB - 1 - t]


@case((3, 3), (TPB, TPB), floats(20, 18), floats(18, 22), zeros(20, 22))
@cuda.jit
def tiled_matmul(A, B, C):
    sA = cuda.shared.array(shape=(TPB, TPB), dtype=float32)
    sB = cuda.shared.array(shape=(TPB, TPB), dtype=float32)
    x, y = cuda.grid(2)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    bpg = cuda.gridDim.x
    tmp = np.float32(0)
    for i in range(bpg):
        sA[ty, tx] = 0
        sB[ty, tx] = 0
        if y < A.shape[0] and (tx + i * TPB) < A.shape[1]:
            sA[ty, tx] = A[y, tx + i * TPB]
        if x < B.shape[1] and (ty + i * TPB) < B.shape[0]:
            sB[ty, tx] = B[ty + i * TPB, x]
        cuda.syncthreads()
        for j in range(TPB):
            tmp += sA[ty, j] * sB[j, tx]
        cuda.syncthreads()
    if y < C.shape[0] and x < C.shape[1]:
        C[y, x] = tmp


@case(4, 8, floats(32), shared=32)
@cuda.jit
def dynamic_shared(x):
    s = cuda.shared.array(0, dtype=float32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    s[t] = x[i]
    cuda.syncthreads()
    x[i] = s[cuda.blockDim.x - 1 - t]


@case(4, 8, floats(32), floats(32), shared=64)
@cuda.jit
def dynamic_in_parts(x, y):
    s = cuda.shared.array(shape=0, dtype=float32)
    xs = s[:8]
    ys = s[8:]
    i, t = cuda.grid(1), cuda.threadIdx.x
    xs[t] = x[i]
    ys[t] = y[i]
    cuda.syncthreads()
    x[i] = ys[7 - t]
    y[i] = xs[7 - t]


@case(2, 8, ints(16), zeros(16, dtype=np.int32))
@cuda.jit
def local_array(x, out):
    acc = cuda.local.array(4, int32)
    i = cuda.grid(1)
    for k in range(4):
        acc[k] = x[i] + k
    for k in range(4):
        out[i] += acc[3 - k] * k


@case(2, 8, zeros(16, dtype=np.int64))
@cuda.jit
def constants(out):
    i = cuda.grid(1)
    out[i] = TABLE[i % 4] * SCALE + WEIGHTS[i % 2][1]


@case(4, 32, floats(128), zeros(4))
@cuda.jit
def block_sum(x, out):
    s = cuda.shared.array(32, float32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    s[t] = x[i]
    cuda.syncthreads()
    step = 16
    while step > 0:
        if t < step:
            s[t] += s[t + step]
        cuda.syncthreads()
        step //= 2
    if t == 0:
        out[cuda.blockIdx.x] = s[0]


# --- synchronisation and atomics ---


@case(2, 16, ints(32), zeros(32, 3, dtype=np.int32))
@cuda.jit
def block_votes(x, out):
    i = cuda.grid(1)
    out[i, 0] = cuda.syncthreads_count(x[i] > 0)
    out[i, 1] = cuda.syncthreads_and(x[i] > -100)
    out[i, 2] = cuda.syncthreads_or(x[i] > 45)


@case(4, 16, naturals(64), zeros(8, dtype=np.int32))
@cuda.jit
def histogram(x, bins):
    i = cuda.grid(1)
    cuda.atomic.add(bins, x[i], 1)


@case(4, 16, naturals(64), zeros(4, 8, dtype=np.int32))
@cuda.jit
def histogram_2(x, bins):
    i = cuda.grid(1)
    cuda.atomic.add(bins, (cuda.blockIdx.x, x[i]), 1)


@case(4, 16, ints(64), zeros(4, dtype=np.int32))
@cuda.jit
def atomic_extrema(x, out):
    i = cuda.grid(1)
    cuda.atomic.max(out, 0, x[i])
    cuda.atomic.min(out, 1, x[i])
    cuda.atomic.sub(out, 2, 1)
    cuda.atomic.or_(out, 3, x[i] & 255)


@case(4, 16, naturals(64, dtype=np.uint32, below=256), zeros(3, dtype=np.uint32))
@cuda.jit
def atomic_bits(x, out):
    i = cuda.grid(1)
    cuda.atomic.xor(out, 0, x[i])
    cuda.atomic.or_(out, 1, x[i])
    cuda.atomic.and_(out, 2, x[i])


@case(2, 4, zeros(8, dtype=np.int32))
@cuda.jit
def fenced(out):
    i = cuda.grid(1)
    out[i] = i
    cuda.threadfence()
    cuda.threadfence_block()
    cuda.threadfence_system()
    out[i] += 1


# --- functions ---


@case(2, 16, positive(32), zeros(32, 4))
@cuda.jit
def roots_and_logs(x, out):
    i = cuda.grid(1)
    out[i, 0] = math.sqrt(x[i])
    out[i, 1] = math.log(x[i])
    out[i, 2] = math.log10(x[i])
    out[i, 3] = math.log1p(x[i])


@case(2, 16, floats(32), zeros(32, 4))
@cuda.jit
def trigonometry(x, out):
    i = cuda.grid(1)
    out[i, 0] = math.sin(x[i])
    out[i, 1] = math.cos(x[i])
    out[i, 2] = math.atan(x[i])
    out[i, 3] = math.tanh(x[i])


@case(2, 16, floats(32), zeros(32, 4))
@cuda.jit
def exponentials(x, out):
    i = cuda.grid(1)
    out[i, 0] = math.exp(x[i])
    out[i, 1] = math.expm1(x[i])
    out[i, 2] = math.erf(x[i])
    out[i, 3] = math.sinh(x[i])


@case(2, 16, floats(32), positive(32), zeros(32, 4))
@cuda.jit
def two_operands(x, y, out):
    i = cuda.grid(1)
    out[i, 0] = math.atan2(x[i], y[i])
    out[i, 1] = math.copysign(y[i], x[i])
    out[i, 2] = math.hypot(x[i], y[i])
    out[i, 3] = math.fmod(x[i], y[i])


@case(2, 16, floats(32), zeros(32, dtype=np.int64))
@cuda.jit
def rounding(x, out):
    i = cuda.grid(1)
    out[i] = math.floor(x[i]) * 100 + math.ceil(x[i]) + int(x[i])


@case(2, 16, doubles(32), zeros(32, dtype=np.float64))
@cuda.jit
def in_double(x, out):
    i = cuda.grid(1)
    out[i] = math.sin(x[i]) + 0.5 * x[i]


@case(2, 16, ints(32), zeros(32, dtype=np.int32))
@cuda.jit
def python_numbers(x, out):
    i = cuda.grid(1)
    out[i] = abs(x[i]) + max(x[i], 7) - min(x[i], i, 3)


@case(2, 16, ints(32), zeros(32, dtype=np.int32))
@cuda.jit
def quotients(x, out):
    i = cuda.grid(1)
    out[i] = x[i] // 7 * 1000 + x[i] % 7


@case(2, 16, naturals(32, dtype=np.uint32, below=200), zeros(32, dtype=np.uint32))
@cuda.jit
def bits(x, out):
    i = cuda.grid(1)
    out[i] = (x[i] << np.uint32(3)) ^ (x[i] >> np.uint32(1)) | (x[i] & np.uint32(5))


@case(2, 16, naturals(32, dtype=np.int32, below=200), zeros(32, 3, dtype=np.int32))
@cuda.jit
def bit_functions(x, out):
    i = cuda.grid(1)
    out[i, 0] = cuda.popc(x[i])
    out[i, 1] = cuda.clz(x[i])
    out[i, 2] = cuda.ffs(x[i])


@case(2, 16, floats(32), floats(32), floats(32), zeros(32))
@cuda.jit
def fused(x, y, z, out):
    i = cuda.grid(1)
    out[i] = cuda.fma(x[i], y[i], z[i])


@case(2, 16, positive(32), zeros(32))
@cuda.jit
def cube_root(x, out):
    i = cuda.grid(1)
    out[i] = cuda.cbrt(x[i])


@case(2, 16, ints(32), zeros(32, dtype=np.int32))
@cuda.jit
def selected(x, out):
    i = cuda.grid(1)
    out[i] = cuda.selp(x[i] > 0, x[i], -1)


@case(2, 16, floats(32), zeros(32, dtype=np.int32))
@cuda.jit
def casts(x, out):
    i = cuda.grid(1)
    out[i] = int32(x[i]) + np.int32(i) + int64(2)


@case(2, 16, floats(32), zeros(32, dtype=np.int32))
@cuda.jit
def predicates(x, out):
    i = cuda.grid(1)
    out[i] = math.isnan(x[i]) or math.isinf(x[i]) or (not x[i] < 0 and x[i] != 1)


# --- statements ---


@case(4, 8, floats(20, 6), floats(6), zeros(20))
@cuda.jit
def matrix_vector(m, v, u):
    tidx = cuda.grid(1)
    if tidx < m.shape[0]:
        tmp = np.float32(0)
        for i in range(m.shape[1]):
            tmp += m[tidx, i] * v[i]
        u[tidx] = tmp


@case(4, 8, ints(20, 6), zeros(20, dtype=np.int32))
@cuda.jit
def rows(m, out):
    i = cuda.grid(1)
    if i < m.shape[0]:
        row = m[i]
        total = 0
        for j in range(len(row)):
            total += row[j]
        out[i] = total


@case(4, 8, ints(20, 6), zeros(20, dtype=np.int32))
@cuda.jit
def parts(m, out):
    i = cuda.grid(1)
    if i < m.shape[0]:
        part = m[i, 1:4]
        out[i] = part[0] - part[2]


@case(2, 16, naturals(32, dtype=np.int64, below=30), zeros(32, dtype=np.int64))
@cuda.jit
def collatz(x, out):
    i = cuda.grid(1)
    n = x[i] + 1
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    out[i] = steps


@case(2, 16, ints(32), zeros(32, dtype=np.int32))
@cuda.jit
def branches(x, out):
    i = cuda.grid(1)
    if x[i] < -10:
        out[i] = -1
    elif x[i] < 10 and x[i] != 0:
        out[i] = 0
    else:
        for k in range(10):
            if k * k > x[i]:
                break
            if k == 3:
                continue
            out[i] += k


@case(2, 16, ints(32), zeros(32, dtype=np.int32))
@cuda.jit
def tuples(x, out):
    i = cuda.grid(1)
    a, b = x[i], x[31 - i]
    a, b = b, a
    pair = (a, b)
    out[i] = pair[0] * 2 - pair[1]


@case(1, 8, ints(8), zeros(8, dtype=np.int32))
@cuda.jit
def asserted(x, out):
    i = cuda.grid(1)
    assert x[i] < 1000
    out[i] = x[i]


@case((2, 2), (4, 4), naturals(8, 8, below=2), zeros(8, 8, dtype=np.int32))
@cuda.jit
def game_of_life(grid, out):
    i, j = cuda.grid(2)
    n, m = grid.shape
    alive = 0
    for di in range(-1, 2):
        for dj in range(-1, 2):
            if di != 0 or dj != 0:
                alive += grid[(i + di) % n, (j + dj) % m]
    out[i, j] = 1 if alive == 3 or (alive == 2 and grid[i, j] == 1) else 0


@case(2, 16, floats(32), floats(32), number(0.25), zeros(32))
@cuda.jit
def saxpy(x, y, a, out):
    i = cuda.grid(1)
    if i < len(out):
        out[i] = np.float32(a) * x[i] + y[i]


@case((2, 2), (4, 4), floats(8, 8), zeros(8, 8))
@cuda.jit
def transposed(x, out):
    tile = cuda.shared.array((4, 4), float32)
    i, j = cuda.grid(2)
    tile[cuda.threadIdx.x, cuda.threadIdx.y] = x[i, j]
    cuda.syncthreads()
    out[j, i] = tile[cuda.threadIdx.x, cuda.threadIdx.y]


@case(2, 16, lambda: np.arange(64, dtype=np.float32)[::2], zeros(32), own=True)  # Numba's copies no such array
@cuda.jit
def strided(x, out):
    i = cuda.grid(1)
    out[i] = x[i] + 1


@case(2, 16, lambda: np.arange(32) % 3 == 0, zeros(32, dtype=np.int8))
@cuda.jit
def truth_values(x, out):
    i = cuda.grid(1)
    if x[i]:
        out[i] = 1


@case(2, 16, naturals(32, dtype=np.uint8, below=250), zeros(32, dtype=np.uint8))
@cuda.jit
def bytes_of_an_image(x, out):
    i = cuda.grid(1)
    out[i] = x[i] // 2


@case(1, 16, floats(16), zeros(16))
@cuda.jit
def scan(x, out):
    s = cuda.shared.array(16, float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    cuda.syncthreads()
    step = 1
    while step < 16:
        v = np.float32(0)
        if t >= step:
            v = s[t - step]
        cuda.syncthreads()
        s[t] += v
        cuda.syncthreads()
        step *= 2
    out[t] = s[t]


# --- warps: Numba's simulator lacks them ---


@case(1, 32, ints(32), zeros(32, dtype=np.int32), own=True)
@cuda.jit
def warp_sum(x, out):
    i = cuda.grid(1)
    v = x[i]
    offset = 16
    while offset > 0:
        v += cuda.shfl_down_sync(0xFFFFFFFF, v, offset)
        offset //= 2
    if cuda.laneid == 0:
        out[0] = v
    out[i] += cuda.warpsize * 0


@case(1, 32, ints(32), zeros(32, 4, dtype=np.int32), own=True)
@cuda.jit
def warp_exchange(x, out):
    i = cuda.grid(1)
    out[i, 0] = cuda.shfl_sync(-1, x[i], 3)
    out[i, 1] = cuda.shfl_xor_sync(-1, x[i], 1)
    out[i, 2] = cuda.shfl_up_sync(-1, x[i], 2)
    out[i, 3] = cuda.any_sync(-1, x[i] > 40)


@case(1, 32, ints(32), zeros(32, 4, dtype=np.int64), own=True)
@cuda.jit
def warp_votes(x, out):
    i = cuda.grid(1)
    out[i, 0] = cuda.all_sync(-1, x[i] > -100)
    out[i, 1] = cuda.popc(cuda.ballot_sync(-1, x[i] > 0))
    out[i, 2] = cuda.ballot_sync(-1, x[i] > -100)
    out[i, 3] = cuda.match_any_sync(-1, x[i])
    cuda.syncwarp()


@case(2, 16, floats(25), zeros(25, 6), zeros(25, 4, dtype=np.int64), own=True)
@cuda.jit
def device_library_of_two_results(x, out, whole):
    i = cuda.grid(1)
    if i < x.size:
        out[i, 0], out[i, 1] = cuda.libdevice.sincosf(x[i])
        mantissa, exponent = cuda.libdevice.frexpf(x[i])
        out[i, 2] = mantissa + cuda.libdevice.roundf(x[i])
        out[i, 3], out[i, 4] = cuda.libdevice.modff(x[i])
        out[i, 5] = cuda.libdevice.sinpif(x[i]) + cuda.libdevice.fadd_rn(x[i], np.float32(0.1))
        whole[i, 0] = exponent
        whole[i, 1] = cuda.libdevice.sad(exponent, 5, cuda.libdevice.mul24(exponent, -3))
        whole[i, 2] = cuda.libdevice.llroundf(x[i])
        whole[i, 3] = cuda.libdevice.float2uint_rn(abs(x[i]))


@case(1, 32, naturals(32), zeros(32, 5, dtype=np.int32), own=True)
@cuda.jit
def warp_agreement(x, out):
    i = cuda.grid(1)
    lanes, is_same = cuda.match_all_sync(0xFFFFFFFF, x[i] // 8)
    out[i, 0] = lanes
    out[i, 1] = is_same
    lanes, is_same = cuda.match_all_sync(0xFFFFFFFF, x[i])
    out[i, 2] = lanes if is_same else 5
    out[i, 3] = cuda.eq_sync(0xFFFFFFFF, x[i] < 8) + cuda.eq_sync(0xFFFFFFFF, x[i] < 4)
    out[i, 4] = cuda.popc(cuda.activemask() & cuda.lanemask_lt())


@case(1, 16, naturals(16, dtype=np.int32, below=200), zeros(16, dtype=np.int64), own=True)
@cuda.jit
def reversed_bits(x, out):
    i = cuda.grid(1)
    out[i] = cuda.brev(x[i])


@case(1, 8, floats(8), shared=32)
@cuda.jit
def dynamic_twice(x):
    buffer = cuda.shared.array(0, float32)
    again = cuda.shared.array(0, float32)
    i = cuda.threadIdx.x
    buffer[i] = x[i] * np.float32(2)
    cuda.syncthreads()
    x[i] = again[(i + 1) % 8]


@case(1, 8, floats(8), ints(8), shared=64)
@cuda.jit
def dynamic_of_two_dtypes(x, n):
    numbers = cuda.shared.array(0, float32)
    counts = cuda.shared.array(0, int32)[8:]
    i = cuda.threadIdx.x
    numbers[i] = x[i] * np.float32(2)
    counts[i] = n[i] + 1
    cuda.syncthreads()
    x[i] = numbers[7 - i]
    n[i] = counts[(i + 1) % 8]


# --- functions, dtypes and shapes as arguments ---

TAPS = np.array([0.25, 0.5, 0.25], dtype=np.float32)
OFFSETS = np.array([[0, 1], [2, 3]])


@cuda.jit(device=True)
def identity(value):
    return value


@cuda.jit(device=True)
def as_int(value):
    return int(value)


@cuda.jit(device=True)
def in_shared(x, places, value, dtype, count, operation, cast):
    i = cuda.threadIdx.x
    buffer = cuda.shared.array(count, dtype)
    buffer[i] = x[i]
    cuda.syncthreads()
    operation(buffer, cast(places[i] % count), value)
    cuda.syncthreads()
    x[i] = buffer[i]


@case(1, 32, ints(32), naturals(32, below=64))
@cuda.jit
def adds_in_shared(x, places):
    in_shared(x, places, 3, int32, 32, cuda.atomic.add, as_int)
    cuda.syncthreads()
    in_shared(x, places, 7, int32, 32, cuda.atomic.max, identity)


@cuda.jit(device=True)
def in_rows(x, value, shape, dtype, operation, wraps):
    i, j = cuda.threadIdx.x, cuda.threadIdx.y
    buffer = cuda.shared.array(shape, dtype)
    buffer[i, j] = x[i, j]
    cuda.syncthreads()
    place = (i, j)
    if wraps:
        place = (place[0] % shape[0], (place[1] + 1) % shape[1])
    operation(buffer, place, value)
    cuda.syncthreads()
    x[i, j] = buffer[i, j]


@case((1, 1), (4, 8), naturals(4, 8, dtype=np.uint32))
@cuda.jit
def adds_in_rows(x):
    in_rows(x, 5, (4, 8), numba.types.uint32, cuda.atomic.add, True)


@cuda.jit(device=True)
def twice(function, value):
    return function(function(value))


@cuda.jit(device=True)
def half_of(value):
    return value * np.float32(0.5)


@case(4, 16, floats(50), zeros(50))
@cuda.jit
def function_of_function(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = twice(half_of, x[i]) + twice(abs, x[i])


@case(4, 16, floats(50), zeros(50))
@cuda.jit
def constant_array(x, out):
    taps = cuda.const.array_like(TAPS)
    i = cuda.grid(1)
    if i >= 1 and i < x.size - 1:
        total = np.float32(0)
        for k in range(len(taps)):
            total += taps[k] * x[i + k - 1]
        out[i] = total


@case((2, 2), (4, 4), zeros(8, 8, dtype=np.int64))
@cuda.jit
def constant_rows(out):
    offsets = cuda.const.array_like(OFFSETS)
    i, j = cuda.grid(2)
    if i < out.shape[0] and j < out.shape[1]:
        out[i, j] = offsets[i % 2, j % 2]


# --- the libraries of cuda ---


@case(1, 32, lambda: np.array([np.nan, 1, -2, 3, 0.5, np.nan] * 6, dtype=np.float32)[:32], floats(2))
@cuda.jit
def extrema_without_nan(x, out):
    i = cuda.threadIdx.x
    cuda.atomic.nanmax(out, 0, x[i])
    cuda.atomic.nanmin(out, 1, x[i])


@case(4, 16, lambda: np.linspace(0.5, 4, 50).astype(np.float16), zeros(50, dtype=np.float16), own=True)
@cuda.jit
def half_floats(x, out):
    i = cuda.grid(1)
    if i < x.size:
        v = cuda.fp16.hadd(x[i], cuda.fp16.hmul(x[i], x[i]))
        if cuda.fp16.hgt(v, cuda.fp16.hneg(x[i])):
            out[i] = cuda.fp16.hsqrt(cuda.fp16.hmax(v, x[i])) - cuda.fp16.hfloor(x[i])


@case(4, 16, positive(50), doubles(50), zeros(50), zeros(50, dtype=np.float64), own=True)
@cuda.jit
def libdevice_floats(x, y, out, wide):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = cuda.libdevice.sinf(x[i]) + cuda.libdevice.fmaxf(x[i], 2.0) * cuda.libdevice.rsqrtf(x[i])
        wide[i] = cuda.libdevice.fmod(y[i], 1.5) + cuda.libdevice.sin(x[i])


@case(4, 16, ints(50), floats(50), zeros(50, dtype=np.int32), own=True)
@cuda.jit
def libdevice_integers(n, x, out):
    i = cuda.grid(1)
    if i < n.size:
        high = cuda.libdevice.mulhi(n[i] * 100003, 99991)
        out[i] = cuda.libdevice.float2int_rn(x[i]) + cuda.libdevice.popc(n[i]) + cuda.libdevice.max(n[i], 3) + high
