// grayscale: the kernels on the CPU, translated from grayscale.py by py2cu.
#include "grayscale_cpu.h"

#include <cstdint>

namespace {

// True if a launch is worth several OS threads: more than 32,768 threads or elements, torch's grain size.
// A smaller launch runs on the calling thread, and leaves the process able to fork.
template <typename... Sizes>
inline bool is_large(int64_t parts, Sizes... sizes)
{
    return parts > 1 && ((sizes > 32768) || ...);
}

// Luminance of a planar RGB picture.
inline void rgb2grey_kernel(const uint8_t* __restrict__ x, uint8_t* __restrict__ out, int64_t n, int64_t i)
{
    out[i] = static_cast<uint8_t>(0.2989f * x[i] + 0.5870f * x[n + i] + 0.1140f * x[2 * n + i]);
}

// Luminance of an RGB picture, by row and column.
inline void rgb2grey_2d_kernel(
    const uint8_t* __restrict__ x, uint8_t* __restrict__ out, int64_t h, int64_t w, int64_t r, int64_t c)
{
    out[r * w + c] = static_cast<uint8_t>(0.2989f * x[r * w + c] + 0.5870f * x[(h + r) * w + c] +
                                          0.1140f * x[(2 * h + r) * w + c]);
}

// Luminance of an RGB picture, by blocks of 16 by 16 threads.
inline void rgb2grey_block_kernel(
    const uint8_t* __restrict__ x, uint8_t* __restrict__ out, int64_t w, int64_t h, Dim3 blockIdx, Dim3 threadIdx,
    Dim3 blockDim)
{
    int64_t c = blockIdx.x * blockDim.x + threadIdx.x;
    int64_t r = blockIdx.y * blockDim.y + threadIdx.y;
    if (c < w && r < h)
        out[r * w + c] = static_cast<uint8_t>(0.2989f * x[r * w + c] + 0.5870f * x[(h + r) * w + c] +
                                              0.1140f * x[(2 * h + r) * w + c]);
}

}  // namespace

void rgb2grey_launch(const uint8_t* x, uint8_t* out, int64_t n, Dim3 grid, Dim3 block)
{
    const int64_t i_end = n < grid.x * block.x ? n : grid.x * block.x;
    // Each OS thread gets copies of the arguments: shared variables could not stay in registers.
    #pragma omp parallel for simd if (parallel: is_large(i_end, 3 * n)) firstprivate(x, out, n)
    for (int64_t i = 0; i < i_end; ++i)
        rgb2grey_kernel(x, out, n, i);
}

void rgb2grey_launch(const uint8_t* x, uint8_t* out, int64_t n)
{
    const Dim3 block{256};
    const Dim3 grid{(n + block.x - 1) / block.x};
    rgb2grey_launch(x, out, n, grid, block);
}

void rgb2grey_2d_launch(const uint8_t* x, uint8_t* out, int64_t h, int64_t w, Dim3 grid, Dim3 block)
{
    const int64_t r_end = h < grid.y * block.y ? h : grid.y * block.y;
    const int64_t c_end = w < grid.x * block.x ? w : grid.x * block.x;
    // Each OS thread gets copies of the arguments: shared variables could not stay in registers.
    #pragma omp parallel for if (parallel: is_large(r_end, 3 * h * w)) firstprivate(x, out, h, w)
    for (int64_t r = 0; r < r_end; ++r)
        #pragma omp simd
        for (int64_t c = 0; c < c_end; ++c)
            rgb2grey_2d_kernel(x, out, h, w, r, c);
}

void rgb2grey_2d_launch(const uint8_t* x, uint8_t* out, int64_t h, int64_t w)
{
    const Dim3 block{16, 16};
    const Dim3 grid{(w + block.x - 1) / block.x, (h + block.y - 1) / block.y};
    rgb2grey_2d_launch(x, out, h, w, grid, block);
}

void rgb2grey_block_launch(const uint8_t* x, uint8_t* out, int64_t w, int64_t h, Dim3 grid, Dim3 block)
{
    const int64_t blocks = grid.x * grid.y * grid.z;
    #pragma omp parallel for if (parallel: is_large(blocks, blocks * block.x * block.y * block.z, 3 * h * w))
    for (int64_t flat_block = 0; flat_block < blocks; ++flat_block) {
        const Dim3 blockIdx{flat_block % grid.x, flat_block / grid.x % grid.y, flat_block / (grid.x * grid.y)};
        Dim3 threadIdx;
        for (threadIdx.z = 0; threadIdx.z < block.z; ++threadIdx.z)
            for (threadIdx.y = 0; threadIdx.y < block.y; ++threadIdx.y)
                for (threadIdx.x = 0; threadIdx.x < block.x; ++threadIdx.x)
                    rgb2grey_block_kernel(x, out, w, h, blockIdx, threadIdx, block);
    }
}

void rgb2grey_block_launch(const uint8_t* x, uint8_t* out, int64_t w, int64_t h)
{
    const Dim3 block{16, 16};
    const Dim3 grid{(w + block.x - 1) / block.x, (h + block.y - 1) / block.y};
    rgb2grey_block_launch(x, out, w, h, grid, block);
}
