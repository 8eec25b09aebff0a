// rows: CUDA kernels and their launchers, translated from rows.py by py2cu.
#include "rows.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <type_traits>
#include <cuda_runtime.h>

namespace {

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

constexpr int THREADS = 128;

// The maximum over all threads, returned to each of them.
template <typename T>
__device__ T block_max(T* part, int t, T value)
{
    part[t] = value;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (t < half && part[t + half] > part[t])
            part[t] = part[t + half];
        __syncthreads();
    }
    T result = part[0];
    __syncthreads();
    return result;
}

// The sum over all threads, returned to each of them; `part` has an element for each thread.
template <typename T>
__device__ T block_sum(T* part, int t, T value)
{
    part[t] = value;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (t < half)
            part[t] += part[t + half];
        __syncthreads();
    }
    T result = part[0];
    __syncthreads();  // before `part` is used again
    return result;
}

// The number of blocks of `block` threads that cover `threads`; 0, which CUDA refuses to launch, where it is too large.
unsigned covering_blocks(int64_t threads, int64_t block)
{
    const int64_t blocks = threads > 0 ? (threads - 1) / block + 1 : 0;
    return blocks <= INT32_MAX ? static_cast<unsigned>(blocks) : 0;
}

// exp(x) over its sum, row by row; the maximum is taken off first, so that exp does not overflow.
// T is float, double, __half or __nv_bfloat16.
template <typename T, typename index_t>  // index_t: int, or int64_t where an extent needs it
__global__ void softmax_kernel(const T* __restrict__ x, T* __restrict__ out, index_t n)
{
    __shared__ T part[THREADS];
    index_t r = blockIdx.x;
    int t = threadIdx.x;
    T top = T(-INFINITY);
    for (index_t i = t; i < n; i += THREADS) {
        if (x[r * n + i] > top)
            top = x[r * n + i];
    }
    top = block_max<T>(part, t, top);
    T total = T(0);
    for (index_t i = t; i < n; i += THREADS)
        total += static_cast<T>(exp(to_compute_type(x[r * n + i] - top)));
    total = block_sum<T>(part, t, total);
    for (index_t i = t; i < n; i += THREADS)
        out[r * n + i] = static_cast<T>(exp(to_compute_type(x[r * n + i] - top))) / total;
}

template <typename T>
cudaError_t launch_softmax(const T* x, T* out, int64_t n, int64_t rows, dim3 grid, dim3 block, cudaStream_t stream)
{
    if (std::max({int64_t(grid.x), n + 128, n * rows}) <= INT32_MAX)
        softmax_kernel<T, int><<<grid, block, 0, stream>>>(x, out, n);
    else
        softmax_kernel<T, int64_t><<<grid, block, 0, stream>>>(x, out, n);
    return cudaGetLastError();
}

template <typename T>
cudaError_t launch_softmax(const T* x, T* out, int64_t n, int64_t rows, cudaStream_t stream)
{
    if (rows == 0) return cudaSuccess;
    const dim3 block(THREADS);
    const dim3 grid(covering_blocks(128 * rows, block.x));
    return launch_softmax(x, out, n, rows, grid, block, stream);
}

// `out` is what the forward kernel returned.
// T is float, double, __half or __nv_bfloat16.
template <typename T, typename index_t>  // index_t: int, or int64_t where an extent needs it
__global__ void softmax_backward_kernel(
    const T* __restrict__ out, const T* __restrict__ grad_out, T* __restrict__ grad_x, index_t n)
{
    __shared__ T part[THREADS];
    index_t r = blockIdx.x;
    int t = threadIdx.x;
    T dot = T(0);
    for (index_t i = t; i < n; i += THREADS)
        dot += out[r * n + i] * grad_out[r * n + i];
    dot = block_sum<T>(part, t, dot);
    for (index_t i = t; i < n; i += THREADS)
        grad_x[r * n + i] = out[r * n + i] * (grad_out[r * n + i] - dot);
}

