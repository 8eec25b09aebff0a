// train_digits: CUDA kernels and their launchers, translated from train_digits.py by py2cu.
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

// T is float, double, __half or __nv_bfloat16.
template <typename T, typename index_t>  // index_t: int, or int64_t where an extent needs it
__global__ void silu_kernel(const T* x, T* out, index_t elements)
{
    index_t i = blockIdx.x * index_t(blockDim.x) + threadIdx.x;
    if (i >= elements) return;
    out[i] = x[i] / (T(1) + static_cast<T>(exp(to_compute_type(-x[i]))));
}

template <typename T>
cudaError_t silu_launch(const T* x, T* out, int64_t elements, dim3 grid, dim3 block, cudaStream_t stream)
{
    if (std::max({int64_t(grid.x) * block.x, elements}) <= INT32_MAX)
        silu_kernel<T, int><<<grid, block, 0, stream>>>(x, out, elements);
    else
        silu_kernel<T, int64_t><<<grid, block, 0, stream>>>(x, out, elements);
    return cudaGetLastError();
}

template cudaError_t silu_launch<float>(
    const float* x, float* out, int64_t elements, dim3 grid, dim3 block, cudaStream_t stream);
template cudaError_t silu_launch<double>(
    const double* x, double* out, int64_t elements, dim3 grid, dim3 block, cudaStream_t stream);
template cudaError_t silu_launch<__half>(
    const __half* x, __half* out, int64_t elements, dim3 grid, dim3 block, cudaStream_t stream);
template cudaError_t silu_launch<__nv_bfloat16>(
    const __nv_bfloat16* x, __nv_bfloat16* out, int64_t elements, dim3 grid, dim3 block, cudaStream_t stream);

template <typename T>
cudaError_t silu_launch(const T* x, T* out, int64_t elements, cudaStream_t stream)
{
    if (elements == 0) return cudaSuccess;
    const dim3 block(256);
    const dim3 grid((elements + block.x - 1) / block.x);
    return silu_launch(x, out, elements, grid, block, stream);
}

template cudaError_t silu_launch<float>(const float* x, float* out, int64_t elements, cudaStream_t stream);
template cudaError_t silu_launch<double>(const double* x, double* out, int64_t elements, cudaStream_t stream);
template cudaError_t silu_launch<__half>(const __half* x, __half* out, int64_t elements, cudaStream_t stream);
template cudaError_t silu_launch<__nv_bfloat16>(
    const __nv_bfloat16* x, __nv_bfloat16* out, int64_t elements, cudaStream_t stream);

// T is float, double, __half or __nv_bfloat16.
template <typename T, typename index_t>  // index_t: int, or int64_t where an extent needs it
__global__ void silu_backward_kernel(const T* x, const T* grad_out, T* grad_x, index_t elements)
{
    index_t i = blockIdx.x * index_t(blockDim.x) + threadIdx.x;
    if (i >= elements) return;
    T s = T(1) / (T(1) + static_cast<T>(exp(to_compute_type(-x[i]))));
    grad_x[i] = grad_out[i] * s * (T(1) + x[i] * (T(1) - s));
}

template <typename T>
cudaError_t silu_backward_launch(
    const T* x, const T* grad_out, T* grad_x, int64_t elements, dim3 grid, dim3 block, cudaStream_t stream)
{
    if (std::max({int64_t(grid.x) * block.x, elements}) <= INT32_MAX)
        silu_backward_kernel<T, int><<<grid, block, 0, stream>>>(x, grad_out, grad_x, elements);
    else
        silu_backward_kernel<T, int64_t><<<grid, block, 0, stream>>>(x, grad_out, grad_x, elements);
    return cudaGetLastError();
}

template cudaError_t silu_backward_launch<float>(
    const float* x, const float* grad_out, float* grad_x, int64_t elements, dim3 grid, dim3 block,
    cudaStream_t stream);
template cudaError_t silu_backward_launch<double>(
    const double* x, const double* grad_out, double* grad_x, int64_t elements, dim3 grid, dim3 block,
    cudaStream_t stream);
template cudaError_t silu_backward_launch<__half>(
    const __half* x, const __half* grad_out, __half* grad_x, int64_t elements, dim3 grid, dim3 block,
    cudaStream_t stream);
