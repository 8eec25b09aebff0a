// grayscale: CUDA kernels and their launchers, translated from grayscale.py by py2cu.
#include "grayscale.h"

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

// Luminance of a planar RGB picture.
__device__ uint8_t rgb2grey(uint8_t x0, uint8_t x1, uint8_t x2)
{
    return static_cast<uint8_t>(0.2989f * x0 + 0.5870f * x1 + 0.1140f * x2);
}

// Luminance of an RGB picture, by row and column.
__device__ uint8_t rgb2grey_2d(uint8_t x0, uint8_t x1, uint8_t x2)
{
    return static_cast<uint8_t>(0.2989f * x0 + 0.5870f * x1 + 0.1140f * x2);
}

// The number of blocks of `block` threads that cover `threads`; 0, which CUDA refuses to launch, where it is too large.
unsigned covering_blocks(int64_t threads, int64_t block)
{
    const int64_t blocks = threads > 0 ? (threads - 1) / block + 1 : 0;
    return blocks <= INT32_MAX ? static_cast<unsigned>(blocks) : 0;
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
__global__ void rgb2grey_kernel(const uint8_t* __restrict__ x, uint8_t* __restrict__ out, int64_t n)
{
    const int64_t step = int64_t(blockDim.x) * N;
    const int64_t first = (int64_t(blockIdx.x) * blockDim.x * PACKS + threadIdx.x) * N;
    if (first >= n) return;
    aligned_vector<uint8_t, N> x0s[PACKS];
    aligned_vector<uint8_t, N> x1s[PACKS];
    aligned_vector<uint8_t, N> x2s[PACKS];
    #pragma unroll
    for (int pack = 0; pack < PACKS; ++pack) {
        const int64_t i = first + pack * step;
        if (i < n) {
            x0s[pack] = load_vector<N>(&x[i]);
            x1s[pack] = load_vector<N>(&x[n + i]);
            x2s[pack] = load_vector<N>(&x[2 * n + i]);
        }
    }
    #pragma unroll
    for (int pack = 0; pack < PACKS; ++pack) {
        const int64_t i = first + pack * step;
        if (i < n) {
            aligned_vector<uint8_t, N> outs;
            #pragma unroll
            for (int k = 0; k < N; ++k)
                outs[k] = rgb2grey(x0s[pack][k], x1s[pack][k], x2s[pack][k]);
            store_vector(&out[i], outs);
        }
    }
}

// A thread computes PACKS packs of N neighbours, a block apart.
template <int N, int PACKS>
__global__ void rgb2grey_2d_kernel(const uint8_t* __restrict__ x, uint8_t* __restrict__ out, int64_t h, int64_t w)
{
    int64_t r = blockIdx.y * int64_t(blockDim.y) + threadIdx.y;
    if (r >= h) return;
    const int64_t step = int64_t(blockDim.x) * N;
    const int64_t first = (int64_t(blockIdx.x) * blockDim.x * PACKS + threadIdx.x) * N;
    if (first >= w) return;
    aligned_vector<uint8_t, N> x0s[PACKS];
    aligned_vector<uint8_t, N> x1s[PACKS];
    aligned_vector<uint8_t, N> x2s[PACKS];
    #pragma unroll
    for (int pack = 0; pack < PACKS; ++pack) {
        const int64_t c = first + pack * step;
        if (c < w) {
            x0s[pack] = load_vector<N>(&x[r * w + c]);
            x1s[pack] = load_vector<N>(&x[(h + r) * w + c]);
            x2s[pack] = load_vector<N>(&x[(2 * h + r) * w + c]);
        }
    }
    #pragma unroll
    for (int pack = 0; pack < PACKS; ++pack) {
        const int64_t c = first + pack * step;
        if (c < w) {
            aligned_vector<uint8_t, N> outs;
            #pragma unroll
            for (int k = 0; k < N; ++k)
                outs[k] = rgb2grey_2d(x0s[pack][k], x1s[pack][k], x2s[pack][k]);
            store_vector(&out[r * w + c], outs);
        }
    }
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
    rgb2grey_kernel<1, 1><<<grid, block, 0, stream>>>(x, out, n);
    return cudaGetLastError();
}

cudaError_t rgb2grey_launch(const uint8_t* x, uint8_t* out, int64_t n, cudaStream_t stream)
{
    if (n == 0) return cudaSuccess;
    const dim3 block(128);
    const auto launch = [&](auto kernel, int64_t elements) {
        const dim3 grid((n + block.x * elements - 1) / (block.x * elements));
        kernel<<<grid, block, 0, stream>>>(x, out, n);
        return cudaGetLastError();
    };
    if (n <= 4096)  // too few to fill a GPU: one element a thread
        return launch(rgb2grey_kernel<1, 1>, 1);
    // Packs of 16 bytes; where an array or its rows are not aligned, four elements a thread, a block apart.
    if (n % 16 == 0 && are_aligned({x, out}))
        return launch(rgb2grey_kernel<16, 1>, 16);
    return launch(rgb2grey_kernel<1, 4>, 4);
}

cudaError_t rgb2grey_2d_launch(
    const uint8_t* x, uint8_t* out, int64_t h, int64_t w, dim3 grid, dim3 block, cudaStream_t stream)
{
    rgb2grey_2d_kernel<1, 1><<<grid, block, 0, stream>>>(x, out, h, w);
    return cudaGetLastError();
}

cudaError_t rgb2grey_2d_launch(const uint8_t* x, uint8_t* out, int64_t h, int64_t w, cudaStream_t stream)
{
    if (h == 0 || w == 0) return cudaSuccess;
    const dim3 block(16, 16);
    const auto launch = [&](auto kernel, int64_t elements) {
        const dim3 grid(covering_blocks(w, block.x * elements), covering_blocks(h, block.y));
        kernel<<<grid, block, 0, stream>>>(x, out, h, w);
        return cudaGetLastError();
    };
    if (h * w <= 4096)  // too few to fill a GPU: one element a thread
        return launch(rgb2grey_2d_kernel<1, 1>, 1);
    // Packs of 16 bytes; where an array or its rows are not aligned, four elements a thread, a block apart.
    if (w % 16 == 0 && are_aligned({x, out}))
        return launch(rgb2grey_2d_kernel<16, 1>, 16);
    return launch(rgb2grey_2d_kernel<1, 4>, 4);
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
