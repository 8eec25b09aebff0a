// train_digits: CUDA kernels and their launchers, translated from train_digits.py by py2cu.
#include "train_digits.h"

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

// Rounds a number to T; to a half type by way of float, as torch does.
template <typename T, typename Value>
__host__ __device__ inline T round_to(Value value)
{
    return static_cast<T>(static_cast<std::conditional_t<sizeof(T) == 2, float, Value>>(value));
}

// Python's `max(a, b)`: `a` unless `b` is greater, also for NaN.
template <typename T>
__device__ inline T python_max(T a, T b)
{
    return b > a ? b : a;
}

constexpr double SMOOTHING = 0.1;

template <typename T>
__device__ T silu(T x)
{
    return x / (T(1) + static_cast<T>(exp(to_compute_type(-x))));
}

template <typename T>
__device__ T silu_backward(T x, T grad_out)
{
    T s = T(1) / (T(1) + static_cast<T>(exp(to_compute_type(-x))));
    return grad_out * s * (T(1) + x * (T(1) - s));
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
__global__ void silu_kernel(const T* x, T* out, int64_t elements)
{
    const int64_t step = int64_t(blockDim.x) * N;
    const int64_t first = (int64_t(blockIdx.x) * blockDim.x * PACKS + threadIdx.x) * N;
    aligned_vector<T, N> xs[PACKS];
    #pragma unroll
    for (int pack = 0; pack < PACKS; ++pack) {
        const int64_t i = first + pack * step;
        if (i + N <= elements)
            xs[pack] = load_vector<N>(&x[i]);
    }
    #pragma unroll
    for (int pack = 0; pack < PACKS; ++pack) {
        const int64_t i = first + pack * step;
        if (i + N <= elements) {
            aligned_vector<T, N> outs;
            #pragma unroll
            for (int k = 0; k < N; ++k)
                outs[k] = silu(xs[pack][k]);
            store_vector(&out[i], outs);
        } else {
            #pragma unroll 1
            for (int64_t last = i; last < elements; ++last)  // fewer than N
                out[last] = silu(x[last]);
        }
    }
}

template <typename T>
cudaError_t launch_silu(const T* x, T* out, int64_t elements, dim3 grid, dim3 block, cudaStream_t stream)
{
    silu_kernel<1, 1, T><<<grid, block, 0, stream>>>(x, out, elements);
    return cudaGetLastError();
}

template <typename T>
cudaError_t launch_silu(const T* x, T* out, int64_t elements, cudaStream_t stream)
{
    if (elements == 0) return cudaSuccess;
    const dim3 block(128);
    constexpr int N = 16 / sizeof(T), PACKS = sizeof(T) == 2 || sizeof(T) == 4 ? 2 : 1;
    const auto launch = [&](auto kernel, int64_t elements2) {
        const dim3 grid((elements + block.x * elements2 - 1) / (block.x * elements2));
        kernel<<<grid, block, 0, stream>>>(x, out, elements);
        return cudaGetLastError();
    };
    if (elements <= 4096)  // too few to fill a GPU: one element a thread
        return launch(silu_kernel<1, 1, T>, 1);
    // Packs of 16 bytes; where an array or its rows are not aligned, four elements a thread, a block apart.
    if (are_aligned({x, out}))
        return launch(silu_kernel<N, PACKS, T>, N * PACKS);
    return launch(silu_kernel<1, 4, T>, 4);
}

// A thread computes PACKS packs of N neighbours, a block apart.
// T is float, double, __half or __nv_bfloat16.
template <int N, int PACKS, typename T>
__global__ void silu_backward_kernel(const T* x, const T* grad_out, T* grad_x, int64_t elements)
{
    const int64_t step = int64_t(blockDim.x) * N;
    const int64_t first = (int64_t(blockIdx.x) * blockDim.x * PACKS + threadIdx.x) * N;
    aligned_vector<T, N> xs[PACKS];
    aligned_vector<T, N> grad_outs[PACKS];
    #pragma unroll
    for (int pack = 0; pack < PACKS; ++pack) {
        const int64_t i = first + pack * step;
        if (i + N <= elements) {
            xs[pack] = load_vector<N>(&x[i]);
            grad_outs[pack] = load_vector<N>(&grad_out[i]);
        }
    }
    #pragma unroll
    for (int pack = 0; pack < PACKS; ++pack) {
        const int64_t i = first + pack * step;
        if (i + N <= elements) {
            aligned_vector<T, N> grad_xs;
            #pragma unroll
            for (int k = 0; k < N; ++k)
                grad_xs[k] = silu_backward(xs[pack][k], grad_outs[pack][k]);
            store_vector(&grad_x[i], grad_xs);
        } else {
            #pragma unroll 1
            for (int64_t last = i; last < elements; ++last)  // fewer than N
                grad_x[last] = silu_backward(x[last], grad_out[last]);
        }
    }
}

template <typename T>
cudaError_t launch_silu_backward(
    const T* x, const T* grad_out, T* grad_x, int64_t elements, dim3 grid, dim3 block, cudaStream_t stream)
{
    silu_backward_kernel<1, 1, T><<<grid, block, 0, stream>>>(x, grad_out, grad_x, elements);
    return cudaGetLastError();
}

template <typename T>
cudaError_t launch_silu_backward(const T* x, const T* grad_out, T* grad_x, int64_t elements, cudaStream_t stream)
{
    if (elements == 0) return cudaSuccess;
    const dim3 block(128);
    constexpr int N = 16 / sizeof(T), PACKS = sizeof(T) == 2 ? 2 : 1;
    const auto launch = [&](auto kernel, int64_t elements2) {
        const dim3 grid((elements + block.x * elements2 - 1) / (block.x * elements2));
        kernel<<<grid, block, 0, stream>>>(x, grad_out, grad_x, elements);
        return cudaGetLastError();
    };
    if (elements <= 4096)  // too few to fill a GPU: one element a thread
        return launch(silu_backward_kernel<1, 1, T>, 1);
    // Packs of 16 bytes; where an array or its rows are not aligned, four elements a thread, a block apart.
    if (are_aligned({x, grad_out, grad_x}))
        return launch(silu_backward_kernel<N, PACKS, T>, N * PACKS);
    return launch(silu_backward_kernel<1, 4, T>, 4);
}

// Rows of mean 0 and variance 1: layer norm without weights.
// T is float, double, __half or __nv_bfloat16.
template <typename T, typename index_t>  // index_t: int, or int64_t where an extent needs it
__global__ void standardise_kernel(
    const T* __restrict__ x, T* __restrict__ out, T* __restrict__ scale, index_t n, T eps, index_t rows)
{
    index_t r = blockIdx.x * index_t(blockDim.x) + threadIdx.x;
    if (r >= rows) return;
    T total = T(0);
    for (index_t i = 0; i < n; ++i)
        total += x[r * n + i];
    T mean = total / round_to<T>(n);
    T squares = T(0);
    for (index_t i = 0; i < n; ++i)
        squares += (x[r * n + i] - mean) * (x[r * n + i] - mean);
    T s = T(1) / static_cast<T>(sqrt(to_compute_type(squares / round_to<T>(n) + eps)));
    for (index_t i = 0; i < n; ++i)
        out[r * n + i] = (x[r * n + i] - mean) * s;
    scale[r] = s;
}

template <typename T>
cudaError_t launch_standardise(
    const T* x, T* out, T* scale, int64_t n, double eps, int64_t rows, dim3 grid, dim3 block, cudaStream_t stream)
{
    if (std::max({int64_t(grid.x) * block.x, n * rows, rows}) <= INT32_MAX)
        standardise_kernel<T, int><<<grid, block, 0, stream>>>(x, out, scale, n, round_to<T>(eps), rows);
    else
        standardise_kernel<T, int64_t><<<grid, block, 0, stream>>>(x, out, scale, n, round_to<T>(eps), rows);
    return cudaGetLastError();
}

template <typename T>
cudaError_t launch_standardise(
    const T* x, T* out, T* scale, int64_t n, double eps, int64_t rows, cudaStream_t stream)
{
    if (rows == 0) return cudaSuccess;
    const dim3 block(256);
    const dim3 grid((rows + block.x - 1) / block.x);
    return launch_standardise(x, out, scale, n, eps, rows, grid, block, stream);
}

// T is float, double, __half or __nv_bfloat16.
template <typename T, typename index_t>  // index_t: int, or int64_t where an extent needs it
__global__ void standardise_backward_kernel(
    const T* __restrict__ out, const T* __restrict__ scale, const T* __restrict__ grad_out, T* __restrict__ grad_x,
    index_t n, index_t rows)
{
    index_t r = blockIdx.x * index_t(blockDim.x) + threadIdx.x;
    if (r >= rows) return;
    T total = T(0);
    T dot = T(0);
    for (index_t i = 0; i < n; ++i) {
        total += grad_out[r * n + i];
        dot += grad_out[r * n + i] * out[r * n + i];
    }
    for (index_t i = 0; i < n; ++i)
        grad_x[r * n + i] = scale[r] *
                            (grad_out[r * n + i] - total / round_to<T>(n) - out[r * n + i] * dot / round_to<T>(n));
}

template <typename T>
cudaError_t launch_standardise_backward(
    const T* out, const T* scale, const T* grad_out, T* grad_x, int64_t n, int64_t rows, dim3 grid, dim3 block,
    cudaStream_t stream)
{
    if (std::max({int64_t(grid.x) * block.x, n * rows, rows}) <= INT32_MAX)
        standardise_backward_kernel<T, int><<<grid, block, 0, stream>>>(out, scale, grad_out, grad_x, n, rows);
    else
        standardise_backward_kernel<T, int64_t><<<grid, block, 0, stream>>>(out, scale, grad_out, grad_x, n, rows);
    return cudaGetLastError();
}

template <typename T>
cudaError_t launch_standardise_backward(
    const T* out, const T* scale, const T* grad_out, T* grad_x, int64_t n, int64_t rows, cudaStream_t stream)
{
    if (rows == 0) return cudaSuccess;
    const dim3 block(256);
    const dim3 grid((rows + block.x - 1) / block.x);
    return launch_standardise_backward(out, scale, grad_out, grad_x, n, rows, grid, block, stream);
}

// Cross entropy of each row with a target that has `SMOOTHING` of its probability spread over all classes.
// T is float, double, __half or __nv_bfloat16.
template <typename T, typename index_t>  // index_t: int, or int64_t where an extent needs it
__global__ void smoothed_loss_kernel(
    const T* __restrict__ x, const int64_t* __restrict__ target, T* __restrict__ loss, index_t n, index_t rows)
{
    index_t r = blockIdx.x * index_t(blockDim.x) + threadIdx.x;
    if (r >= rows) return;
    T top = x[r * n];
    T mean = T(0);
    for (index_t i = 0; i < n; ++i) {
        top = python_max(top, x[r * n + i]);
        mean += x[r * n + i] / round_to<T>(n);
    }
    T total = T(0);
    for (index_t i = 0; i < n; ++i)
        total += static_cast<T>(exp(to_compute_type(x[r * n + i] - top)));
    loss[r] = static_cast<T>(log(to_compute_type(total))) + top - round_to<T>(1 - SMOOTHING) * x[r * n + target[r]] -
              T(SMOOTHING) * mean;
}

template <typename T>
cudaError_t launch_smoothed_loss(
    const T* x, const int64_t* target, T* loss, int64_t n, int64_t rows, dim3 grid, dim3 block, cudaStream_t stream)
{
    if (std::max({int64_t(grid.x) * block.x, n * rows, rows}) <= INT32_MAX)
        smoothed_loss_kernel<T, int><<<grid, block, 0, stream>>>(x, target, loss, n, rows);
    else
        smoothed_loss_kernel<T, int64_t><<<grid, block, 0, stream>>>(x, target, loss, n, rows);
    return cudaGetLastError();
}

template <typename T>
cudaError_t launch_smoothed_loss(
    const T* x, const int64_t* target, T* loss, int64_t n, int64_t rows, cudaStream_t stream)
{
    if (rows == 0) return cudaSuccess;
    const dim3 block(256);
    const dim3 grid((rows + block.x - 1) / block.x);
    return launch_smoothed_loss(x, target, loss, n, rows, grid, block, stream);
}

// T is float, double, __half or __nv_bfloat16.
template <typename T, typename index_t>  // index_t: int, or int64_t where an extent needs it
__global__ void smoothed_loss_backward_kernel(
    const T* __restrict__ x, const int64_t* __restrict__ target, const T* __restrict__ grad_loss,
    T* __restrict__ grad_x, index_t n, index_t rows, double n_term)
{
    index_t r = blockIdx.x * index_t(blockDim.x) + threadIdx.x;
    if (r >= rows) return;
    T top = x[r * n];
    for (index_t i = 0; i < n; ++i)
        top = python_max(top, x[r * n + i]);
    T total = T(0);
    for (index_t i = 0; i < n; ++i)
        total += static_cast<T>(exp(to_compute_type(x[r * n + i] - top)));
    for (index_t i = 0; i < n; ++i) {
        T wanted = round_to<T>((i == target[r] ? 1 - SMOOTHING : 0.0) + n_term);
        grad_x[r * n + i] = grad_loss[r] * (static_cast<T>(exp(to_compute_type(x[r * n + i] - top))) / total - wanted);
    }
}

template <typename T>
cudaError_t launch_smoothed_loss_backward(
    const T* x, const int64_t* target, const T* grad_loss, T* grad_x, int64_t n, int64_t rows, dim3 grid,
    dim3 block, cudaStream_t stream)
{
    const double n_term = SMOOTHING / n;
    if (std::max({int64_t(grid.x) * block.x, n * rows, rows}) <= INT32_MAX)
        smoothed_loss_backward_kernel<T, int><<<grid, block, 0, stream>>>(
            x, target, grad_loss, grad_x, n, rows, n_term);
    else
        smoothed_loss_backward_kernel<T, int64_t><<<grid, block, 0, stream>>>(
            x, target, grad_loss, grad_x, n, rows, n_term);
    return cudaGetLastError();
}

template <typename T>
cudaError_t launch_smoothed_loss_backward(
    const T* x, const int64_t* target, const T* grad_loss, T* grad_x, int64_t n, int64_t rows, cudaStream_t stream)
{
    if (rows == 0) return cudaSuccess;
    const dim3 block(256);
    const dim3 grid((rows + block.x - 1) / block.x);
    return launch_smoothed_loss_backward(x, target, grad_loss, grad_x, n, rows, grid, block, stream);
}

}  // namespace