template cudaError_t silu_backward_launch<__nv_bfloat16>(
    const __nv_bfloat16* x, const __nv_bfloat16* grad_out, __nv_bfloat16* grad_x, int64_t elements, dim3 grid,
    dim3 block, cudaStream_t stream);

template <typename T>
cudaError_t silu_backward_launch(const T* x, const T* grad_out, T* grad_x, int64_t elements, cudaStream_t stream)
{
    if (elements == 0) return cudaSuccess;
    const dim3 block(256);
    const dim3 grid((elements + block.x - 1) / block.x);
    return silu_backward_launch(x, grad_out, grad_x, elements, grid, block, stream);
}

template cudaError_t silu_backward_launch<float>(
    const float* x, const float* grad_out, float* grad_x, int64_t elements, cudaStream_t stream);
template cudaError_t silu_backward_launch<double>(
    const double* x, const double* grad_out, double* grad_x, int64_t elements, cudaStream_t stream);
template cudaError_t silu_backward_launch<__half>(
    const __half* x, const __half* grad_out, __half* grad_x, int64_t elements, cudaStream_t stream);
template cudaError_t silu_backward_launch<__nv_bfloat16>(
    const __nv_bfloat16* x, const __nv_bfloat16* grad_out, __nv_bfloat16* grad_x, int64_t elements,
    cudaStream_t stream);

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
cudaError_t standardise_launch(
    const T* x, T* out, T* scale, int64_t n, double eps, int64_t rows, dim3 grid, dim3 block, cudaStream_t stream)
{
    if (std::max({int64_t(grid.x) * block.x, n * rows, rows}) <= INT32_MAX)
        standardise_kernel<T, int><<<grid, block, 0, stream>>>(x, out, scale, n, round_to<T>(eps), rows);
    else
        standardise_kernel<T, int64_t><<<grid, block, 0, stream>>>(x, out, scale, n, round_to<T>(eps), rows);
    return cudaGetLastError();
}

template cudaError_t standardise_launch<float>(
    const float* x, float* out, float* scale, int64_t n, double eps, int64_t rows, dim3 grid, dim3 block,
    cudaStream_t stream);
template cudaError_t standardise_launch<double>(
    const double* x, double* out, double* scale, int64_t n, double eps, int64_t rows, dim3 grid, dim3 block,
    cudaStream_t stream);
template cudaError_t standardise_launch<__half>(
    const __half* x, __half* out, __half* scale, int64_t n, double eps, int64_t rows, dim3 grid, dim3 block,
    cudaStream_t stream);
template cudaError_t standardise_launch<__nv_bfloat16>(
    const __nv_bfloat16* x, __nv_bfloat16* out, __nv_bfloat16* scale, int64_t n, double eps, int64_t rows,
    dim3 grid, dim3 block, cudaStream_t stream);

template <typename T>
cudaError_t standardise_launch(
    const T* x, T* out, T* scale, int64_t n, double eps, int64_t rows, cudaStream_t stream)
{
    if (rows == 0) return cudaSuccess;
    const dim3 block(256);
    const dim3 grid((rows + block.x - 1) / block.x);
    return standardise_launch(x, out, scale, n, eps, rows, grid, block, stream);
}

template cudaError_t standardise_launch<float>(
    const float* x, float* out, float* scale, int64_t n, double eps, int64_t rows, cudaStream_t stream);
template cudaError_t standardise_launch<double>(
    const double* x, double* out, double* scale, int64_t n, double eps, int64_t rows, cudaStream_t stream);
template cudaError_t standardise_launch<__half>(
    const __half* x, __half* out, __half* scale, int64_t n, double eps, int64_t rows, cudaStream_t stream);
template cudaError_t standardise_launch<__nv_bfloat16>(
    const __nv_bfloat16* x, __nv_bfloat16* out, __nv_bfloat16* scale, int64_t n, double eps, int64_t rows,
    cudaStream_t stream);

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
cudaError_t standardise_backward_launch(
    const T* out, const T* scale, const T* grad_out, T* grad_x, int64_t n, int64_t rows, dim3 grid, dim3 block,
    cudaStream_t stream)
{
    if (std::max({int64_t(grid.x) * block.x, n * rows, rows}) <= INT32_MAX)
        standardise_backward_kernel<T, int><<<grid, block, 0, stream>>>(out, scale, grad_out, grad_x, n, rows);
    else
        standardise_backward_kernel<T, int64_t><<<grid, block, 0, stream>>>(out, scale, grad_out, grad_x, n, rows);
    return cudaGetLastError();
}

