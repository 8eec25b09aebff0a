// cooperative: CUDA kernels and their launchers, translated from cooperative.py by py2cu.
#include "cooperative.h"

#include <algorithm>
#include <cmath>
#include <cooperative_groups.h>
#include <cstdint>
#include <cuda_runtime.h>

namespace {

constexpr int THREADS = 256;

// The sum of the values of a block's threads, of which this is number `t`; `part` has a place for each.
__device__ float block_sum(float* part, int t, float value)
{
    part[t] = value;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (t < half)
            part[t] += part[t + half];
        __syncthreads();
    }
    return part[0];
}

// The number of blocks of `block` threads that cover `threads`; 0, which CUDA refuses to launch, where it is too large.
unsigned covering_blocks(int64_t threads, int64_t block)
{
    const int64_t blocks = threads > 0 ? (threads - 1) / block + 1 : 0;
    return blocks <= INT32_MAX ? static_cast<unsigned>(blocks) : 0;
}

// Launches a kernel whose blocks wait for each other, unless the device cannot hold all of them at once.
template <typename... Parameters, typename... Arguments>
cudaError_t launch_cooperatively(
    void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream, int64_t* max_blocks,
    Arguments... arguments)
{
    int device, multiprocessors, blocks;
    if (cudaGetDevice(&device) != cudaSuccess ||
        cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device) != cudaSuccess ||
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, block.x * block.y * block.z, shared_bytes) !=
            cudaSuccess)
        return cudaGetLastError();
    const int64_t most = int64_t(blocks) * multiprocessors;
    if (max_blocks) *max_blocks = most;
    if (int64_t(grid.x) * grid.y * grid.z > most) return cudaErrorCooperativeLaunchTooLarge;
    // CUDA reads the arguments through pointers, so they must have the types of the kernel's parameters.
    const auto launch = [&](Parameters... exact) {
        void* addresses[] = {&exact...};
        cudaLaunchCooperativeKernel(kernel, grid, block, addresses, shared_bytes, stream);
    };
    launch(arguments...);
    return cudaGetLastError();
}

// The sum of all, in the same order every time.
template <typename index_t>  // int, or int64_t where an extent needs it
__global__ void total_kernel(const float* __restrict__ x, float* sums, float* __restrict__ out, index_t n)
{
    __shared__ float part[THREADS];
    int t = threadIdx.x;
    float s = 0.0f;
    for (index_t i = index_t(blockIdx.x) * THREADS + t; i < n; i += index_t(gridDim.x) * THREADS)
        s += x[i];
    s = block_sum(part, t, s);
    if (t == 0)
        sums[blockIdx.x] = s;
    cooperative_groups::this_grid().sync();
    if (blockIdx.x == 0) {
        s = 0.0f;
        for (index_t k = t; k < gridDim.x; k += THREADS)
            s += sums[k];
        s = block_sum(part, t, s);
        if (t == 0)
            out[0] = s;
    }
}

// So many steps, each of which nears every element but the outermost to the mean of its neighbours.
//
// They go from `x` to `other` and back: after an even number of them the result is in `x`.
template <typename index_t>  // int, or int64_t where an extent needs it
__global__ void relax_kernel(float* x, float* other, index_t steps, index_t n)
{
    for (index_t step = 0; step < steps; ++step) {
        for (index_t i = blockIdx.x * index_t(blockDim.x) + threadIdx.x; i < n; i += gridDim.x * index_t(blockDim.x)) {
            bool inside = 0 < i && i < n - 1;
            if (step % 2 == 0)
                other[i] = inside ? (x[i - 1] + x[i + 1]) / 2 : x[i];
            else
                x[i] = inside ? (other[i - 1] + other[i + 1]) / 2 : other[i];
        }
        cooperative_groups::this_grid().sync();
    }
}

}  // namespace

cudaError_t total_launch(
    const float* x, float* sums, float* out, int64_t n, int64_t blocks_, dim3 grid, dim3 block, cudaStream_t stream,
    int64_t* max_blocks)
{
    if (std::max({int64_t(block.x) + 256 * int64_t(grid.x), 256 * int64_t(grid.x) + n, int64_t(grid.x) + 256,
                  blocks_}) <= INT32_MAX)
        return launch_cooperatively(total_kernel<int>, grid, block, 0, stream, max_blocks, x, sums, out, n);
    else
        return launch_cooperatively(total_kernel<int64_t>, grid, block, 0, stream, max_blocks, x, sums, out, n);
}

cudaError_t total_launch(
    const float* x, float* sums, float* out, int64_t n, int64_t blocks_, cudaStream_t stream, int64_t* max_blocks)
{
    if (blocks_ == 0) return cudaSuccess;
    const dim3 block(THREADS);
    const dim3 grid(covering_blocks(256 * blocks_, block.x));
    return total_launch(x, sums, out, n, blocks_, grid, block, stream, max_blocks);
}

cudaError_t relax_launch(
    float* x, float* other, int64_t steps, int64_t n, dim3 grid, dim3 block, cudaStream_t stream,
    int64_t* max_blocks)
{
    if (int64_t(grid.x) * block.x + n + 1 <= INT32_MAX && std::fabs(steps) <= INT32_MAX)
        return launch_cooperatively(relax_kernel<int>, grid, block, 0, stream, max_blocks, x, other, steps, n);
    else
        return launch_cooperatively(relax_kernel<int64_t>, grid, block, 0, stream, max_blocks, x, other, steps, n);
}

cudaError_t relax_launch(float* x, float* other, int64_t steps, int64_t n, cudaStream_t stream, int64_t* max_blocks)
{
    if (n == 0) return cudaSuccess;
    const dim3 block(THREADS);
    const dim3 grid((n + block.x - 1) / block.x);
    return relax_launch(x, other, steps, n, grid, block, stream, max_blocks);
}