cudaError_t silu_launch(const float* x, float* out, int64_t elements, dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_silu(x, out, elements, grid, block, stream);
}

cudaError_t silu_launch(const double* x, double* out, int64_t elements, dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_silu(x, out, elements, grid, block, stream);
}

cudaError_t silu_launch(const __half* x, __half* out, int64_t elements, dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_silu(x, out, elements, grid, block, stream);
}

cudaError_t silu_launch(
    const __nv_bfloat16* x, __nv_bfloat16* out, int64_t elements, dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_silu(x, out, elements, grid, block, stream);
}

cudaError_t silu_launch(const float* x, float* out, int64_t elements, cudaStream_t stream)
{
    return launch_silu(x, out, elements, stream);
}

cudaError_t silu_launch(const double* x, double* out, int64_t elements, cudaStream_t stream)
{
    return launch_silu(x, out, elements, stream);
}

cudaError_t silu_launch(const __half* x, __half* out, int64_t elements, cudaStream_t stream)
{
    return launch_silu(x, out, elements, stream);
}

cudaError_t silu_launch(const __nv_bfloat16* x, __nv_bfloat16* out, int64_t elements, cudaStream_t stream)
{
    return launch_silu(x, out, elements, stream);
}

cudaError_t silu_backward_launch(
    const float* x, const float* grad_out, float* grad_x, int64_t elements, dim3 grid, dim3 block,
    cudaStream_t stream)
{
    return launch_silu_backward(x, grad_out, grad_x, elements, grid, block, stream);
}

