// rows: CUDA kernels and their launchers, translated from rows.py by py2cu.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cuda_runtime.h>

// The greatest of all threads' values, told to each of them.
__device__ float block_max(float* part, int t, float value)
{
    part[t] = value;
    __syncthreads();
    int half = 128 / 2;
    while (half > 0) {
        if (t < half && part[t + half] > part[t])
            part[t] = part[t + half];
        __syncthreads();
        half /= 2;
    }
    float result = part[0];
    __syncthreads();
    return result;
}

// The sum of all threads' values, told to each of them; `part` has a place for each.
__device__ float block_sum(float* part, int t, float value)
{
    part[t] = value;
    __syncthreads();
    int half = 128 / 2;
    while (half > 0) {
        if (t < half)
            part[t] += part[t + half];
        __syncthreads();
        half /= 2;
    }
    float result = part[0];
    __syncthreads();  // before `part` is used again
    return result;
}

// The number of blocks of `block` threads that cover `threads`; 0, which CUDA refuses to launch, where it is too large.
static unsigned covering_blocks(int64_t threads, int64_t block)
{
    const int64_t blocks = threads > 0 ? (threads - 1) / block + 1 : 0;
    return blocks <= INT32_MAX ? static_cast<unsigned>(blocks) : 0;
}

// exp(x) over its sum, row by row; the maximum is taken off first, so that exp does not overflow.
template <typename index_t>  // int, or int64_t where an extent needs it
__global__ void softmax_kernel(const float* __restrict__ x, float* __restrict__ out, index_t n)
{
    __shared__ float part[128];
    index_t r = blockIdx.x;
    int t = threadIdx.x;
    float top = -INFINITY;
    for (index_t i = t; i < n; i += 128) {
        if (x[r * n + i] > top)
            top = x[r * n + i];
    }
    top = block_max(part, t, top);
    float total = 0.0f;
    for (index_t i = t; i < n; i += 128)
        total += expf(x[r * n + i] - top);
    total = block_sum(part, t, total);
    for (index_t i = t; i < n; i += 128)
        out[r * n + i] = expf(x[r * n + i] - top) / total;
}

cudaError_t softmax_launch(
    const float* x, float* out, int64_t n, int64_t rows, dim3 grid, dim3 block, cudaStream_t stream)
{
    if (std::max({int64_t(grid.x), n + 128, n * rows}) <= INT32_MAX)
        softmax_kernel<int><<<grid, block, 0, stream>>>(x, out, n);
    else
        softmax_kernel<int64_t><<<grid, block, 0, stream>>>(x, out, n);
    return cudaGetLastError();
}

cudaError_t softmax_launch(const float* x, float* out, int64_t n, int64_t rows, cudaStream_t stream)
{
    if (128 * rows == 0) return cudaSuccess;
    const dim3 block(128);
    const dim3 grid(covering_blocks(128 * rows, block.x));
    return softmax_launch(x, out, n, rows, grid, block, stream);
}

// `out` is what the forward kernel returned.
template <typename index_t>  // int, or int64_t where an extent needs it
__global__ void softmax_backward_kernel(
    const float* __restrict__ out, const float* __restrict__ grad_out, float* __restrict__ grad_x, index_t n)
{
    __shared__ float part[128];
    index_t r = blockIdx.x;
    int t = threadIdx.x;
    float dot = 0.0f;
    for (index_t i = t; i < n; i += 128)
        dot += out[r * n + i] * grad_out[r * n + i];
    dot = block_sum(part, t, dot);
    for (index_t i = t; i < n; i += 128)
        grad_x[r * n + i] = out[r * n + i] * (grad_out[r * n + i] - dot);
}

cudaError_t softmax_backward_launch(
    const float* out, const float* grad_out, float* grad_x, int64_t n, int64_t rows, dim3 grid, dim3 block,
    cudaStream_t stream)
{
    if (std::max({int64_t(grid.x), n + 128, n * rows}) <= INT32_MAX)
        softmax_backward_kernel<int><<<grid, block, 0, stream>>>(out, grad_out, grad_x, n);
    else
        softmax_backward_kernel<int64_t><<<grid, block, 0, stream>>>(out, grad_out, grad_x, n);
    return cudaGetLastError();
}

cudaError_t softmax_backward_launch(
    const float* out, const float* grad_out, float* grad_x, int64_t n, int64_t rows, cudaStream_t stream)
{
    if (128 * rows == 0) return cudaSuccess;
    const dim3 block(128);
    const dim3 grid(covering_blocks(128 * rows, block.x));
    return softmax_backward_launch(out, grad_out, grad_x, n, rows, grid, block, stream);
}

// Rows of mean 0 and variance 1, times the weights, plus the bias; `mean` and `scale` are kept for the backward.
template <typename index_t>  // int, or int64_t where an extent needs it
__global__ void layer_norm_kernel(
    const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias, float eps,
    float* __restrict__ out, float* __restrict__ mean, float* __restrict__ scale, index_t n)
{
    __shared__ float part[128];
    index_t r = blockIdx.x;
    int t = threadIdx.x;
    float s = 0.0f;
    for (index_t i = t; i < n; i += 128)
        s += x[r * n + i];
    float m = block_sum(part, t, s) / n;
    s = 0.0f;
    for (index_t i = t; i < n; i += 128)
        s += (x[r * n + i] - m) * (x[r * n + i] - m);
    float k = 1 / sqrtf(block_sum(part, t, s) / n + eps);
    for (index_t i = t; i < n; i += 128)
        out[r * n + i] = (x[r * n + i] - m) * k * weight[i] + bias[i];
    if (t == 0) {
        mean[r] = m;
        scale[r] = k;
    }
}