template <typename T>
cudaError_t launch_softmax_backward(
    const T* out, const T* grad_out, T* grad_x, int64_t n, int64_t rows, dim3 grid, dim3 block, cudaStream_t stream)
{
    if (std::max({int64_t(grid.x), n + 128, n * rows}) <= INT32_MAX)
        softmax_backward_kernel<T, int><<<grid, block, 0, stream>>>(out, grad_out, grad_x, n);
    else
        softmax_backward_kernel<T, int64_t><<<grid, block, 0, stream>>>(out, grad_out, grad_x, n);
    return cudaGetLastError();
}

template <typename T>
cudaError_t launch_softmax_backward(
    const T* out, const T* grad_out, T* grad_x, int64_t n, int64_t rows, cudaStream_t stream)
{
    if (rows == 0) return cudaSuccess;
    const dim3 block(THREADS);
    const dim3 grid(covering_blocks(128 * rows, block.x));
    return launch_softmax_backward(out, grad_out, grad_x, n, rows, grid, block, stream);
}

// Rows of mean 0 and variance 1, times the weights, plus the bias; `mean` and `scale` are kept for the backward.
// T is float, double, __half or __nv_bfloat16.
template <typename T, typename index_t>  // index_t: int, or int64_t where an extent needs it
__global__ void layer_norm_kernel(
    const T* __restrict__ x, const T* __restrict__ weight, const T* __restrict__ bias, T eps, T* __restrict__ out,
    T* __restrict__ mean, T* __restrict__ scale, index_t n)
{
    __shared__ T part[THREADS];
    index_t r = blockIdx.x;
    int t = threadIdx.x;
    T s = T(0);
    for (index_t i = t; i < n; i += THREADS)
        s += x[r * n + i];
    T m = block_sum<T>(part, t, s) / round_to<T>(n);
    s = T(0);
    for (index_t i = t; i < n; i += THREADS)
        s += (x[r * n + i] - m) * (x[r * n + i] - m);
    T k = T(1) / static_cast<T>(sqrt(to_compute_type(block_sum<T>(part, t, s) / round_to<T>(n) + eps)));
    for (index_t i = t; i < n; i += THREADS)
        out[r * n + i] = (x[r * n + i] - m) * k * weight[i] + bias[i];
    if (t == 0) {
        mean[r] = m;
        scale[r] = k;
    }
}

template <typename T>
cudaError_t launch_layer_norm(
    const T* x, const T* weight, const T* bias, double eps, T* out, T* mean, T* scale, int64_t n, int64_t rows,
    dim3 grid, dim3 block, cudaStream_t stream)
{
    if (std::max({int64_t(grid.x), n + 128, n * rows, rows}) <= INT32_MAX)
        layer_norm_kernel<T, int><<<grid, block, 0, stream>>>(
            x, weight, bias, round_to<T>(eps), out, mean, scale, n);
    else
        layer_norm_kernel<T, int64_t><<<grid, block, 0, stream>>>(
            x, weight, bias, round_to<T>(eps), out, mean, scale, n);
    return cudaGetLastError();
}

template <typename T>
cudaError_t launch_layer_norm(
    const T* x, const T* weight, const T* bias, double eps, T* out, T* mean, T* scale, int64_t n, int64_t rows,
    cudaStream_t stream)
{
    if (rows == 0) return cudaSuccess;
    const dim3 block(THREADS);
    const dim3 grid(covering_blocks(128 * rows, block.x));
    return launch_layer_norm(x, weight, bias, eps, out, mean, scale, n, rows, grid, block, stream);
}

// The gradient of the rows.
// T is float, double, __half or __nv_bfloat16.
template <typename T, typename index_t>  // index_t: int, or int64_t where an extent needs it
__global__ void layer_norm_backward_kernel(
    const T* __restrict__ x, const T* __restrict__ weight, const T* __restrict__ mean, const T* __restrict__ scale,
    const T* __restrict__ grad_out, T* __restrict__ grad_x, index_t n)
{
    __shared__ T part[THREADS];
    index_t r = blockIdx.x;
    int t = threadIdx.x;
    T m = mean[r];
    T k = scale[r];
    T s = T(0);
    T dot = T(0);
    for (index_t i = t; i < n; i += THREADS) {
        T g = grad_out[r * n + i] * weight[i];
        s += g;
        dot += g * (x[r * n + i] - m) * k;
    }
    s = block_sum<T>(part, t, s) / round_to<T>(n);
    dot = block_sum<T>(part, t, dot) / round_to<T>(n);
    for (index_t i = t; i < n; i += THREADS)
        grad_x[r * n + i] = k * (grad_out[r * n + i] * weight[i] - s - (x[r * n + i] - m) * k * dot);
}

