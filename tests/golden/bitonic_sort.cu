// bitonic_sort: CUDA kernels and their launchers, translated from bitonic_sort.py by py2cu.
#include "bitonic_sort.h"

#undef NDEBUG  // kernels keep their asserts
#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <cuda_runtime.h>

namespace {

constexpr int WIDTH = 512;
constexpr int PAIRS = WIDTH / 2;

// The number of blocks of `block` threads that cover `threads`; 0, which CUDA refuses to launch, where it is too large.
unsigned covering_blocks(int64_t threads, int64_t block)
{
    const int64_t blocks = threads > 0 ? (threads - 1) / block + 1 : 0;
    return blocks <= INT32_MAX ? static_cast<unsigned>(blocks) : 0;
}

// Each row sorted; a row has 512 elements at most.
template <typename index_t>  // int, or int64_t where an extent needs it
__global__ void sort_rows_kernel(const float* __restrict__ x, float* __restrict__ out, index_t n)
{
    __shared__ float row[WIDTH];
    index_t r = blockIdx.x;
    int t = threadIdx.x;
    for (index_t i = t; i < WIDTH; i += PAIRS)
        row[i] = i < n ? x[r * n + i] : INFINITY;
    for (int run = 2; run <= WIDTH; run *= 2) {
        for (int distance = run / 2; distance > 0; distance /= 2) {
            __syncthreads();
            // The first of the thread's pair: `t` with a 0 put in where the distance has its 1
            int a = 2 * t - (t & (distance - 1));
            int b = a + distance;
            bool upward = (a & run) == 0;
            if ((row[a] > row[b]) == upward) {
                float new_value = row[a];
                row[a] = row[b];
                row[b] = new_value;
            }
        }
    }
    __syncthreads();
    for (index_t i = t; i < n; i += PAIRS)
        out[r * n + i] = row[i];
}

// One step over the whole array: pairs at `distance`, within runs of `run`.
template <typename index_t>  // int, or int64_t where an extent needs it
__global__ void compare_pairs_kernel(float* __restrict__ x, index_t run, index_t distance, index_t n)
{
    index_t t = blockIdx.x * index_t(blockDim.x) + threadIdx.x;
    if (t >= n / 2) return;
    assert(distance > 0 && (distance & (distance - 1)) == 0 && "a power of two");
    index_t a = 2 * t - (t & (distance - 1));
    index_t b = a + distance;
    bool upward = (a & run) == 0;
    if ((x[a] > x[b]) == upward) {
        float new_value = x[a];
        x[a] = x[b];
        x[b] = new_value;
    }
}

}  // namespace

cudaError_t sort_rows_launch(
    const float* x, float* out, int64_t n, int64_t rows, dim3 grid, dim3 block, cudaStream_t stream)
{
    if (std::max({int64_t(grid.x), n + 768, n * rows}) <= INT32_MAX)
        sort_rows_kernel<int><<<grid, block, 0, stream>>>(x, out, n);
    else
        sort_rows_kernel<int64_t><<<grid, block, 0, stream>>>(x, out, n);
    return cudaGetLastError();
}

cudaError_t sort_rows_launch(const float* x, float* out, int64_t n, int64_t rows, cudaStream_t stream)
{
    if (rows == 0) return cudaSuccess;
    const dim3 block(PAIRS);
    const dim3 grid(covering_blocks(256 * rows, block.x));
    return sort_rows_launch(x, out, n, rows, grid, block, stream);
}

cudaError_t compare_pairs_launch(
    float* x, int64_t run, int64_t distance, int64_t n, dim3 grid, dim3 block, cudaStream_t stream)
{
    if (int64_t(grid.x) * block.x <= INT32_MAX && 2 * std::fabs(distance) + 1 <= INT32_MAX &&
        std::fabs(distance) + 2 * n <= INT32_MAX && 2 * n + std::fabs(run) <= INT32_MAX)
        compare_pairs_kernel<int><<<grid, block, 0, stream>>>(x, run, distance, n);
    else
        compare_pairs_kernel<int64_t><<<grid, block, 0, stream>>>(x, run, distance, n);
    return cudaGetLastError();
}

cudaError_t compare_pairs_launch(float* x, int64_t run, int64_t distance, int64_t n, cudaStream_t stream)
{
    if (n / 2 == 0) return cudaSuccess;
    const dim3 block(256);
    const dim3 grid((n / 2 + block.x - 1) / block.x);
    return compare_pairs_launch(x, run, distance, n, grid, block, stream);
}
