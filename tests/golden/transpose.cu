// transpose: CUDA kernels and their launchers, translated from transpose.py by py2cu.
#include "transpose.h"

#include <algorithm>
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

namespace {

constexpr int TILE = 32;
constexpr int ROWS = 8;

// The number of blocks of `block` threads that cover `threads`; 0, which CUDA refuses to launch, where it is too large.
unsigned covering_blocks(int64_t threads, int64_t block)
{
    const int64_t blocks = threads > 0 ? (threads - 1) / block + 1 : 0;
    return blocks <= INT32_MAX ? static_cast<unsigned>(blocks) : 0;
}

// Rows become columns, by tiles.
// T is float, double, __half or __nv_bfloat16.
template <typename T, typename index_t>  // index_t: int, or int64_t where an extent needs it
__global__ void transpose_kernel(const T* __restrict__ x, T* __restrict__ out, index_t h, index_t w)
{
    __shared__ T tile[TILE][TILE + 1];
    int tr = threadIdx.y;
    int tc = threadIdx.x;
    index_t top = index_t(blockIdx.y) * TILE;
    index_t left = index_t(blockIdx.x) * TILE;
    for (int i = tr; i < TILE; i += ROWS) {
        if (top + i < h && left + tc < w)
            tile[i][tc] = x[(top + i) * w + (left + tc)];
    }
    __syncthreads();
    for (int i = tr; i < TILE; i += ROWS) {
        if (left + i < w && top + tc < h)
            out[(left + i) * h + (top + tc)] = tile[tc][i];
    }
}

template <typename T>
cudaError_t launch_transpose(const T* x, T* out, int64_t h, int64_t w, dim3 grid, dim3 block, cudaStream_t stream)
{
    if (std::max({32 * int64_t(grid.y) + 8, int64_t(block.x) + 32 * int64_t(grid.x), 32 * int64_t(grid.x) + 8,
                  int64_t(block.x) + 32 * int64_t(grid.y), w, h * w}) <= INT32_MAX)
        transpose_kernel<T, int><<<grid, block, 0, stream>>>(x, out, h, w);
    else
        transpose_kernel<T, int64_t><<<grid, block, 0, stream>>>(x, out, h, w);
    return cudaGetLastError();
}

template <typename T>
cudaError_t launch_transpose(const T* x, T* out, int64_t h, int64_t w, cudaStream_t stream)
{
    if ((h + 3) / 4 == 0 || w == 0) return cudaSuccess;
    const dim3 block(TILE, ROWS);
    const dim3 grid(covering_blocks(w, block.x), covering_blocks((h + 3) / 4, block.y));
    return launch_transpose(x, out, h, w, grid, block, stream);
}

}  // namespace

cudaError_t transpose_launch(
    const float* x, float* out, int64_t h, int64_t w, dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_transpose(x, out, h, w, grid, block, stream);
}

cudaError_t transpose_launch(
    const double* x, double* out, int64_t h, int64_t w, dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_transpose(x, out, h, w, grid, block, stream);
}

cudaError_t transpose_launch(
    const __half* x, __half* out, int64_t h, int64_t w, dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_transpose(x, out, h, w, grid, block, stream);
}

cudaError_t transpose_launch(
    const __nv_bfloat16* x, __nv_bfloat16* out, int64_t h, int64_t w, dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_transpose(x, out, h, w, grid, block, stream);
}

cudaError_t transpose_launch(const float* x, float* out, int64_t h, int64_t w, cudaStream_t stream)
{
    return launch_transpose(x, out, h, w, stream);
}

cudaError_t transpose_launch(const double* x, double* out, int64_t h, int64_t w, cudaStream_t stream)
{
    return launch_transpose(x, out, h, w, stream);
}

cudaError_t transpose_launch(const __half* x, __half* out, int64_t h, int64_t w, cudaStream_t stream)
{
    return launch_transpose(x, out, h, w, stream);
}

cudaError_t transpose_launch(const __nv_bfloat16* x, __nv_bfloat16* out, int64_t h, int64_t w, cudaStream_t stream)
{
    return launch_transpose(x, out, h, w, stream);
}
