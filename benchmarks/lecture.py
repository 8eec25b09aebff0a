"""What the peers are: CUDA as the lecture writes it by hand, for `load_inline` and for a plain launch."""

CPP = "torch::Tensor rgb_to_grayscale(torch::Tensor input);"

CUDA = r"""
#include <torch/extension.h>
#include <stdio.h>
#include <c10/cuda/CUDAException.h>

#define CHECK_CUDA(x) TORCH_CHECK(x.device().is_cuda(), #x " must be a CUDA tensor")
#define CHECK_CONTIGUOUS(x) TORCH_CHECK(x.is_contiguous(), #x " must be contiguous")
#define CHECK_INPUT(x) CHECK_CUDA(x); CHECK_CONTIGUOUS(x)

inline unsigned int cdiv(unsigned int a, unsigned int b) { return (a + b - 1) / b; }

__global__ void rgb_to_grayscale_kernel(unsigned char* x, unsigned char* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 0.2989f * x[i] + 0.5870f * x[i + n] + 0.1140f * x[i + 2 * n];
}

torch::Tensor rgb_to_grayscale(torch::Tensor input) {
    CHECK_INPUT(input);
    int h = input.size(1);
    int w = input.size(2);
    printf("h*w: %d*%d\n", h, w);
    auto output = torch::empty({h, w}, input.options());
    int threads = 256;
    rgb_to_grayscale_kernel<<<cdiv(w * h, threads), threads>>>(
        input.data_ptr<unsigned char>(), output.data_ptr<unsigned char>(), w * h);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return output;
}
"""

KERNELS = r"""
#include <cuda_runtime.h>

static inline unsigned int cdiv(unsigned int a, unsigned int b) { return (a + b - 1) / b; }

__global__ void grey_kernel(unsigned char* x, unsigned char* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 0.2989f * x[i] + 0.5870f * x[i + n] + 0.1140f * x[i + 2 * n];
}

__global__ void add_kernel(float* a, float* b, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = a[i] + b[i];
}

__global__ void sigmoid_kernel(float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float res;
    if (x[i] >= 0)
        res = 1. / (1. + expf(-x[i]));
    else
        res = expf(x[i]) / (1. + expf(x[i]));
    out[i] = res;
}

__global__ void matvec_kernel(float* m, float* v, float* out, int h, int w) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= h) return;
    float o = 0;
    for (int i = 0; i < w; ++i) o += m[r * w + i] * v[i];
    out[r] = o;
}

__global__ void matmul_kernel(float* m, float* n, float* out, int h, int w, int k) {
    int r = blockIdx.y * blockDim.y + threadIdx.y;
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= h || c >= w) return;
    float o = 0;
    for (int i = 0; i < k; ++i) o += m[r * k + i] * n[i * w + c];
    out[r * w + c] = o;
}

extern "C" void grey(unsigned char* x, unsigned char* out, int n) { grey_kernel<<<cdiv(n, 256), 256>>>(x, out, n); }
extern "C" void add(float* a, float* b, float* out, int n) { add_kernel<<<cdiv(n, 256), 256>>>(a, b, out, n); }
extern "C" void sigmoid(float* x, float* out, int n) { sigmoid_kernel<<<cdiv(n, 256), 256>>>(x, out, n); }
extern "C" void matvec(float* m, float* v, float* out, int h, int w) {
    matvec_kernel<<<cdiv(h, 256), 256>>>(m, v, out, h, w);
}
extern "C" void matmul(float* m, float* n, float* out, int h, int w, int k) {
    matmul_kernel<<<dim3(cdiv(w, 16), cdiv(h, 16)), dim3(16, 16)>>>(m, n, out, h, w, k);
}
"""
