// layers: CUDA kernels and their launchers, translated from layers.py by py2cu.
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

// X times the probability that a normal variable is smaller.
// T is float, double, __half or __nv_bfloat16.
template <typename T, typename index_t>  // index_t: int, or int64_t where an extent needs it
__global__ void gelu_kernel(const T* x, T* out, index_t elements)
{
    index_t i = blockIdx.x * index_t(blockDim.x) + threadIdx.x;
    if (i >= elements) return;
    out[i] = T(0.5) * x[i] * (T(1) + static_cast<T>(erf(to_compute_type(x[i] / round_to<T>(sqrt(2.0))))));
}

template <typename T>
cudaError_t gelu_launch(const T* x, T* out, int64_t elements, dim3 grid, dim3 block, cudaStream_t stream)
{
    if (std::max({int64_t(grid.x) * block.x, elements}) <= INT32_MAX)
        gelu_kernel<T, int><<<grid, block, 0, stream>>>(x, out, elements);
    else
        gelu_kernel<T, int64_t><<<grid, block, 0, stream>>>(x, out, elements);
    return cudaGetLastError();
}

template cudaError_t gelu_launch<float>(
    const float* x, float* out, int64_t elements, dim3 grid, dim3 block, cudaStream_t stream);
template cudaError_t gelu_launch<double>(
    const double* x, double* out, int64_t elements, dim3 grid, dim3 block, cudaStream_t stream);
template cudaError_t gelu_launch<__half>(
    const __half* x, __half* out, int64_t elements, dim3 grid, dim3 block, cudaStream_t stream);
template cudaError_t gelu_launch<__nv_bfloat16>(
    const __nv_bfloat16* x, __nv_bfloat16* out, int64_t elements, dim3 grid, dim3 block, cudaStream_t stream);

template <typename T>
cudaError_t gelu_launch(const T* x, T* out, int64_t elements, cudaStream_t stream)
{
    if (elements == 0) return cudaSuccess;
    const dim3 block(256);
    const dim3 grid((elements + block.x - 1) / block.x);
    return gelu_launch(x, out, elements, grid, block, stream);
}

template cudaError_t gelu_launch<float>(const float* x, float* out, int64_t elements, cudaStream_t stream);
template cudaError_t gelu_launch<double>(const double* x, double* out, int64_t elements, cudaStream_t stream);
template cudaError_t gelu_launch<__half>(const __half* x, __half* out, int64_t elements, cudaStream_t stream);
template cudaError_t gelu_launch<__nv_bfloat16>(
    const __nv_bfloat16* x, __nv_bfloat16* out, int64_t elements, cudaStream_t stream);

// T is float, double, __half or __nv_bfloat16.
template <typename T, typename index_t>  // index_t: int, or int64_t where an extent needs it
__global__ void gelu_backward_kernel(const T* x, const T* grad_out, T* grad_x, index_t elements)
{
    index_t i = blockIdx.x * index_t(blockDim.x) + threadIdx.x;
    if (i >= elements) return;
    T probability = T(0.5) * (T(1) + static_cast<T>(erf(to_compute_type(x[i] / round_to<T>(sqrt(2.0))))));
    T density = static_cast<T>(exp(to_compute_type(T(-0.5) * x[i] * x[i]))) / round_to<T>(sqrt(2 * 3.141592653589793));
    grad_x[i] = grad_out[i] * (probability + x[i] * density);
}

template <typename T>
cudaError_t gelu_backward_launch(
    const T* x, const T* grad_out, T* grad_x, int64_t elements, dim3 grid, dim3 block, cudaStream_t stream)
{
    if (std::max({int64_t(grid.x) * block.x, elements}) <= INT32_MAX)
        gelu_backward_kernel<T, int><<<grid, block, 0, stream>>>(x, grad_out, grad_x, elements);
    else
        gelu_backward_kernel<T, int64_t><<<grid, block, 0, stream>>>(x, grad_out, grad_x, elements);
    return cudaGetLastError();
}

