// layers: CUDA kernels and their launchers, translated from layers.py by py2cu.
#include "layers.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <initializer_list>
#include <type_traits>
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

// Converts half types to float before a math function; other types are unchanged.
template <typename T>
__device__ inline auto to_compute_type(T value)
{
    return static_cast<std::conditional_t<sizeof(T) == 2, float, T>>(value);
}

// Rounds a number to T; to a half type by way of float, as torch does.
template <typename T, typename Value>
__host__ __device__ inline T round_to(Value value)
{
    return static_cast<T>(static_cast<std::conditional_t<sizeof(T) == 2, float, Value>>(value));
}

// x / divisor. The product of a float16 with the inverse rounds to the same bits for these divisors.
template <typename T>
__device__ inline T quotient(T x, T divisor, float inverse)
{
    if constexpr (std::is_same_v<T, __half>)
        return static_cast<T>(static_cast<float>(x) * inverse);
    else
        return x / divisor;
}

// Python's `max(a, b)`: `a` unless `b` is greater, also for NaN.
template <typename T>
__device__ inline T python_max(T a, T b)
{
    return b > a ? b : a;
}

template <typename T>
struct swiglu_backward_result {
    T grad_x;
    T grad_gate;
};

// X times the probability that a normal variable is smaller.
template <typename T>
__device__ T gelu(T x)
{
    return T(0.5) * x *
        (T(1) + static_cast<T>(erf(to_compute_type(quotient(x, round_to<T>(sqrt(2.0)), 0.707182348f)))));
}

template <typename T>
__device__ T gelu_backward(T x, T grad_out)
{
    T probability = T(0.5) *
                    (T(1) + static_cast<T>(erf(to_compute_type(quotient(x, round_to<T>(sqrt(2.0)), 0.707182348f)))));
    T density = quotient(static_cast<T>(exp(to_compute_type(T(-0.5) * x * x))),
                         round_to<T>(sqrt(2 * 3.141592653589793)), 0.39906469f);
    return grad_out * (probability + x * density);
}

// X times the SiLU of the gate.
template <typename T>
__device__ T swiglu(T x, T gate)
{
    return x * gate / (T(1) + static_cast<T>(exp(to_compute_type(-gate))));
}

template <typename T>
__device__ swiglu_backward_result<T> swiglu_backward(T gate, T grad_out, T x)
{
    T s = T(1) / (T(1) + static_cast<T>(exp(to_compute_type(-gate))));
    T grad_x = grad_out * gate * s;
    T grad_gate = grad_out * x * s * (T(1) + gate * (T(1) - s));
    return {grad_x, grad_gate};
}

// Whether every array begins at a multiple of 16 bytes.
bool are_aligned(std::initializer_list<const void*> arrays)
{
    for (const void* array : arrays)
        if (reinterpret_cast<uintptr_t>(array) % 16 != 0) return false;
    return true;
}

// A thread computes PACKS packs of N neighbours, a block apart.
// T is float, double, __half or __nv_bfloat16.
template <int N, int PACKS, typename T>
__global__ void gelu_kernel(const T* x, T* out, int64_t elements)
{
    const int64_t step = int64_t(blockDim.x) * N;
    const int64_t first = (int64_t(blockIdx.x) * blockDim.x * PACKS + threadIdx.x) * N;
    aligned_vector<T, N> xs[PACKS];
    #pragma unroll
    for (int pack = 0; pack < PACKS; ++pack) {
        const int64_t i = first + pack * step;
        if (i + N <= elements)
            xs[pack] = load_vector<N>(&x[i]);
    }
    #pragma unroll
    for (int pack = 0; pack < PACKS; ++pack) {
        const int64_t i = first + pack * step;
        if (i + N <= elements) {
            aligned_vector<T, N> outs;
            #pragma unroll
            for (int k = 0; k < N; ++k)
                outs[k] = gelu(xs[pack][k]);
            store_vector(&out[i], outs);
        } else {
            #pragma unroll 1
            for (int64_t last = i; last < elements; ++last)  // fewer than N
                out[last] = gelu(x[last]);
        }
    }
}

template <typename T>
cudaError_t launch_gelu(const T* x, T* out, int64_t elements, dim3 grid, dim3 block, cudaStream_t stream)
{
    gelu_kernel<1, 1, T><<<grid, block, 0, stream>>>(x, out, elements);
    return cudaGetLastError();
}

template <typename T>
cudaError_t launch_gelu(const T* x, T* out, int64_t elements, cudaStream_t stream)
{
    if (elements == 0) return cudaSuccess;
    const dim3 block(128);
    constexpr int N = 16 / sizeof(T), PACKS = sizeof(T) == 2 || sizeof(T) == 4 ? 2 : 1;
    const auto launch = [&](auto kernel, int64_t elements2) {
        const dim3 grid((elements + block.x * elements2 - 1) / (block.x * elements2));
        kernel<<<grid, block, 0, stream>>>(x, out, elements);
        return cudaGetLastError();
    };
    if (elements <= 4096)  // too few to fill a GPU: one element a thread
        return launch(gelu_kernel<1, 1, T>, 1);
    // Packs of 16 bytes; where an array or its rows are not aligned, four elements a thread, a block apart.
    if (are_aligned({x, out}))
        return launch(gelu_kernel<N, PACKS, T>, N * PACKS);
    return launch(gelu_kernel<1, 4, T>, 4);
}

