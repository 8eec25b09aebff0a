// gelu(m v) by the kernels of matvec.py and layers.py, on a stream of this program's own, without torch and Python.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#include "layers.h"
#include "matvec.h"

static void check(cudaError_t error)
{
    if (error == cudaSuccess) return;
    std::fprintf(stderr, "%s\n", cudaGetErrorString(error));
    std::exit(2);
}

int main()
{
    const int64_t rows = 1000, columns = 64;
    float *m, *v, *out;
    check(cudaMallocManaged(&m, rows * columns * sizeof(float)));
    check(cudaMallocManaged(&v, columns * sizeof(float)));
    check(cudaMallocManaged(&out, rows * sizeof(float)));
    for (int64_t i = 0; i < rows * columns; ++i) m[i] = (i % 7 - 3) / 8.0f;
    for (int64_t i = 0; i < columns; ++i) v[i] = (i % 5 - 2) / 4.0f;

    cudaStream_t stream;
    check(cudaStreamCreate(&stream));
    check(matvec_launch(m, v, out, rows, columns, stream));
    check(gelu_launch(out, out, rows, stream));  // in place; the overload for float
    check(cudaStreamSynchronize(stream));

    int wrong = 0;
    for (int64_t r = 0; r < rows; ++r) {
        double x = 0;
        for (int64_t i = 0; i < columns; ++i) x += m[r * columns + i] * v[i];
        wrong += !(std::fabs(x * (1 + std::erf(x / std::sqrt(2.0))) / 2 - out[r]) < 1e-5);
    }
    std::printf("%d of %d rows are wrong\n", wrong, static_cast<int>(rows));
    return wrong != 0;
}
