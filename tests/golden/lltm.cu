// lltm: CUDA kernels and their launchers, translated from lltm.py by py2cu.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <type_traits>
#include <cuda_runtime.h>

// Converts half types to float before a math function; other types are unchanged.
template <typename T>
__device__ inline auto to_compute_type(T value)
{
    return static_cast<std::conditional_t<sizeof(T) == 2, float, T>>(value);
}

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

// The number of blocks of `block` threads that cover `threads`; 0, which CUDA refuses to launch, where it is too large.
static unsigned covering_blocks(int64_t threads, int64_t block)
{
    const int64_t blocks = threads > 0 ? (threads - 1) / block + 1 : 0;
    return blocks <= INT32_MAX ? static_cast<unsigned>(blocks) : 0;
}

// The new state and the new cell, from the weighted inputs of the three gates.
// T is float, double, __half or __nv_bfloat16.
template <typename T, typename index_t>  // index_t: int, or int64_t where an extent needs it
__global__ void lltm_gates_kernel(
    const T* __restrict__ gates, const T* old_cell, T* new_h, T* new_cell, index_t b, index_t s)
{
    index_t r = blockIdx.y * index_t(blockDim.y) + threadIdx.y;
    index_t c = blockIdx.x * index_t(blockDim.x) + threadIdx.x;
    if (r >= b || c >= s) return;
    T cell = old_cell[r * s + c] + elu_of<T>(gates[r * (3 * s) + (2 * s + c)]) * sigmoid<T>(gates[r * (3 * s) + c]);
    new_cell[r * s + c] = cell;
    new_h[r * s + c] = static_cast<T>(tanh(to_compute_type(cell))) * sigmoid<T>(gates[r * (3 * s) + (s + c)]);
}

template <typename T>
cudaError_t lltm_gates_launch(
    const T* gates, const T* old_cell, T* new_h, T* new_cell, int64_t b, int64_t s, dim3 grid, dim3 block,
    cudaStream_t stream)
{
    if (std::max({int64_t(grid.y) * block.y, int64_t(grid.x) * block.x, 3 * b * s}) <= INT32_MAX)
        lltm_gates_kernel<T, int><<<grid, block, 0, stream>>>(gates, old_cell, new_h, new_cell, b, s);
    else
        lltm_gates_kernel<T, int64_t><<<grid, block, 0, stream>>>(gates, old_cell, new_h, new_cell, b, s);
    return cudaGetLastError();
}

template cudaError_t lltm_gates_launch<float>(
    const float* gates, const float* old_cell, float* new_h, float* new_cell, int64_t b, int64_t s, dim3 grid,
    dim3 block, cudaStream_t stream);
template cudaError_t lltm_gates_launch<double>(
    const double* gates, const double* old_cell, double* new_h, double* new_cell, int64_t b, int64_t s, dim3 grid,
    dim3 block, cudaStream_t stream);
template cudaError_t lltm_gates_launch<__half>(
    const __half* gates, const __half* old_cell, __half* new_h, __half* new_cell, int64_t b, int64_t s, dim3 grid,
    dim3 block, cudaStream_t stream);
template cudaError_t lltm_gates_launch<__nv_bfloat16>(
    const __nv_bfloat16* gates, const __nv_bfloat16* old_cell, __nv_bfloat16* new_h, __nv_bfloat16* new_cell,
    int64_t b, int64_t s, dim3 grid, dim3 block, cudaStream_t stream);

template <typename T>
cudaError_t lltm_gates_launch(
    const T* gates, const T* old_cell, T* new_h, T* new_cell, int64_t b, int64_t s, cudaStream_t stream)
{
    if (b == 0 || s == 0) return cudaSuccess;
    const dim3 block(16, 16);
    const dim3 grid(covering_blocks(s, block.x), covering_blocks(b, block.y));
    return lltm_gates_launch(gates, old_cell, new_h, new_cell, b, s, grid, block, stream);
}

