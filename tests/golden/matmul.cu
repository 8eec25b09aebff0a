// matmul: CUDA kernels and their launchers, translated from matmul.py by py2cu.
#include "matmul.h"

#include <algorithm>
#include <cstdint>
#include <cuda_runtime.h>

namespace {

// Matrix product, one element a thread.
template <typename index_t>  // int, or int64_t where an extent needs it
__global__ void matmul_kernel(
    const float* __restrict__ m, const float* __restrict__ n, float* __restrict__ out, index_t h, index_t w,
    index_t k)
{
    index_t r = blockIdx.y * index_t(blockDim.y) + threadIdx.y;
    index_t c = blockIdx.x * index_t(blockDim.x) + threadIdx.x;
    if (r >= h || c >= w) return;
    float o = 0.0f;
    for (index_t i = 0; i < k; ++i)
        o += m[r * k + i] * n[i * w + c];
    out[r * w + c] = o;
}

}  // namespace

cudaError_t matmul_launch(
    const float* m, const float* n, float* out, int64_t h, int64_t w, int64_t k, dim3 grid, dim3 block,
    cudaStream_t stream)
{
    if (std::max({int64_t(grid.y) * block.y, int64_t(grid.x) * block.x, h * k, k * w, h * w}) <= INT32_MAX)
        matmul_kernel<int><<<grid, block, 0, stream>>>(m, n, out, h, w, k);
    else
        matmul_kernel<int64_t><<<grid, block, 0, stream>>>(m, n, out, h, w, k);
    return cudaGetLastError();
}

cudaError_t matmul_launch(
    const float* m, const float* n, float* out, int64_t h, int64_t w, int64_t k, cudaStream_t stream)
{
    if (h == 0 || w == 0) return cudaSuccess;
    const dim3 block(16, 16);
    const dim3 grid((w + block.x - 1) / block.x, (h + block.y - 1) / block.y);
    return matmul_launch(m, n, out, h, w, k, grid, block, stream);
}