template cudaError_t standardise_backward_launch<float>(
    const float* out, const float* scale, const float* grad_out, float* grad_x, int64_t n, int64_t rows, dim3 grid,
    dim3 block, cudaStream_t stream);
template cudaError_t standardise_backward_launch<double>(
    const double* out, const double* scale, const double* grad_out, double* grad_x, int64_t n, int64_t rows,
    dim3 grid, dim3 block, cudaStream_t stream);
template cudaError_t standardise_backward_launch<__half>(
    const __half* out, const __half* scale, const __half* grad_out, __half* grad_x, int64_t n, int64_t rows,
    dim3 grid, dim3 block, cudaStream_t stream);
template cudaError_t standardise_backward_launch<__nv_bfloat16>(
    const __nv_bfloat16* out, const __nv_bfloat16* scale, const __nv_bfloat16* grad_out, __nv_bfloat16* grad_x,
    int64_t n, int64_t rows, dim3 grid, dim3 block, cudaStream_t stream);

template <typename T>
cudaError_t standardise_backward_launch(
    const T* out, const T* scale, const T* grad_out, T* grad_x, int64_t n, int64_t rows, cudaStream_t stream)
{
    if (rows == 0) return cudaSuccess;
    const dim3 block(256);
    const dim3 grid((rows + block.x - 1) / block.x);
    return standardise_backward_launch(out, scale, grad_out, grad_x, n, rows, grid, block, stream);
}

template cudaError_t standardise_backward_launch<float>(
    const float* out, const float* scale, const float* grad_out, float* grad_x, int64_t n, int64_t rows,
    cudaStream_t stream);
template cudaError_t standardise_backward_launch<double>(
    const double* out, const double* scale, const double* grad_out, double* grad_x, int64_t n, int64_t rows,
    cudaStream_t stream);
template cudaError_t standardise_backward_launch<__half>(
    const __half* out, const __half* scale, const __half* grad_out, __half* grad_x, int64_t n, int64_t rows,
    cudaStream_t stream);
template cudaError_t standardise_backward_launch<__nv_bfloat16>(
    const __nv_bfloat16* out, const __nv_bfloat16* scale, const __nv_bfloat16* grad_out, __nv_bfloat16* grad_x,
    int64_t n, int64_t rows, cudaStream_t stream);

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
    loss[r] = static_cast<T>(log(to_compute_type(total))) + top - round_to<T>(1 - 0.1) * x[r * n + target[r]] -
              T(0.1) * mean;
}

template <typename T>
cudaError_t smoothed_loss_launch(
    const T* x, const int64_t* target, T* loss, int64_t n, int64_t rows, dim3 grid, dim3 block, cudaStream_t stream)
{
    if (std::max({int64_t(grid.x) * block.x, n * rows, rows}) <= INT32_MAX)
        smoothed_loss_kernel<T, int><<<grid, block, 0, stream>>>(x, target, loss, n, rows);
    else
        smoothed_loss_kernel<T, int64_t><<<grid, block, 0, stream>>>(x, target, loss, n, rows);
    return cudaGetLastError();
}

template cudaError_t smoothed_loss_launch<float>(
    const float* x, const int64_t* target, float* loss, int64_t n, int64_t rows, dim3 grid, dim3 block,
    cudaStream_t stream);
template cudaError_t smoothed_loss_launch<double>(
    const double* x, const int64_t* target, double* loss, int64_t n, int64_t rows, dim3 grid, dim3 block,
    cudaStream_t stream);
template cudaError_t smoothed_loss_launch<__half>(
    const __half* x, const int64_t* target, __half* loss, int64_t n, int64_t rows, dim3 grid, dim3 block,
    cudaStream_t stream);
template cudaError_t smoothed_loss_launch<__nv_bfloat16>(
    const __nv_bfloat16* x, const int64_t* target, __nv_bfloat16* loss, int64_t n, int64_t rows, dim3 grid,
    dim3 block, cudaStream_t stream);

template <typename T>
cudaError_t smoothed_loss_launch(
    const T* x, const int64_t* target, T* loss, int64_t n, int64_t rows, cudaStream_t stream)
{
    if (rows == 0) return cudaSuccess;
    const dim3 block(256);
    const dim3 grid((rows + block.x - 1) / block.x);
    return smoothed_loss_launch(x, target, loss, n, rows, grid, block, stream);
}

