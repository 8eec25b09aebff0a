// matmul: launchers of the kernels on the CPU. Arrays are contiguous.
#pragma once
#include <cstdint>

// CUDA's dim3 with signed members, so that index arithmetic gives Python's results.
struct Dim3 {
    int64_t x = 1, y = 1, z = 1;
};

// Matrix product, one element a thread.
void matmul_launch(const float* m, const float* n, float* out, int64_t h, int64_t w, int64_t k);
void matmul_launch(
    const float* m, const float* n, float* out, int64_t h, int64_t w, int64_t k, Dim3 grid, Dim3 block);