template cudaError_t gelu_backward_launch<float>(
    const float* x, const float* grad_out, float* grad_x, int64_t elements, dim3 grid, dim3 block,
    cudaStream_t stream);
template cudaError_t gelu_backward_launch<double>(
    const double* x, const double* grad_out, double* grad_x, int64_t elements, dim3 grid, dim3 block,
    cudaStream_t stream);
template cudaError_t gelu_backward_launch<__half>(
    const __half* x, const __half* grad_out, __half* grad_x, int64_t elements, dim3 grid, dim3 block,
    cudaStream_t stream);
template cudaError_t gelu_backward_launch<__nv_bfloat16>(
    const __nv_bfloat16* x, const __nv_bfloat16* grad_out, __nv_bfloat16* grad_x, int64_t elements, dim3 grid,
    dim3 block, cudaStream_t stream);

template <typename T>
cudaError_t gelu_backward_launch(const T* x, const T* grad_out, T* grad_x, int64_t elements, cudaStream_t stream)
{
    if (elements == 0) return cudaSuccess;
    const dim3 block(256);
    const dim3 grid((elements + block.x - 1) / block.x);
    return gelu_backward_launch(x, grad_out, grad_x, elements, grid, block, stream);
}

template cudaError_t gelu_backward_launch<float>(
    const float* x, const float* grad_out, float* grad_x, int64_t elements, cudaStream_t stream);
template cudaError_t gelu_backward_launch<double>(
    const double* x, const double* grad_out, double* grad_x, int64_t elements, cudaStream_t stream);
template cudaError_t gelu_backward_launch<__half>(
    const __half* x, const __half* grad_out, __half* grad_x, int64_t elements, cudaStream_t stream);
template cudaError_t gelu_backward_launch<__nv_bfloat16>(
    const __nv_bfloat16* x, const __nv_bfloat16* grad_out, __nv_bfloat16* grad_x, int64_t elements,
    cudaStream_t stream);

// X times the SiLU of the gate.
// T is float, double, __half or __nv_bfloat16.
template <typename T, typename index_t>  // index_t: int, or int64_t where an extent needs it
__global__ void swiglu_kernel(const T* gate, const T* x, T* out, index_t elements)
{
    index_t i = blockIdx.x * index_t(blockDim.x) + threadIdx.x;
    if (i >= elements) return;
    out[i] = x[i] * gate[i] / (T(1) + static_cast<T>(exp(to_compute_type(-gate[i]))));
}

template <typename T>
cudaError_t swiglu_launch(
    const T* gate, const T* x, T* out, int64_t elements, dim3 grid, dim3 block, cudaStream_t stream)
{
    if (std::max({int64_t(grid.x) * block.x, elements}) <= INT32_MAX)
        swiglu_kernel<T, int><<<grid, block, 0, stream>>>(gate, x, out, elements);
    else
        swiglu_kernel<T, int64_t><<<grid, block, 0, stream>>>(gate, x, out, elements);
    return cudaGetLastError();
}

template cudaError_t swiglu_launch<float>(
    const float* gate, const float* x, float* out, int64_t elements, dim3 grid, dim3 block, cudaStream_t stream);
template cudaError_t swiglu_launch<double>(
    const double* gate, const double* x, double* out, int64_t elements, dim3 grid, dim3 block, cudaStream_t stream);
template cudaError_t swiglu_launch<__half>(
    const __half* gate, const __half* x, __half* out, int64_t elements, dim3 grid, dim3 block, cudaStream_t stream);
template cudaError_t swiglu_launch<__nv_bfloat16>(
    const __nv_bfloat16* gate, const __nv_bfloat16* x, __nv_bfloat16* out, int64_t elements, dim3 grid, dim3 block,
    cudaStream_t stream);

template <typename T>
cudaError_t swiglu_launch(const T* gate, const T* x, T* out, int64_t elements, cudaStream_t stream)
{
    if (elements == 0) return cudaSuccess;
    const dim3 block(256);
    const dim3 grid((elements + block.x - 1) / block.x);
    return swiglu_launch(gate, x, out, elements, grid, block, stream);
}