template <typename T>
cudaError_t launch_layer_norm_backward(
    const T* x, const T* weight, const T* mean, const T* scale, const T* grad_out, T* grad_x, int64_t n,
    int64_t rows, dim3 grid, dim3 block, cudaStream_t stream)
{
    if (std::max({int64_t(grid.x), n + 128, n * rows, rows}) <= INT32_MAX)
        layer_norm_backward_kernel<T, int><<<grid, block, 0, stream>>>(x, weight, mean, scale, grad_out, grad_x, n);
    else
        layer_norm_backward_kernel<T, int64_t><<<grid, block, 0, stream>>>(
            x, weight, mean, scale, grad_out, grad_x, n);
    return cudaGetLastError();
}

template <typename T>
cudaError_t launch_layer_norm_backward(
    const T* x, const T* weight, const T* mean, const T* scale, const T* grad_out, T* grad_x, int64_t n,
    int64_t rows, cudaStream_t stream)
{
    if (rows == 0) return cudaSuccess;
    const dim3 block(THREADS);
    const dim3 grid(covering_blocks(128 * rows, block.x));
    return launch_layer_norm_backward(x, weight, mean, scale, grad_out, grad_x, n, rows, grid, block, stream);
}

// The gradients of weights and bias: a block takes 32 columns, which 8 rows of threads go down together.
// T is float, double, __half or __nv_bfloat16.
template <typename T, typename index_t>  // index_t: int, or int64_t where an extent needs it
__global__ void layer_norm_backward_weights_kernel(
    const T* __restrict__ x, const T* __restrict__ mean, const T* __restrict__ scale,
    const T* __restrict__ grad_out, T* __restrict__ grad_weight, T* __restrict__ grad_bias, index_t rows, index_t n)
{
    __shared__ T weights[8][32];
    __shared__ T biases[8][32];
    int tr = threadIdx.y;
    int tc = threadIdx.x;
    index_t c = index_t(blockIdx.x) * 32 + tc;
    T gw = T(0);
    T gb = T(0);
    if (c < n) {
        for (index_t r = tr; r < rows; r += 8) {
            gw += grad_out[r * n + c] * (x[r * n + c] - mean[r]) * scale[r];
            gb += grad_out[r * n + c];
        }
    }
    weights[tr][tc] = gw;
    biases[tr][tc] = gb;
    __syncthreads();
    if (tr == 0 && c < n) {
        for (int k = 1; k < 8; ++k) {
            gw += weights[k][tc];
            gb += biases[k][tc];
        }
        grad_weight[c] = gw;
        grad_bias[c] = gb;
    }
}

template <typename T>
cudaError_t launch_layer_norm_backward_weights(
    const T* x, const T* mean, const T* scale, const T* grad_out, T* grad_weight, T* grad_bias, int64_t rows,
    int64_t n, dim3 grid, dim3 block, cudaStream_t stream)
{
    if (std::max({int64_t(block.x) + 32 * int64_t(grid.x), rows + 8, n, n * rows}) <= INT32_MAX)
        layer_norm_backward_weights_kernel<T, int><<<grid, block, 0, stream>>>(
            x, mean, scale, grad_out, grad_weight, grad_bias, rows, n);
    else
        layer_norm_backward_weights_kernel<T, int64_t><<<grid, block, 0, stream>>>(
            x, mean, scale, grad_out, grad_weight, grad_bias, rows, n);
    return cudaGetLastError();
}

template <typename T>
cudaError_t launch_layer_norm_backward_weights(
    const T* x, const T* mean, const T* scale, const T* grad_out, T* grad_weight, T* grad_bias, int64_t rows,
    int64_t n, cudaStream_t stream)
{
    if (n == 0) return cudaSuccess;
    const dim3 block(32, 8);
    const dim3 grid((n + block.x - 1) / block.x, (8 + block.y - 1) / block.y);
    return launch_layer_norm_backward_weights(
        x, mean, scale, grad_out, grad_weight, grad_bias, rows, n, grid, block, stream);
}

}  // namespace

