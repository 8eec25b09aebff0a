// matvec: CUDA kernels and their launchers, translated from matvec.py by py2cu.
#include "matvec.h"

#include <algorithm>
#include <cstdint>
#include <cuda_runtime.h>

namespace {

// The scalar product of every row of `m` with `v`.
template <typename index_t>  // int, or int64_t where an extent needs it
__global__ void matvec_kernel(
    const float* __restrict__ m, const float* __restrict__ v, float* __restrict__ out, index_t h, index_t w)
{
    index_t r = blockIdx.x * index_t(blockDim.x) + threadIdx.x;
    if (r >= h) return;
    float total = 0.0f;
    for (index_t i = 0; i < w; ++i)
        total += m[r * w + i] * v[i];
    out[r] = total;
}

}  // namespace

cudaError_t matvec_launch(
    const float* m, const float* v, float* out, int64_t h, int64_t w, dim3 grid, dim3 block, cudaStream_t stream)
{
    if (std::max({int64_t(grid.x) * block.x, h * w, h}) <= INT32_MAX)
        matvec_kernel<int><<<grid, block, 0, stream>>>(m, v, out, h, w);
    else
        matvec_kernel<int64_t><<<grid, block, 0, stream>>>(m, v, out, h, w);
    return cudaGetLastError();
}

cudaError_t matvec_launch(const float* m, const float* v, float* out, int64_t h, int64_t w, cudaStream_t stream)
{
    if (h == 0) return cudaSuccess;
    const dim3 block(256);
    const dim3 grid((h + block.x - 1) / block.x);
    return matvec_launch(m, v, out, h, w, grid, block, stream);
}