// A thread computes PACKS packs of N neighbours, a block apart.
// T is float, double, __half or __nv_bfloat16.
template <int N, int PACKS, typename T>
__global__ void gelu_backward_kernel(const T* x, const T* grad_out, T* grad_x, int64_t elements)
{
    const int64_t step = int64_t(blockDim.x) * N;
    const int64_t first = (int64_t(blockIdx.x) * blockDim.x * PACKS + threadIdx.x) * N;
    aligned_vector<T, N> xs[PACKS];
    aligned_vector<T, N> grad_outs[PACKS];
    #pragma unroll
    for (int pack = 0; pack < PACKS; ++pack) {
        const int64_t i = first + pack * step;
        if (i + N <= elements) {
            xs[pack] = load_vector<N>(&x[i]);
            grad_outs[pack] = load_vector<N>(&grad_out[i]);
        }
    }
    #pragma unroll
    for (int pack = 0; pack < PACKS; ++pack) {
        const int64_t i = first + pack * step;
        if (i + N <= elements) {
            aligned_vector<T, N> grad_xs;
            #pragma unroll
            for (int k = 0; k < N; ++k)
                grad_xs[k] = gelu_backward(xs[pack][k], grad_outs[pack][k]);
            store_vector(&grad_x[i], grad_xs);
        } else {
            #pragma unroll 1
            for (int64_t last = i; last < elements; ++last)  // fewer than N
                grad_x[last] = gelu_backward(x[last], grad_out[last]);
        }
    }
}

template <typename T>
cudaError_t launch_gelu_backward(
    const T* x, const T* grad_out, T* grad_x, int64_t elements, dim3 grid, dim3 block, cudaStream_t stream)
{
    gelu_backward_kernel<1, 1, T><<<grid, block, 0, stream>>>(x, grad_out, grad_x, elements);
    return cudaGetLastError();
}

template <typename T>
cudaError_t launch_gelu_backward(const T* x, const T* grad_out, T* grad_x, int64_t elements, cudaStream_t stream)
{
    if (elements == 0) return cudaSuccess;
    const dim3 block(128);
    constexpr int N = 16 / sizeof(T), PACKS = sizeof(T) == 2 ? 2 : 1;
    const auto launch = [&](auto kernel, int64_t elements2) {
        const dim3 grid((elements + block.x * elements2 - 1) / (block.x * elements2));
        kernel<<<grid, block, 0, stream>>>(x, grad_out, grad_x, elements);
        return cudaGetLastError();
    };
    if (elements <= 4096)  // too few to fill a GPU: one element a thread
        return launch(gelu_backward_kernel<1, 1, T>, 1);
    // Packs of 16 bytes; where an array or its rows are not aligned, four elements a thread, a block apart.
    if (are_aligned({x, grad_out, grad_x}))
        return launch(gelu_backward_kernel<N, PACKS, T>, N * PACKS);
    return launch(gelu_backward_kernel<1, 4, T>, 4);
}

// A thread computes PACKS packs of N neighbours, a block apart.
// T is float, double, __half or __nv_bfloat16.
template <int N, int PACKS, typename T>
__global__ void swiglu_kernel(const T* gate, const T* x, T* out, int64_t elements)
{
    const int64_t step = int64_t(blockDim.x) * N;
    const int64_t first = (int64_t(blockIdx.x) * blockDim.x * PACKS + threadIdx.x) * N;
    aligned_vector<T, N> xs[PACKS];
    aligned_vector<T, N> gates[PACKS];
    #pragma unroll
    for (int pack = 0; pack < PACKS; ++pack) {
        const int64_t i = first + pack * step;
        if (i + N <= elements) {
            xs[pack] = load_vector<N>(&x[i]);
            gates[pack] = load_vector<N>(&gate[i]);
        }
    }
    #pragma unroll
    for (int pack = 0; pack < PACKS; ++pack) {
        const int64_t i = first + pack * step;
        if (i + N <= elements) {
            aligned_vector<T, N> outs;
            #pragma unroll
            for (int k = 0; k < N; ++k)
                outs[k] = swiglu(xs[pack][k], gates[pack][k]);
            store_vector(&out[i], outs);
        } else {
            #pragma unroll 1
            for (int64_t last = i; last < elements; ++last)  // fewer than N
                out[last] = swiglu(x[last], gate[last]);
        }
    }
}

template <typename T>
cudaError_t launch_swiglu(
    const T* gate, const T* x, T* out, int64_t elements, dim3 grid, dim3 block, cudaStream_t stream)
{
    swiglu_kernel<1, 1, T><<<grid, block, 0, stream>>>(gate, x, out, elements);
    return cudaGetLastError();
}

template <typename T>
cudaError_t launch_swiglu(const T* gate, const T* x, T* out, int64_t elements, cudaStream_t stream)
{
    if (elements == 0) return cudaSuccess;
    const dim3 block(128);
    constexpr int N = 16 / sizeof(T), PACKS = sizeof(T) == 2 ? 2 : 1;
    const auto launch = [&](auto kernel, int64_t elements2) {
        const dim3 grid((elements + block.x * elements2 - 1) / (block.x * elements2));
        kernel<<<grid, block, 0, stream>>>(gate, x, out, elements);
        return cudaGetLastError();
    };
    if (elements <= 4096)  // too few to fill a GPU: one element a thread
        return launch(swiglu_kernel<1, 1, T>, 1);
    // Packs of 16 bytes; where an array or its rows are not aligned, four elements a thread, a block apart.
    if (are_aligned({x, gate, out}))
        return launch(swiglu_kernel<N, PACKS, T>, N * PACKS);
    return launch(swiglu_kernel<1, 4, T>, 4);
}

