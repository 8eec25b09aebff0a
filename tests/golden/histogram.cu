// histogram: CUDA kernels and their launchers, translated from histogram.py by py2cu.
#include "histogram.h"

#include <cstdint>
#include <cuda_runtime.h>

namespace {

constexpr int THREADS = 256;
constexpr int BINS = 256;

// How often each byte occurs; a thread looks at 16 of them.
template <typename index_t>  // int, or int64_t where an extent needs it
__global__ void histogram_kernel(const uint8_t* __restrict__ x, int32_t* __restrict__ counts, index_t n)
{
    __shared__ int32_t mine[BINS];
    int t = threadIdx.x;
    for (int b = t; b < BINS; b += THREADS)
        mine[b] = 0;
    __syncthreads();
    for (index_t i = blockIdx.x * index_t(blockDim.x) + t; i < n; i += gridDim.x * index_t(blockDim.x))
        atomicAdd(&mine[x[i]], 1);
    __syncthreads();
    for (int b = t; b < BINS; b += THREADS)
        atomicAdd(&counts[b], mine[b]);
}

}  // namespace

cudaError_t histogram_launch(
    const uint8_t* x, int32_t* counts, int64_t n, dim3 grid, dim3 block, cudaStream_t stream)
{
    if (int64_t(grid.x) * block.x + n <= INT32_MAX)
        histogram_kernel<int><<<grid, block, 0, stream>>>(x, counts, n);
    else
        histogram_kernel<int64_t><<<grid, block, 0, stream>>>(x, counts, n);
    return cudaGetLastError();
}

cudaError_t histogram_launch(const uint8_t* x, int32_t* counts, int64_t n, cudaStream_t stream)
{
    if ((n + 15) / 16 == 0) return cudaSuccess;
    const dim3 block(THREADS);
    const dim3 grid(((n + 15) / 16 + block.x - 1) / block.x);
    return histogram_launch(x, counts, n, grid, block, stream);
}