cudaError_t silu_backward_launch(
    const double* x, const double* grad_out, double* grad_x, int64_t elements, dim3 grid, dim3 block,
    cudaStream_t stream)
{
    return launch_silu_backward(x, grad_out, grad_x, elements, grid, block, stream);
}

cudaError_t silu_backward_launch(
    const __half* x, const __half* grad_out, __half* grad_x, int64_t elements, dim3 grid, dim3 block,
    cudaStream_t stream)
{
    return launch_silu_backward(x, grad_out, grad_x, elements, grid, block, stream);
}

cudaError_t silu_backward_launch(
    const __nv_bfloat16* x, const __nv_bfloat16* grad_out, __nv_bfloat16* grad_x, int64_t elements, dim3 grid,
    dim3 block, cudaStream_t stream)
{
    return launch_silu_backward(x, grad_out, grad_x, elements, grid, block, stream);
}

cudaError_t silu_backward_launch(
    const float* x, const float* grad_out, float* grad_x, int64_t elements, cudaStream_t stream)
{
    return launch_silu_backward(x, grad_out, grad_x, elements, stream);
}

cudaError_t silu_backward_launch(
    const double* x, const double* grad_out, double* grad_x, int64_t elements, cudaStream_t stream)
{
    return launch_silu_backward(x, grad_out, grad_x, elements, stream);
}

