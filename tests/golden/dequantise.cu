// dequantise: CUDA kernels and their launchers, translated from dequantise.py by py2cu.
#include "dequantise.h"

#include <algorithm>
#include <cstdint>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

namespace {

constexpr uint32_t FULL = 0xFFFFFFFF;
constexpr int PER_WORD = 8;
constexpr int GROUP = 64;

// The number of blocks of `block` threads that cover `threads`; 0, which CUDA refuses to launch, where it is too large.
unsigned covering_blocks(int64_t threads, int64_t block)
{
    const int64_t blocks = threads > 0 ? (threads - 1) / block + 1 : 0;
    return blocks <= INT32_MAX ? static_cast<unsigned>(blocks) : 0;
}

// Packed matrix times vector, one row a warp.
template <typename index_t>  // int, or int64_t where an extent needs it
__global__ void matvec_kernel(
    const int32_t* __restrict__ packed, const __half* __restrict__ scales, const __half* __restrict__ zeros,
    const float* __restrict__ x, float* __restrict__ out, index_t rows, index_t words, index_t groups)
{
    index_t r = (blockIdx.x * index_t(blockDim.x) + threadIdx.x) / 32;
    int lane = threadIdx.x % 32;
    float s = 0.0f;
    if (r < rows) {
        for (index_t i = lane; i < words; i += 32) {
            int32_t word = packed[r * words + i];
            index_t group = i * PER_WORD / GROUP;
            float zero = static_cast<float>(zeros[r * groups + group]);
            float dot = 0.0f;
            for (int j = 0; j < PER_WORD; ++j)
                dot += (static_cast<float>((word >> (4 * j)) & 15) - zero) * x[i * PER_WORD + j];
            s += static_cast<float>(scales[r * groups + group]) * dot;
        }
    }
    for (int offset = 16; offset > 0; offset /= 2)
        s += __shfl_down_sync(FULL, s, offset);
    if (lane == 0 && r < rows)
        out[r] = s;
}

}  // namespace

cudaError_t matvec_launch(
    const int32_t* packed, const __half* scales, const __half* zeros, const float* x, float* out, int64_t rows,
    int64_t words, int64_t groups, dim3 grid, dim3 block, cudaStream_t stream)
{
    if (std::max({int64_t(grid.x) * block.x, 8 * words + 264, rows, rows * words, groups * rows}) <= INT32_MAX)
        matvec_kernel<int><<<grid, block, 0, stream>>>(packed, scales, zeros, x, out, rows, words, groups);
    else
        matvec_kernel<int64_t><<<grid, block, 0, stream>>>(packed, scales, zeros, x, out, rows, words, groups);
    return cudaGetLastError();
}

cudaError_t matvec_launch(
    const int32_t* packed, const __half* scales, const __half* zeros, const float* x, float* out, int64_t rows,
    int64_t words, int64_t groups, cudaStream_t stream)
{
    if (rows == 0) return cudaSuccess;
    const dim3 block(128);
    const dim3 grid(covering_blocks(32 * rows, block.x));
    return matvec_launch(packed, scales, zeros, x, out, rows, words, groups, grid, block, stream);
}
