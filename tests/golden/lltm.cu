// lltm: CUDA kernels and their launchers, translated from lltm.py by py2cu.
#include "lltm.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <initializer_list>
#include <type_traits>
#include <cuda_runtime.h>

namespace {

// N neighbours in memory, which are loaded and stored 16 bytes at a time.
template <typename T, int N>
struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) aligned_vector {
    T elements[N];
    __device__ inline T& operator[](int k) { return elements[k]; }
    __device__ inline T operator[](int k) const { return elements[k]; }
};

template <int N, typename T>
__device__ inline aligned_vector<T, N> load_vector(const T* from)
{
    return *reinterpret_cast<const aligned_vector<T, N>*>(from);
}

template <typename T, int N>
__device__ inline void store_vector(T* to, const aligned_vector<T, N>& vector)
{
    *reinterpret_cast<aligned_vector<T, N>*>(to) = vector;
}

// Converts half types to float before a math function; other types are unchanged.
template <typename T>
__device__ inline auto to_compute_type(T value)
{
    return static_cast<std::conditional_t<sizeof(T) == 2, float, T>>(value);
}

template <typename T>
struct lltm_gates_result {
    T new_cell;
    T new_h;
};

template <typename T>
__device__ T elu_of(T v)
{
    return v > T(0) ? v : static_cast<T>(expm1(to_compute_type(v)));
}

template <typename T>
__device__ T sigmoid(T v)
{
    return T(1) / (T(1) + static_cast<T>(exp(to_compute_type(-v))));
}

// The new state and the new cell, from the weighted inputs of the three gates.
template <typename T>
__device__ lltm_gates_result<T> lltm_gates(T old_cell, T gates0, T gates1, T gates2)
{
    T cell = old_cell + elu_of<T>(gates0) * sigmoid<T>(gates1);
    T new_cell = cell;
    T new_h = static_cast<T>(tanh(to_compute_type(cell))) * sigmoid<T>(gates2);
    return {new_cell, new_h};
}

// The number of blocks of `block` threads that cover `threads`; 0, which CUDA refuses to launch, where it is too large.
unsigned covering_blocks(int64_t threads, int64_t block)
{
    const int64_t blocks = threads > 0 ? (threads - 1) / block + 1 : 0;
    return blocks <= INT32_MAX ? static_cast<unsigned>(blocks) : 0;
}

// Whether every array begins at a multiple of 16 bytes.
bool are_aligned(std::initializer_list<const void*> arrays)
{
    for (const void* array : arrays)
        if (reinterpret_cast<uintptr_t>(array) % 16 != 0) return false;
    return true;
}

// A thread computes PACKS packs of N neighbours, a block apart.
// T is float, double, __half or __nv_bfloat16.
template <int N, int PACKS, typename T>
__global__ void lltm_gates_kernel(
    const T* __restrict__ gates, const T* old_cell, T* new_h, T* new_cell, int64_t b, int64_t s)
{
    int64_t r = blockIdx.y * int64_t(blockDim.y) + threadIdx.y;
    if (r >= b) return;
    const int64_t step = int64_t(blockDim.x) * N;
    const int64_t first = (int64_t(blockIdx.x) * blockDim.x * PACKS + threadIdx.x) * N;
    if (first >= s) return;
    aligned_vector<T, N> old_cells[PACKS];
    aligned_vector<T, N> gates0s[PACKS];
    aligned_vector<T, N> gates1s[PACKS];
    aligned_vector<T, N> gates2s[PACKS];
    #pragma unroll
    for (int pack = 0; pack < PACKS; ++pack) {
        const int64_t c = first + pack * step;
        if (c < s) {
            old_cells[pack] = load_vector<N>(&old_cell[r * s + c]);
            gates0s[pack] = load_vector<N>(&gates[r * (3 * s) + (2 * s + c)]);
            gates1s[pack] = load_vector<N>(&gates[r * (3 * s) + c]);
            gates2s[pack] = load_vector<N>(&gates[r * (3 * s) + (s + c)]);
        }
    }
    #pragma unroll
    for (int pack = 0; pack < PACKS; ++pack) {
        const int64_t c = first + pack * step;
        if (c < s) {
            aligned_vector<T, N> new_cells;
            aligned_vector<T, N> new_hs;
            #pragma unroll
            for (int k = 0; k < N; ++k) {
                const auto result = lltm_gates(old_cells[pack][k], gates0s[pack][k], gates1s[pack][k],
                                               gates2s[pack][k]);
                new_cells[k] = result.new_cell;
                new_hs[k] = result.new_h;
            }
            store_vector(&new_cell[r * s + c], new_cells);
            store_vector(&new_h[r * s + c], new_hs);
        }
    }
}

template <typename T>
cudaError_t launch_lltm_gates(
    const T* gates, const T* old_cell, T* new_h, T* new_cell, int64_t b, int64_t s, dim3 grid, dim3 block,
    cudaStream_t stream)
{
    lltm_gates_kernel<1, 1, T><<<grid, block, 0, stream>>>(gates, old_cell, new_h, new_cell, b, s);
    return cudaGetLastError();
}

