// Kernels whose threads work together as one writes them by hand, each with its launch: the emitted ones run beside them.
#include <cstdint>
#include <cuda_runtime.h>

static inline unsigned int cdiv(unsigned int a, unsigned int b) { return (a + b - 1) / b; }

constexpr int THREADS = 256;
constexpr int TILE = 16;
constexpr int PER_THREAD = 4;
constexpr int SIDE = PER_THREAD * TILE;

template <int tile>
__global__ void matmul_tiles_kernel(
    const float* __restrict__ m, const float* __restrict__ n, float* __restrict__ out, int h, int w, int k)
{
    __shared__ float ms[tile][tile], ns[tile][tile];
    int tr = threadIdx.y, tc = threadIdx.x;
    int r = blockIdx.y * tile + tr, c = blockIdx.x * tile + tc;
    float o = 0.0f;
    for (int start = 0; start < k; start += tile) {
        ms[tr][tc] = r < h && start + tc < k ? m[r * k + start + tc] : 0.0f;
        ns[tr][tc] = start + tr < k && c < w ? n[(start + tr) * w + c] : 0.0f;
        __syncthreads();
        for (int i = 0; i < tile; ++i) o += ms[tr][i] * ns[i][tc];
        __syncthreads();
    }
    if (r < h && c < w) out[r * w + c] = o;
}

__global__ void matmul_dynamic_kernel(
    const float* __restrict__ m, const float* __restrict__ n, float* __restrict__ out, int h, int w, int k, int tw)
{
    extern __shared__ float buffer[];
    float* ms = buffer;
    float* ns = buffer + tw * tw;
    int tr = threadIdx.y, tc = threadIdx.x;
    int r = blockIdx.y * blockDim.y + tr, c = blockIdx.x * blockDim.x + tc;
    float o = 0.0f;
    for (int start = 0; start < k; start += tw) {
        ms[tr * tw + tc] = r < h && start + tc < k ? m[r * k + start + tc] : 0.0f;
        ns[tr * tw + tc] = start + tr < k && c < w ? n[(start + tr) * w + c] : 0.0f;
        __syncthreads();
        for (int i = 0; i < tw; ++i) o += ms[tr * tw + i] * ns[i * tw + tc];
        __syncthreads();
    }
    if (r < h && c < w) out[r * w + c] = o;
}

__global__ void matmul_registers_kernel(
    const float* __restrict__ m, const float* __restrict__ n, float* __restrict__ out, int h, int w, int k)
{
    __shared__ float ms[SIDE][TILE], ns[TILE][SIDE];
    float sums[PER_THREAD][PER_THREAD] = {}, column[PER_THREAD], row[PER_THREAD];
    int tr = threadIdx.y, tc = threadIdx.x;
    int r = blockIdx.y * SIDE + tr, c = blockIdx.x * SIDE + tc;
    for (int start = 0; start < k; start += TILE) {
        for (int at = 0; at < SIDE; at += TILE) {
            ms[tr + at][tc] = r + at < h && start + tc < k ? m[(r + at) * k + start + tc] : 0.0f;
            ns[tr][tc + at] = start + tr < k && c + at < w ? n[(start + tr) * w + c + at] : 0.0f;
        }
        __syncthreads();
        for (int p = 0; p < TILE; ++p) {
            for (int i = 0; i < PER_THREAD; ++i) {
                column[i] = ms[tr + i * TILE][p];
                row[i] = ns[p][tc + i * TILE];
            }
            for (int i = 0; i < PER_THREAD; ++i)
                for (int j = 0; j < PER_THREAD; ++j) sums[i][j] += column[i] * row[j];
        }
        __syncthreads();
    }
    for (int i = 0; i < PER_THREAD; ++i)
        for (int j = 0; j < PER_THREAD; ++j)
            if (r + i * TILE < h && c + j * TILE < w) out[(r + i * TILE) * w + c + j * TILE] = sums[i][j];
}

__global__ void tree_sums_kernel(const float* __restrict__ x, float* __restrict__ out, int n)
{
    __shared__ float part[THREADS];
    int t = threadIdx.x;
    float s = 0.0f;
    for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x) s += x[i];
    part[t] = s;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (t < half) part[t] += part[t + half];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = part[0];
}

__device__ float warp_sum(float value)
{
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(0xffffffff, value, offset);
    return value;
}

