// box_blur: CUDA kernels and their launchers, translated from box_blur.py by py2cu.
#include "box_blur.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cuda_runtime.h>

namespace {

// Mean over a square of `2 * radius + 1` pixels a side; at the edges, over the part inside the picture.
template <typename index_t>  // int, or int64_t where an extent needs it
__global__ void box_blur_kernel(
    const float* __restrict__ x, index_t radius, float* __restrict__ out, index_t h, index_t w)
{
    index_t r = blockIdx.y * index_t(blockDim.y) + threadIdx.y;
    index_t c = blockIdx.x * index_t(blockDim.x) + threadIdx.x;
    if (r >= h || c >= w) return;
    float total = 0.0f;
    index_t count = 0;
    for (index_t y = max(r - radius, index_t(0)); y < min(r + radius + 1, h); ++y) {
        for (index_t z = max(c - radius, index_t(0)); z < min(c + radius + 1, w); ++z) {
            total += x[y * w + z];
            ++count;
        }
    }
    out[r * w + c] = total / count;
}

}  // namespace

cudaError_t box_blur_launch(
    const float* x, int64_t radius, float* out, int64_t h, int64_t w, dim3 grid, dim3 block, cudaStream_t stream)
{
    if (std::max({h * w + 1, int64_t(grid.y) * block.y, int64_t(grid.x) * block.x}) <= INT32_MAX &&
        h + std::fabs(radius) <= INT32_MAX && std::fabs(radius) + w <= INT32_MAX)
        box_blur_kernel<int><<<grid, block, 0, stream>>>(x, radius, out, h, w);
    else
        box_blur_kernel<int64_t><<<grid, block, 0, stream>>>(x, radius, out, h, w);
    return cudaGetLastError();
}

cudaError_t box_blur_launch(const float* x, int64_t radius, float* out, int64_t h, int64_t w, cudaStream_t stream)
{
    if (h == 0 || w == 0) return cudaSuccess;
    const dim3 block(16, 16);
    const dim3 grid((w + block.x - 1) / block.x, (h + block.y - 1) / block.y);
    return box_blur_launch(x, radius, out, h, w, grid, block, stream);
}
