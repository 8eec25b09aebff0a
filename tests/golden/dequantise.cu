// dequantise: CUDA kernels and their launchers, translated from dequantise.py by py2cu.
#include <algorithm>
#include <cstdint>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

// Packed matrix times vector, one row a block.
template <typename index_t>  // int, or int64_t where an extent needs it
__global__ void matvec_kernel(
    const int32_t* __restrict__ packed, const __half* __restrict__ scales, const __half* __restrict__ zeros,
    const float* __restrict__ x, float* __restrict__ out, index_t words, index_t groups)
{
    __shared__ float part[128];
    index_t r = blockIdx.x;
    int t = threadIdx.x;
    float s = 0.0f;
    for (index_t i = t; i < words; i += 128) {
        int32_t word = packed[r * words + i];
        index_t group = i * 8 / 64;
        float zero = static_cast<float>(zeros[r * groups + group]);
        float dot = 0.0f;
        for (int j = 0; j < 8; ++j)
            dot += (static_cast<float>((word >> (4 * j)) & 15) - zero) * x[i * 8 + j];
        s += static_cast<float>(scales[r * groups + group]) * dot;
    }
    part[t] = s;
    __syncthreads();
    int half = 128 / 2;
    while (half > 0) {
        if (t < half)
            part[t] += part[t + half];
        __syncthreads();
        half /= 2;
    }
    if (t == 0)
        out[r] = part[0];
}

cudaError_t matvec_launch(
    const int32_t* packed, const __half* scales, const __half* zeros, const float* x, float* out, int64_t words,
    int64_t rows, int64_t groups, dim3 grid, dim3 block, cudaStream_t stream)
{
    if (std::max({int64_t(grid.x), 8 * words + 1032, rows * words, groups * rows, rows}) <= INT32_MAX)
        matvec_kernel<int><<<grid, block, 0, stream>>>(packed, scales, zeros, x, out, words, groups);
    else
        matvec_kernel<int64_t><<<grid, block, 0, stream>>>(packed, scales, zeros, x, out, words, groups);
    return cudaGetLastError();
}

cudaError_t matvec_launch(
    const int32_t* packed, const __half* scales, const __half* zeros, const float* x, float* out, int64_t words,
    int64_t rows, int64_t groups, cudaStream_t stream)
{
    if (128 * rows == 0) return cudaSuccess;
    const dim3 block(128);
    const dim3 grid((128 * rows + block.x - 1) / block.x);
    return matvec_launch(packed, scales, zeros, x, out, words, rows, groups, grid, block, stream);
}