cudaError_t softmax_launch(
    const float* x, float* out, int64_t n, int64_t rows, dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_softmax(x, out, n, rows, grid, block, stream);
}

cudaError_t softmax_launch(
    const double* x, double* out, int64_t n, int64_t rows, dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_softmax(x, out, n, rows, grid, block, stream);
}

cudaError_t softmax_launch(
    const __half* x, __half* out, int64_t n, int64_t rows, dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_softmax(x, out, n, rows, grid, block, stream);
}

cudaError_t softmax_launch(
    const __nv_bfloat16* x, __nv_bfloat16* out, int64_t n, int64_t rows, dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_softmax(x, out, n, rows, grid, block, stream);
}

cudaError_t softmax_launch(const float* x, float* out, int64_t n, int64_t rows, cudaStream_t stream)
{
    return launch_softmax(x, out, n, rows, stream);
}

cudaError_t softmax_launch(const double* x, double* out, int64_t n, int64_t rows, cudaStream_t stream)
{
    return launch_softmax(x, out, n, rows, stream);
}

cudaError_t softmax_launch(const __half* x, __half* out, int64_t n, int64_t rows, cudaStream_t stream)
{
    return launch_softmax(x, out, n, rows, stream);
}

cudaError_t softmax_launch(const __nv_bfloat16* x, __nv_bfloat16* out, int64_t n, int64_t rows, cudaStream_t stream)
{
    return launch_softmax(x, out, n, rows, stream);
}

cudaError_t softmax_backward_launch(
    const float* out, const float* grad_out, float* grad_x, int64_t n, int64_t rows, dim3 grid, dim3 block,
    cudaStream_t stream)
{
    return launch_softmax_backward(out, grad_out, grad_x, n, rows, grid, block, stream);
}

cudaError_t softmax_backward_launch(
    const double* out, const double* grad_out, double* grad_x, int64_t n, int64_t rows, dim3 grid, dim3 block,
    cudaStream_t stream)
{
    return launch_softmax_backward(out, grad_out, grad_x, n, rows, grid, block, stream);
}

cudaError_t softmax_backward_launch(
    const __half* out, const __half* grad_out, __half* grad_x, int64_t n, int64_t rows, dim3 grid, dim3 block,
    cudaStream_t stream)
{
    return launch_softmax_backward(out, grad_out, grad_x, n, rows, grid, block, stream);
}

cudaError_t softmax_backward_launch(
    const __nv_bfloat16* out, const __nv_bfloat16* grad_out, __nv_bfloat16* grad_x, int64_t n, int64_t rows,
    dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_softmax_backward(out, grad_out, grad_x, n, rows, grid, block, stream);
}

cudaError_t softmax_backward_launch(
    const float* out, const float* grad_out, float* grad_x, int64_t n, int64_t rows, cudaStream_t stream)
{
    return launch_softmax_backward(out, grad_out, grad_x, n, rows, stream);
}

cudaError_t softmax_backward_launch(
    const double* out, const double* grad_out, double* grad_x, int64_t n, int64_t rows, cudaStream_t stream)
{
    return launch_softmax_backward(out, grad_out, grad_x, n, rows, stream);
}

cudaError_t softmax_backward_launch(
    const __half* out, const __half* grad_out, __half* grad_x, int64_t n, int64_t rows, cudaStream_t stream)
{
    return launch_softmax_backward(out, grad_out, grad_x, n, rows, stream);
}

cudaError_t softmax_backward_launch(
    const __nv_bfloat16* out, const __nv_bfloat16* grad_out, __nv_bfloat16* grad_x, int64_t n, int64_t rows,
    cudaStream_t stream)
{
    return launch_softmax_backward(out, grad_out, grad_x, n, rows, stream);
}

cudaError_t layer_norm_launch(
    const float* x, const float* weight, const float* bias, double eps, float* out, float* mean, float* scale,
    int64_t n, int64_t rows, dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_layer_norm(x, weight, bias, eps, out, mean, scale, n, rows, grid, block, stream);
}