template cudaError_t swiglu_launch<float>(
    const float* gate, const float* x, float* out, int64_t elements, cudaStream_t stream);
template cudaError_t swiglu_launch<double>(
    const double* gate, const double* x, double* out, int64_t elements, cudaStream_t stream);
template cudaError_t swiglu_launch<__half>(
    const __half* gate, const __half* x, __half* out, int64_t elements, cudaStream_t stream);
template cudaError_t swiglu_launch<__nv_bfloat16>(
    const __nv_bfloat16* gate, const __nv_bfloat16* x, __nv_bfloat16* out, int64_t elements, cudaStream_t stream);

// T is float, double, __half or __nv_bfloat16.
template <typename T, typename index_t>  // index_t: int, or int64_t where an extent needs it
__global__ void swiglu_backward_kernel(
    const T* gate, const T* x, const T* grad_out, T* grad_gate, T* __restrict__ grad_x, index_t elements)
{
    index_t i = blockIdx.x * index_t(blockDim.x) + threadIdx.x;
    if (i >= elements) return;
    T s = T(1) / (T(1) + static_cast<T>(exp(to_compute_type(-gate[i]))));
    grad_x[i] = grad_out[i] * gate[i] * s;
    grad_gate[i] = grad_out[i] * x[i] * s * (T(1) + gate[i] * (T(1) - s));
}

template <typename T>
cudaError_t swiglu_backward_launch(
    const T* gate, const T* x, const T* grad_out, T* grad_gate, T* grad_x, int64_t elements, dim3 grid, dim3 block,
    cudaStream_t stream)
{
    if (std::max({int64_t(grid.x) * block.x, elements}) <= INT32_MAX)
        swiglu_backward_kernel<T, int><<<grid, block, 0, stream>>>(gate, x, grad_out, grad_gate, grad_x, elements);
    else
        swiglu_backward_kernel<T, int64_t><<<grid, block, 0, stream>>>(
            gate, x, grad_out, grad_gate, grad_x, elements);
    return cudaGetLastError();
}

template cudaError_t swiglu_backward_launch<float>(
    const float* gate, const float* x, const float* grad_out, float* grad_gate, float* grad_x, int64_t elements,
    dim3 grid, dim3 block, cudaStream_t stream);
template cudaError_t swiglu_backward_launch<double>(
    const double* gate, const double* x, const double* grad_out, double* grad_gate, double* grad_x,
    int64_t elements, dim3 grid, dim3 block, cudaStream_t stream);
template cudaError_t swiglu_backward_launch<__half>(
    const __half* gate, const __half* x, const __half* grad_out, __half* grad_gate, __half* grad_x,
    int64_t elements, dim3 grid, dim3 block, cudaStream_t stream);
template cudaError_t swiglu_backward_launch<__nv_bfloat16>(
    const __nv_bfloat16* gate, const __nv_bfloat16* x, const __nv_bfloat16* grad_out, __nv_bfloat16* grad_gate,
    __nv_bfloat16* grad_x, int64_t elements, dim3 grid, dim3 block, cudaStream_t stream);

template <typename T>
cudaError_t swiglu_backward_launch(
    const T* gate, const T* x, const T* grad_out, T* grad_gate, T* grad_x, int64_t elements, cudaStream_t stream)
{
    if (elements == 0) return cudaSuccess;
    const dim3 block(256);
    const dim3 grid((elements + block.x - 1) / block.x);
    return swiglu_backward_launch(gate, x, grad_out, grad_gate, grad_x, elements, grid, block, stream);
}

template cudaError_t swiglu_backward_launch<float>(
    const float* gate, const float* x, const float* grad_out, float* grad_gate, float* grad_x, int64_t elements,
    cudaStream_t stream);
template cudaError_t swiglu_backward_launch<double>(
    const double* gate, const double* x, const double* grad_out, double* grad_gate, double* grad_x,
    int64_t elements, cudaStream_t stream);
