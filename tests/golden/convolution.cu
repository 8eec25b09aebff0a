// convolution: CUDA kernels and their launchers, translated from convolution.py by py2cu.
#include "convolution.h"

#include <algorithm>
#include <cstdint>
#include <cuda_runtime.h>

namespace {

constexpr int RADIUS = 2;
constexpr int TILE = 16;
constexpr int WIDE = TILE + 2 * RADIUS;

__constant__ const float FILTER[5][5] = {
    {0.0f, 0.0f, -1.0f, 0.0f, 0.0f},
    {0.0f, -1.0f, -2.0f, -1.0f, 0.0f},
    {-1.0f, -2.0f, 16.0f, -2.0f, -1.0f},
    {0.0f, -1.0f, -2.0f, -1.0f, 0.0f},
    {0.0f, 0.0f, -1.0f, 0.0f, 0.0f}
};

// The filter at every pixel; outside the picture there are zeros.
template <typename index_t>  // int, or int64_t where an extent needs it
__global__ void convolve_kernel(const float* __restrict__ x, float* __restrict__ out, index_t h, index_t w)
{
    __shared__ float tile[WIDE][WIDE];
    int tr = threadIdx.y;
    int tc = threadIdx.x;
    index_t top = index_t(blockIdx.y) * TILE;
    index_t left = index_t(blockIdx.x) * TILE;
    for (int i = tr; i < WIDE; i += TILE) {
        for (int j = tc; j < WIDE; j += TILE) {
            index_t r = top + i - RADIUS;
            index_t c = left + j - RADIUS;
            tile[i][j] = 0 <= r && r < h && 0 <= c && c < w ? x[r * w + c] : 0.0f;
        }
    }
    __syncthreads();
    float s = 0.0f;
    for (int i = 0; i < 2 * RADIUS + 1; ++i) {
        for (int j = 0; j < 2 * RADIUS + 1; ++j)
            s += FILTER[i][j] * tile[tr + i][tc + j];
    }
    if (top + tr < h && left + tc < w)
        out[(top + tr) * w + (left + tc)] = s;
}

}  // namespace

cudaError_t convolve_launch(
    const float* x, float* out, int64_t h, int64_t w, dim3 grid, dim3 block, cudaStream_t stream)
{
    if (std::max({16 * int64_t(grid.y) + 20, 16 * int64_t(grid.x) + 20, int64_t(block.y) + 16 * int64_t(grid.y),
                  int64_t(block.x) + 16 * int64_t(grid.x), h * w}) <= INT32_MAX)
        convolve_kernel<int><<<grid, block, 0, stream>>>(x, out, h, w);
    else
        convolve_kernel<int64_t><<<grid, block, 0, stream>>>(x, out, h, w);
    return cudaGetLastError();
}

cudaError_t convolve_launch(const float* x, float* out, int64_t h, int64_t w, cudaStream_t stream)
{
    if (h == 0 || w == 0) return cudaSuccess;
    const dim3 block(TILE, TILE);
    const dim3 grid((w + block.x - 1) / block.x, (h + block.y - 1) / block.y);
    return convolve_launch(x, out, h, w, grid, block, stream);
}
