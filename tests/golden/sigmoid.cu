// sigmoid: CUDA kernels and their launchers, translated from sigmoid.py by py2cu.
#include "sigmoid.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cuda_runtime.h>

namespace {

template <typename index_t>  // int, or int64_t where an extent needs it
__global__ void sigmoid_kernel(const float* x, float* out, index_t n)
{
    index_t i = blockIdx.x * index_t(blockDim.x) + threadIdx.x;
    if (i >= n) return;
    // exp() of a large positive number overflows, so each sign has its own formula
    float res;
    if (x[i] >= 0)
        res = 1.0f / (1.0f + expf(-x[i]));
    else
        res = expf(x[i]) / (1.0f + expf(x[i]));
    out[i] = res;
}

// `out` is what the forward kernel returned.
template <typename index_t>  // int, or int64_t where an extent needs it
__global__ void sigmoid_backward_kernel(const float* out, const float* grad_out, float* grad_x, index_t n)
{
    index_t i = blockIdx.x * index_t(blockDim.x) + threadIdx.x;
    if (i >= n) return;
    grad_x[i] = grad_out[i] * out[i] * (1 - out[i]);
}

}  // namespace

cudaError_t sigmoid_launch(const float* x, float* out, int64_t n, dim3 grid, dim3 block, cudaStream_t stream)
{
    if (std::max({int64_t(grid.x) * block.x, n}) <= INT32_MAX)
        sigmoid_kernel<int><<<grid, block, 0, stream>>>(x, out, n);
    else
        sigmoid_kernel<int64_t><<<grid, block, 0, stream>>>(x, out, n);
    return cudaGetLastError();
}

cudaError_t sigmoid_launch(const float* x, float* out, int64_t n, cudaStream_t stream)
{
    if (n == 0) return cudaSuccess;
    const dim3 block(256);
    const dim3 grid((n + block.x - 1) / block.x);
    return sigmoid_launch(x, out, n, grid, block, stream);
}

cudaError_t sigmoid_backward_launch(
    const float* out, const float* grad_out, float* grad_x, int64_t n, dim3 grid, dim3 block, cudaStream_t stream)
{
    if (std::max({int64_t(grid.x) * block.x, n}) <= INT32_MAX)
        sigmoid_backward_kernel<int><<<grid, block, 0, stream>>>(out, grad_out, grad_x, n);
    else
        sigmoid_backward_kernel<int64_t><<<grid, block, 0, stream>>>(out, grad_out, grad_x, n);
    return cudaGetLastError();
}

cudaError_t sigmoid_backward_launch(
    const float* out, const float* grad_out, float* grad_x, int64_t n, cudaStream_t stream)
{
    if (n == 0) return cudaSuccess;
    const dim3 block(256);
    const dim3 grid((n + block.x - 1) / block.x);
    return sigmoid_backward_launch(out, grad_out, grad_x, n, grid, block, stream);
}