template cudaError_t swiglu_backward_launch<__half>(
    const __half* gate, const __half* x, const __half* grad_out, __half* grad_gate, __half* grad_x,
    int64_t elements, cudaStream_t stream);
template cudaError_t swiglu_backward_launch<__nv_bfloat16>(
    const __nv_bfloat16* gate, const __nv_bfloat16* x, const __nv_bfloat16* grad_out, __nv_bfloat16* grad_gate,
    __nv_bfloat16* grad_x, int64_t elements, cudaStream_t stream);

// Rows over the root of their mean square, times the weights; a thread takes a row.
// T is float, double, __half or __nv_bfloat16.
template <typename T, typename index_t>  // index_t: int, or int64_t where an extent needs it
__global__ void rms_norm_kernel(
    const T* __restrict__ x, const T* __restrict__ weight, T* __restrict__ out, T* __restrict__ scale, index_t n,
    T eps, index_t rows)
{
    index_t r = blockIdx.x * index_t(blockDim.x) + threadIdx.x;
    if (r >= rows) return;
    T total = T(0);
    for (index_t i = 0; i < n; ++i)
        total += x[r * n + i] * x[r * n + i];
    T s = T(1) / static_cast<T>(sqrt(to_compute_type(total / round_to<T>(n) + eps)));
    for (index_t i = 0; i < n; ++i)
        out[r * n + i] = x[r * n + i] * s * weight[i];
    scale[r] = s;
}

template <typename T>
cudaError_t rms_norm_launch(
    const T* x, const T* weight, T* out, T* scale, int64_t n, double eps, int64_t rows, dim3 grid, dim3 block,
    cudaStream_t stream)
{
    if (std::max({int64_t(grid.x) * block.x, n * rows, rows}) <= INT32_MAX)
        rms_norm_kernel<T, int><<<grid, block, 0, stream>>>(x, weight, out, scale, n, round_to<T>(eps), rows);
    else
        rms_norm_kernel<T, int64_t><<<grid, block, 0, stream>>>(x, weight, out, scale, n, round_to<T>(eps), rows);
    return cudaGetLastError();
}

template cudaError_t rms_norm_launch<float>(
    const float* x, const float* weight, float* out, float* scale, int64_t n, double eps, int64_t rows, dim3 grid,
    dim3 block, cudaStream_t stream);
template cudaError_t rms_norm_launch<double>(
    const double* x, const double* weight, double* out, double* scale, int64_t n, double eps, int64_t rows,
    dim3 grid, dim3 block, cudaStream_t stream);
template cudaError_t rms_norm_launch<__half>(
    const __half* x, const __half* weight, __half* out, __half* scale, int64_t n, double eps, int64_t rows,
    dim3 grid, dim3 block, cudaStream_t stream);
template cudaError_t rms_norm_launch<__nv_bfloat16>(
    const __nv_bfloat16* x, const __nv_bfloat16* weight, __nv_bfloat16* out, __nv_bfloat16* scale, int64_t n,
    double eps, int64_t rows, dim3 grid, dim3 block, cudaStream_t stream);

template <typename T>
cudaError_t rms_norm_launch(
    const T* x, const T* weight, T* out, T* scale, int64_t n, double eps, int64_t rows, cudaStream_t stream)
{
    if (rows == 0) return cudaSuccess;
    const dim3 block(256);
    const dim3 grid((rows + block.x - 1) / block.x);
    return rms_norm_launch(x, weight, out, scale, n, eps, rows, grid, block, stream);
}

template cudaError_t rms_norm_launch<float>(
    const float* x, const float* weight, float* out, float* scale, int64_t n, double eps, int64_t rows,
    cudaStream_t stream);
template cudaError_t rms_norm_launch<double>(
    const double* x, const double* weight, double* out, double* scale, int64_t n, double eps, int64_t rows,
    cudaStream_t stream);