// A thread computes PACKS packs of N neighbours, a block apart.
// T is float, double, __half or __nv_bfloat16.
template <int N, int PACKS, typename T>
__global__ void swiglu_backward_kernel(
    const T* gate, const T* x, const T* grad_out, T* grad_gate, T* __restrict__ grad_x, int64_t elements)
{
    const int64_t step = int64_t(blockDim.x) * N;
    const int64_t first = (int64_t(blockIdx.x) * blockDim.x * PACKS + threadIdx.x) * N;
    aligned_vector<T, N> gates[PACKS];
    aligned_vector<T, N> grad_outs[PACKS];
    aligned_vector<T, N> xs[PACKS];
    #pragma unroll
    for (int pack = 0; pack < PACKS; ++pack) {
        const int64_t i = first + pack * step;
        if (i + N <= elements) {
            gates[pack] = load_vector<N>(&gate[i]);
            grad_outs[pack] = load_vector<N>(&grad_out[i]);
            xs[pack] = load_vector<N>(&x[i]);
        }
    }
    #pragma unroll
    for (int pack = 0; pack < PACKS; ++pack) {
        const int64_t i = first + pack * step;
        if (i + N <= elements) {
            aligned_vector<T, N> grad_xs;
            aligned_vector<T, N> grad_gates;
            #pragma unroll
            for (int k = 0; k < N; ++k) {
                const auto result = swiglu_backward(gates[pack][k], grad_outs[pack][k], xs[pack][k]);
                grad_xs[k] = result.grad_x;
                grad_gates[k] = result.grad_gate;
            }
            store_vector(&grad_x[i], grad_xs);
            store_vector(&grad_gate[i], grad_gates);
        } else {
            #pragma unroll 1
            for (int64_t last = i; last < elements; ++last) {  // fewer than N
                const auto result = swiglu_backward(gate[last], grad_out[last], x[last]);
                grad_x[last] = result.grad_x;
                grad_gate[last] = result.grad_gate;
            }
        }
    }
}

template <typename T>
cudaError_t launch_swiglu_backward(
    const T* gate, const T* x, const T* grad_out, T* grad_gate, T* grad_x, int64_t elements, dim3 grid, dim3 block,
    cudaStream_t stream)
{
    swiglu_backward_kernel<1, 1, T><<<grid, block, 0, stream>>>(gate, x, grad_out, grad_gate, grad_x, elements);
    return cudaGetLastError();
}

template <typename T>
cudaError_t launch_swiglu_backward(
    const T* gate, const T* x, const T* grad_out, T* grad_gate, T* grad_x, int64_t elements, cudaStream_t stream)
{
    if (elements == 0) return cudaSuccess;
    const dim3 block(128);
    constexpr int N = 16 / sizeof(T), PACKS = sizeof(T) == 2 ? 2 : 1;
    const auto launch = [&](auto kernel, int64_t elements2) {
        const dim3 grid((elements + block.x * elements2 - 1) / (block.x * elements2));
        kernel<<<grid, block, 0, stream>>>(gate, x, grad_out, grad_gate, grad_x, elements);
        return cudaGetLastError();
    };
    if (elements <= 4096)  // too few to fill a GPU: one element a thread
        return launch(swiglu_backward_kernel<1, 1, T>, 1);
    // Packs of 16 bytes; where an array or its rows are not aligned, four elements a thread, a block apart.
    if (are_aligned({gate, grad_out, x, grad_x, grad_gate}))
        return launch(swiglu_backward_kernel<N, PACKS, T>, N * PACKS);
    return launch(swiglu_backward_kernel<1, 4, T>, 4);
}

// Rows over the root of their mean square, times the weights; a thread takes a row.
// T is float, double, __half or __nv_bfloat16.
template <typename T, typename index_t>  // index_t: int, or int64_t where an extent needs it
__global__ void rms_norm_kernel(
    const T* __restrict__ x, const T* __restrict__ weight, T* __restrict__ out, T* __restrict__ scale, index_t n,
    T eps, index_t rows)
{
    index_t r = blockIdx.x * index_t(blockDim.x) + threadIdx.x;
    if (r >= rows) return;
    T total = T(0);
    for (index_t i = 0; i < n; ++i)
        total += x[r * n + i] * x[r * n + i];
    T s = T(1) / static_cast<T>(sqrt(to_compute_type(total / round_to<T>(n) + eps)));
    for (index_t i = 0; i < n; ++i)
        out[r * n + i] = x[r * n + i] * s * weight[i];
    scale[r] = s;
}

template <typename T>
cudaError_t launch_rms_norm(
    const T* x, const T* weight, T* out, T* scale, int64_t n, double eps, int64_t rows, dim3 grid, dim3 block,
    cudaStream_t stream)
{
    if (std::max({int64_t(grid.x) * block.x, n * rows, rows}) <= INT32_MAX)
        rms_norm_kernel<T, int><<<grid, block, 0, stream>>>(x, weight, out, scale, n, round_to<T>(eps), rows);
    else
        rms_norm_kernel<T, int64_t><<<grid, block, 0, stream>>>(x, weight, out, scale, n, round_to<T>(eps), rows);
    return cudaGetLastError();
}

template <typename T>
cudaError_t launch_rms_norm(
    const T* x, const T* weight, T* out, T* scale, int64_t n, double eps, int64_t rows, cudaStream_t stream)
{
    if (rows == 0) return cudaSuccess;
    const dim3 block(256);
    const dim3 grid((rows + block.x - 1) / block.x);
    return launch_rms_norm(x, weight, out, scale, n, eps, rows, grid, block, stream);
}

