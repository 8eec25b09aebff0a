// stencil: CUDA kernels and their launchers, translated from stencil.py by py2cu.
#include "stencil.h"

#include <algorithm>
#include <cstdint>
#include <cuda_runtime.h>

namespace {

constexpr int RADIUS = 3;
constexpr int THREADS = 256;
constexpr int TILE = 16;
constexpr int WIDE = TILE + 2;

// The mean of 7 neighbours; past the ends there are zeros.
template <typename index_t>  // int, or int64_t where an extent needs it
__global__ void smooth_kernel(const float* __restrict__ x, float* __restrict__ out, index_t n)
{
    __shared__ float near[THREADS + 2 * RADIUS];
    int t = threadIdx.x;
    index_t i = blockIdx.x * index_t(blockDim.x) + t;
    near[t + RADIUS] = i < n ? x[i] : 0.0f;
    if (t < RADIUS) {  // the halo, left and right
        near[t] = i >= RADIUS ? x[i - RADIUS] : 0.0f;
        near[t + RADIUS + THREADS] = i + THREADS < n ? x[i + THREADS] : 0.0f;
    }
    __syncthreads();
    float s = 0.0f;
    for (int k = 0; k < 2 * RADIUS + 1; ++k)
        s += near[t + k];
    if (i < n)
        out[i] = s / (2 * RADIUS + 1);
}

// A step of heat's diffusion: each element nears the mean of its neighbours. Nothing leaves at the border.
template <typename index_t>  // int, or int64_t where an extent needs it
__global__ void diffuse_kernel(
    const float* __restrict__ x, float rate, float* __restrict__ out, index_t h, index_t w)
{
    __shared__ float tile[WIDE][WIDE];
    int tr = threadIdx.y;
    int tc = threadIdx.x;
    index_t top = index_t(blockIdx.y) * TILE - 1;
    index_t left = index_t(blockIdx.x) * TILE - 1;
    for (int i = tr * TILE + tc; i < WIDE * WIDE; i += TILE * TILE) {
        index_t near_r = min(max(top + i / WIDE, index_t(0)), h - 1);
        index_t near_c = min(max(left + i % WIDE, index_t(0)), w - 1);
        tile[i / WIDE][i % WIDE] = x[near_r * w + near_c];
    }
    __syncthreads();
    index_t r = top + 1 + tr;
    index_t c = left + 1 + tc;
    if (r < h && c < w) {
        float here = tile[tr + 1][tc + 1];
        float around = tile[tr][tc + 1] + tile[tr + 2][tc + 1] + tile[tr + 1][tc] + tile[tr + 1][tc + 2];
        out[r * w + c] = here + rate * (around - 4 * here);
    }
}

}  // namespace

cudaError_t smooth_launch(const float* x, float* out, int64_t n, dim3 grid, dim3 block, cudaStream_t stream)
{
    if (std::max({int64_t(grid.x) * block.x + 255, n}) <= INT32_MAX)
        smooth_kernel<int><<<grid, block, 0, stream>>>(x, out, n);
    else
        smooth_kernel<int64_t><<<grid, block, 0, stream>>>(x, out, n);
    return cudaGetLastError();
}

cudaError_t smooth_launch(const float* x, float* out, int64_t n, cudaStream_t stream)
{
    if (n == 0) return cudaSuccess;
    const dim3 block(THREADS);
    const dim3 grid((n + block.x - 1) / block.x);
    return smooth_launch(x, out, n, grid, block, stream);
}

cudaError_t diffuse_launch(
    const float* x, double rate, float* out, int64_t h, int64_t w, dim3 grid, dim3 block, cudaStream_t stream)
{
    if (std::max({16 * int64_t(grid.y) + h + 581, 16 * int64_t(grid.x) + w + 19,
                  int64_t(block.y) + 16 * int64_t(grid.y) + 1, int64_t(block.x) + 16 * int64_t(grid.x) + 1, h * w}) <=
        INT32_MAX)
        diffuse_kernel<int><<<grid, block, 0, stream>>>(x, rate, out, h, w);
    else
        diffuse_kernel<int64_t><<<grid, block, 0, stream>>>(x, rate, out, h, w);
    return cudaGetLastError();
}

cudaError_t diffuse_launch(const float* x, double rate, float* out, int64_t h, int64_t w, cudaStream_t stream)
{
    if (h == 0 || w == 0) return cudaSuccess;
    const dim3 block(TILE, TILE);
    const dim3 grid((w + block.x - 1) / block.x, (h + block.y - 1) / block.y);
    return diffuse_launch(x, rate, out, h, w, grid, block, stream);
}