template <typename T>
cudaError_t launch_lltm_gates(
    const T* gates, const T* old_cell, T* new_h, T* new_cell, int64_t b, int64_t s, cudaStream_t stream)
{
    if (b == 0 || s == 0) return cudaSuccess;
    const dim3 block(16, 16);
    constexpr int N = 16 / sizeof(T), PACKS = sizeof(T) == 2 ? 2 : 1;
    const auto launch = [&](auto kernel, int64_t elements) {
        const dim3 grid(covering_blocks(s, block.x * elements), covering_blocks(b, block.y));
        kernel<<<grid, block, 0, stream>>>(gates, old_cell, new_h, new_cell, b, s);
        return cudaGetLastError();
    };
    if (b * s <= 4096)  // too few to fill a GPU: one element a thread
        return launch(lltm_gates_kernel<1, 1, T>, 1);
    // Packs of 16 bytes; where an array or its rows are not aligned, four elements a thread, a block apart.
    if (s % N == 0 && are_aligned({old_cell, gates, new_cell, new_h}))
        return launch(lltm_gates_kernel<N, PACKS, T>, N * PACKS);
    return launch(lltm_gates_kernel<1, 4, T>, 4);
}

// T is float, double, __half or __nv_bfloat16.
template <typename T, typename index_t>  // index_t: int, or int64_t where an extent needs it
__global__ void lltm_gates_grad_kernel(
    const T* __restrict__ gates, const T* new_cell, const T* __restrict__ grad_new_h, const T* grad_new_cell,
    T* __restrict__ grad_gates, T* grad_old_cell, index_t b, index_t s)
{
    index_t r = blockIdx.y * index_t(blockDim.y) + threadIdx.y;
    index_t c = blockIdx.x * index_t(blockDim.x) + threadIdx.x;
    if (r >= b || c >= s) return;
    T i = sigmoid<T>(gates[r * (3 * s) + c]);
    T o = sigmoid<T>(gates[r * (3 * s) + (s + c)]);
    T g = elu_of<T>(gates[r * (3 * s) + (2 * s + c)]);
    T t = static_cast<T>(tanh(to_compute_type(new_cell[r * s + c])));
    T d_cell = grad_new_cell[r * s + c] + grad_new_h[r * s + c] * o * (T(1) - t * t);
    grad_old_cell[r * s + c] = d_cell;
    grad_gates[r * (3 * s) + c] = d_cell * g * i * (T(1) - i);
    grad_gates[r * (3 * s) + (s + c)] = grad_new_h[r * s + c] * t * o * (T(1) - o);
    grad_gates[r * (3 * s) + (2 * s + c)] = d_cell * i * (gates[r * (3 * s) + (2 * s + c)] > T(0) ? T(1) : g + T(1));
}

template <typename T>
cudaError_t launch_lltm_gates_grad(
    const T* gates, const T* new_cell, const T* grad_new_h, const T* grad_new_cell, T* grad_gates, T* grad_old_cell,
    int64_t b, int64_t s, dim3 grid, dim3 block, cudaStream_t stream)
{
    if (std::max({int64_t(grid.y) * block.y, int64_t(grid.x) * block.x, 3 * b * s}) <= INT32_MAX)
        lltm_gates_grad_kernel<T, int><<<grid, block, 0, stream>>>(
            gates, new_cell, grad_new_h, grad_new_cell, grad_gates, grad_old_cell, b, s);
    else
        lltm_gates_grad_kernel<T, int64_t><<<grid, block, 0, stream>>>(
            gates, new_cell, grad_new_h, grad_new_cell, grad_gates, grad_old_cell, b, s);
    return cudaGetLastError();
}

template <typename T>
cudaError_t launch_lltm_gates_grad(
    const T* gates, const T* new_cell, const T* grad_new_h, const T* grad_new_cell, T* grad_gates, T* grad_old_cell,
    int64_t b, int64_t s, cudaStream_t stream)
{
    if (b == 0 || s == 0) return cudaSuccess;
    const dim3 block(16, 16);
    const dim3 grid((s + block.x - 1) / block.x, (b + block.y - 1) / block.y);
    return launch_lltm_gates_grad(
        gates, new_cell, grad_new_h, grad_new_cell, grad_gates, grad_old_cell, b, s, grid, block, stream);
}

}  // namespace

cudaError_t lltm_gates_launch(
    const float* gates, const float* old_cell, float* new_h, float* new_cell, int64_t b, int64_t s, dim3 grid,
    dim3 block, cudaStream_t stream)
{
    return launch_lltm_gates(gates, old_cell, new_h, new_cell, b, s, grid, block, stream);
}

cudaError_t lltm_gates_launch(
    const double* gates, const double* old_cell, double* new_h, double* new_cell, int64_t b, int64_t s, dim3 grid,
    dim3 block, cudaStream_t stream)
{
    return launch_lltm_gates(gates, old_cell, new_h, new_cell, b, s, grid, block, stream);
}

cudaError_t lltm_gates_launch(
    const __half* gates, const __half* old_cell, __half* new_h, __half* new_cell, int64_t b, int64_t s, dim3 grid,
    dim3 block, cudaStream_t stream)
{
    return launch_lltm_gates(gates, old_cell, new_h, new_cell, b, s, grid, block, stream);
}