template cudaError_t rms_norm_launch<__half>(
    const __half* x, const __half* weight, __half* out, __half* scale, int64_t n, double eps, int64_t rows,
    cudaStream_t stream);
template cudaError_t rms_norm_launch<__nv_bfloat16>(
    const __nv_bfloat16* x, const __nv_bfloat16* weight, __nv_bfloat16* out, __nv_bfloat16* scale, int64_t n,
    double eps, int64_t rows, cudaStream_t stream);

// T is float, double, __half or __nv_bfloat16.
template <typename T, typename index_t>  // index_t: int, or int64_t where an extent needs it
__global__ void rms_norm_backward_kernel(
    const T* __restrict__ x, const T* __restrict__ weight, const T* __restrict__ scale,
    const T* __restrict__ grad_out, T* __restrict__ grad_x, index_t n, index_t rows)
{
    index_t r = blockIdx.x * index_t(blockDim.x) + threadIdx.x;
    if (r >= rows) return;
    T dot = T(0);
    for (index_t i = 0; i < n; ++i)
        dot += grad_out[r * n + i] * weight[i] * x[r * n + i];
    for (index_t i = 0; i < n; ++i)
        grad_x[r * n + i] = scale[r] *
                            (grad_out[r * n + i] * weight[i] -
                             x[r * n + i] * scale[r] * scale[r] * dot / round_to<T>(n));
}

template <typename T>
cudaError_t rms_norm_backward_launch(
    const T* x, const T* weight, const T* scale, const T* grad_out, T* grad_x, int64_t n, int64_t rows, dim3 grid,
    dim3 block, cudaStream_t stream)
{
    if (std::max({int64_t(grid.x) * block.x, n * rows, rows}) <= INT32_MAX)
        rms_norm_backward_kernel<T, int><<<grid, block, 0, stream>>>(x, weight, scale, grad_out, grad_x, n, rows);
    else
        rms_norm_backward_kernel<T, int64_t><<<grid, block, 0, stream>>>(
            x, weight, scale, grad_out, grad_x, n, rows);
    return cudaGetLastError();
}

template cudaError_t rms_norm_backward_launch<float>(
    const float* x, const float* weight, const float* scale, const float* grad_out, float* grad_x, int64_t n,
    int64_t rows, dim3 grid, dim3 block, cudaStream_t stream);
template cudaError_t rms_norm_backward_launch<double>(
    const double* x, const double* weight, const double* scale, const double* grad_out, double* grad_x, int64_t n,
    int64_t rows, dim3 grid, dim3 block, cudaStream_t stream);
template cudaError_t rms_norm_backward_launch<__half>(
    const __half* x, const __half* weight, const __half* scale, const __half* grad_out, __half* grad_x, int64_t n,
    int64_t rows, dim3 grid, dim3 block, cudaStream_t stream);
template cudaError_t rms_norm_backward_launch<__nv_bfloat16>(
    const __nv_bfloat16* x, const __nv_bfloat16* weight, const __nv_bfloat16* scale, const __nv_bfloat16* grad_out,
    __nv_bfloat16* grad_x, int64_t n, int64_t rows, dim3 grid, dim3 block, cudaStream_t stream);

template <typename T>
cudaError_t rms_norm_backward_launch(
    const T* x, const T* weight, const T* scale, const T* grad_out, T* grad_x, int64_t n, int64_t rows,
    cudaStream_t stream)
{
    if (rows == 0) return cudaSuccess;
    const dim3 block(256);
    const dim3 grid((rows + block.x - 1) / block.x);
    return rms_norm_backward_launch(x, weight, scale, grad_out, grad_x, n, rows, grid, block, stream);
}

template cudaError_t rms_norm_backward_launch<float>(
    const float* x, const float* weight, const float* scale, const float* grad_out, float* grad_x, int64_t n,
    int64_t rows, cudaStream_t stream);
template cudaError_t rms_norm_backward_launch<double>(
    const double* x, const double* weight, const double* scale, const double* grad_out, double* grad_x, int64_t n,
    int64_t rows, cudaStream_t stream);
