// grayscale: launchers of the kernels on the CPU. Arrays are contiguous.
#pragma once
#include <cstdint>

// CUDA's dim3 with signed members, so that index arithmetic gives Python's results.
struct Dim3 {
    int64_t x = 1, y = 1, z = 1;
};

// Luminance of a planar RGB picture.
void rgb2grey_launch(const uint8_t* x, uint8_t* out, int64_t n);
void rgb2grey_launch(const uint8_t* x, uint8_t* out, int64_t n, Dim3 grid, Dim3 block);

// Luminance of an RGB picture, by row and column.
void rgb2grey_2d_launch(const uint8_t* x, uint8_t* out, int64_t h, int64_t w);
void rgb2grey_2d_launch(const uint8_t* x, uint8_t* out, int64_t h, int64_t w, Dim3 grid, Dim3 block);

// Luminance of an RGB picture, by blocks of 16 by 16 threads.
void rgb2grey_block_launch(const uint8_t* x, uint8_t* out, int64_t w, int64_t h);
void rgb2grey_block_launch(const uint8_t* x, uint8_t* out, int64_t w, int64_t h, Dim3 grid, Dim3 block);
