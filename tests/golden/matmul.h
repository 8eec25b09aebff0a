// matmul: launchers of the kernels in matmul.cu. Pointers are to device memory; arrays are contiguous.
#pragma once
#include <cstdint>
#include <cuda_runtime_api.h>

// Matrix product, one element a thread.
cudaError_t matmul_launch(
    const float* m, const float* n, float* out, int64_t h, int64_t w, int64_t k, cudaStream_t stream);
cudaError_t matmul_launch(
    const float* m, const float* n, float* out, int64_t h, int64_t w, int64_t k, dim3 grid, dim3 block,
    cudaStream_t stream);
