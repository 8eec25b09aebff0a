// grayscale: CUDA kernels and their launchers, translated from grayscale.py by py2cu.
#include "grayscale.h"

#include <algorithm>
#include <cstdint>
#include <cuda_runtime.h>

namespace {

// The number of blocks of `block` threads that cover `threads`; 0, which CUDA refuses to launch, where it is too large.
unsigned covering_blocks(int64_t threads, int64_t block)
{
    const int64_t blocks = threads > 0 ? (threads - 1) / block + 1 : 0;
    return blocks <= INT32_MAX ? static_cast<unsigned>(blocks) : 0;
}

// Luminance of a planar RGB picture.
template <typename index_t>  // int, or int64_t where an extent needs it
__global__ void rgb2grey_kernel(const uint8_t* __restrict__ x, uint8_t* __restrict__ out, index_t n)
{
    index_t i = blockIdx.x * index_t(blockDim.x) + threadIdx.x;
    if (i >= n) return;
    out[i] = static_cast<uint8_t>(0.2989f * x[i] + 0.5870f * x[n + i] + 0.1140f * x[2 * n + i]);
}

// Luminance of an RGB picture, by row and column.
template <typename index_t>  // int, or int64_t where an extent needs it
__global__ void rgb2grey_2d_kernel(const uint8_t* __restrict__ x, uint8_t* __restrict__ out, index_t h, index_t w)
{
    index_t r = blockIdx.y * index_t(blockDim.y) + threadIdx.y;
    index_t c = blockIdx.x * index_t(blockDim.x) + threadIdx.x;
    if (r >= h || c >= w) return;
    out[r * w + c] = static_cast<uint8_t>(0.2989f * x[r * w + c] + 0.5870f * x[(h + r) * w + c] +
                                          0.1140f * x[(2 * h + r) * w + c]);
}

// Luminance of an RGB picture, by blocks of 16 by 16 threads.
template <typename index_t>  // int, or int64_t where an extent needs it
__global__ void rgb2grey_block_kernel(
    const uint8_t* __restrict__ x, uint8_t* __restrict__ out, index_t w, index_t h)
{
    index_t c = blockIdx.x * index_t(blockDim.x) + threadIdx.x;
    index_t r = blockIdx.y * index_t(blockDim.y) + threadIdx.y;
    if (c < w && r < h)
        out[r * w + c] = static_cast<uint8_t>(0.2989f * x[r * w + c] + 0.5870f * x[(h + r) * w + c] +
                                              0.1140f * x[(2 * h + r) * w + c]);
}

}  // namespace

cudaError_t rgb2grey_launch(const uint8_t* x, uint8_t* out, int64_t n, dim3 grid, dim3 block, cudaStream_t stream)
{
    if (std::max({int64_t(grid.x) * block.x, 3 * n}) <= INT32_MAX)
        rgb2grey_kernel<int><<<grid, block, 0, stream>>>(x, out, n);
    else
        rgb2grey_kernel<int64_t><<<grid, block, 0, stream>>>(x, out, n);
    return cudaGetLastError();
}

cudaError_t rgb2grey_launch(const uint8_t* x, uint8_t* out, int64_t n, cudaStream_t stream)
{
    if (n == 0) return cudaSuccess;
    const dim3 block(256);
    const dim3 grid((n + block.x - 1) / block.x);
    return rgb2grey_launch(x, out, n, grid, block, stream);
}

cudaError_t rgb2grey_2d_launch(
    const uint8_t* x, uint8_t* out, int64_t h, int64_t w, dim3 grid, dim3 block, cudaStream_t stream)
{
    if (std::max({int64_t(grid.y) * block.y, int64_t(grid.x) * block.x, 3 * h * w}) <= INT32_MAX)
        rgb2grey_2d_kernel<int><<<grid, block, 0, stream>>>(x, out, h, w);
    else
        rgb2grey_2d_kernel<int64_t><<<grid, block, 0, stream>>>(x, out, h, w);
    return cudaGetLastError();
}

cudaError_t rgb2grey_2d_launch(const uint8_t* x, uint8_t* out, int64_t h, int64_t w, cudaStream_t stream)
{
    if (h == 0 || w == 0) return cudaSuccess;
    const dim3 block(16, 16);
    const dim3 grid(covering_blocks(w, block.x), covering_blocks(h, block.y));
    return rgb2grey_2d_launch(x, out, h, w, grid, block, stream);
}

cudaError_t rgb2grey_block_launch(
    const uint8_t* x, uint8_t* out, int64_t w, int64_t h, dim3 grid, dim3 block, cudaStream_t stream)
{
    if (std::max({int64_t(grid.x) * block.x, int64_t(grid.y) * block.y, 3 * h * w}) <= INT32_MAX)
        rgb2grey_block_kernel<int><<<grid, block, 0, stream>>>(x, out, w, h);
    else
        rgb2grey_block_kernel<int64_t><<<grid, block, 0, stream>>>(x, out, w, h);
    return cudaGetLastError();
}

cudaError_t rgb2grey_block_launch(const uint8_t* x, uint8_t* out, int64_t w, int64_t h, cudaStream_t stream)
{
    if (h == 0 || w == 0) return cudaSuccess;
    const dim3 block(16, 16);
    const dim3 grid(covering_blocks(w, block.x), covering_blocks(h, block.y));
    return rgb2grey_block_launch(x, out, w, h, grid, block, stream);
}