template cudaError_t rms_norm_backward_launch<__half>(
    const __half* x, const __half* weight, const __half* scale, const __half* grad_out, __half* grad_x, int64_t n,
    int64_t rows, cudaStream_t stream);
template cudaError_t rms_norm_backward_launch<__nv_bfloat16>(
    const __nv_bfloat16* x, const __nv_bfloat16* weight, const __nv_bfloat16* scale, const __nv_bfloat16* grad_out,
    __nv_bfloat16* grad_x, int64_t n, int64_t rows, cudaStream_t stream);

// T is float, double, __half or __nv_bfloat16.
template <typename T, typename index_t>  // index_t: int, or int64_t where an extent needs it
__global__ void rms_norm_backward_weight_kernel(
    const T* __restrict__ x, const T* __restrict__ scale, const T* __restrict__ grad_out,
    T* __restrict__ grad_weight, index_t rows, index_t n)
{
    index_t i = blockIdx.x * index_t(blockDim.x) + threadIdx.x;
    if (i >= n) return;
    T total = T(0);
    for (index_t r = 0; r < rows; ++r)
        total += grad_out[r * n + i] * x[r * n + i] * scale[r];
    grad_weight[i] = total;
}

template <typename T>
cudaError_t rms_norm_backward_weight_launch(
    const T* x, const T* scale, const T* grad_out, T* grad_weight, int64_t rows, int64_t n, dim3 grid, dim3 block,
    cudaStream_t stream)
{
    if (std::max({int64_t(grid.x) * block.x, n * rows, n}) <= INT32_MAX)
        rms_norm_backward_weight_kernel<T, int><<<grid, block, 0, stream>>>(
            x, scale, grad_out, grad_weight, rows, n);
    else
        rms_norm_backward_weight_kernel<T, int64_t><<<grid, block, 0, stream>>>(
            x, scale, grad_out, grad_weight, rows, n);
    return cudaGetLastError();
}

template cudaError_t rms_norm_backward_weight_launch<float>(
    const float* x, const float* scale, const float* grad_out, float* grad_weight, int64_t rows, int64_t n,
    dim3 grid, dim3 block, cudaStream_t stream);
template cudaError_t rms_norm_backward_weight_launch<double>(
    const double* x, const double* scale, const double* grad_out, double* grad_weight, int64_t rows, int64_t n,
    dim3 grid, dim3 block, cudaStream_t stream);
template cudaError_t rms_norm_backward_weight_launch<__half>(
    const __half* x, const __half* scale, const __half* grad_out, __half* grad_weight, int64_t rows, int64_t n,
    dim3 grid, dim3 block, cudaStream_t stream);
template cudaError_t rms_norm_backward_weight_launch<__nv_bfloat16>(
    const __nv_bfloat16* x, const __nv_bfloat16* scale, const __nv_bfloat16* grad_out, __nv_bfloat16* grad_weight,
    int64_t rows, int64_t n, dim3 grid, dim3 block, cudaStream_t stream);

template <typename T>
cudaError_t rms_norm_backward_weight_launch(
    const T* x, const T* scale, const T* grad_out, T* grad_weight, int64_t rows, int64_t n, cudaStream_t stream)
{
    if (n == 0) return cudaSuccess;
    const dim3 block(256);
    const dim3 grid((n + block.x - 1) / block.x);
    return rms_norm_backward_weight_launch(x, scale, grad_out, grad_weight, rows, n, grid, block, stream);
}

template cudaError_t rms_norm_backward_weight_launch<float>(
    const float* x, const float* scale, const float* grad_out, float* grad_weight, int64_t rows, int64_t n,
    cudaStream_t stream);
template cudaError_t rms_norm_backward_weight_launch<double>(
    const double* x, const double* scale, const double* grad_out, double* grad_weight, int64_t rows, int64_t n,
    cudaStream_t stream);
template cudaError_t rms_norm_backward_weight_launch<__half>(
    const __half* x, const __half* scale, const __half* grad_out, __half* grad_weight, int64_t rows, int64_t n,
    cudaStream_t stream);