__global__ void warp_sums_kernel(const float* __restrict__ x, float* __restrict__ out, int n)
{
    __shared__ float part[THREADS / 32];
    int t = threadIdx.x;
    float s = 0.0f;
    for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x) s += x[i];
    s = warp_sum(s);
    if (t % 32 == 0) part[t / 32] = s;
    __syncthreads();
    if (t < 32) {
        s = warp_sum(t < THREADS / 32 ? part[t] : 0.0f);
        if (t == 0) atomicAdd(out, s);
    }
}

__global__ void scan_blocks_kernel(
    const float* __restrict__ x, float* __restrict__ out, float* __restrict__ totals, int n)
{
    __shared__ float sums[2][THREADS];
    int t = threadIdx.x;
    int i = blockIdx.x * blockDim.x + t;
    float s = i < n ? x[i] : 0.0f;
    int source = 0;
    sums[source][t] = s;
    __syncthreads();
    for (int step = 1; step < THREADS; step *= 2) {
        if (t >= step) s += sums[source][t - step];
        source = 1 - source;
        sums[source][t] = s;
        __syncthreads();
    }
    if (i < n) out[i] = s;
    if (t == THREADS - 1) totals[blockIdx.x] = s;
}

__global__ void add_totals_kernel(float* __restrict__ out, const float* __restrict__ totals, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (blockIdx.x > 0 && i < n) out[i] += totals[blockIdx.x - 1];
}

__global__ void transpose_kernel(const float* __restrict__ x, float* __restrict__ out, int h, int w)
{
    __shared__ float tile[32][33];
    int tr = threadIdx.y, tc = threadIdx.x;
    int top = blockIdx.y * 32, left = blockIdx.x * 32;
    for (int i = tr; i < 32; i += 8)
        if (top + i < h && left + tc < w) tile[i][tc] = x[(top + i) * w + left + tc];
    __syncthreads();
    for (int i = tr; i < 32; i += 8)
        if (left + i < w && top + tc < h) out[(left + i) * h + top + tc] = tile[tc][i];
}

__global__ void histogram_kernel(const uint8_t* __restrict__ x, int* __restrict__ counts, int n)
{
    __shared__ int mine[256];
    int t = threadIdx.x;
    for (int b = t; b < 256; b += THREADS) mine[b] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x) atomicAdd(&mine[x[i]], 1);
    __syncthreads();
    for (int b = t; b < 256; b += THREADS) atomicAdd(&counts[b], mine[b]);
}

// What ctypes calls: pointers, then extents.
extern "C" {
void matmul_static(const float* m, const float* n, float* out, int h, int w, int k)
{
    matmul_tiles_kernel<TILE><<<dim3(cdiv(w, TILE), cdiv(h, TILE)), dim3(TILE, TILE)>>>(m, n, out, h, w, k);
}
void matmul_template(const float* m, const float* n, float* out, int h, int w, int k)
{
    matmul_tiles_kernel<32><<<dim3(cdiv(w, 32), cdiv(h, 32)), dim3(32, 32)>>>(m, n, out, h, w, k);
}
void matmul_dynamic(const float* m, const float* n, float* out, int h, int w, int k, int tw)
{
    const dim3 grid(cdiv(w, tw), cdiv(h, tw)), block(tw, tw);
    matmul_dynamic_kernel<<<grid, block, 2 * tw * tw * sizeof(float)>>>(m, n, out, h, w, k, tw);
}
void matmul_registers(const float* m, const float* n, float* out, int h, int w, int k)
{
    matmul_registers_kernel<<<dim3(cdiv(w, SIDE), cdiv(h, SIDE)), dim3(TILE, TILE)>>>(m, n, out, h, w, k);
}
void tree_sums(const float* x, float* out, int n, int blocks) { tree_sums_kernel<<<blocks, THREADS>>>(x, out, n); }
void warp_sums(const float* x, float* out, int n)
{
    warp_sums_kernel<<<cdiv(cdiv(n, 16), THREADS), THREADS>>>(x, out, n);
}
void scan_blocks(const float* x, float* out, float* totals, int n)
{
    scan_blocks_kernel<<<cdiv(n, THREADS), THREADS>>>(x, out, totals, n);
}
void add_totals(float* out, const float* totals, int n)
{
    add_totals_kernel<<<cdiv(n, THREADS), THREADS>>>(out, totals, n);
}
void transpose(const float* x, float* out, int h, int w)
{
    transpose_kernel<<<dim3(cdiv(w, 32), cdiv(h, 32)), dim3(32, 8)>>>(x, out, h, w);
}
void histogram(const uint8_t* x, int* counts, int n)
{
    histogram_kernel<<<cdiv(cdiv(n, 16), THREADS), THREADS>>>(x, counts, n);
}
}
