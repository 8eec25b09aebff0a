// numba_kernels: CUDA kernels and their launchers, translated from numba_kernels.py by py2cu.
#include "numba_kernels.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cuda_runtime.h>

namespace {

// Allows a kernel more dynamic shared memory than the default 48 KB.
template <typename Kernel>
cudaError_t allow_shared(Kernel* kernel, size_t bytes)
{
    const int most = static_cast<int>(std::min(bytes, size_t(INT32_MAX)));
    return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most);
}

// The number of blocks of `block` threads that cover `threads`; 0, which CUDA refuses to launch, where it is too large.
unsigned covering_blocks(int64_t threads, int64_t block)
{
    const int64_t blocks = threads > 0 ? (threads - 1) / block + 1 : 0;
    return blocks <= INT32_MAX ? static_cast<unsigned>(blocks) : 0;
}

template <typename index_t>  // int, or int64_t where an extent needs it
__global__ void cu_add_vectors_kernel(
    const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ u, index_t a_size)
{
    // Getting this thread absolute position, i.e., which element this thread will calculate
    index_t tidx = blockIdx.x * index_t(blockDim.x) + threadIdx.x;  // or shortcut: cuda.grid(1)

    // Is this thread in bounds?
    if (tidx < a_size)
        u[tidx] += a[tidx] + b[tidx];
}

template <typename index_t>  // int, or int64_t where an extent needs it
__global__ void cu_mv_product_kernel(
    const float* __restrict__ m, const float* __restrict__ v, float* __restrict__ u, index_t m_size0,
    index_t m_size1)
{
    index_t tidx = blockIdx.x * index_t(blockDim.x) + threadIdx.x;

    // Is this thread in bounds?
    if (tidx < m_size0) {
        // Creating temporary handle for the result
        float tmp = 0.0f;

        // Doing scalar product between row `pos` in A and v
        for (index_t i = 0; i < m_size1; ++i)
            tmp += m[tidx * m_size1 + i] * v[i];

        // Putting the result into u
        u[tidx] = tmp;
    }
}

template <typename index_t>  // int, or int64_t where an extent needs it
__global__ void sigmoid_forward_kernel(const float* __restrict__ input, index_t input_len, float* __restrict__ out)
{
    index_t idx = blockIdx.x * index_t(blockDim.x) + threadIdx.x;

    if (idx >= input_len) return;

    float exp_value = expf(input[idx] >= 0 ? -input[idx] : input[idx]);
    float res = (input[idx] >= 0 ? 1.0f : exp_value) / (1.0f + exp_value);

    out[idx] = res;
}

template <typename index_t>  // int, or int64_t where an extent needs it
__global__ void sigmoid_backward_kernel(const float* __restrict__ input, index_t input_len, float* __restrict__ out)
{
    index_t idx = blockIdx.x * index_t(blockDim.x) + threadIdx.x;

    if (idx >= input_len) return;

    out[idx] = input[idx] * (1 - input[idx]);
}

template <typename index_t>  // int, or int64_t where an extent needs it
__global__ void tiled_matmul_kernel(
    const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, index_t A_size0,
    index_t A_size1, index_t B_size0, index_t B_size1, index_t C_size0, index_t C_size1)
{
    extern __shared__ float shared[];
    index_t tw = blockDim.x;
    float* a = shared;
    float* b = shared + tw * tw;
    index_t c = blockIdx.x * index_t(blockDim.x) + threadIdx.x;
    index_t r = blockIdx.y * index_t(blockDim.y) + threadIdx.y;
    int tx = threadIdx.x;
    int ty = threadIdx.y;
    float total = 0.0f;
    for (index_t start = 0; start < A_size1; start += tw) {
        a[ty * tw + tx] = r < A_size0 && start + tx < A_size1 ? A[r * A_size1 + (start + tx)] : 0.0f;
        b[ty * tw + tx] = start + ty < B_size0 && c < B_size1 ? B[(start + ty) * B_size1 + c] : 0.0f;
        __syncthreads();
        for (index_t k = 0; k < tw; ++k)
            total += a[ty * tw + k] * b[k * tw + tx];
        __syncthreads();
    }
    if (r < C_size0 && c < C_size1)
        C[r * C_size1 + c] = total;
}

}  // namespace

cudaError_t cu_add_vectors_launch(
    const float* a, const float* b, float* u, int64_t a_size, int64_t b_size, int64_t u_size, dim3 grid, dim3 block,
    cudaStream_t stream)
{
    if (std::max({int64_t(grid.x) * block.x, a_size, b_size, u_size}) <= INT32_MAX)
        cu_add_vectors_kernel<int><<<grid, block, 0, stream>>>(a, b, u, a_size);
    else
        cu_add_vectors_kernel<int64_t><<<grid, block, 0, stream>>>(a, b, u, a_size);
    return cudaGetLastError();
}

cudaError_t cu_add_vectors_launch(
    const float* a, const float* b, float* u, int64_t a_size, int64_t b_size, int64_t u_size, cudaStream_t stream)
{
    if (a_size == 0) return cudaSuccess;
    const dim3 block(256);
    const dim3 grid((a_size + block.x - 1) / block.x);
    return cu_add_vectors_launch(a, b, u, a_size, b_size, u_size, grid, block, stream);
}