// T is float, double, __half or __nv_bfloat16.
template <typename T, typename index_t>  // index_t: int, or int64_t where an extent needs it
__global__ void rms_norm_backward_kernel(
    const T* __restrict__ x, const T* __restrict__ weight, const T* __restrict__ scale,
    const T* __restrict__ grad_out, T* __restrict__ grad_x, index_t n, index_t rows)
{
    index_t r = blockIdx.x * index_t(blockDim.x) + threadIdx.x;
    if (r >= rows) return;
    T dot = T(0);
    for (index_t i = 0; i < n; ++i)
        dot += grad_out[r * n + i] * weight[i] * x[r * n + i];
    for (index_t i = 0; i < n; ++i)
        grad_x[r * n + i] = scale[r] *
                            (grad_out[r * n + i] * weight[i] -
                             x[r * n + i] * scale[r] * scale[r] * dot / round_to<T>(n));
}

template <typename T>
cudaError_t launch_rms_norm_backward(
    const T* x, const T* weight, const T* scale, const T* grad_out, T* grad_x, int64_t n, int64_t rows, dim3 grid,
    dim3 block, cudaStream_t stream)
{
    if (std::max({int64_t(grid.x) * block.x, n * rows, rows}) <= INT32_MAX)
        rms_norm_backward_kernel<T, int><<<grid, block, 0, stream>>>(x, weight, scale, grad_out, grad_x, n, rows);
    else
        rms_norm_backward_kernel<T, int64_t><<<grid, block, 0, stream>>>(
            x, weight, scale, grad_out, grad_x, n, rows);
    return cudaGetLastError();
}

template <typename T>
cudaError_t launch_rms_norm_backward(
    const T* x, const T* weight, const T* scale, const T* grad_out, T* grad_x, int64_t n, int64_t rows,
    cudaStream_t stream)
{
    if (rows == 0) return cudaSuccess;
    const dim3 block(256);
    const dim3 grid((rows + block.x - 1) / block.x);
    return launch_rms_norm_backward(x, weight, scale, grad_out, grad_x, n, rows, grid, block, stream);
}

// T is float, double, __half or __nv_bfloat16.
template <typename T, typename index_t>  // index_t: int, or int64_t where an extent needs it
__global__ void rms_norm_backward_weight_kernel(
    const T* __restrict__ x, const T* __restrict__ scale, const T* __restrict__ grad_out,
    T* __restrict__ grad_weight, index_t rows, index_t n)
{
    index_t i = blockIdx.x * index_t(blockDim.x) + threadIdx.x;
    if (i >= n) return;
    T total = T(0);
    for (index_t r = 0; r < rows; ++r)
        total += grad_out[r * n + i] * x[r * n + i] * scale[r];
    grad_weight[i] = total;
}

template <typename T>
cudaError_t launch_rms_norm_backward_weight(
    const T* x, const T* scale, const T* grad_out, T* grad_weight, int64_t rows, int64_t n, dim3 grid, dim3 block,
    cudaStream_t stream)
{
    if (std::max({int64_t(grid.x) * block.x, n * rows, n}) <= INT32_MAX)
        rms_norm_backward_weight_kernel<T, int><<<grid, block, 0, stream>>>(
            x, scale, grad_out, grad_weight, rows, n);
    else
        rms_norm_backward_weight_kernel<T, int64_t><<<grid, block, 0, stream>>>(
            x, scale, grad_out, grad_weight, rows, n);
    return cudaGetLastError();
}

template <typename T>
cudaError_t launch_rms_norm_backward_weight(
    const T* x, const T* scale, const T* grad_out, T* grad_weight, int64_t rows, int64_t n, cudaStream_t stream)
{
    if (n == 0) return cudaSuccess;
    const dim3 block(256);
    const dim3 grid((n + block.x - 1) / block.x);
    return launch_rms_norm_backward_weight(x, scale, grad_out, grad_weight, rows, n, grid, block, stream);
}

// The negative logarithm of the softmax of each row at its target.
// T is float, double, __half or __nv_bfloat16.
template <typename T, typename index_t>  // index_t: int, or int64_t where an extent needs it
__global__ void cross_entropy_kernel(
    const T* __restrict__ x, const int64_t* __restrict__ target, T* __restrict__ loss, index_t n, index_t rows)
{
    index_t r = blockIdx.x * index_t(blockDim.x) + threadIdx.x;
    if (r >= rows) return;
    T top = x[r * n];
    for (index_t i = 1; i < n; ++i)
        top = python_max(top, x[r * n + i]);
    T total = T(0);
    for (index_t i = 0; i < n; ++i)
        total += static_cast<T>(exp(to_compute_type(x[r * n + i] - top)));
    loss[r] = static_cast<T>(log(to_compute_type(total))) + top - x[r * n + target[r]];
}

template <typename T>
cudaError_t launch_cross_entropy(
    const T* x, const int64_t* target, T* loss, int64_t n, int64_t rows, dim3 grid, dim3 block, cudaStream_t stream)
{
    if (std::max({n + 1, int64_t(grid.x) * block.x, n * rows, rows}) <= INT32_MAX)
        cross_entropy_kernel<T, int><<<grid, block, 0, stream>>>(x, target, loss, n, rows);
    else
        cross_entropy_kernel<T, int64_t><<<grid, block, 0, stream>>>(x, target, loss, n, rows);
    return cudaGetLastError();
}