cudaError_t layer_norm_launch(
    const double* x, const double* weight, const double* bias, double eps, double* out, double* mean, double* scale,
    int64_t n, int64_t rows, dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_layer_norm(x, weight, bias, eps, out, mean, scale, n, rows, grid, block, stream);
}

cudaError_t layer_norm_launch(
    const __half* x, const __half* weight, const __half* bias, double eps, __half* out, __half* mean, __half* scale,
    int64_t n, int64_t rows, dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_layer_norm(x, weight, bias, eps, out, mean, scale, n, rows, grid, block, stream);
}

cudaError_t layer_norm_launch(
    const __nv_bfloat16* x, const __nv_bfloat16* weight, const __nv_bfloat16* bias, double eps, __nv_bfloat16* out,
    __nv_bfloat16* mean, __nv_bfloat16* scale, int64_t n, int64_t rows, dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_layer_norm(x, weight, bias, eps, out, mean, scale, n, rows, grid, block, stream);
}

cudaError_t layer_norm_launch(
    const float* x, const float* weight, const float* bias, double eps, float* out, float* mean, float* scale,
    int64_t n, int64_t rows, cudaStream_t stream)
{
    return launch_layer_norm(x, weight, bias, eps, out, mean, scale, n, rows, stream);
}

cudaError_t layer_norm_launch(
    const double* x, const double* weight, const double* bias, double eps, double* out, double* mean, double* scale,
    int64_t n, int64_t rows, cudaStream_t stream)
{
    return launch_layer_norm(x, weight, bias, eps, out, mean, scale, n, rows, stream);
}

cudaError_t layer_norm_launch(
    const __half* x, const __half* weight, const __half* bias, double eps, __half* out, __half* mean, __half* scale,
    int64_t n, int64_t rows, cudaStream_t stream)
{
    return launch_layer_norm(x, weight, bias, eps, out, mean, scale, n, rows, stream);
}

cudaError_t layer_norm_launch(
    const __nv_bfloat16* x, const __nv_bfloat16* weight, const __nv_bfloat16* bias, double eps, __nv_bfloat16* out,
    __nv_bfloat16* mean, __nv_bfloat16* scale, int64_t n, int64_t rows, cudaStream_t stream)
{
    return launch_layer_norm(x, weight, bias, eps, out, mean, scale, n, rows, stream);
}

cudaError_t layer_norm_backward_launch(
    const float* x, const float* weight, const float* mean, const float* scale, const float* grad_out,
    float* grad_x, int64_t n, int64_t rows, dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_layer_norm_backward(x, weight, mean, scale, grad_out, grad_x, n, rows, grid, block, stream);
}

cudaError_t layer_norm_backward_launch(
    const double* x, const double* weight, const double* mean, const double* scale, const double* grad_out,
    double* grad_x, int64_t n, int64_t rows, dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_layer_norm_backward(x, weight, mean, scale, grad_out, grad_x, n, rows, grid, block, stream);
}

cudaError_t layer_norm_backward_launch(
    const __half* x, const __half* weight, const __half* mean, const __half* scale, const __half* grad_out,
    __half* grad_x, int64_t n, int64_t rows, dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_layer_norm_backward(x, weight, mean, scale, grad_out, grad_x, n, rows, grid, block, stream);
}

cudaError_t layer_norm_backward_launch(
    const __nv_bfloat16* x, const __nv_bfloat16* weight, const __nv_bfloat16* mean, const __nv_bfloat16* scale,
    const __nv_bfloat16* grad_out, __nv_bfloat16* grad_x, int64_t n, int64_t rows, dim3 grid, dim3 block,
    cudaStream_t stream)
{
    return launch_layer_norm_backward(x, weight, mean, scale, grad_out, grad_x, n, rows, grid, block, stream);
}

cudaError_t layer_norm_backward_launch(
    const float* x, const float* weight, const float* mean, const float* scale, const float* grad_out,
    float* grad_x, int64_t n, int64_t rows, cudaStream_t stream)
{
    return launch_layer_norm_backward(x, weight, mean, scale, grad_out, grad_x, n, rows, stream);
}

