// The kernels of examples/ as one writes them by hand, to hold the emitted ones against.
#include <cassert>
#include <cstdint>
#include <cuda_bf16.h>

__global__ void box_blur_kernel(const float* __restrict__ x, int radius, float* __restrict__ out, int h, int w)
{
    int r = blockIdx.y * blockDim.y + threadIdx.y;
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= h || c >= w) return;
    float total = 0.0f;
    int count = 0;
    for (int y = max(r - radius, 0); y < min(r + radius + 1, h); ++y) {
        for (int z = max(c - radius, 0); z < min(c + radius + 1, w); ++z) {
            total += x[y * w + z];
            ++count;
        }
    }
    out[r * w + c] = total / count;
}

__global__ void rgb2grey_kernel(const uint8_t* __restrict__ x, uint8_t* __restrict__ out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 0.2989f * x[i] + 0.5870f * x[i + n] + 0.1140f * x[i + 2 * n];
}

__global__ void rgb2grey_2d_kernel(const uint8_t* __restrict__ x, uint8_t* __restrict__ out, int h, int w)
{
    int r = blockIdx.y * blockDim.y + threadIdx.y;
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= h || c >= w) return;
    int i = r * w + c;
    out[i] = 0.2989f * x[i] + 0.5870f * x[i + h * w] + 0.1140f * x[i + 2 * h * w];
}

__global__ void rgb2grey_block_kernel(const uint8_t* __restrict__ x, uint8_t* __restrict__ out, int w, int h)
{
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    int r = blockIdx.y * blockDim.y + threadIdx.y;
    if (c < w && r < h) {
        int i = r * w + c;
        out[i] = 0.2989f * x[i] + 0.5870f * x[i + h * w] + 0.1140f * x[i + 2 * h * w];
    }
}

__global__ void matmul_kernel(
    const float* __restrict__ m, const float* __restrict__ n, float* __restrict__ out, int h, int w, int k)
{
    int r = blockIdx.y * blockDim.y + threadIdx.y;
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= h || c >= w) return;
    float o = 0.0f;
    for (int i = 0; i < k; ++i) o += m[r * k + i] * n[i * w + c];
    out[r * w + c] = o;
}

__global__ void matvec_kernel(
    const float* __restrict__ m, const float* __restrict__ v, float* __restrict__ out, int h, int w)
{
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= h) return;
    float total = 0.0f;
    for (int i = 0; i < w; ++i) total += m[r * w + i] * v[i];
    out[r] = total;
}

__global__ void sigmoid_kernel(const float* __restrict__ x, float* __restrict__ out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float res;
    if (x[i] >= 0)
        res = 1.0f / (1.0f + expf(-x[i]));
    else
        res = expf(x[i]) / (1.0f + expf(x[i]));
    out[i] = res;
}

__global__ void sigmoid_backward_kernel(
    const float* __restrict__ y, const float* __restrict__ grad_out, float* __restrict__ grad_x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) grad_x[i] = grad_out[i] * y[i] * (1.0f - y[i]);
}

__global__ void vector_add_kernel(
    const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = a[i] + b[i];
}

__global__ void vector_add_block_kernel(
    const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = a[i] + b[i];
}

__global__ void compare_pairs_kernel(float* __restrict__ x, int run, int distance, int n)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n / 2) return;
    assert(distance > 0 && (distance & (distance - 1)) == 0);
    int a = 2 * t - (t & (distance - 1));
    int b = a + distance;
    bool upward = (a & run) == 0;
    if ((x[a] > x[b]) == upward) {
        float swapped = x[a];
        x[a] = x[b];
        x[b] = swapped;
    }
}

__global__ void add_totals_kernel(float* __restrict__ out, const float* __restrict__ totals, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (blockIdx.x > 0 && i < n) out[i] += totals[blockIdx.x - 1];
}

__global__ void scale_kernel(const float* __restrict__ x, float factor, float* __restrict__ out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n / 4) return;
    float4 four = reinterpret_cast<const float4*>(x)[i];
    reinterpret_cast<float4*>(out)[i] = {factor * four.x, factor * four.y, factor * four.z, factor * four.w};
}

__global__ void halve_kernel(__nv_bfloat16* __restrict__ x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n / 8) return;
    uint4 eight = reinterpret_cast<uint4*>(x)[i];
    auto* pairs = reinterpret_cast<__nv_bfloat162*>(&eight);
    for (int k = 0; k < 4; ++k) pairs[k] = pairs[k] * __nv_bfloat162(0.5f, 0.5f);
    reinterpret_cast<uint4*>(x)[i] = eight;
}

__global__ void rgba2grey_kernel(const uint8_t* __restrict__ rgba, uint8_t* __restrict__ out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    uchar4 pixel = reinterpret_cast<const uchar4*>(rgba)[i];
    out[i] = 0.2989f * pixel.x + 0.5870f * pixel.y + 0.1140f * pixel.z;
}