template <typename T>
cudaError_t launch_cross_entropy(
    const T* x, const int64_t* target, T* loss, int64_t n, int64_t rows, cudaStream_t stream)
{
    if (rows == 0) return cudaSuccess;
    const dim3 block(256);
    const dim3 grid((rows + block.x - 1) / block.x);
    return launch_cross_entropy(x, target, loss, n, rows, grid, block, stream);
}

// T is float, double, __half or __nv_bfloat16.
template <typename T, typename index_t>  // index_t: int, or int64_t where an extent needs it
__global__ void cross_entropy_backward_kernel(
    const T* __restrict__ x, const int64_t* __restrict__ target, const T* __restrict__ grad_loss,
    T* __restrict__ grad_x, index_t n, index_t rows)
{
    index_t r = blockIdx.x * index_t(blockDim.x) + threadIdx.x;
    if (r >= rows) return;
    T top = x[r * n];
    for (index_t i = 1; i < n; ++i)
        top = python_max(top, x[r * n + i]);
    T total = T(0);
    for (index_t i = 0; i < n; ++i)
        total += static_cast<T>(exp(to_compute_type(x[r * n + i] - top)));
    for (index_t i = 0; i < n; ++i) {
        T probability = static_cast<T>(exp(to_compute_type(x[r * n + i] - top))) / total;
        grad_x[r * n + i] = grad_loss[r] * (probability - round_to<T>(i == target[r] ? 1 : 0));
    }
}

template <typename T>
cudaError_t launch_cross_entropy_backward(
    const T* x, const int64_t* target, const T* grad_loss, T* grad_x, int64_t n, int64_t rows, dim3 grid,
    dim3 block, cudaStream_t stream)
{
    if (std::max({n + 1, int64_t(grid.x) * block.x, n * rows, rows}) <= INT32_MAX)
        cross_entropy_backward_kernel<T, int><<<grid, block, 0, stream>>>(x, target, grad_loss, grad_x, n, rows);
    else
        cross_entropy_backward_kernel<T, int64_t><<<grid, block, 0, stream>>>(x, target, grad_loss, grad_x, n, rows);
    return cudaGetLastError();
}

template <typename T>
cudaError_t launch_cross_entropy_backward(
    const T* x, const int64_t* target, const T* grad_loss, T* grad_x, int64_t n, int64_t rows, cudaStream_t stream)
{
    if (rows == 0) return cudaSuccess;
    const dim3 block(256);
    const dim3 grid((rows + block.x - 1) / block.x);
    return launch_cross_entropy_backward(x, target, grad_loss, grad_x, n, rows, grid, block, stream);
}

}  // namespace

cudaError_t gelu_launch(const float* x, float* out, int64_t elements, dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_gelu(x, out, elements, grid, block, stream);
}

cudaError_t gelu_launch(const double* x, double* out, int64_t elements, dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_gelu(x, out, elements, grid, block, stream);
}

cudaError_t gelu_launch(const __half* x, __half* out, int64_t elements, dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_gelu(x, out, elements, grid, block, stream);
}

cudaError_t gelu_launch(
    const __nv_bfloat16* x, __nv_bfloat16* out, int64_t elements, dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_gelu(x, out, elements, grid, block, stream);
}

cudaError_t gelu_launch(const float* x, float* out, int64_t elements, cudaStream_t stream)
{
    return launch_gelu(x, out, elements, stream);
}

cudaError_t gelu_launch(const double* x, double* out, int64_t elements, cudaStream_t stream)
{
    return launch_gelu(x, out, elements, stream);
}

cudaError_t gelu_launch(const __half* x, __half* out, int64_t elements, cudaStream_t stream)
{
    return launch_gelu(x, out, elements, stream);
}

cudaError_t gelu_launch(const __nv_bfloat16* x, __nv_bfloat16* out, int64_t elements, cudaStream_t stream)
{
    return launch_gelu(x, out, elements, stream);
}

cudaError_t gelu_backward_launch(
    const float* x, const float* grad_out, float* grad_x, int64_t elements, dim3 grid, dim3 block,
    cudaStream_t stream)
{
    return launch_gelu_backward(x, grad_out, grad_x, elements, grid, block, stream);
}

cudaError_t gelu_backward_launch(
    const double* x, const double* grad_out, double* grad_x, int64_t elements, dim3 grid, dim3 block,
    cudaStream_t stream)
{
    return launch_gelu_backward(x, grad_out, grad_x, elements, grid, block, stream);
}

cudaError_t gelu_backward_launch(
    const __half* x, const __half* grad_out, __half* grad_x, int64_t elements, dim3 grid, dim3 block,
    cudaStream_t stream)
{
    return launch_gelu_backward(x, grad_out, grad_x, elements, grid, block, stream);
}

cudaError_t gelu_backward_launch(
    const __nv_bfloat16* x, const __nv_bfloat16* grad_out, __nv_bfloat16* grad_x, int64_t elements, dim3 grid,
    dim3 block, cudaStream_t stream)
{
    return launch_gelu_backward(x, grad_out, grad_x, elements, grid, block, stream);
}

cudaError_t gelu_backward_launch(
    const float* x, const float* grad_out, float* grad_x, int64_t elements, cudaStream_t stream)
{
    return launch_gelu_backward(x, grad_out, grad_x, elements, stream);
}

cudaError_t gelu_backward_launch(
    const double* x, const double* grad_out, double* grad_x, int64_t elements, cudaStream_t stream)
{
    return launch_gelu_backward(x, grad_out, grad_x, elements, stream);
}

