// vectors: CUDA kernels and their launchers, translated from vectors.py by py2cu.
#include "vectors.h"

#include <algorithm>
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

namespace {

// 4 adjacent elements, loaded or stored by one instruction.
template <typename T>
struct alignas(4 * sizeof(T)) Vector4 {
    T x0, x1, x2, x3;
};

// 8 adjacent elements, loaded or stored by one instruction.
template <typename T>
struct alignas(8 * sizeof(T)) Vector8 {
    T x0, x1, x2, x3, x4, x5, x6, x7;
};

template <typename index_t>  // int, or int64_t where an extent needs it
__global__ void scale_kernel(const float* __restrict__ x, float factor, float* __restrict__ out, index_t n)
{
    index_t i = blockIdx.x * index_t(blockDim.x) + threadIdx.x;
    if (i >= n / 4) return;
    const auto* x4 = reinterpret_cast<const Vector4<float>*>(x);
    auto* out4 = reinterpret_cast<Vector4<float>*>(out);
    const auto [a, b, c, d] = x4[i];
    out4[i] = {factor * a, factor * b, factor * c, factor * d};
}

// In place, sixteen bytes a thread.
template <typename index_t>  // int, or int64_t where an extent needs it
__global__ void halve_kernel(__nv_bfloat16* __restrict__ x, index_t n)
{
    index_t i = blockIdx.x * index_t(blockDim.x) + threadIdx.x;
    if (i >= n / 8) return;
    auto* x8 = reinterpret_cast<Vector8<__nv_bfloat16>*>(x);
    const auto [a, b, c, d, e, f, g, h] = x8[i];
    x8[i] = {__nv_bfloat16(0.5f) * a, __nv_bfloat16(0.5f) * b, __nv_bfloat16(0.5f) * c, __nv_bfloat16(0.5f) * d,
             __nv_bfloat16(0.5f) * e, __nv_bfloat16(0.5f) * f, __nv_bfloat16(0.5f) * g, __nv_bfloat16(0.5f) * h};
}

// Luminance of a picture whose pixels have four bytes, of which the last says how opaque they are.
template <typename index_t>  // int, or int64_t where an extent needs it
__global__ void rgba2grey_kernel(const uint8_t* __restrict__ rgba, uint8_t* __restrict__ out, index_t n)
{
    const auto* pixels = reinterpret_cast<const Vector4<uint8_t>*>(rgba);
    index_t i = blockIdx.x * index_t(blockDim.x) + threadIdx.x;
    if (i < n) {
        const auto [r, g, b, _] = pixels[i];
        out[i] = static_cast<uint8_t>(0.2989f * r + 0.5870f * g + 0.1140f * b);
    }
}

}  // namespace

cudaError_t scale_launch(
    const float* x, double factor, float* out, int64_t n, dim3 grid, dim3 block, cudaStream_t stream)
{
    if (std::max({int64_t(grid.x) * block.x, n}) <= INT32_MAX)
        scale_kernel<int><<<grid, block, 0, stream>>>(x, factor, out, n);
    else
        scale_kernel<int64_t><<<grid, block, 0, stream>>>(x, factor, out, n);
    return cudaGetLastError();
}

cudaError_t scale_launch(const float* x, double factor, float* out, int64_t n, cudaStream_t stream)
{
    if (n / 4 == 0) return cudaSuccess;
    const dim3 block(256);
    const dim3 grid((n / 4 + block.x - 1) / block.x);
    return scale_launch(x, factor, out, n, grid, block, stream);
}

cudaError_t halve_launch(__nv_bfloat16* x, int64_t n, dim3 grid, dim3 block, cudaStream_t stream)
{
    if (std::max({int64_t(grid.x) * block.x, n}) <= INT32_MAX)
        halve_kernel<int><<<grid, block, 0, stream>>>(x, n);
    else
        halve_kernel<int64_t><<<grid, block, 0, stream>>>(x, n);
    return cudaGetLastError();
}

cudaError_t halve_launch(__nv_bfloat16* x, int64_t n, cudaStream_t stream)
{
    if (n / 8 == 0) return cudaSuccess;
    const dim3 block(256);
    const dim3 grid((n / 8 + block.x - 1) / block.x);
    return halve_launch(x, n, grid, block, stream);
}

cudaError_t rgba2grey_launch(
    const uint8_t* rgba, uint8_t* out, int64_t n, dim3 grid, dim3 block, cudaStream_t stream)
{
    if (std::max({int64_t(grid.x) * block.x, 4 * n}) <= INT32_MAX)
        rgba2grey_kernel<int><<<grid, block, 0, stream>>>(rgba, out, n);
    else
        rgba2grey_kernel<int64_t><<<grid, block, 0, stream>>>(rgba, out, n);
    return cudaGetLastError();
}

cudaError_t rgba2grey_launch(const uint8_t* rgba, uint8_t* out, int64_t n, cudaStream_t stream)
{
    if (n == 0) return cudaSuccess;
    const dim3 block(256);
    const dim3 grid((n + block.x - 1) / block.x);
    return rgba2grey_launch(rgba, out, n, grid, block, stream);
}