cudaError_t layer_norm_backward_launch(
    const double* x, const double* weight, const double* mean, const double* scale, const double* grad_out,
    double* grad_x, int64_t n, int64_t rows, cudaStream_t stream)
{
    return launch_layer_norm_backward(x, weight, mean, scale, grad_out, grad_x, n, rows, stream);
}

cudaError_t layer_norm_backward_launch(
    const __half* x, const __half* weight, const __half* mean, const __half* scale, const __half* grad_out,
    __half* grad_x, int64_t n, int64_t rows, cudaStream_t stream)
{
    return launch_layer_norm_backward(x, weight, mean, scale, grad_out, grad_x, n, rows, stream);
}

cudaError_t layer_norm_backward_launch(
    const __nv_bfloat16* x, const __nv_bfloat16* weight, const __nv_bfloat16* mean, const __nv_bfloat16* scale,
    const __nv_bfloat16* grad_out, __nv_bfloat16* grad_x, int64_t n, int64_t rows, cudaStream_t stream)
{
    return launch_layer_norm_backward(x, weight, mean, scale, grad_out, grad_x, n, rows, stream);
}

cudaError_t layer_norm_backward_weights_launch(
    const float* x, const float* mean, const float* scale, const float* grad_out, float* grad_weight,
    float* grad_bias, int64_t rows, int64_t n, dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_layer_norm_backward_weights(
        x, mean, scale, grad_out, grad_weight, grad_bias, rows, n, grid, block, stream);
}

cudaError_t layer_norm_backward_weights_launch(
    const double* x, const double* mean, const double* scale, const double* grad_out, double* grad_weight,
    double* grad_bias, int64_t rows, int64_t n, dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_layer_norm_backward_weights(
        x, mean, scale, grad_out, grad_weight, grad_bias, rows, n, grid, block, stream);
}

cudaError_t layer_norm_backward_weights_launch(
    const __half* x, const __half* mean, const __half* scale, const __half* grad_out, __half* grad_weight,
    __half* grad_bias, int64_t rows, int64_t n, dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_layer_norm_backward_weights(
        x, mean, scale, grad_out, grad_weight, grad_bias, rows, n, grid, block, stream);
}

cudaError_t layer_norm_backward_weights_launch(
    const __nv_bfloat16* x, const __nv_bfloat16* mean, const __nv_bfloat16* scale, const __nv_bfloat16* grad_out,
    __nv_bfloat16* grad_weight, __nv_bfloat16* grad_bias, int64_t rows, int64_t n, dim3 grid, dim3 block,
    cudaStream_t stream)
{
    return launch_layer_norm_backward_weights(
        x, mean, scale, grad_out, grad_weight, grad_bias, rows, n, grid, block, stream);
}

cudaError_t layer_norm_backward_weights_launch(
    const float* x, const float* mean, const float* scale, const float* grad_out, float* grad_weight,
    float* grad_bias, int64_t rows, int64_t n, cudaStream_t stream)
{
    return launch_layer_norm_backward_weights(x, mean, scale, grad_out, grad_weight, grad_bias, rows, n, stream);
}

cudaError_t layer_norm_backward_weights_launch(
    const double* x, const double* mean, const double* scale, const double* grad_out, double* grad_weight,
    double* grad_bias, int64_t rows, int64_t n, cudaStream_t stream)
{
    return launch_layer_norm_backward_weights(x, mean, scale, grad_out, grad_weight, grad_bias, rows, n, stream);
}

cudaError_t layer_norm_backward_weights_launch(
    const __half* x, const __half* mean, const __half* scale, const __half* grad_out, __half* grad_weight,
    __half* grad_bias, int64_t rows, int64_t n, cudaStream_t stream)
{
    return launch_layer_norm_backward_weights(x, mean, scale, grad_out, grad_weight, grad_bias, rows, n, stream);
}

cudaError_t layer_norm_backward_weights_launch(
    const __nv_bfloat16* x, const __nv_bfloat16* mean, const __nv_bfloat16* scale, const __nv_bfloat16* grad_out,
    __nv_bfloat16* grad_weight, __nv_bfloat16* grad_bias, int64_t rows, int64_t n, cudaStream_t stream)
{
    return launch_layer_norm_backward_weights(x, mean, scale, grad_out, grad_weight, grad_bias, rows, n, stream);
}
