// vector_add: CUDA kernels and their launchers, translated from vector_add.py by py2cu.
#include "vector_add.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <cuda_runtime.h>

namespace {

// N neighbours in memory, which are loaded and stored 16 bytes at a time.
template <typename T, int N>
struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) aligned_vector {
    T elements[N];
    __device__ inline T& operator[](int k) { return elements[k]; }
    __device__ inline T operator[](int k) const { return elements[k]; }
};

template <int N, typename T>
__device__ inline aligned_vector<T, N> load_vector(const T* from)
{
    return *reinterpret_cast<const aligned_vector<T, N>*>(from);
}

template <typename T, int N>
__device__ inline void store_vector(T* to, const aligned_vector<T, N>& vector)
{
    *reinterpret_cast<aligned_vector<T, N>*>(to) = vector;
}

__device__ float vector_add(float a, float b)
{
    return a + b;
}

// Whether every array begins at a multiple of 16 bytes.
bool are_aligned(std::initializer_list<const void*> arrays)
{
    for (const void* array : arrays)
        if (reinterpret_cast<uintptr_t>(array) % 16 != 0) return false;
    return true;
}

// A thread computes PACKS packs of N neighbours, a block apart.
template <int N, int PACKS>
__global__ void vector_add_kernel(const float* a, const float* b, float* out, int64_t n)
{
    const int64_t step = int64_t(blockDim.x) * N;
    const int64_t first = (int64_t(blockIdx.x) * blockDim.x * PACKS + threadIdx.x) * N;
    aligned_vector<float, N> as[PACKS];
    aligned_vector<float, N> bs[PACKS];
    #pragma unroll
    for (int pack = 0; pack < PACKS; ++pack) {
        const int64_t i = first + pack * step;
        if (i + N <= n) {
            as[pack] = load_vector<N>(&a[i]);
            bs[pack] = load_vector<N>(&b[i]);
        }
    }
    #pragma unroll
    for (int pack = 0; pack < PACKS; ++pack) {
        const int64_t i = first + pack * step;
        if (i + N <= n) {
            aligned_vector<float, N> outs;
            #pragma unroll
            for (int k = 0; k < N; ++k)
                outs[k] = vector_add(as[pack][k], bs[pack][k]);
            store_vector(&out[i], outs);
        } else {
            #pragma unroll 1
            for (int64_t last = i; last < n; ++last)  // fewer than N
                out[last] = vector_add(a[last], b[last]);
        }
    }
}

template <typename index_t>  // int, or int64_t where an extent needs it
__global__ void vector_add_block_kernel(const float* a, const float* b, float* out, index_t n)
{
    index_t i = blockIdx.x * index_t(blockDim.x) + threadIdx.x;
    if (i >= n) return;
    out[i] = a[i] + b[i];
}

}  // namespace

cudaError_t vector_add_launch(
    const float* a, const float* b, float* out, int64_t n, dim3 grid, dim3 block, cudaStream_t stream)
{
    vector_add_kernel<1, 1><<<grid, block, 0, stream>>>(a, b, out, n);
    return cudaGetLastError();
}

cudaError_t vector_add_launch(const float* a, const float* b, float* out, int64_t n, cudaStream_t stream)
{
    if (n == 0) return cudaSuccess;
    const dim3 block(128);
    const auto launch = [&](auto kernel, int64_t elements) {
        const dim3 grid((n + block.x * elements - 1) / (block.x * elements));
        kernel<<<grid, block, 0, stream>>>(a, b, out, n);
        return cudaGetLastError();
    };
    if (n <= 4096)  // too few to fill a GPU: one element a thread
        return launch(vector_add_kernel<1, 1>, 1);
    // Packs of 16 bytes; where an array or its rows are not aligned, four elements a thread, a block apart.
    if (are_aligned({a, b, out}))
        return launch(vector_add_kernel<4, 1>, 4);
    return launch(vector_add_kernel<1, 4>, 4);
}

cudaError_t vector_add_block_launch(
    const float* a, const float* b, float* out, int64_t n, dim3 grid, dim3 block, cudaStream_t stream)
{
    if (std::max({int64_t(grid.x) * block.x, n}) <= INT32_MAX)
        vector_add_block_kernel<int><<<grid, block, 0, stream>>>(a, b, out, n);
    else
        vector_add_block_kernel<int64_t><<<grid, block, 0, stream>>>(a, b, out, n);
    return cudaGetLastError();
}

cudaError_t vector_add_block_launch(const float* a, const float* b, float* out, int64_t n, cudaStream_t stream)
{
    if (n == 0) return cudaSuccess;
    const dim3 block(256);
    const dim3 grid((n + block.x - 1) / block.x);
    return vector_add_block_launch(a, b, out, n, grid, block, stream);
}