cudaError_t silu_backward_launch(
    const __half* x, const __half* grad_out, __half* grad_x, int64_t elements, cudaStream_t stream)
{
    return launch_silu_backward(x, grad_out, grad_x, elements, stream);
}

cudaError_t silu_backward_launch(
    const __nv_bfloat16* x, const __nv_bfloat16* grad_out, __nv_bfloat16* grad_x, int64_t elements,
    cudaStream_t stream)
{
    return launch_silu_backward(x, grad_out, grad_x, elements, stream);
}

cudaError_t standardise_launch(
    const float* x, float* out, float* scale, int64_t n, double eps, int64_t rows, dim3 grid, dim3 block,
    cudaStream_t stream)
{
    return launch_standardise(x, out, scale, n, eps, rows, grid, block, stream);
}

cudaError_t standardise_launch(
    const double* x, double* out, double* scale, int64_t n, double eps, int64_t rows, dim3 grid, dim3 block,
    cudaStream_t stream)
{
    return launch_standardise(x, out, scale, n, eps, rows, grid, block, stream);
}

cudaError_t standardise_launch(
    const __half* x, __half* out, __half* scale, int64_t n, double eps, int64_t rows, dim3 grid, dim3 block,
    cudaStream_t stream)
{
    return launch_standardise(x, out, scale, n, eps, rows, grid, block, stream);
}