template cudaError_t rms_norm_backward_weight_launch<__nv_bfloat16>(
    const __nv_bfloat16* x, const __nv_bfloat16* scale, const __nv_bfloat16* grad_out, __nv_bfloat16* grad_weight,
    int64_t rows, int64_t n, cudaStream_t stream);

// The negative logarithm of the softmax of each row at its target.
// T is float, double, __half or __nv_bfloat16.
template <typename T, typename index_t>  // index_t: int, or int64_t where an extent needs it
__global__ void cross_entropy_kernel(
    const T* __restrict__ x, const int64_t* __restrict__ target, T* __restrict__ loss, index_t n, index_t rows)
{
    index_t r = blockIdx.x * index_t(blockDim.x) + threadIdx.x;
    if (r >= rows) return;
    T top = x[r * n];
    for (index_t i = 1; i < n; ++i)
        top = python_max(top, x[r * n + i]);
    T total = T(0);
    for (index_t i = 0; i < n; ++i)
        total += static_cast<T>(exp(to_compute_type(x[r * n + i] - top)));
    loss[r] = static_cast<T>(log(to_compute_type(total))) + top - x[r * n + target[r]];
}

template <typename T>
cudaError_t cross_entropy_launch(
    const T* x, const int64_t* target, T* loss, int64_t n, int64_t rows, dim3 grid, dim3 block, cudaStream_t stream)
{
    if (std::max({n + 1, int64_t(grid.x) * block.x, n * rows, rows}) <= INT32_MAX)
        cross_entropy_kernel<T, int><<<grid, block, 0, stream>>>(x, target, loss, n, rows);
    else
        cross_entropy_kernel<T, int64_t><<<grid, block, 0, stream>>>(x, target, loss, n, rows);
    return cudaGetLastError();
}

template cudaError_t cross_entropy_launch<float>(
    const float* x, const int64_t* target, float* loss, int64_t n, int64_t rows, dim3 grid, dim3 block,
    cudaStream_t stream);
template cudaError_t cross_entropy_launch<double>(
    const double* x, const int64_t* target, double* loss, int64_t n, int64_t rows, dim3 grid, dim3 block,
    cudaStream_t stream);
template cudaError_t cross_entropy_launch<__half>(
    const __half* x, const int64_t* target, __half* loss, int64_t n, int64_t rows, dim3 grid, dim3 block,
    cudaStream_t stream);
template cudaError_t cross_entropy_launch<__nv_bfloat16>(
    const __nv_bfloat16* x, const int64_t* target, __nv_bfloat16* loss, int64_t n, int64_t rows, dim3 grid,
    dim3 block, cudaStream_t stream);

template <typename T>
cudaError_t cross_entropy_launch(
    const T* x, const int64_t* target, T* loss, int64_t n, int64_t rows, cudaStream_t stream)
{
    if (rows == 0) return cudaSuccess;
    const dim3 block(256);
    const dim3 grid((rows + block.x - 1) / block.x);
    return cross_entropy_launch(x, target, loss, n, rows, grid, block, stream);
}

template cudaError_t cross_entropy_launch<float>(
    const float* x, const int64_t* target, float* loss, int64_t n, int64_t rows, cudaStream_t stream);
template cudaError_t cross_entropy_launch<double>(
    const double* x, const int64_t* target, double* loss, int64_t n, int64_t rows, cudaStream_t stream);
template cudaError_t cross_entropy_launch<__half>(
    const __half* x, const int64_t* target, __half* loss, int64_t n, int64_t rows, cudaStream_t stream);
template cudaError_t cross_entropy_launch<__nv_bfloat16>(
    const __nv_bfloat16* x, const int64_t* target, __nv_bfloat16* loss, int64_t n, int64_t rows, cudaStream_t stream);