cudaError_t cu_mv_product_launch(
    const float* m, const float* v, float* u, int64_t m_size0, int64_t m_size1, int64_t v_size, int64_t u_size,
    dim3 grid, dim3 block, cudaStream_t stream)
{
    if (std::max({int64_t(grid.x) * block.x, m_size0 * m_size1, v_size, u_size}) <= INT32_MAX)
        cu_mv_product_kernel<int><<<grid, block, 0, stream>>>(m, v, u, m_size0, m_size1);
    else
        cu_mv_product_kernel<int64_t><<<grid, block, 0, stream>>>(m, v, u, m_size0, m_size1);
    return cudaGetLastError();
}

cudaError_t cu_mv_product_launch(
    const float* m, const float* v, float* u, int64_t m_size0, int64_t m_size1, int64_t v_size, int64_t u_size,
    cudaStream_t stream)
{
    if (m_size0 == 0) return cudaSuccess;
    const dim3 block(256);
    const dim3 grid(covering_blocks(m_size0, block.x));
    return cu_mv_product_launch(m, v, u, m_size0, m_size1, v_size, u_size, grid, block, stream);
}

cudaError_t sigmoid_forward_launch(
    const float* input, int64_t input_len, float* out, int64_t input_size, int64_t out_size, dim3 grid, dim3 block,
    cudaStream_t stream)
{
    if (std::max({int64_t(grid.x) * block.x, input_len, input_size, out_size}) <= INT32_MAX)
        sigmoid_forward_kernel<int><<<grid, block, 0, stream>>>(input, input_len, out);
    else
        sigmoid_forward_kernel<int64_t><<<grid, block, 0, stream>>>(input, input_len, out);
    return cudaGetLastError();
}

cudaError_t sigmoid_forward_launch(
    const float* input, int64_t input_len, float* out, int64_t input_size, int64_t out_size, cudaStream_t stream)
{
    if (input_len == 0) return cudaSuccess;
    const dim3 block(256);
    const dim3 grid(covering_blocks(input_len, block.x));
    return sigmoid_forward_launch(input, input_len, out, input_size, out_size, grid, block, stream);
}

cudaError_t sigmoid_backward_launch(
    const float* input, int64_t input_len, float* out, int64_t input_size, int64_t out_size, dim3 grid, dim3 block,
    cudaStream_t stream)
{
    if (std::max({int64_t(grid.x) * block.x, input_len, input_size, out_size}) <= INT32_MAX)
        sigmoid_backward_kernel<int><<<grid, block, 0, stream>>>(input, input_len, out);
    else
        sigmoid_backward_kernel<int64_t><<<grid, block, 0, stream>>>(input, input_len, out);
    return cudaGetLastError();
}

cudaError_t sigmoid_backward_launch(
    const float* input, int64_t input_len, float* out, int64_t input_size, int64_t out_size, cudaStream_t stream)
{
    if (input_len == 0) return cudaSuccess;
    const dim3 block(256);
    const dim3 grid(covering_blocks(input_len, block.x));
    return sigmoid_backward_launch(input, input_len, out, input_size, out_size, grid, block, stream);
}

cudaError_t tiled_matmul_launch(
    const float* A, const float* B, float* C, int64_t dynamic_bytes, int64_t A_size0, int64_t A_size1,
    int64_t B_size0, int64_t B_size1, int64_t C_size0, int64_t C_size1, dim3 grid, dim3 block, cudaStream_t stream)
{
    const size_t shared_bytes = dynamic_bytes;
    if (shared_bytes > 48 * 1024 && allow_shared(tiled_matmul_kernel<int>, shared_bytes) != cudaSuccess)
        return cudaGetLastError();
    if (shared_bytes > 48 * 1024 && allow_shared(tiled_matmul_kernel<int64_t>, shared_bytes) != cudaSuccess)
        return cudaGetLastError();
    if (std::max({int64_t(grid.x) * block.x, int64_t(grid.y) * block.y, int64_t(block.y) * block.x,
                  A_size1 + 2 * int64_t(block.x), A_size1 + int64_t(block.x) + int64_t(block.y),
                  int64_t(block.x) + int64_t(block.x) * block.x, A_size0 * A_size1, B_size0 * B_size1,
                  C_size0 * C_size1}) <= INT32_MAX && std::fabs(dynamic_bytes) <= INT32_MAX)
        tiled_matmul_kernel<int><<<grid, block, shared_bytes, stream>>>(
            A, B, C, A_size0, A_size1, B_size0, B_size1, C_size0, C_size1);
    else
        tiled_matmul_kernel<int64_t><<<grid, block, shared_bytes, stream>>>(
            A, B, C, A_size0, A_size1, B_size0, B_size1, C_size0, C_size1);
    return cudaGetLastError();
}

cudaError_t tiled_matmul_launch(
    const float* A, const float* B, float* C, int64_t dynamic_bytes, int64_t A_size0, int64_t A_size1,
    int64_t B_size0, int64_t B_size1, int64_t C_size0, int64_t C_size1, cudaStream_t stream)
{
    if (C_size0 == 0 || C_size1 == 0) return cudaSuccess;
    const dim3 block(16, 16);
    const dim3 grid(covering_blocks(C_size1, block.x), covering_blocks(C_size0, block.y));
    return tiled_matmul_launch(
        A, B, C, dynamic_bytes, A_size0, A_size1, B_size0, B_size1, C_size0, C_size1, grid, block, stream);
}