cudaError_t gelu_backward_launch(
    const __half* x, const __half* grad_out, __half* grad_x, int64_t elements, cudaStream_t stream)
{
    return launch_gelu_backward(x, grad_out, grad_x, elements, stream);
}

cudaError_t gelu_backward_launch(
    const __nv_bfloat16* x, const __nv_bfloat16* grad_out, __nv_bfloat16* grad_x, int64_t elements,
    cudaStream_t stream)
{
    return launch_gelu_backward(x, grad_out, grad_x, elements, stream);
}

cudaError_t swiglu_launch(
    const float* gate, const float* x, float* out, int64_t elements, dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_swiglu(gate, x, out, elements, grid, block, stream);
}

cudaError_t swiglu_launch(
    const double* gate, const double* x, double* out, int64_t elements, dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_swiglu(gate, x, out, elements, grid, block, stream);
}

cudaError_t swiglu_launch(
    const __half* gate, const __half* x, __half* out, int64_t elements, dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_swiglu(gate, x, out, elements, grid, block, stream);
}

cudaError_t swiglu_launch(
    const __nv_bfloat16* gate, const __nv_bfloat16* x, __nv_bfloat16* out, int64_t elements, dim3 grid, dim3 block,
    cudaStream_t stream)
{
    return launch_swiglu(gate, x, out, elements, grid, block, stream);
}

cudaError_t swiglu_launch(const float* gate, const float* x, float* out, int64_t elements, cudaStream_t stream)
{
    return launch_swiglu(gate, x, out, elements, stream);
}

cudaError_t swiglu_launch(const double* gate, const double* x, double* out, int64_t elements, cudaStream_t stream)
{
    return launch_swiglu(gate, x, out, elements, stream);
}

cudaError_t swiglu_launch(const __half* gate, const __half* x, __half* out, int64_t elements, cudaStream_t stream)
{
    return launch_swiglu(gate, x, out, elements, stream);
}

cudaError_t swiglu_launch(
    const __nv_bfloat16* gate, const __nv_bfloat16* x, __nv_bfloat16* out, int64_t elements, cudaStream_t stream)
{
    return launch_swiglu(gate, x, out, elements, stream);
}

cudaError_t swiglu_backward_launch(
    const float* gate, const float* x, const float* grad_out, float* grad_gate, float* grad_x, int64_t elements,
    dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_swiglu_backward(gate, x, grad_out, grad_gate, grad_x, elements, grid, block, stream);
}

cudaError_t swiglu_backward_launch(
    const double* gate, const double* x, const double* grad_out, double* grad_gate, double* grad_x,
    int64_t elements, dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_swiglu_backward(gate, x, grad_out, grad_gate, grad_x, elements, grid, block, stream);
}

cudaError_t swiglu_backward_launch(
    const __half* gate, const __half* x, const __half* grad_out, __half* grad_gate, __half* grad_x,
    int64_t elements, dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_swiglu_backward(gate, x, grad_out, grad_gate, grad_x, elements, grid, block, stream);
}

cudaError_t swiglu_backward_launch(
    const __nv_bfloat16* gate, const __nv_bfloat16* x, const __nv_bfloat16* grad_out, __nv_bfloat16* grad_gate,
    __nv_bfloat16* grad_x, int64_t elements, dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_swiglu_backward(gate, x, grad_out, grad_gate, grad_x, elements, grid, block, stream);
}

cudaError_t swiglu_backward_launch(
    const float* gate, const float* x, const float* grad_out, float* grad_gate, float* grad_x, int64_t elements,
    cudaStream_t stream)
{
    return launch_swiglu_backward(gate, x, grad_out, grad_gate, grad_x, elements, stream);
}

cudaError_t swiglu_backward_launch(
    const double* gate, const double* x, const double* grad_out, double* grad_gate, double* grad_x,
    int64_t elements, cudaStream_t stream)
{
    return launch_swiglu_backward(gate, x, grad_out, grad_gate, grad_x, elements, stream);
}

cudaError_t swiglu_backward_launch(
    const __half* gate, const __half* x, const __half* grad_out, __half* grad_gate, __half* grad_x,
    int64_t elements, cudaStream_t stream)
{
    return launch_swiglu_backward(gate, x, grad_out, grad_gate, grad_x, elements, stream);
}

cudaError_t swiglu_backward_launch(
    const __nv_bfloat16* gate, const __nv_bfloat16* x, const __nv_bfloat16* grad_out, __nv_bfloat16* grad_gate,
    __nv_bfloat16* grad_x, int64_t elements, cudaStream_t stream)
{
    return launch_swiglu_backward(gate, x, grad_out, grad_gate, grad_x, elements, stream);
}

cudaError_t rms_norm_launch(
    const float* x, const float* weight, float* out, float* scale, int64_t n, double eps, int64_t rows, dim3 grid,
    dim3 block, cudaStream_t stream)
{
    return launch_rms_norm(x, weight, out, scale, n, eps, rows, grid, block, stream);
}

cudaError_t rms_norm_launch(
    const double* x, const double* weight, double* out, double* scale, int64_t n, double eps, int64_t rows,
    dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_rms_norm(x, weight, out, scale, n, eps, rows, grid, block, stream);
}

cudaError_t rms_norm_launch(
    const __half* x, const __half* weight, __half* out, __half* scale, int64_t n, double eps, int64_t rows,
    dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_rms_norm(x, weight, out, scale, n, eps, rows, grid, block, stream);
}

