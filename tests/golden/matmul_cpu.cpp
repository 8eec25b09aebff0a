// matmul: the kernels on the CPU, translated from matmul.py by py2cu.
#include "matmul_cpu.h"

#include <cstdint>

// Matrix product, one element a thread.
static inline void matmul_kernel(
    const float* __restrict__ m, const float* __restrict__ n, float* __restrict__ out, int64_t h, int64_t w,
    int64_t k, Dim3 blockIdx, Dim3 threadIdx, Dim3 blockDim, Dim3 gridDim)
{
    int64_t r = blockIdx.y * blockDim.y + threadIdx.y;
    int64_t c = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= h || c >= w) return;  // noqa: E701
    float o = 0.0f;
    for (int64_t i = 0; i < k; ++i)
        o += m[r * k + i] * n[i * w + c];  // noqa: E701
    out[r * w + c] = o;
}

void matmul_launch(
    const float* m, const float* n, float* out, int64_t h, int64_t w, int64_t k, Dim3 grid, Dim3 block)
{
    #pragma omp parallel for
    for (int64_t place = 0; place < grid.x * grid.y * grid.z; ++place) {
        const Dim3 at{place % grid.x, place / grid.x % grid.y, place / (grid.x * grid.y)};
        for (int64_t z = 0; z < block.z; ++z)
            for (int64_t y = 0; y < block.y; ++y)
                for (int64_t x_ = 0; x_ < block.x; ++x_)
                    matmul_kernel(m, n, out, h, w, k, at, Dim3{x_, y, z}, block, grid);
    }
}

void matmul_launch(const float* m, const float* n, float* out, int64_t h, int64_t w, int64_t k)
{
    const Dim3 block{16, 16};
    const Dim3 grid{(w + block.x - 1) / block.x, (h + block.y - 1) / block.y};
    matmul_launch(m, n, out, h, w, k, grid, block);
}