cudaError_t standardise_launch(
    const __nv_bfloat16* x, __nv_bfloat16* out, __nv_bfloat16* scale, int64_t n, double eps, int64_t rows,
    dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_standardise(x, out, scale, n, eps, rows, grid, block, stream);
}

cudaError_t standardise_launch(
    const float* x, float* out, float* scale, int64_t n, double eps, int64_t rows, cudaStream_t stream)
{
    return launch_standardise(x, out, scale, n, eps, rows, stream);
}

cudaError_t standardise_launch(
    const double* x, double* out, double* scale, int64_t n, double eps, int64_t rows, cudaStream_t stream)
{
    return launch_standardise(x, out, scale, n, eps, rows, stream);
}

cudaError_t standardise_launch(
    const __half* x, __half* out, __half* scale, int64_t n, double eps, int64_t rows, cudaStream_t stream)
{
    return launch_standardise(x, out, scale, n, eps, rows, stream);
}

cudaError_t standardise_launch(
    const __nv_bfloat16* x, __nv_bfloat16* out, __nv_bfloat16* scale, int64_t n, double eps, int64_t rows,
    cudaStream_t stream)
{
    return launch_standardise(x, out, scale, n, eps, rows, stream);
}

cudaError_t standardise_backward_launch(
    const float* out, const float* scale, const float* grad_out, float* grad_x, int64_t n, int64_t rows, dim3 grid,
    dim3 block, cudaStream_t stream)
{
    return launch_standardise_backward(out, scale, grad_out, grad_x, n, rows, grid, block, stream);
}