template cudaError_t smoothed_loss_launch<float>(
    const float* x, const int64_t* target, float* loss, int64_t n, int64_t rows, cudaStream_t stream);
template cudaError_t smoothed_loss_launch<double>(
    const double* x, const int64_t* target, double* loss, int64_t n, int64_t rows, cudaStream_t stream);
template cudaError_t smoothed_loss_launch<__half>(
    const __half* x, const int64_t* target, __half* loss, int64_t n, int64_t rows, cudaStream_t stream);
template cudaError_t smoothed_loss_launch<__nv_bfloat16>(
    const __nv_bfloat16* x, const int64_t* target, __nv_bfloat16* loss, int64_t n, int64_t rows, cudaStream_t stream);

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
        T wanted = round_to<T>((i == target[r] ? 1 - 0.1 : 0.0) + n_term);
        grad_x[r * n + i] = grad_loss[r] * (static_cast<T>(exp(to_compute_type(x[r * n + i] - top))) / total - wanted);
    }
}

template <typename T>
cudaError_t smoothed_loss_backward_launch(
    const T* x, const int64_t* target, const T* grad_loss, T* grad_x, int64_t n, int64_t rows, dim3 grid,
    dim3 block, cudaStream_t stream)
{
    const double n_term = 0.1 / n;
    if (std::max({int64_t(grid.x) * block.x, n * rows, rows}) <= INT32_MAX)
        smoothed_loss_backward_kernel<T, int><<<grid, block, 0, stream>>>(
            x, target, grad_loss, grad_x, n, rows, n_term);
    else
        smoothed_loss_backward_kernel<T, int64_t><<<grid, block, 0, stream>>>(
            x, target, grad_loss, grad_x, n, rows, n_term);
    return cudaGetLastError();
}

template cudaError_t smoothed_loss_backward_launch<float>(
    const float* x, const int64_t* target, const float* grad_loss, float* grad_x, int64_t n, int64_t rows,
    dim3 grid, dim3 block, cudaStream_t stream);
template cudaError_t smoothed_loss_backward_launch<double>(
    const double* x, const int64_t* target, const double* grad_loss, double* grad_x, int64_t n, int64_t rows,
    dim3 grid, dim3 block, cudaStream_t stream);
template cudaError_t smoothed_loss_backward_launch<__half>(
    const __half* x, const int64_t* target, const __half* grad_loss, __half* grad_x, int64_t n, int64_t rows,
    dim3 grid, dim3 block, cudaStream_t stream);
template cudaError_t smoothed_loss_backward_launch<__nv_bfloat16>(
    const __nv_bfloat16* x, const int64_t* target, const __nv_bfloat16* grad_loss, __nv_bfloat16* grad_x, int64_t n,
    int64_t rows, dim3 grid, dim3 block, cudaStream_t stream);

template <typename T>
cudaError_t smoothed_loss_backward_launch(
    const T* x, const int64_t* target, const T* grad_loss, T* grad_x, int64_t n, int64_t rows, cudaStream_t stream)
{
    if (rows == 0) return cudaSuccess;
    const dim3 block(256);
    const dim3 grid((rows + block.x - 1) / block.x);
    return smoothed_loss_backward_launch(x, target, grad_loss, grad_x, n, rows, grid, block, stream);
}

template cudaError_t smoothed_loss_backward_launch<float>(
    const float* x, const int64_t* target, const float* grad_loss, float* grad_x, int64_t n, int64_t rows,
    cudaStream_t stream);
template cudaError_t smoothed_loss_backward_launch<double>(
    const double* x, const int64_t* target, const double* grad_loss, double* grad_x, int64_t n, int64_t rows,
    cudaStream_t stream);
template cudaError_t smoothed_loss_backward_launch<__half>(
    const __half* x, const int64_t* target, const __half* grad_loss, __half* grad_x, int64_t n, int64_t rows,
    cudaStream_t stream);
template cudaError_t smoothed_loss_backward_launch<__nv_bfloat16>(
    const __nv_bfloat16* x, const int64_t* target, const __nv_bfloat16* grad_loss, __nv_bfloat16* grad_x, int64_t n,
    int64_t rows, cudaStream_t stream);
