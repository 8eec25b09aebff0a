// matmul: the kernels on the CPU, translated from matmul.py by py2cu.
#include "matmul_cpu.h"

#include <cstdint>

namespace {

// True if a launch is worth several OS threads: more than 32,768 threads or elements, torch's grain size.
// A smaller launch runs on the calling thread, and leaves the process able to fork.
template <typename... Sizes>
inline bool is_large(int64_t parts, Sizes... sizes)
{
    return parts > 1 && ((sizes > 32768) || ...);
}

// Matrix product, one element a thread.
inline void matmul_kernel(
    const float* __restrict__ m, const float* __restrict__ n, float* __restrict__ out, int64_t h, int64_t w,
    int64_t k, Dim3 blockIdx, Dim3 threadIdx, Dim3 blockDim)
{
    int64_t r = blockIdx.y * blockDim.y + threadIdx.y;
    int64_t c = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= h || c >= w) return;
    float o = 0.0f;
    for (int64_t i = 0; i < k; ++i)
        o += m[r * k + i] * n[i * w + c];
    out[r * w + c] = o;
}

}  // namespace

void matmul_launch(
    const float* m, const float* n, float* out, int64_t h, int64_t w, int64_t k, Dim3 grid, Dim3 block)
{
    const int64_t blocks = grid.x * grid.y * grid.z;
    #pragma omp parallel for if (parallel: is_large(blocks, blocks * block.x * block.y * block.z, h * k, k * w, h * w))
    for (int64_t flat_block = 0; flat_block < blocks; ++flat_block) {
        const Dim3 blockIdx{flat_block % grid.x, flat_block / grid.x % grid.y, flat_block / (grid.x * grid.y)};
        Dim3 threadIdx;
        for (threadIdx.z = 0; threadIdx.z < block.z; ++threadIdx.z)
            for (threadIdx.y = 0; threadIdx.y < block.y; ++threadIdx.y)
                for (threadIdx.x = 0; threadIdx.x < block.x; ++threadIdx.x)
                    matmul_kernel(m, n, out, h, w, k, blockIdx, threadIdx, block);
    }
}

void matmul_launch(const float* m, const float* n, float* out, int64_t h, int64_t w, int64_t k)
{
    const Dim3 block{16, 16};
    const Dim3 grid{(w + block.x - 1) / block.x, (h + block.y - 1) / block.y};
    matmul_launch(m, n, out, h, w, k, grid, block);
}