cudaError_t standardise_backward_launch(
    const double* out, const double* scale, const double* grad_out, double* grad_x, int64_t n, int64_t rows,
    dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_standardise_backward(out, scale, grad_out, grad_x, n, rows, grid, block, stream);
}

cudaError_t standardise_backward_launch(
    const __half* out, const __half* scale, const __half* grad_out, __half* grad_x, int64_t n, int64_t rows,
    dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_standardise_backward(out, scale, grad_out, grad_x, n, rows, grid, block, stream);
}

cudaError_t standardise_backward_launch(
    const __nv_bfloat16* out, const __nv_bfloat16* scale, const __nv_bfloat16* grad_out, __nv_bfloat16* grad_x,
    int64_t n, int64_t rows, dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_standardise_backward(out, scale, grad_out, grad_x, n, rows, grid, block, stream);
}

cudaError_t standardise_backward_launch(
    const float* out, const float* scale, const float* grad_out, float* grad_x, int64_t n, int64_t rows,
    cudaStream_t stream)
{
    return launch_standardise_backward(out, scale, grad_out, grad_x, n, rows, stream);
}

cudaError_t standardise_backward_launch(
    const double* out, const double* scale, const double* grad_out, double* grad_x, int64_t n, int64_t rows,
    cudaStream_t stream)
{
    return launch_standardise_backward(out, scale, grad_out, grad_x, n, rows, stream);
}

cudaError_t standardise_backward_launch(
    const __half* out, const __half* scale, const __half* grad_out, __half* grad_x, int64_t n, int64_t rows,
    cudaStream_t stream)
{
    return launch_standardise_backward(out, scale, grad_out, grad_x, n, rows, stream);
}

cudaError_t standardise_backward_launch(
    const __nv_bfloat16* out, const __nv_bfloat16* scale, const __nv_bfloat16* grad_out, __nv_bfloat16* grad_x,
    int64_t n, int64_t rows, cudaStream_t stream)
{
    return launch_standardise_backward(out, scale, grad_out, grad_x, n, rows, stream);
}

cudaError_t smoothed_loss_launch(
    const float* x, const int64_t* target, float* loss, int64_t n, int64_t rows, dim3 grid, dim3 block,
    cudaStream_t stream)
{
    return launch_smoothed_loss(x, target, loss, n, rows, grid, block, stream);
}

cudaError_t smoothed_loss_launch(
    const double* x, const int64_t* target, double* loss, int64_t n, int64_t rows, dim3 grid, dim3 block,
    cudaStream_t stream)
{
    return launch_smoothed_loss(x, target, loss, n, rows, grid, block, stream);
}

cudaError_t smoothed_loss_launch(
    const __half* x, const int64_t* target, __half* loss, int64_t n, int64_t rows, dim3 grid, dim3 block,
    cudaStream_t stream)
{
    return launch_smoothed_loss(x, target, loss, n, rows, grid, block, stream);
}