cudaError_t lltm_gates_launch(
    const __nv_bfloat16* gates, const __nv_bfloat16* old_cell, __nv_bfloat16* new_h, __nv_bfloat16* new_cell,
    int64_t b, int64_t s, dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_lltm_gates(gates, old_cell, new_h, new_cell, b, s, grid, block, stream);
}

cudaError_t lltm_gates_launch(
    const float* gates, const float* old_cell, float* new_h, float* new_cell, int64_t b, int64_t s,
    cudaStream_t stream)
{
    return launch_lltm_gates(gates, old_cell, new_h, new_cell, b, s, stream);
}

cudaError_t lltm_gates_launch(
    const double* gates, const double* old_cell, double* new_h, double* new_cell, int64_t b, int64_t s,
    cudaStream_t stream)
{
    return launch_lltm_gates(gates, old_cell, new_h, new_cell, b, s, stream);
}

cudaError_t lltm_gates_launch(
    const __half* gates, const __half* old_cell, __half* new_h, __half* new_cell, int64_t b, int64_t s,
    cudaStream_t stream)
{
    return launch_lltm_gates(gates, old_cell, new_h, new_cell, b, s, stream);
}

cudaError_t lltm_gates_launch(
    const __nv_bfloat16* gates, const __nv_bfloat16* old_cell, __nv_bfloat16* new_h, __nv_bfloat16* new_cell,
    int64_t b, int64_t s, cudaStream_t stream)
{
    return launch_lltm_gates(gates, old_cell, new_h, new_cell, b, s, stream);
}

cudaError_t lltm_gates_grad_launch(
    const float* gates, const float* new_cell, const float* grad_new_h, const float* grad_new_cell,
    float* grad_gates, float* grad_old_cell, int64_t b, int64_t s, dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_lltm_gates_grad(
        gates, new_cell, grad_new_h, grad_new_cell, grad_gates, grad_old_cell, b, s, grid, block, stream);
}

cudaError_t lltm_gates_grad_launch(
    const double* gates, const double* new_cell, const double* grad_new_h, const double* grad_new_cell,
    double* grad_gates, double* grad_old_cell, int64_t b, int64_t s, dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_lltm_gates_grad(
        gates, new_cell, grad_new_h, grad_new_cell, grad_gates, grad_old_cell, b, s, grid, block, stream);
}

cudaError_t lltm_gates_grad_launch(
    const __half* gates, const __half* new_cell, const __half* grad_new_h, const __half* grad_new_cell,
    __half* grad_gates, __half* grad_old_cell, int64_t b, int64_t s, dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_lltm_gates_grad(
        gates, new_cell, grad_new_h, grad_new_cell, grad_gates, grad_old_cell, b, s, grid, block, stream);
}

cudaError_t lltm_gates_grad_launch(
    const __nv_bfloat16* gates, const __nv_bfloat16* new_cell, const __nv_bfloat16* grad_new_h,
    const __nv_bfloat16* grad_new_cell, __nv_bfloat16* grad_gates, __nv_bfloat16* grad_old_cell, int64_t b,
    int64_t s, dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_lltm_gates_grad(
        gates, new_cell, grad_new_h, grad_new_cell, grad_gates, grad_old_cell, b, s, grid, block, stream);
}

cudaError_t lltm_gates_grad_launch(
    const float* gates, const float* new_cell, const float* grad_new_h, const float* grad_new_cell,
    float* grad_gates, float* grad_old_cell, int64_t b, int64_t s, cudaStream_t stream)
{
    return launch_lltm_gates_grad(
        gates, new_cell, grad_new_h, grad_new_cell, grad_gates, grad_old_cell, b, s, stream);
}

cudaError_t lltm_gates_grad_launch(
    const double* gates, const double* new_cell, const double* grad_new_h, const double* grad_new_cell,
    double* grad_gates, double* grad_old_cell, int64_t b, int64_t s, cudaStream_t stream)
{
    return launch_lltm_gates_grad(
        gates, new_cell, grad_new_h, grad_new_cell, grad_gates, grad_old_cell, b, s, stream);
}

cudaError_t lltm_gates_grad_launch(
    const __half* gates, const __half* new_cell, const __half* grad_new_h, const __half* grad_new_cell,
    __half* grad_gates, __half* grad_old_cell, int64_t b, int64_t s, cudaStream_t stream)
{
    return launch_lltm_gates_grad(
        gates, new_cell, grad_new_h, grad_new_cell, grad_gates, grad_old_cell, b, s, stream);
}

cudaError_t lltm_gates_grad_launch(
    const __nv_bfloat16* gates, const __nv_bfloat16* new_cell, const __nv_bfloat16* grad_new_h,
    const __nv_bfloat16* grad_new_cell, __nv_bfloat16* grad_gates, __nv_bfloat16* grad_old_cell, int64_t b,
    int64_t s, cudaStream_t stream)
{
    return launch_lltm_gates_grad(
        gates, new_cell, grad_new_h, grad_new_cell, grad_gates, grad_old_cell, b, s, stream);
}
