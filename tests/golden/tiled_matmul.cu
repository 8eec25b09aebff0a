// tiled_matmul: CUDA kernels and their launchers, translated from tiled_matmul.py by py2cu.
#include "tiled_matmul.h"

#include <algorithm>
#include <cstdint>
#include <cuda_runtime.h>

namespace {

// Python's `math.ceil(a / b)` of integers: rounds up; C++ rounds toward zero.
template <typename T>
__device__ inline T ceil_div(T a, T b)
{
    const T quotient = a / b;
    return a % b != 0 && (a < 0) == (b < 0) ? quotient + 1 : quotient;
}

constexpr int TILE = 16;
constexpr int PER_THREAD = 4;
constexpr int SIDE = PER_THREAD * TILE;

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

// Matrix product by tiles of a constant size.
template <typename index_t>  // int, or int64_t where an extent needs it
__global__ void matmul_static_kernel(
    const float* __restrict__ m, const float* __restrict__ n, float* __restrict__ out, index_t h, index_t w,
    index_t k)
{
    __shared__ float ms[TILE][TILE];
    __shared__ float ns[TILE][TILE];
    int tr = threadIdx.y;
    int tc = threadIdx.x;
    index_t r = index_t(blockIdx.y) * TILE + tr;
    index_t c = index_t(blockIdx.x) * TILE + tc;
    float o = 0.0f;
    for (index_t start = 0; start < k; start += TILE) {
        // Zeros past the edges add nothing
        ms[tr][tc] = r < h && start + tc < k ? m[r * k + (start + tc)] : 0.0f;
        ns[tr][tc] = start + tr < k && c < w ? n[(start + tr) * w + c] : 0.0f;
        __syncthreads();
        for (int i = 0; i < TILE; ++i)
            o += ms[tr][i] * ns[i][tc];
        __syncthreads();  // before the next tiles are written
    }
    if (r < h && c < w)
        out[r * w + c] = o;
}

// Matrix product by tiles of `tw` x `tw`, for blocks of as many threads.
template <typename index_t>  // int, or int64_t where an extent needs it
__global__ void matmul_dynamic_kernel(
    const float* __restrict__ m, const float* __restrict__ n, float* __restrict__ out, index_t h, index_t w,
    index_t k, index_t tw)
{
    extern __shared__ float shared[];
    int tc = threadIdx.x;
    int tr = threadIdx.y;
    index_t r = blockIdx.y * index_t(blockDim.y) + tr;
    index_t c = blockIdx.x * index_t(blockDim.x) + tc;
    index_t sz = tw * tw;
    float* ms = shared;
    float* ns = shared + sz;
    float p = 0.0f;
    for (index_t ph = 0; ph < ceil_div(k, tw); ++ph) {
        index_t idx = ph * tw;
        ms[tr * tw + tc] = r < h && idx + tc < k ? m[r * k + (tc + idx)] : 0.0f;
        ns[tr * tw + tc] = c < w && idx + tr < k ? n[(tr + idx) * w + c] : 0.0f;
        __syncthreads();
        for (index_t i = 0; i < tw; ++i)
            p += ms[tr * tw + i] * ns[tw * i + tc];
        __syncthreads();
    }
    if (r < h && c < w)
        out[r * w + c] = p;
}

// Matrix product by tiles whose width the compiler knows, so that it unrolls the inner loop.
// tile is 16.
template <int tile, typename index_t>  // index_t: int, or int64_t where an extent needs it
__global__ void matmul_template_kernel(
    const float* __restrict__ m, const float* __restrict__ n, float* __restrict__ out, index_t h, index_t w,
    index_t k)
{
    __shared__ float ms[tile][tile];
    __shared__ float ns[tile][tile];
    int tr = threadIdx.y;
    int tc = threadIdx.x;
    index_t r = index_t(blockIdx.y) * tile + tr;
    index_t c = index_t(blockIdx.x) * tile + tc;
    float o = 0.0f;
    for (index_t start = 0; start < k; start += tile) {
        ms[tr][tc] = r < h && start + tc < k ? m[r * k + (start + tc)] : 0.0f;
        ns[tr][tc] = start + tr < k && c < w ? n[(start + tr) * w + c] : 0.0f;
        __syncthreads();
        for (int i = 0; i < tile; ++i)
            o += ms[tr][i] * ns[i][tc];
        __syncthreads();
    }
    if (r < h && c < w)
        out[r * w + c] = o;
}

template <int tile>
cudaError_t launch_matmul_template(
    const float* m, const float* n, float* out, int64_t h, int64_t w, int64_t k, dim3 grid, dim3 block,
    cudaStream_t stream)
{
    if (std::max({int64_t(block.x) + k + int64_t(tile), int64_t(block.y) + k + int64_t(tile), h * k, k * w, h * w}) <=
        INT32_MAX && int64_t(block.y) + 1.0 * grid.y * tile <= INT32_MAX &&
        int64_t(block.x) + 1.0 * grid.x * tile <= INT32_MAX)
        matmul_template_kernel<tile, int><<<grid, block, 0, stream>>>(m, n, out, h, w, k);
    else
        matmul_template_kernel<tile, int64_t><<<grid, block, 0, stream>>>(m, n, out, h, w, k);
    return cudaGetLastError();
}

template <int tile>
cudaError_t launch_matmul_template(
    const float* m, const float* n, float* out, int64_t h, int64_t w, int64_t k, cudaStream_t stream)
{
    if (h == 0 || w == 0) return cudaSuccess;
    const dim3 block(tile, tile);
    const dim3 grid((w + block.x - 1) / block.x, (h + block.y - 1) / block.y);
    return launch_matmul_template<tile>(m, n, out, h, w, k, grid, block, stream);
}

// Matrix product with 4 x 4 results a thread: a block makes 64 x 64 of them.
template <typename index_t>  // int, or int64_t where an extent needs it
__global__ void matmul_registers_kernel(
    const float* __restrict__ m, const float* __restrict__ n, float* __restrict__ out, index_t h, index_t w,
    index_t k)
{
    __shared__ float ms[SIDE][TILE];
    __shared__ float ns[TILE][SIDE];
    float sums[PER_THREAD][PER_THREAD];
    float column[PER_THREAD];
    float row[PER_THREAD];
    int tr = threadIdx.y;
    int tc = threadIdx.x;
    index_t r = index_t(blockIdx.y) * SIDE + tr;
    index_t c = index_t(blockIdx.x) * SIDE + tc;
    for (int i = 0; i < PER_THREAD; ++i) {
        for (int j = 0; j < PER_THREAD; ++j)
            sums[i][j] = 0.0f;
    }

    for (index_t start = 0; start < k; start += TILE) {
        // Rows and columns of a thread are a tile apart: neighbours read neighbours
        for (int i = 0; i < PER_THREAD; ++i) {
            int at_ = i * TILE;
            ms[tr + at_][tc] = r + at_ < h && start + tc < k ? m[(r + at_) * k + (start + tc)] : 0.0f;
            ns[tr][tc + at_] = start + tr < k && c + at_ < w ? n[(start + tr) * w + (c + at_)] : 0.0f;
        }
        __syncthreads();
        for (int p = 0; p < TILE; ++p) {
            for (int i = 0; i < PER_THREAD; ++i) {
                column[i] = ms[tr + i * TILE][p];
                row[i] = ns[p][tc + i * TILE];
            }
            for (int i = 0; i < PER_THREAD; ++i) {
                for (int j = 0; j < PER_THREAD; ++j)
                    sums[i][j] += column[i] * row[j];
            }
        }
        __syncthreads();
    }

    for (int i = 0; i < PER_THREAD; ++i) {
        for (int j = 0; j < PER_THREAD; ++j) {
            if (r + i * TILE < h && c + j * TILE < w)
                out[(r + i * TILE) * w + (c + j * TILE)] = sums[i][j];
        }
    }
}

}  // namespace

