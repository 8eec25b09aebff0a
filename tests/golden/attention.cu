// attention: CUDA kernels and their launchers, translated from attention.py by py2cu.
#include "attention.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cuda_runtime.h>

namespace {

constexpr int QUERIES = 64;
constexpr int KEYS = 32;

// The number of blocks of `block` threads that cover `threads`; 0, which CUDA refuses to launch, where it is too large.
unsigned covering_blocks(int64_t threads, int64_t block)
{
    const int64_t blocks = threads > 0 ? (threads - 1) / block + 1 : 0;
    return blocks <= INT32_MAX ? static_cast<unsigned>(blocks) : 0;
}

// softmax(q k^T / sqrt(d)) v, for each head.
// d is 32.
template <int d, typename index_t>  // index_t: int, or int64_t where an extent needs it
__global__ void attention_kernel(
    const float* __restrict__ q, const float* __restrict__ k, const float* __restrict__ v, float* __restrict__ out,
    index_t queries, index_t keys)
{
    __shared__ float ks[KEYS][d];
    __shared__ float vs[KEYS][d];
    float query[d];
    float result[d];
    index_t head = blockIdx.y;
    int t = threadIdx.x;
    index_t i = index_t(blockIdx.x) * QUERIES + t;
    float scale = static_cast<float>(1.0 / sqrt(static_cast<double>(d)));
    for (int c = 0; c < d; ++c) {
        query[c] = i < queries ? q[(head * queries + i) * d + c] * scale : 0.0f;
        result[c] = 0.0f;
    }
    float top = -INFINITY;
    float total = 0.0f;
    for (index_t start = 0; start < keys; start += KEYS) {
        index_t count = min(index_t(KEYS), keys - start);
        for (int at_ = t; at_ < count * d; at_ += QUERIES) {
            ks[at_ / d][at_ % d] = k[(head * keys + (start + at_ / d)) * d + at_ % d];
            vs[at_ / d][at_ % d] = v[(head * keys + (start + at_ / d)) * d + at_ % d];
        }
        __syncthreads();
        for (int j = 0; j < count; ++j) {
            float score = 0.0f;
            for (int c = 0; c < d; ++c)
                score += query[c] * ks[j][c];
            if (score > top) {
                // The first time this is exp(-inf), 0, and there is nothing to scale
                float correction = expf(top - score);
                total *= correction;
                for (int c = 0; c < d; ++c)
                    result[c] *= correction;
                top = score;
            }
            float weight = expf(score - top);
            total += weight;
            for (int c = 0; c < d; ++c)
                result[c] += weight * vs[j][c];
        }
        __syncthreads();  // before the next tiles are written
    }
    if (i < queries) {
        for (int c = 0; c < d; ++c)
            out[(head * queries + i) * d + c] = result[c] / total;
    }
}

template <int d>
cudaError_t launch_attention(
    const float* q, const float* k, const float* v, float* out, int64_t queries, int64_t keys, int64_t heads,
    dim3 grid, dim3 block, cudaStream_t stream)
{
    if (std::max({int64_t(grid.y), int64_t(block.x) + 64 * int64_t(grid.x), 32 * int64_t(d) + d * keys + keys + 96,
                  queries, d * heads * queries, d * heads * keys}) <= INT32_MAX)
        attention_kernel<d, int><<<grid, block, 0, stream>>>(q, k, v, out, queries, keys);
    else
        attention_kernel<d, int64_t><<<grid, block, 0, stream>>>(q, k, v, out, queries, keys);
    return cudaGetLastError();
}

template <int d>
cudaError_t launch_attention(
    const float* q, const float* k, const float* v, float* out, int64_t queries, int64_t keys, int64_t heads,
    cudaStream_t stream)
{
    if (heads == 0 || queries == 0) return cudaSuccess;
    const dim3 block(QUERIES, 1);
    const dim3 grid(covering_blocks(queries, block.x), covering_blocks(heads, block.y));
    return launch_attention<d>(q, k, v, out, queries, keys, heads, grid, block, stream);
}

}  // namespace

template <>
cudaError_t attention_launch<32>(
    const float* q, const float* k, const float* v, float* out, int64_t queries, int64_t keys, int64_t heads,
    dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_attention<32>(q, k, v, out, queries, keys, heads, grid, block, stream);
}

template <>
cudaError_t attention_launch<32>(
    const float* q, const float* k, const float* v, float* out, int64_t queries, int64_t keys, int64_t heads,
    cudaStream_t stream)
{
    return launch_attention<32>(q, k, v, out, queries, keys, heads, stream);
}
