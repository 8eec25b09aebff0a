// matmul: launchers of the kernels on the CPU. Arrays are contiguous.
#pragma once
#include <cstdint>

// As CUDA's dim3, but signed, so that index arithmetic is Python's.
struct Dim3 {
    int64_t x = 1, y = 1, z = 1;
};

// Matrix product, one element a thread.
void matmul_launch(const float* m, const float* n, float* out, int64_t h, int64_t w, int64_t k);
void matmul_launch(
    const float* m, const float* n, float* out, int64_t h, int64_t w, int64_t k, Dim3 grid, Dim3 block);