cudaError_t matmul_static_launch(
    const float* m, const float* n, float* out, int64_t h, int64_t w, int64_t k, dim3 grid, dim3 block,
    cudaStream_t stream)
{
    if (std::max({int64_t(block.y) + 16 * int64_t(grid.y), int64_t(block.x) + 16 * int64_t(grid.x), k + 16,
                  int64_t(block.x) + k + 15, int64_t(block.y) + k + 15, h * k, k * w, h * w}) <= INT32_MAX)
        matmul_static_kernel<int><<<grid, block, 0, stream>>>(m, n, out, h, w, k);
    else
        matmul_static_kernel<int64_t><<<grid, block, 0, stream>>>(m, n, out, h, w, k);
    return cudaGetLastError();
}

cudaError_t matmul_static_launch(
    const float* m, const float* n, float* out, int64_t h, int64_t w, int64_t k, cudaStream_t stream)
{
    if (h == 0 || w == 0) return cudaSuccess;
    const dim3 block(TILE, TILE);
    const dim3 grid((w + block.x - 1) / block.x, (h + block.y - 1) / block.y);
    return matmul_static_launch(m, n, out, h, w, k, grid, block, stream);
}

cudaError_t matmul_dynamic_launch(
    const float* m, const float* n, float* out, int64_t h, int64_t w, int64_t k, int64_t tw, dim3 grid, dim3 block,
    cudaStream_t stream)
{
    const size_t shared_bytes = 2 * tw * tw * sizeof(float);
    if (shared_bytes > 48 * 1024 && allow_shared(matmul_dynamic_kernel<int>, shared_bytes) != cudaSuccess)
        return cudaGetLastError();
    if (shared_bytes > 48 * 1024 && allow_shared(matmul_dynamic_kernel<int64_t>, shared_bytes) != cudaSuccess)
        return cudaGetLastError();
    if (std::max({int64_t(grid.y) * block.y, int64_t(grid.x) * block.x, h * k, k * w, h * w}) <= INT32_MAX &&
        int64_t(block.x) + 1.0 * block.y * tw <= INT32_MAX && int64_t(block.x) + 1.0 * k * tw <= INT32_MAX &&
        int64_t(block.y) + 1.0 * k * tw <= INT32_MAX && int64_t(block.x) + 1.0 * tw * tw <= INT32_MAX)
        matmul_dynamic_kernel<int><<<grid, block, shared_bytes, stream>>>(m, n, out, h, w, k, tw);
    else
        matmul_dynamic_kernel<int64_t><<<grid, block, shared_bytes, stream>>>(m, n, out, h, w, k, tw);
    return cudaGetLastError();
}