// T is float, double, __half or __nv_bfloat16.
template <typename T, typename index_t>  // index_t: int, or int64_t where an extent needs it
__global__ void cross_entropy_backward_kernel(
    const T* __restrict__ x, const int64_t* __restrict__ target, const T* __restrict__ grad_loss,
    T* __restrict__ grad_x, index_t n, index_t rows)
{
    index_t r = blockIdx.x * index_t(blockDim.x) + threadIdx.x;
    if (r >= rows) return;
    T top = x[r * n];
    for (index_t i = 1; i < n; ++i)
        top = python_max(top, x[r * n + i]);
    T total = T(0);
    for (index_t i = 0; i < n; ++i)
        total += static_cast<T>(exp(to_compute_type(x[r * n + i] - top)));
    for (index_t i = 0; i < n; ++i) {
        T probability = static_cast<T>(exp(to_compute_type(x[r * n + i] - top))) / total;
        grad_x[r * n + i] = grad_loss[r] * (probability - round_to<T>(i == target[r] ? 1 : 0));
    }
}

template <typename T>
cudaError_t cross_entropy_backward_launch(
    const T* x, const int64_t* target, const T* grad_loss, T* grad_x, int64_t n, int64_t rows, dim3 grid,
    dim3 block, cudaStream_t stream)
{
    if (std::max({n + 1, int64_t(grid.x) * block.x, n * rows, rows}) <= INT32_MAX)
        cross_entropy_backward_kernel<T, int><<<grid, block, 0, stream>>>(x, target, grad_loss, grad_x, n, rows);
    else
        cross_entropy_backward_kernel<T, int64_t><<<grid, block, 0, stream>>>(x, target, grad_loss, grad_x, n, rows);
    return cudaGetLastError();
}

template cudaError_t cross_entropy_backward_launch<float>(
    const float* x, const int64_t* target, const float* grad_loss, float* grad_x, int64_t n, int64_t rows,
    dim3 grid, dim3 block, cudaStream_t stream);
template cudaError_t cross_entropy_backward_launch<double>(
    const double* x, const int64_t* target, const double* grad_loss, double* grad_x, int64_t n, int64_t rows,
    dim3 grid, dim3 block, cudaStream_t stream);
template cudaError_t cross_entropy_backward_launch<__half>(
    const __half* x, const int64_t* target, const __half* grad_loss, __half* grad_x, int64_t n, int64_t rows,
    dim3 grid, dim3 block, cudaStream_t stream);
template cudaError_t cross_entropy_backward_launch<__nv_bfloat16>(
    const __nv_bfloat16* x, const int64_t* target, const __nv_bfloat16* grad_loss, __nv_bfloat16* grad_x, int64_t n,
    int64_t rows, dim3 grid, dim3 block, cudaStream_t stream);

template <typename T>
cudaError_t cross_entropy_backward_launch(
    const T* x, const int64_t* target, const T* grad_loss, T* grad_x, int64_t n, int64_t rows, cudaStream_t stream)
{
    if (rows == 0) return cudaSuccess;
    const dim3 block(256);
    const dim3 grid((rows + block.x - 1) / block.x);
    return cross_entropy_backward_launch(x, target, grad_loss, grad_x, n, rows, grid, block, stream);
}

template cudaError_t cross_entropy_backward_launch<float>(
    const float* x, const int64_t* target, const float* grad_loss, float* grad_x, int64_t n, int64_t rows,
    cudaStream_t stream);
template cudaError_t cross_entropy_backward_launch<double>(
    const double* x, const int64_t* target, const double* grad_loss, double* grad_x, int64_t n, int64_t rows,
    cudaStream_t stream);
template cudaError_t cross_entropy_backward_launch<__half>(
    const __half* x, const int64_t* target, const __half* grad_loss, __half* grad_x, int64_t n, int64_t rows,
    cudaStream_t stream);
template cudaError_t cross_entropy_backward_launch<__nv_bfloat16>(
    const __nv_bfloat16* x, const int64_t* target, const __nv_bfloat16* grad_loss, __nv_bfloat16* grad_x, int64_t n,
    int64_t rows, cudaStream_t stream);