cudaError_t rms_norm_launch(
    const __nv_bfloat16* x, const __nv_bfloat16* weight, __nv_bfloat16* out, __nv_bfloat16* scale, int64_t n,
    double eps, int64_t rows, dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_rms_norm(x, weight, out, scale, n, eps, rows, grid, block, stream);
}

cudaError_t rms_norm_launch(
    const float* x, const float* weight, float* out, float* scale, int64_t n, double eps, int64_t rows,
    cudaStream_t stream)
{
    return launch_rms_norm(x, weight, out, scale, n, eps, rows, stream);
}

cudaError_t rms_norm_launch(
    const double* x, const double* weight, double* out, double* scale, int64_t n, double eps, int64_t rows,
    cudaStream_t stream)
{
    return launch_rms_norm(x, weight, out, scale, n, eps, rows, stream);
}

cudaError_t rms_norm_launch(
    const __half* x, const __half* weight, __half* out, __half* scale, int64_t n, double eps, int64_t rows,
    cudaStream_t stream)
{
    return launch_rms_norm(x, weight, out, scale, n, eps, rows, stream);
}

cudaError_t rms_norm_launch(
    const __nv_bfloat16* x, const __nv_bfloat16* weight, __nv_bfloat16* out, __nv_bfloat16* scale, int64_t n,
    double eps, int64_t rows, cudaStream_t stream)
{
    return launch_rms_norm(x, weight, out, scale, n, eps, rows, stream);
}

cudaError_t rms_norm_backward_launch(
    const float* x, const float* weight, const float* scale, const float* grad_out, float* grad_x, int64_t n,
    int64_t rows, dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_rms_norm_backward(x, weight, scale, grad_out, grad_x, n, rows, grid, block, stream);
}

cudaError_t rms_norm_backward_launch(
    const double* x, const double* weight, const double* scale, const double* grad_out, double* grad_x, int64_t n,
    int64_t rows, dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_rms_norm_backward(x, weight, scale, grad_out, grad_x, n, rows, grid, block, stream);
}

cudaError_t rms_norm_backward_launch(
    const __half* x, const __half* weight, const __half* scale, const __half* grad_out, __half* grad_x, int64_t n,
    int64_t rows, dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_rms_norm_backward(x, weight, scale, grad_out, grad_x, n, rows, grid, block, stream);
}

cudaError_t rms_norm_backward_launch(
    const __nv_bfloat16* x, const __nv_bfloat16* weight, const __nv_bfloat16* scale, const __nv_bfloat16* grad_out,
    __nv_bfloat16* grad_x, int64_t n, int64_t rows, dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_rms_norm_backward(x, weight, scale, grad_out, grad_x, n, rows, grid, block, stream);
}

cudaError_t rms_norm_backward_launch(
    const float* x, const float* weight, const float* scale, const float* grad_out, float* grad_x, int64_t n,
    int64_t rows, cudaStream_t stream)
{
    return launch_rms_norm_backward(x, weight, scale, grad_out, grad_x, n, rows, stream);
}

cudaError_t rms_norm_backward_launch(
    const double* x, const double* weight, const double* scale, const double* grad_out, double* grad_x, int64_t n,
    int64_t rows, cudaStream_t stream)
{
    return launch_rms_norm_backward(x, weight, scale, grad_out, grad_x, n, rows, stream);
}

cudaError_t rms_norm_backward_launch(
    const __half* x, const __half* weight, const __half* scale, const __half* grad_out, __half* grad_x, int64_t n,
    int64_t rows, cudaStream_t stream)
{
    return launch_rms_norm_backward(x, weight, scale, grad_out, grad_x, n, rows, stream);
}

cudaError_t rms_norm_backward_launch(
    const __nv_bfloat16* x, const __nv_bfloat16* weight, const __nv_bfloat16* scale, const __nv_bfloat16* grad_out,
    __nv_bfloat16* grad_x, int64_t n, int64_t rows, cudaStream_t stream)
{
    return launch_rms_norm_backward(x, weight, scale, grad_out, grad_x, n, rows, stream);
}

cudaError_t rms_norm_backward_weight_launch(
    const float* x, const float* scale, const float* grad_out, float* grad_weight, int64_t rows, int64_t n,
    dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_rms_norm_backward_weight(x, scale, grad_out, grad_weight, rows, n, grid, block, stream);
}

cudaError_t rms_norm_backward_weight_launch(
    const double* x, const double* scale, const double* grad_out, double* grad_weight, int64_t rows, int64_t n,
    dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_rms_norm_backward_weight(x, scale, grad_out, grad_weight, rows, n, grid, block, stream);
}

cudaError_t rms_norm_backward_weight_launch(
    const __half* x, const __half* scale, const __half* grad_out, __half* grad_weight, int64_t rows, int64_t n,
    dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_rms_norm_backward_weight(x, scale, grad_out, grad_weight, rows, n, grid, block, stream);
}

cudaError_t rms_norm_backward_weight_launch(
    const __nv_bfloat16* x, const __nv_bfloat16* scale, const __nv_bfloat16* grad_out, __nv_bfloat16* grad_weight,
    int64_t rows, int64_t n, dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_rms_norm_backward_weight(x, scale, grad_out, grad_weight, rows, n, grid, block, stream);
}

cudaError_t rms_norm_backward_weight_launch(
    const float* x, const float* scale, const float* grad_out, float* grad_weight, int64_t rows, int64_t n,
    cudaStream_t stream)
{
    return launch_rms_norm_backward_weight(x, scale, grad_out, grad_weight, rows, n, stream);
}

