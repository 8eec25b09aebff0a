// reductions: CUDA kernels and their launchers, translated from reductions.py by py2cu.
#include <algorithm>
#include <cstdint>
#include <cuda_runtime.h>

// One sum a block.
template <typename index_t>  // int, or int64_t where an extent needs it
__global__ void block_sums_kernel(const float* __restrict__ x, float* __restrict__ out, index_t n)
{
    __shared__ float part[256];
    int t = threadIdx.x;
    float s = 0.0f;
    for (index_t i = blockIdx.x * index_t(blockDim.x) + t; i < n; i += gridDim.x * index_t(blockDim.x))
        s += x[i];
    part[t] = s;
    __syncthreads();
    int half = 256 / 2;
    while (half > 0) {
        if (t < half)
            part[t] += part[t + half];
        __syncthreads();
        half /= 2;
    }
    if (t == 0)
        out[blockIdx.x] = part[0];
}

cudaError_t block_sums_launch(
    const float* x, float* out, int64_t n, int64_t blocks_, dim3 grid, dim3 block, cudaStream_t stream)
{
    if (std::max({int64_t(grid.x) * block.x + n, blocks_}) <= INT32_MAX)
        block_sums_kernel<int><<<grid, block, 0, stream>>>(x, out, n);
    else
        block_sums_kernel<int64_t><<<grid, block, 0, stream>>>(x, out, n);
    return cudaGetLastError();
}

// The scalar product of two vectors; blocks add their parts in any order.
template <typename index_t>  // int, or int64_t where an extent needs it
__global__ void sum_of_products_kernel(
    const float* __restrict__ x, const float* __restrict__ y, float* __restrict__ out, index_t n)
{
    __shared__ float part[256];
    int t = threadIdx.x;
    index_t i = blockIdx.x * index_t(blockDim.x) + t;
    part[t] = i < n ? x[i] * y[i] : 0.0f;
    __syncthreads();
    int half = 256 / 2;
    while (half > 0) {
        if (t < half)
            part[t] += part[t + half];
        __syncthreads();
        half /= 2;
    }
    if (t == 0)
        atomicAdd(&out[0], part[0]);
}

cudaError_t sum_of_products_launch(
    const float* x, const float* y, float* out, int64_t n, dim3 grid, dim3 block, cudaStream_t stream)
{
    if (std::max({int64_t(grid.x) * block.x, n}) <= INT32_MAX)
        sum_of_products_kernel<int><<<grid, block, 0, stream>>>(x, y, out, n);
    else
        sum_of_products_kernel<int64_t><<<grid, block, 0, stream>>>(x, y, out, n);
    return cudaGetLastError();
}

cudaError_t sum_of_products_launch(const float* x, const float* y, float* out, int64_t n, cudaStream_t stream)
{
    if (n == 0) return cudaSuccess;
    const dim3 block(256);
    const dim3 grid((n + block.x - 1) / block.x);
    return sum_of_products_launch(x, y, out, n, grid, block, stream);
}
