// sigmoid: CUDA kernels and their launchers, translated from sigmoid.py by py2cu.
#include "sigmoid.h"

#include <cmath>
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

__device__ float sigmoid(float x)
{
    // exp() of a large positive number overflows, so each sign has its own formula
    float exp_value = expf(x >= 0 ? -x : x);
    float res = (x >= 0 ? 1.0f : exp_value) / (1.0f + exp_value);
    return res;
}

// `out` is what the forward kernel returned.
__device__ float sigmoid_backward(float grad_out, float out)
{
    return grad_out * out * (1 - out);
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
__global__ void sigmoid_kernel(const float* x, float* out, int64_t n)
{
    const int64_t step = int64_t(blockDim.x) * N;
    const int64_t first = (int64_t(blockIdx.x) * blockDim.x * PACKS + threadIdx.x) * N;
    aligned_vector<float, N> xs[PACKS];
    #pragma unroll
    for (int pack = 0; pack < PACKS; ++pack) {
        const int64_t i = first + pack * step;
        if (i + N <= n)
            xs[pack] = load_vector<N>(&x[i]);
    }
    #pragma unroll
    for (int pack = 0; pack < PACKS; ++pack) {
        const int64_t i = first + pack * step;
        if (i + N <= n) {
            aligned_vector<float, N> outs;
            #pragma unroll
            for (int k = 0; k < N; ++k)
                outs[k] = sigmoid(xs[pack][k]);
            store_vector(&out[i], outs);
        } else {
            #pragma unroll 1
            for (int64_t last = i; last < n; ++last)  // fewer than N
                out[last] = sigmoid(x[last]);
        }
    }
}

// A thread computes PACKS packs of N neighbours, a block apart.
template <int N, int PACKS>
__global__ void sigmoid_backward_kernel(const float* out, const float* grad_out, float* grad_x, int64_t n)
{
    const int64_t step = int64_t(blockDim.x) * N;
    const int64_t first = (int64_t(blockIdx.x) * blockDim.x * PACKS + threadIdx.x) * N;
    aligned_vector<float, N> grad_outs[PACKS];
    aligned_vector<float, N> outs[PACKS];
    #pragma unroll
    for (int pack = 0; pack < PACKS; ++pack) {
        const int64_t i = first + pack * step;
        if (i + N <= n) {
            grad_outs[pack] = load_vector<N>(&grad_out[i]);
            outs[pack] = load_vector<N>(&out[i]);
        }
    }
    #pragma unroll
    for (int pack = 0; pack < PACKS; ++pack) {
        const int64_t i = first + pack * step;
        if (i + N <= n) {
            aligned_vector<float, N> grad_xs;
            #pragma unroll
            for (int k = 0; k < N; ++k)
                grad_xs[k] = sigmoid_backward(grad_outs[pack][k], outs[pack][k]);
            store_vector(&grad_x[i], grad_xs);
        } else {
            #pragma unroll 1
            for (int64_t last = i; last < n; ++last)  // fewer than N
                grad_x[last] = sigmoid_backward(grad_out[last], out[last]);
        }
    }
}

}  // namespace

cudaError_t sigmoid_launch(const float* x, float* out, int64_t n, dim3 grid, dim3 block, cudaStream_t stream)
{
    sigmoid_kernel<1, 1><<<grid, block, 0, stream>>>(x, out, n);
    return cudaGetLastError();
}

cudaError_t sigmoid_launch(const float* x, float* out, int64_t n, cudaStream_t stream)
{
    if (n == 0) return cudaSuccess;
    const dim3 block(128);
    const auto launch = [&](auto kernel, int64_t elements) {
        const dim3 grid((n + block.x * elements - 1) / (block.x * elements));
        kernel<<<grid, block, 0, stream>>>(x, out, n);
        return cudaGetLastError();
    };
    if (n <= 4096)  // too few to fill a GPU: one element a thread
        return launch(sigmoid_kernel<1, 1>, 1);
    // Packs of 16 bytes; where an array or its rows are not aligned, four elements a thread, a block apart.
    if (are_aligned({x, out}))
        return launch(sigmoid_kernel<4, 2>, 4 * 2);
    return launch(sigmoid_kernel<1, 4>, 4);
}

cudaError_t sigmoid_backward_launch(
    const float* out, const float* grad_out, float* grad_x, int64_t n, dim3 grid, dim3 block, cudaStream_t stream)
{
    sigmoid_backward_kernel<1, 1><<<grid, block, 0, stream>>>(out, grad_out, grad_x, n);
    return cudaGetLastError();
}

cudaError_t sigmoid_backward_launch(
    const float* out, const float* grad_out, float* grad_x, int64_t n, cudaStream_t stream)
{
    if (n == 0) return cudaSuccess;
    const dim3 block(128);
    const auto launch = [&](auto kernel, int64_t elements) {
        const dim3 grid((n + block.x * elements - 1) / (block.x * elements));
        kernel<<<grid, block, 0, stream>>>(out, grad_out, grad_x, n);
        return cudaGetLastError();
    };
    if (n <= 4096)  // too few to fill a GPU: one element a thread
        return launch(sigmoid_backward_kernel<1, 1>, 1);
    // Packs of 16 bytes; where an array or its rows are not aligned, four elements a thread, a block apart.
    if (are_aligned({grad_out, out, grad_x}))
        return launch(sigmoid_backward_kernel<4, 1>, 4);
    return launch(sigmoid_backward_kernel<1, 4>, 4);
}