cudaError_t rms_norm_backward_weight_launch(
    const double* x, const double* scale, const double* grad_out, double* grad_weight, int64_t rows, int64_t n,
    cudaStream_t stream)
{
    return launch_rms_norm_backward_weight(x, scale, grad_out, grad_weight, rows, n, stream);
}

cudaError_t rms_norm_backward_weight_launch(
    const __half* x, const __half* scale, const __half* grad_out, __half* grad_weight, int64_t rows, int64_t n,
    cudaStream_t stream)
{
    return launch_rms_norm_backward_weight(x, scale, grad_out, grad_weight, rows, n, stream);
}

cudaError_t rms_norm_backward_weight_launch(
    const __nv_bfloat16* x, const __nv_bfloat16* scale, const __nv_bfloat16* grad_out, __nv_bfloat16* grad_weight,
    int64_t rows, int64_t n, cudaStream_t stream)
{
    return launch_rms_norm_backward_weight(x, scale, grad_out, grad_weight, rows, n, stream);
}

cudaError_t cross_entropy_launch(
    const float* x, const int64_t* target, float* loss, int64_t n, int64_t rows, dim3 grid, dim3 block,
    cudaStream_t stream)
{
    return launch_cross_entropy(x, target, loss, n, rows, grid, block, stream);
}

cudaError_t cross_entropy_launch(
    const double* x, const int64_t* target, double* loss, int64_t n, int64_t rows, dim3 grid, dim3 block,
    cudaStream_t stream)
{
    return launch_cross_entropy(x, target, loss, n, rows, grid, block, stream);
}

cudaError_t cross_entropy_launch(
    const __half* x, const int64_t* target, __half* loss, int64_t n, int64_t rows, dim3 grid, dim3 block,
    cudaStream_t stream)
{
    return launch_cross_entropy(x, target, loss, n, rows, grid, block, stream);
}

cudaError_t cross_entropy_launch(
    const __nv_bfloat16* x, const int64_t* target, __nv_bfloat16* loss, int64_t n, int64_t rows, dim3 grid,
    dim3 block, cudaStream_t stream)
{
    return launch_cross_entropy(x, target, loss, n, rows, grid, block, stream);
}

cudaError_t cross_entropy_launch(
    const float* x, const int64_t* target, float* loss, int64_t n, int64_t rows, cudaStream_t stream)
{
    return launch_cross_entropy(x, target, loss, n, rows, stream);
}

cudaError_t cross_entropy_launch(
    const double* x, const int64_t* target, double* loss, int64_t n, int64_t rows, cudaStream_t stream)
{
    return launch_cross_entropy(x, target, loss, n, rows, stream);
}

cudaError_t cross_entropy_launch(
    const __half* x, const int64_t* target, __half* loss, int64_t n, int64_t rows, cudaStream_t stream)
{
    return launch_cross_entropy(x, target, loss, n, rows, stream);
}

cudaError_t cross_entropy_launch(
    const __nv_bfloat16* x, const int64_t* target, __nv_bfloat16* loss, int64_t n, int64_t rows, cudaStream_t stream)
{
    return launch_cross_entropy(x, target, loss, n, rows, stream);
}

cudaError_t cross_entropy_backward_launch(
    const float* x, const int64_t* target, const float* grad_loss, float* grad_x, int64_t n, int64_t rows,
    dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_cross_entropy_backward(x, target, grad_loss, grad_x, n, rows, grid, block, stream);
}

cudaError_t cross_entropy_backward_launch(
    const double* x, const int64_t* target, const double* grad_loss, double* grad_x, int64_t n, int64_t rows,
    dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_cross_entropy_backward(x, target, grad_loss, grad_x, n, rows, grid, block, stream);
}

cudaError_t cross_entropy_backward_launch(
    const __half* x, const int64_t* target, const __half* grad_loss, __half* grad_x, int64_t n, int64_t rows,
    dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_cross_entropy_backward(x, target, grad_loss, grad_x, n, rows, grid, block, stream);
}

cudaError_t cross_entropy_backward_launch(
    const __nv_bfloat16* x, const int64_t* target, const __nv_bfloat16* grad_loss, __nv_bfloat16* grad_x, int64_t n,
    int64_t rows, dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_cross_entropy_backward(x, target, grad_loss, grad_x, n, rows, grid, block, stream);
}

cudaError_t cross_entropy_backward_launch(
    const float* x, const int64_t* target, const float* grad_loss, float* grad_x, int64_t n, int64_t rows,
    cudaStream_t stream)
{
    return launch_cross_entropy_backward(x, target, grad_loss, grad_x, n, rows, stream);
}

cudaError_t cross_entropy_backward_launch(
    const double* x, const int64_t* target, const double* grad_loss, double* grad_x, int64_t n, int64_t rows,
    cudaStream_t stream)
{
    return launch_cross_entropy_backward(x, target, grad_loss, grad_x, n, rows, stream);
}

cudaError_t cross_entropy_backward_launch(
    const __half* x, const int64_t* target, const __half* grad_loss, __half* grad_x, int64_t n, int64_t rows,
    cudaStream_t stream)
{
    return launch_cross_entropy_backward(x, target, grad_loss, grad_x, n, rows, stream);
}

cudaError_t cross_entropy_backward_launch(
    const __nv_bfloat16* x, const int64_t* target, const __nv_bfloat16* grad_loss, __nv_bfloat16* grad_x, int64_t n,
    int64_t rows, cudaStream_t stream)
{
    return launch_cross_entropy_backward(x, target, grad_loss, grad_x, n, rows, stream);
}
