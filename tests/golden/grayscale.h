// grayscale: launchers of the kernels in grayscale.cu. Pointers are to device memory; arrays are contiguous.
#pragma once
#include <cstdint>
#include <cuda_runtime_api.h>

// Luminance of a planar RGB picture.
cudaError_t rgb2grey_launch(const uint8_t* x, uint8_t* out, int64_t n, cudaStream_t stream);
cudaError_t rgb2grey_launch(const uint8_t* x, uint8_t* out, int64_t n, dim3 grid, dim3 block, cudaStream_t stream);

// Luminance of an RGB picture, by row and column.
cudaError_t rgb2grey_2d_launch(const uint8_t* x, uint8_t* out, int64_t h, int64_t w, cudaStream_t stream);
cudaError_t rgb2grey_2d_launch(
    const uint8_t* x, uint8_t* out, int64_t h, int64_t w, dim3 grid, dim3 block, cudaStream_t stream);

// Luminance of an RGB picture, by blocks of 16 by 16 threads.
cudaError_t rgb2grey_block_launch(const uint8_t* x, uint8_t* out, int64_t w, int64_t h, cudaStream_t stream);
cudaError_t rgb2grey_block_launch(
    const uint8_t* x, uint8_t* out, int64_t w, int64_t h, dim3 grid, dim3 block, cudaStream_t stream);