cudaError_t layer_norm_launch(
    const float* x, const float* weight, const float* bias, double eps, float* out, float* mean, float* scale,
    int64_t n, int64_t rows, dim3 grid, dim3 block, cudaStream_t stream)
{
    if (std::max({int64_t(grid.x), n + 128, n * rows, rows}) <= INT32_MAX)
        layer_norm_kernel<int><<<grid, block, 0, stream>>>(x, weight, bias, eps, out, mean, scale, n);
    else
        layer_norm_kernel<int64_t><<<grid, block, 0, stream>>>(x, weight, bias, eps, out, mean, scale, n);
    return cudaGetLastError();
}

cudaError_t layer_norm_launch(
    const float* x, const float* weight, const float* bias, double eps, float* out, float* mean, float* scale,
    int64_t n, int64_t rows, cudaStream_t stream)
{
    if (128 * rows == 0) return cudaSuccess;
    const dim3 block(128);
    const dim3 grid(covering_blocks(128 * rows, block.x));
    return layer_norm_launch(x, weight, bias, eps, out, mean, scale, n, rows, grid, block, stream);
}

// The gradient of the rows.
template <typename index_t>  // int, or int64_t where an extent needs it
__global__ void layer_norm_backward_kernel(
    const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ mean,
    const float* __restrict__ scale, const float* __restrict__ grad_out, float* __restrict__ grad_x, index_t n)
{
    __shared__ float part[128];
    index_t r = blockIdx.x;
    int t = threadIdx.x;
    float m = mean[r];
    float k = scale[r];
    float s = 0.0f;
    float dot = 0.0f;
    for (index_t i = t; i < n; i += 128) {
        float g = grad_out[r * n + i] * weight[i];
        s += g;
        dot += g * (x[r * n + i] - m) * k;
    }
    s = block_sum(part, t, s) / n;
    dot = block_sum(part, t, dot) / n;
    for (index_t i = t; i < n; i += 128)
        grad_x[r * n + i] = k * (grad_out[r * n + i] * weight[i] - s - (x[r * n + i] - m) * k * dot);
}

cudaError_t layer_norm_backward_launch(
    const float* x, const float* weight, const float* mean, const float* scale, const float* grad_out,
    float* grad_x, int64_t n, int64_t rows, dim3 grid, dim3 block, cudaStream_t stream)
{
    if (std::max({int64_t(grid.x), n + 128, n * rows, rows}) <= INT32_MAX)
        layer_norm_backward_kernel<int><<<grid, block, 0, stream>>>(x, weight, mean, scale, grad_out, grad_x, n);
    else
        layer_norm_backward_kernel<int64_t><<<grid, block, 0, stream>>>(x, weight, mean, scale, grad_out, grad_x, n);
    return cudaGetLastError();
}

cudaError_t layer_norm_backward_launch(
    const float* x, const float* weight, const float* mean, const float* scale, const float* grad_out,
    float* grad_x, int64_t n, int64_t rows, cudaStream_t stream)
{
    if (128 * rows == 0) return cudaSuccess;
    const dim3 block(128);
    const dim3 grid(covering_blocks(128 * rows, block.x));
    return layer_norm_backward_launch(x, weight, mean, scale, grad_out, grad_x, n, rows, grid, block, stream);
}

// The gradients of weights and bias: a block takes 32 columns, which 8 rows of threads go down together.
template <typename index_t>  // int, or int64_t where an extent needs it
__global__ void layer_norm_backward_weights_kernel(
    const float* __restrict__ x, const float* __restrict__ mean, const float* __restrict__ scale,
    const float* __restrict__ grad_out, float* __restrict__ grad_weight, float* __restrict__ grad_bias,
    index_t rows, index_t n)
{
    __shared__ float weights[8][32];
    __shared__ float biases[8][32];
    int tr = threadIdx.y;
    int tc = threadIdx.x;
    index_t c = index_t(blockIdx.x) * 32 + tc;
    float gw = 0.0f;
    float gb = 0.0f;
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

cudaError_t layer_norm_backward_weights_launch(
    const float* x, const float* mean, const float* scale, const float* grad_out, float* grad_weight,
    float* grad_bias, int64_t rows, int64_t n, dim3 grid, dim3 block, cudaStream_t stream)
{
    if (std::max({int64_t(block.x) + 32 * int64_t(grid.x), rows + 8, n, n * rows}) <= INT32_MAX)
        layer_norm_backward_weights_kernel<int><<<grid, block, 0, stream>>>(x, mean, scale, grad_out, grad_weight, grad_bias, rows, n);
    else
        layer_norm_backward_weights_kernel<int64_t><<<grid, block, 0, stream>>>(x, mean, scale, grad_out, grad_weight, grad_bias, rows, n);
    return cudaGetLastError();
}

cudaError_t layer_norm_backward_weights_launch(
    const float* x, const float* mean, const float* scale, const float* grad_out, float* grad_weight,
    float* grad_bias, int64_t rows, int64_t n, cudaStream_t stream)
{
    if (8 == 0 || n == 0) return cudaSuccess;
    const dim3 block(32, 8);
    const dim3 grid((n + block.x - 1) / block.x, (8 + block.y - 1) / block.y);
    return layer_norm_backward_weights_launch(x, mean, scale, grad_out, grad_weight, grad_bias, rows, n, grid, block, stream);
}
