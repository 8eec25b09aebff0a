// scan: CUDA kernels and their launchers, translated from scan.py by py2cu.
#include "scan.h"

#include <algorithm>
#include <cstdint>
#include <cuda_runtime.h>

namespace {

constexpr int THREADS = 256;

// The running sums within each block, and what each block adds up to.
template <typename index_t>  // int, or int64_t where an extent needs it
__global__ void scan_blocks_kernel(const float* x, float* out, float* __restrict__ totals, index_t n)
{
    __shared__ float sums[2][THREADS];
    int t = threadIdx.x;
    index_t i = blockIdx.x * index_t(blockDim.x) + t;
    float s = i < n ? x[i] : 0.0f;
    int source = 0;
    sums[source][t] = s;
    __syncthreads();
    for (int step = 1; step < THREADS; step *= 2) {
        if (t >= step)
            s += sums[source][t - step];
        source = 1 - source;
        sums[source][t] = s;
        __syncthreads();
    }
    if (i < n)
        out[i] = s;
    if (t == THREADS - 1)
        totals[blockIdx.x] = s;
}

// Adds to each block what the blocks before it add up to.
template <typename index_t>  // int, or int64_t where an extent needs it
__global__ void add_totals_kernel(float* __restrict__ out, const float* __restrict__ totals, index_t n)
{
    index_t i = blockIdx.x * index_t(blockDim.x) + threadIdx.x;
    if (blockIdx.x == 0 || i >= n) return;
    out[i] += totals[index_t(blockIdx.x) - 1];
}

}  // namespace

cudaError_t scan_blocks_launch(
    const float* x, float* out, float* totals, int64_t n, int64_t blocks_, dim3 grid, dim3 block,
    cudaStream_t stream)
{
    if (std::max({int64_t(grid.x) * block.x, n, blocks_}) <= INT32_MAX)
        scan_blocks_kernel<int><<<grid, block, 0, stream>>>(x, out, totals, n);
    else
        scan_blocks_kernel<int64_t><<<grid, block, 0, stream>>>(x, out, totals, n);
    return cudaGetLastError();
}

cudaError_t scan_blocks_launch(
    const float* x, float* out, float* totals, int64_t n, int64_t blocks_, cudaStream_t stream)
{
    if (n == 0) return cudaSuccess;
    const dim3 block(THREADS);
    const dim3 grid((n + block.x - 1) / block.x);
    return scan_blocks_launch(x, out, totals, n, blocks_, grid, block, stream);
}

cudaError_t add_totals_launch(
    float* out, const float* totals, int64_t n, int64_t blocks_, dim3 grid, dim3 block, cudaStream_t stream)
{
    if (std::max({int64_t(grid.x) * block.x, int64_t(grid.x) + 1, n, blocks_}) <= INT32_MAX)
        add_totals_kernel<int><<<grid, block, 0, stream>>>(out, totals, n);
    else
        add_totals_kernel<int64_t><<<grid, block, 0, stream>>>(out, totals, n);
    return cudaGetLastError();
}

cudaError_t add_totals_launch(float* out, const float* totals, int64_t n, int64_t blocks_, cudaStream_t stream)
{
    if (n == 0) return cudaSuccess;
    const dim3 block(THREADS);
    const dim3 grid((n + block.x - 1) / block.x);
    return add_totals_launch(out, totals, n, blocks_, grid, block, stream);
}