template cudaError_t lltm_gates_launch<float>(
    const float* gates, const float* old_cell, float* new_h, float* new_cell, int64_t b, int64_t s,
    cudaStream_t stream);
template cudaError_t lltm_gates_launch<double>(
    const double* gates, const double* old_cell, double* new_h, double* new_cell, int64_t b, int64_t s,
    cudaStream_t stream);
template cudaError_t lltm_gates_launch<__half>(
    const __half* gates, const __half* old_cell, __half* new_h, __half* new_cell, int64_t b, int64_t s,
    cudaStream_t stream);
template cudaError_t lltm_gates_launch<__nv_bfloat16>(
    const __nv_bfloat16* gates, const __nv_bfloat16* old_cell, __nv_bfloat16* new_h, __nv_bfloat16* new_cell,
    int64_t b, int64_t s, cudaStream_t stream);

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
cudaError_t lltm_gates_grad_launch(
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

template cudaError_t lltm_gates_grad_launch<float>(
    const float* gates, const float* new_cell, const float* grad_new_h, const float* grad_new_cell,
    float* grad_gates, float* grad_old_cell, int64_t b, int64_t s, dim3 grid, dim3 block, cudaStream_t stream);
template cudaError_t lltm_gates_grad_launch<double>(
    const double* gates, const double* new_cell, const double* grad_new_h, const double* grad_new_cell,
    double* grad_gates, double* grad_old_cell, int64_t b, int64_t s, dim3 grid, dim3 block, cudaStream_t stream);
template cudaError_t lltm_gates_grad_launch<__half>(
    const __half* gates, const __half* new_cell, const __half* grad_new_h, const __half* grad_new_cell,
    __half* grad_gates, __half* grad_old_cell, int64_t b, int64_t s, dim3 grid, dim3 block, cudaStream_t stream);
template cudaError_t lltm_gates_grad_launch<__nv_bfloat16>(
    const __nv_bfloat16* gates, const __nv_bfloat16* new_cell, const __nv_bfloat16* grad_new_h,
    const __nv_bfloat16* grad_new_cell, __nv_bfloat16* grad_gates, __nv_bfloat16* grad_old_cell, int64_t b,
    int64_t s, dim3 grid, dim3 block, cudaStream_t stream);

template <typename T>
cudaError_t lltm_gates_grad_launch(
    const T* gates, const T* new_cell, const T* grad_new_h, const T* grad_new_cell, T* grad_gates, T* grad_old_cell,
    int64_t b, int64_t s, cudaStream_t stream)
{
    if (b == 0 || s == 0) return cudaSuccess;
    const dim3 block(16, 16);
    const dim3 grid((s + block.x - 1) / block.x, (b + block.y - 1) / block.y);
    return lltm_gates_grad_launch(gates, new_cell, grad_new_h, grad_new_cell, grad_gates, grad_old_cell, b, s, grid, block, stream);
}

template cudaError_t lltm_gates_grad_launch<float>(
    const float* gates, const float* new_cell, const float* grad_new_h, const float* grad_new_cell,
    float* grad_gates, float* grad_old_cell, int64_t b, int64_t s, cudaStream_t stream);
template cudaError_t lltm_gates_grad_launch<double>(
    const double* gates, const double* new_cell, const double* grad_new_h, const double* grad_new_cell,
    double* grad_gates, double* grad_old_cell, int64_t b, int64_t s, cudaStream_t stream);
template cudaError_t lltm_gates_grad_launch<__half>(
    const __half* gates, const __half* new_cell, const __half* grad_new_h, const __half* grad_new_cell,
    __half* grad_gates, __half* grad_old_cell, int64_t b, int64_t s, cudaStream_t stream);
template cudaError_t lltm_gates_grad_launch<__nv_bfloat16>(
    const __nv_bfloat16* gates, const __nv_bfloat16* new_cell, const __nv_bfloat16* grad_new_h,
    const __nv_bfloat16* grad_new_cell, __nv_bfloat16* grad_gates, __nv_bfloat16* grad_old_cell, int64_t b,
    int64_t s, cudaStream_t stream);
