// vector_add: CUDA kernels and their launchers, translated from vector_add.py by py2cu.
#include "vector_add.h"

#include <algorithm>
#include <cstdint>
#include <cuda_runtime.h>

namespace {

template <typename index_t>  // int, or int64_t where an extent needs it
__global__ void vector_add_kernel(const float* a, const float* b, float* out, index_t n)
{
    index_t i = blockIdx.x * index_t(blockDim.x) + threadIdx.x;
    if (i >= n) return;
    out[i] = a[i] + b[i];
}

template <typename index_t>  // int, or int64_t where an extent needs it
__global__ void vector_add_block_kernel(const float* a, const float* b, float* out, index_t n)
{
    index_t i = blockIdx.x * index_t(blockDim.x) + threadIdx.x;
    if (i >= n) return;
    out[i] = a[i] + b[i];
}

}  // namespace

cudaError_t vector_add_launch(
    const float* a, const float* b, float* out, int64_t n, dim3 grid, dim3 block, cudaStream_t stream)
{
    if (std::max({int64_t(grid.x) * block.x, n}) <= INT32_MAX)
        vector_add_kernel<int><<<grid, block, 0, stream>>>(a, b, out, n);
    else
        vector_add_kernel<int64_t><<<grid, block, 0, stream>>>(a, b, out, n);
    return cudaGetLastError();
}

cudaError_t vector_add_launch(const float* a, const float* b, float* out, int64_t n, cudaStream_t stream)
{
    if (n == 0) return cudaSuccess;
    const dim3 block(256);
    const dim3 grid((n + block.x - 1) / block.x);
    return vector_add_launch(a, b, out, n, grid, block, stream);
}

cudaError_t vector_add_block_launch(
    const float* a, const float* b, float* out, int64_t n, dim3 grid, dim3 block, cudaStream_t stream)
{
    if (std::max({int64_t(grid.x) * block.x, n}) <= INT32_MAX)
        vector_add_block_kernel<int><<<grid, block, 0, stream>>>(a, b, out, n);
    else
        vector_add_block_kernel<int64_t><<<grid, block, 0, stream>>>(a, b, out, n);
    return cudaGetLastError();
}

cudaError_t vector_add_block_launch(const float* a, const float* b, float* out, int64_t n, cudaStream_t stream)
{
    if (n == 0) return cudaSuccess;
    const dim3 block(256);
    const dim3 grid((n + block.x - 1) / block.x);
    return vector_add_block_launch(a, b, out, n, grid, block, stream);
}
