// reductions: CUDA kernels and their launchers, translated from reductions.py by py2cu.
#include "reductions.h"

#include <algorithm>
#include <cstdint>
#include <cuda_runtime.h>

namespace {

constexpr int THREADS = 256;
constexpr int WARPS = THREADS / 32;
constexpr uint32_t FULL = 0xFFFFFFFF;

// The sum of the warp's values, to its first lane.
__device__ float warp_sum(float value)
{
    for (int offset = 16; offset > 0; offset /= 2)
        value += __shfl_down_sync(FULL, value, offset);
    return value;
}

// The number of blocks of `block` threads that cover `threads`; 0, which CUDA refuses to launch, where it is too large.
unsigned covering_blocks(int64_t threads, int64_t block)
{
    const int64_t blocks = threads > 0 ? (threads - 1) / block + 1 : 0;
    return blocks <= INT32_MAX ? static_cast<unsigned>(blocks) : 0;
}

// One sum a block.
template <typename index_t>  // int, or int64_t where an extent needs it
__global__ void tree_sums_kernel(const float* __restrict__ x, float* __restrict__ out, index_t n)
{
    __shared__ float part[THREADS];
    int t = threadIdx.x;
    float s = 0.0f;
    for (index_t i = blockIdx.x * index_t(blockDim.x) + t; i < n; i += gridDim.x * index_t(blockDim.x))
        s += x[i];
    part[t] = s;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (t < half)
            part[t] += part[t + half];
        __syncthreads();
    }
    if (t == 0)
        out[blockIdx.x] = part[0];
}

// The sum of all; blocks add theirs in any order. A thread adds 16 of the numbers.
template <typename index_t>  // int, or int64_t where an extent needs it
__global__ void warp_sums_kernel(const float* __restrict__ x, float* __restrict__ out, index_t n)
{
    __shared__ float part[WARPS];
    int t = threadIdx.x;
    float s = 0.0f;
    for (index_t i = blockIdx.x * index_t(blockDim.x) + t; i < n; i += gridDim.x * index_t(blockDim.x))
        s += x[i];
    s = warp_sum(s);
    if (t % 32 == 0)
        part[t / 32] = s;
    __syncthreads();
    if (t < 32) {  // the first warp
        s = warp_sum(t < WARPS ? part[t] : 0.0f);
        if (t == 0)
            atomicAdd(&out[0], s);
    }
}

}  // namespace

cudaError_t tree_sums_launch(
    const float* x, float* out, int64_t n, int64_t blocks_, dim3 grid, dim3 block, cudaStream_t stream)
{
    if (std::max({int64_t(grid.x) * block.x + n, blocks_}) <= INT32_MAX)
        tree_sums_kernel<int><<<grid, block, 0, stream>>>(x, out, n);
    else
        tree_sums_kernel<int64_t><<<grid, block, 0, stream>>>(x, out, n);
    return cudaGetLastError();
}

cudaError_t tree_sums_launch(const float* x, float* out, int64_t n, int64_t blocks_, cudaStream_t stream)
{
    if (blocks_ == 0) return cudaSuccess;
    const dim3 block(THREADS);
    const dim3 grid(covering_blocks(256 * blocks_, block.x));
    return tree_sums_launch(x, out, n, blocks_, grid, block, stream);
}

cudaError_t warp_sums_launch(const float* x, float* out, int64_t n, dim3 grid, dim3 block, cudaStream_t stream)
{
    if (int64_t(grid.x) * block.x + n <= INT32_MAX)
        warp_sums_kernel<int><<<grid, block, 0, stream>>>(x, out, n);
    else
        warp_sums_kernel<int64_t><<<grid, block, 0, stream>>>(x, out, n);
    return cudaGetLastError();
}

cudaError_t warp_sums_launch(const float* x, float* out, int64_t n, cudaStream_t stream)
{
    if ((n + 15) / 16 == 0) return cudaSuccess;
    const dim3 block(THREADS);
    const dim3 grid(((n + 15) / 16 + block.x - 1) / block.x);
    return warp_sums_launch(x, out, n, grid, block, stream);
}
