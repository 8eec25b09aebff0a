// launchers: CUDA kernels and their launchers, translated from launchers.py by py2cu.
#include "launchers.h"

#include <algorithm>
#include <cstdint>
#include <cuda_runtime.h>

namespace {

// Luminance of a planar RGB picture.
template <typename index_t>  // int, or int64_t where an extent needs it
__global__ void rgb2grey_k_kernel(const uint8_t* __restrict__ x, uint8_t* __restrict__ out, index_t n)
{
    index_t i = blockIdx.x * index_t(blockDim.x) + threadIdx.x;
    if (i < n)
        out[i] = static_cast<uint8_t>(0.2989f * x[i] + 0.5870f * x[n + i] + 0.1140f * x[2 * n + i]);
}

template <typename index_t>  // int, or int64_t where an extent needs it
__global__ void matmul_k_kernel(
    const float* __restrict__ m, const float* __restrict__ n, float* __restrict__ out, index_t h, index_t k,
    index_t w)
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

cudaError_t rgb2grey_k_launch(const uint8_t* x, uint8_t* out, int64_t n, dim3 grid, dim3 block, cudaStream_t stream)
{
    if (std::max({int64_t(grid.x) * block.x, 3 * n}) <= INT32_MAX)
        rgb2grey_k_kernel<int><<<grid, block, 0, stream>>>(x, out, n);
    else
        rgb2grey_k_kernel<int64_t><<<grid, block, 0, stream>>>(x, out, n);
    return cudaGetLastError();
}

cudaError_t rgb2grey_k_launch(const uint8_t* x, uint8_t* out, int64_t n, cudaStream_t stream)
{
    if (n == 0) return cudaSuccess;
    const dim3 block(256);
    const dim3 grid((n + block.x - 1) / block.x);
    return rgb2grey_k_launch(x, out, n, grid, block, stream);
}

cudaError_t matmul_k_launch(
    const float* m, const float* n, float* out, int64_t h, int64_t k, int64_t w, dim3 grid, dim3 block,
    cudaStream_t stream)
{
    if (std::max({int64_t(grid.y) * block.y, int64_t(grid.x) * block.x, h * k, k * w, h * w}) <= INT32_MAX)
        matmul_k_kernel<int><<<grid, block, 0, stream>>>(m, n, out, h, k, w);
    else
        matmul_k_kernel<int64_t><<<grid, block, 0, stream>>>(m, n, out, h, k, w);
    return cudaGetLastError();
}

cudaError_t matmul_k_launch(
    const float* m, const float* n, float* out, int64_t h, int64_t k, int64_t w, cudaStream_t stream)
{
    if (h == 0 || w == 0) return cudaSuccess;
    const dim3 block(16, 16);
    const dim3 grid((w + block.x - 1) / block.x, (h + block.y - 1) / block.y);
    return matmul_k_launch(m, n, out, h, k, w, grid, block, stream);
}