cudaError_t smoothed_loss_launch(
    const __nv_bfloat16* x, const int64_t* target, __nv_bfloat16* loss, int64_t n, int64_t rows, dim3 grid,
    dim3 block, cudaStream_t stream)
{
    return launch_smoothed_loss(x, target, loss, n, rows, grid, block, stream);
}

cudaError_t smoothed_loss_launch(
    const float* x, const int64_t* target, float* loss, int64_t n, int64_t rows, cudaStream_t stream)
{
    return launch_smoothed_loss(x, target, loss, n, rows, stream);
}

cudaError_t smoothed_loss_launch(
    const double* x, const int64_t* target, double* loss, int64_t n, int64_t rows, cudaStream_t stream)
{
    return launch_smoothed_loss(x, target, loss, n, rows, stream);
}

cudaError_t smoothed_loss_launch(
    const __half* x, const int64_t* target, __half* loss, int64_t n, int64_t rows, cudaStream_t stream)
{
    return launch_smoothed_loss(x, target, loss, n, rows, stream);
}

cudaError_t smoothed_loss_launch(
    const __nv_bfloat16* x, const int64_t* target, __nv_bfloat16* loss, int64_t n, int64_t rows, cudaStream_t stream)
{
    return launch_smoothed_loss(x, target, loss, n, rows, stream);
}

cudaError_t smoothed_loss_backward_launch(
    const float* x, const int64_t* target, const float* grad_loss, float* grad_x, int64_t n, int64_t rows,
    dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_smoothed_loss_backward(x, target, grad_loss, grad_x, n, rows, grid, block, stream);
}

cudaError_t smoothed_loss_backward_launch(
    const double* x, const int64_t* target, const double* grad_loss, double* grad_x, int64_t n, int64_t rows,
    dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_smoothed_loss_backward(x, target, grad_loss, grad_x, n, rows, grid, block, stream);
}

cudaError_t smoothed_loss_backward_launch(
    const __half* x, const int64_t* target, const __half* grad_loss, __half* grad_x, int64_t n, int64_t rows,
    dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_smoothed_loss_backward(x, target, grad_loss, grad_x, n, rows, grid, block, stream);
}

cudaError_t smoothed_loss_backward_launch(
    const __nv_bfloat16* x, const int64_t* target, const __nv_bfloat16* grad_loss, __nv_bfloat16* grad_x, int64_t n,
    int64_t rows, dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_smoothed_loss_backward(x, target, grad_loss, grad_x, n, rows, grid, block, stream);
}

cudaError_t smoothed_loss_backward_launch(
    const float* x, const int64_t* target, const float* grad_loss, float* grad_x, int64_t n, int64_t rows,
    cudaStream_t stream)
{
    return launch_smoothed_loss_backward(x, target, grad_loss, grad_x, n, rows, stream);
}

cudaError_t smoothed_loss_backward_launch(
    const double* x, const int64_t* target, const double* grad_loss, double* grad_x, int64_t n, int64_t rows,
    cudaStream_t stream)
{
    return launch_smoothed_loss_backward(x, target, grad_loss, grad_x, n, rows, stream);
}

cudaError_t smoothed_loss_backward_launch(
    const __half* x, const int64_t* target, const __half* grad_loss, __half* grad_x, int64_t n, int64_t rows,
    cudaStream_t stream)
{
    return launch_smoothed_loss_backward(x, target, grad_loss, grad_x, n, rows, stream);
}

cudaError_t smoothed_loss_backward_launch(
    const __nv_bfloat16* x, const int64_t* target, const __nv_bfloat16* grad_loss, __nv_bfloat16* grad_x, int64_t n,
    int64_t rows, cudaStream_t stream)
{
    return launch_smoothed_loss_backward(x, target, grad_loss, grad_x, n, rows, stream);
}