cudaError_t matmul_dynamic_launch(
    const float* m, const float* n, float* out, int64_t h, int64_t w, int64_t k, int64_t tw, cudaStream_t stream)
{
    if (h == 0 || w == 0) return cudaSuccess;
    const dim3 block(tw, tw);
    if (block.x == 0 || block.y == 0 || block.z == 0) return cudaErrorInvalidConfiguration;
    const dim3 grid(covering_blocks(w, block.x), covering_blocks(h, block.y));
    return matmul_dynamic_launch(m, n, out, h, w, k, tw, grid, block, stream);
}

template <>
cudaError_t matmul_template_launch<16>(
    const float* m, const float* n, float* out, int64_t h, int64_t w, int64_t k, dim3 grid, dim3 block,
    cudaStream_t stream)
{
    return launch_matmul_template<16>(m, n, out, h, w, k, grid, block, stream);
}

template <>
cudaError_t matmul_template_launch<16>(
    const float* m, const float* n, float* out, int64_t h, int64_t w, int64_t k, cudaStream_t stream)
{
    return launch_matmul_template<16>(m, n, out, h, w, k, stream);
}

cudaError_t matmul_registers_launch(
    const float* m, const float* n, float* out, int64_t h, int64_t w, int64_t k, dim3 grid, dim3 block,
    cudaStream_t stream)
{
    if (std::max({int64_t(block.y) + 64 * int64_t(grid.y), int64_t(block.x) + 64 * int64_t(grid.x), k + 16,
                  int64_t(block.x) + k + 15, int64_t(block.y) + k + 15, h, w, h * k, k * w, h * w}) <= INT32_MAX)
        matmul_registers_kernel<int><<<grid, block, 0, stream>>>(m, n, out, h, w, k);
    else
        matmul_registers_kernel<int64_t><<<grid, block, 0, stream>>>(m, n, out, h, w, k);
    return cudaGetLastError();
}

cudaError_t matmul_registers_launch(
    const float* m, const float* n, float* out, int64_t h, int64_t w, int64_t k, cudaStream_t stream)
{
    if ((h + 3) / 4 == 0 || (w + 3) / 4 == 0) return cudaSuccess;
    const dim3 block(TILE, TILE);
    const dim3 grid(((w + 3) / 4 + block.x - 1) / block.x, ((h + 3) / 4 + block.y - 1) / block.y);
    return matmul_registers_launch(m, n, out, h, w, k, grid, block, stream);
}
