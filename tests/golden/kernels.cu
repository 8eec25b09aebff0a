// kernels: CUDA kernels and their launchers, translated from kernels.py by py2cu.
#include "kernels.h"

#undef NDEBUG  // kernels keep their asserts
#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <cuda_bf16.h>
#include <initializer_list>
#include <type_traits>
#include <cuda_runtime.h>

namespace gpt2 {

namespace {

// N neighbours in memory, which are loaded and stored 16 bytes at a time.
template <typename T, int N>
struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) aligned_vector {
    T elements[N];
    __device__ inline T& operator[](int k) { return elements[k]; }
    __device__ inline T operator[](int k) const { return elements[k]; }
};

template <int N, typename T>
__device__ inline aligned_vector<T, N> load_vector(const T* from)
{
    return *reinterpret_cast<const aligned_vector<T, N>*>(from);
}

template <typename T, int N>
__device__ inline void store_vector(T* to, const aligned_vector<T, N>& vector)
{
    *reinterpret_cast<aligned_vector<T, N>*>(to) = vector;
}

// Converts half types to float before a math function; other types are unchanged.
template <typename T>
__device__ inline auto to_compute_type(T value)
{
    return static_cast<std::conditional_t<sizeof(T) == 2, float, T>>(value);
}

// Python's `max(a, b)`: `a` unless `b` is greater, also for NaN.
template <typename T>
__device__ inline T python_max(T a, T b)
{
    return b > a ? b : a;
}

// Python's `a // b`: rounds down; C++ rounds toward zero.
template <typename T>
__device__ inline T floor_div(T a, T b)
{
    if constexpr (std::is_floating_point_v<T>) {
        if (b == 0) return a / b;
        const T rest = fmod(a, b);
        T quotient = (a - rest) / b;
        if (rest != 0 && (b < 0) != (rest < 0)) quotient -= 1;
        if (quotient == 0) return copysign(T(0), a / b);
        const T whole = floor(quotient);
        return quotient - whole > T(0.5) ? whole + 1 : whole;
    } else {
        using Unsigned = std::make_unsigned_t<T>;
        constexpr Unsigned sign = Unsigned(1) << (8 * sizeof(T) - 1);  // ptxas (13.0) drops a minus
        if (std::is_signed_v<T> && b == T(-1)) return static_cast<T>((sign - (a & (sign - 1))) ^ (~a & sign));
        const T quotient = a / b;
        return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
    }
}

// The bits of a number as a number of another type.
template <typename To, typename From>
__device__ inline To bits_as(From value)
{
    static_assert(sizeof(To) == sizeof(From));
    To result;
    std::memcpy(static_cast<void*>(&result), &value, sizeof(To));
    return result;
}

// Python's `value ** 2`, a product as in torch.
template <typename T>
__device__ inline T square(T value)
{
    return value * value;
}

constexpr uint32_t FULL = 0xFFFFFFFF;
constexpr double LOG2E = 1.4426950408889634;
constexpr int THREADS = 512;
constexpr int BLOCK_WARPS = THREADS / 32;
constexpr int BUCKET_WARPS = 8;
constexpr int SHORT = 16;
constexpr int ROWS = 4;
constexpr int NORM_WARPS = 8;
constexpr int GROUP = 16;
constexpr int SCORE_ROWS = 8;
constexpr double SCALE = 0.7978845608028654;
constexpr int COLUMN_WARPS = 32;

struct standardise_result {
    float first;
    float second;
};

struct adamw_result {
    float m;
    float v;
    float parameters;
};

struct adamw_of_halves_result {
    float m;
    float v;
    float master;
    __nv_bfloat16 parameters;
};

template <typename T>
__device__ T encoder(
    T wpe, int64_t b, int64_t t, int64_t c, const int64_t* tokens, const T* wte, int64_t t_extent, int64_t c_extent)
{
    return wte[tokens[b * t_extent + t] * c_extent + c] + wpe;
}

// Whether a bucket has one token, which is greater than the one before: no other bucket has it.
template <typename index_t>
__device__ bool holds_one_token(const int64_t* tokens, const int32_t* order, index_t start, int64_t end)
{
    int64_t token = tokens[order[start]];
    return tokens[order[end - 1]] == token && (start == 0 || tokens[order[start - 1]] < token);
}

// The sum over the warp, to each lane.
__device__ float warp_sum(float value)
{
    for (int offset = 16; offset > 0; offset /= 2)
        value += __shfl_xor_sync(FULL, value, offset);
    return value;
}

// Subtract the mean from a row of `packs`, of which a lane has every 32nd; return it and 1 / standard deviation.
template <typename index_t>
__device__ standardise_result standardise(float* row, int packs, int W, float eps, index_t row_size)
{
    int lane = threadIdx.x % 32;
    float total = 0.0f;
    for (int k2 = 0; k2 < row_size; ++k2)
        total += row[k2];
    float mean = warp_sum(total) / (packs * W);
    for (int p = 0; p < row_size / W; ++p) {
        if (lane + 32 * p < packs) {
            for (int k = 0; k < W; ++k)
                row[W * p + k] -= mean;
        }
    }
    float total2 = 0.0f;
    for (int k3 = 0; k3 < row_size; ++k3)
        total2 += row[k3] * row[k3];
    return {mean, 1 / sqrtf(warp_sum(total2) / (packs * W) + eps)};
}

// Whether this block is the last of `blocks` that take a ticket; it then sees what the others wrote before.
template <typename index_t>
__device__ bool is_last_block(int32_t* ticket, index_t ticket_start, index_t blocks_, int32_t* is_last)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();  // what this block wrote comes before its ticket
        int32_t old = atomicAdd(&ticket[ticket_start], 1);
        is_last[0] = int(old == static_cast<int32_t>(blocks_ - 1));
        __threadfence();  // orders the reads below after the last ticket
    }
    __syncthreads();
    return is_last[0] > 0;
}

// Whether this block is the last of `blocks` that take a ticket; it then sees what the others wrote before.
template <typename index_t>
__device__ bool is_last_block(int32_t* ticket, index_t blocks_, int32_t* is_last)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();  // what this block wrote comes before its ticket
        int32_t old = atomicAdd(&ticket[0], 1);
        is_last[0] = int(old == static_cast<int32_t>(blocks_ - 1));
        __threadfence();  // orders the reads below after the last ticket
    }
    __syncthreads();
    return is_last[0] > 0;
}

// The maximum over the warp, to each lane.
__device__ float warp_max(float value)
{
    for (int offset = 16; offset > 0; offset /= 2)
        value = python_max(value, __shfl_xor_sync(FULL, value, offset));
    return value;
}

template <typename T>
__device__ T gelu(T x)
{
    float v = to_compute_type(x);
    return static_cast<T>(0.5f * v * (1 + tanh(static_cast<float>(SCALE) * (v + 0.044715f * v * v * v))));
}

template <typename T>
__device__ T gelu_backward(T x, T grad_out)
{
    float v = to_compute_type(x);
    float tanh_ = tanh(static_cast<float>(SCALE) * (v + 0.044715f * v * v * v));
    float slope = 0.5f * (1 + tanh_) +
                  0.5f * v * (1 - tanh_ * tanh_) * static_cast<float>(SCALE) *
                  (1 + static_cast<float>(3 * 0.044715) * v * v);
    return static_cast<T>(slope * to_compute_type(grad_out));
}

// The gradient scaled such that the norm of all, the root of `squares`, is at most `greatest_norm`.
__device__ float clipped(float g, float squares, float greatest_norm)
{
    float norm = sqrtf(squares);
    return norm > greatest_norm ? g * (greatest_norm / norm) : g;
}

// One step of AdamW over a flat buffer; weight decay applies to its first `decayed` elements.
template <typename index_t>
__device__ adamw_result adamw(
    float gradients, float m, float v, float parameters, index_t i, const float* squares, index_t decayed, float lr,
    float beta1, float beta2, float eps, float greatest_norm, float beta1_term, float beta2_term, float lr_term,
    float beta1_step_term, float beta2_step_term)
{
    float g = clipped(gradients, squares[0], greatest_norm);
    m = beta1 * m + beta1_term * g;
    v = beta2 * v + beta2_term * g * g;
    float p = parameters;
    if (i < decayed)
        p *= lr_term;
    parameters = p - lr * (m / beta1_step_term) / (sqrtf(v / beta2_step_term) + eps);
    return {m, v, parameters};
}

// 32 bits at random: a hash of the element and the seed, Squirrel's, as in llm.c.
template <typename index_t>
__device__ uint32_t noise(index_t i, index_t seed)
{
    uint32_t h = static_cast<uint32_t>(i) * 0xD2A80A3Fu + static_cast<uint32_t>(seed);
    h ^= h >> 9;
    h += 0xA884F197u;
    h ^= h >> 11;
    h *= 0x6C736F4B;
    h ^= h >> 13;
    h += 0xB79F3ABBu;
    h ^= h >> 15;
    h *= 0x1B56C4F5;
    return h ^ (h >> 17);
}

// One of the two bfloat16 around `value`, the nearer one more often: over many steps small updates are not lost.
template <typename index_t>
__device__ float rounded_at_random(float value, index_t i, index_t seed)
{
    uint32_t bits = bits_as<uint32_t>(value) + (noise<index_t>(i, seed) & 0xFFFF);
    return bits_as<float>(bits & 0xFFFF0000u);
}

// The same with master weights in float32, from which the parameters are rounded at random.
template <typename index_t>
__device__ adamw_of_halves_result adamw_of_halves(
    __nv_bfloat16 gradients, float m, float v, float master, index_t i, const float* squares, index_t decayed,
    index_t seed, float lr, float beta1, float beta2, float eps, float greatest_norm, float beta1_term,
    float beta2_term, float lr_term, float beta1_step_term, float beta2_step_term)
{
    float g = clipped(static_cast<float>(gradients), squares[0], greatest_norm);
    m = beta1 * m + beta1_term * g;
    v = beta2 * v + beta2_term * g * g;
    float p = master;
    if (i < decayed)
        p *= lr_term;
    p -= lr * (m / beta1_step_term) / (sqrtf(v / beta2_step_term) + eps);
    master = p;
    __nv_bfloat16 parameters = static_cast<__nv_bfloat16>(rounded_at_random<index_t>(p, i, seed));
    return {m, v, master, parameters};
}

// The sum over the block, to each thread; `part` has an element for each warp.
__device__ float block_sum(float* part, float value)
{
    value = warp_sum(value);
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = value;
    __syncthreads();
    float total2 = 0.0f;
    for (int w = 0; w < BLOCK_WARPS; ++w)
        total2 += part[w];
    float total = total2;
    __syncthreads();  // before `part` is used again
    return total;
}

// The number of blocks of `block` threads that cover `threads`; 0, which CUDA refuses to launch, where it is too large.
unsigned covering_blocks(int64_t threads, int64_t block)
{
    const int64_t blocks = threads > 0 ? (threads - 1) / block + 1 : 0;
    return blocks <= INT32_MAX ? static_cast<unsigned>(blocks) : 0;
}

// Whether every array begins at a multiple of 16 bytes.
bool are_aligned(std::initializer_list<const void*> arrays)
{
    for (const void* array : arrays)
        if (reinterpret_cast<uintptr_t>(array) % 16 != 0) return false;
    return true;
}

// A thread computes PACKS packs of N neighbours, a block apart.
// T is float or __nv_bfloat16.
template <int N, int PACKS, typename T>
__global__ void encoder_kernel(
    const int64_t* __restrict__ tokens, const T* __restrict__ wte, const T* __restrict__ wpe, T* __restrict__ out,
    int64_t b_extent, int64_t t_extent, int64_t c_extent)
{
    int64_t b = blockIdx.z * int64_t(blockDim.z) + threadIdx.z;
    int64_t t = blockIdx.y * int64_t(blockDim.y) + threadIdx.y;
    if (b >= b_extent || t >= t_extent) return;
    const int64_t step = int64_t(blockDim.x) * N;
    const int64_t first = (int64_t(blockIdx.x) * blockDim.x * PACKS + threadIdx.x) * N;
    if (first >= c_extent) return;
    aligned_vector<T, N> wpes[PACKS];
    #pragma unroll
    for (int pack = 0; pack < PACKS; ++pack) {
        const int64_t c = first + pack * step;
        if (c < c_extent)
            wpes[pack] = load_vector<N>(&wpe[t * c_extent + c]);
    }
    #pragma unroll
    for (int pack = 0; pack < PACKS; ++pack) {
        const int64_t c = first + pack * step;
        if (c < c_extent) {
            aligned_vector<T, N> outs;
            #pragma unroll
            for (int k = 0; k < N; ++k)
                outs[k] = encoder(wpes[pack][k], b, t, c + k, tokens, wte, t_extent, c_extent);
            store_vector(&out[(b * t_extent + t) * c_extent + c], outs);
        }
    }
}

template <typename T>
cudaError_t launch_encoder(
    const int64_t* tokens, const T* wte, const T* wpe, T* out, int64_t b_extent, int64_t t_extent, int64_t c_extent,
    int64_t /* v */, int64_t /* positions */, dim3 grid, dim3 block, cudaStream_t stream)
{
    encoder_kernel<1, 1, T><<<grid, block, 0, stream>>>(tokens, wte, wpe, out, b_extent, t_extent, c_extent);
    return cudaGetLastError();
}

template <typename T>
cudaError_t launch_encoder(
    const int64_t* tokens, const T* wte, const T* wpe, T* out, int64_t b_extent, int64_t t_extent, int64_t c_extent,
    int64_t /* v */, int64_t /* positions */, cudaStream_t stream)
{
    if (b_extent == 0 || t_extent == 0 || c_extent == 0) return cudaSuccess;
    const dim3 block(32, 8, 1);
    constexpr int N = 16 / sizeof(T), PACKS = sizeof(T) == 2 || sizeof(T) == 4 ? 2 : 1;
    const auto launch = [&](auto kernel, int64_t elements) {
        const dim3 grid(
            covering_blocks(c_extent, block.x * elements), covering_blocks(t_extent, block.y),
            covering_blocks(b_extent, block.z));
        kernel<<<grid, block, 0, stream>>>(tokens, wte, wpe, out, b_extent, t_extent, c_extent);
        return cudaGetLastError();
    };
    if (b_extent * t_extent * c_extent <= 4096)  // too few to fill a GPU: one element a thread
        return launch(encoder_kernel<1, 1, T>, 1);
    // Packs of 16 bytes; where an array or its rows are not aligned, four elements a thread, a block apart.
    if (c_extent % N == 0 && are_aligned({wpe, out}))
        return launch(encoder_kernel<N, PACKS, T>, N * PACKS);
    return launch(encoder_kernel<1, 4, T>, 4);
}

// The sums over the batch; `j` counts packs of float32, of which bfloat16 has half as many.
// T is float or __nv_bfloat16.
template <typename T, typename index_t>  // index_t: int, or int64_t where an extent needs it
__global__ void position_gradient_kernel(
    const T* __restrict__ grad_out, T* __restrict__ grad_wpe, index_t t_extent, index_t c, index_t b_extent)
{
    index_t t = blockIdx.y * index_t(blockDim.y) + threadIdx.y;
    index_t j = blockIdx.x * index_t(blockDim.x) + threadIdx.x;
    if (t >= t_extent) return;
    constexpr int W = 16 / sizeof(T);
    if (j < c / W) {
        float total[W];
        float value = 0;
        for (int k2 = 0; k2 < W; ++k2)
            total[k2] = value;
        for (index_t b = 0; b < b_extent; ++b) {
            const auto grad_outs_row = load_vector<W>(&grad_out[(b * t_extent + t) * c + j * W]);
            #pragma unroll
            for (int k = 0; k < W; ++k) {
                T v = grad_outs_row[k];
                total[k] += to_compute_type(v);
            }
        }
        aligned_vector<T, W> row;
        #pragma unroll
        for (int k3 = 0; k3 < W; ++k3)
            row[k3] = static_cast<T>(total[k3]);
        store_vector(&grad_wpe[t * c + j * W], row);
    }
}

template <typename T>
cudaError_t launch_position_gradient(
    const T* grad_out, T* grad_wpe, int64_t t_extent, int64_t c, int64_t b_extent, dim3 grid, dim3 block,
    cudaStream_t stream)
{
    if (std::max({b_extent, int64_t(grid.y) * block.y, int64_t(grid.x) * block.x, b_extent * c * t_extent,
                  c * t_extent}) <= INT32_MAX)
        position_gradient_kernel<T, int><<<grid, block, 0, stream>>>(grad_out, grad_wpe, t_extent, c, b_extent);
    else
        position_gradient_kernel<T, int64_t><<<grid, block, 0, stream>>>(grad_out, grad_wpe, t_extent, c, b_extent);
    return cudaGetLastError();
}

template <typename T>
cudaError_t launch_position_gradient(
    const T* grad_out, T* grad_wpe, int64_t t_extent, int64_t c, int64_t b_extent, cudaStream_t stream)
{
    if (t_extent == 0 || c / 4 == 0) return cudaSuccess;
    const dim3 block(32, 8);
    const dim3 grid((c / 4 + block.x - 1) / block.x, covering_blocks(t_extent, block.y));
    return launch_position_gradient(grad_out, grad_wpe, t_extent, c, b_extent, grid, block, stream);
}

// Adds the rows of `grad_out` to the rows of `grad_wte` of their tokens, without atomics.
//
// `order` sorts the tokens. A bucket of one token goes from p to `ends[p]`, which is 0 where no bucket starts. A warp
// adds up a short bucket, and all warps of the block a long one.
// per_lane is 24.
// T is float or __nv_bfloat16.
template <int per_lane, typename T, typename index_t>  // index_t: int, or int64_t where an extent needs it
__global__ void token_gradient_kernel(
    const int64_t* __restrict__ tokens, const int32_t* __restrict__ order, const int32_t* __restrict__ ends,
    const T* __restrict__ grad_out, T* grad_wte, index_t n)
{
    constexpr int W = 16 / sizeof(T);
    int packs = 32 * per_lane / W;
    __shared__ float part[BUCKET_WARPS][(per_lane + W - 1) / W * W][32];
    int lane = threadIdx.x % 32;
    int warp = threadIdx.x / 32;
    index_t first = index_t(blockIdx.x) * BUCKET_WARPS;
    index_t at_ = first + warp;
    T v;
    int64_t token;
    int j;
    if (at_ < n && static_cast<int32_t>(at_) < ends[at_] && ends[at_] <= static_cast<int32_t>(at_ + SHORT)) {
        assert(holds_one_token<index_t>(tokens, order, at_, int64_t(ends[at_])) && "a token has one bucket");
        float total[(per_lane + W - 1) / W * W];
        float value = 0;
        for (int k2 = 0; k2 < (per_lane + W - 1) / W * W; ++k2)
            total[k2] = value;
        int64_t q_stop = ends[at_];
        for (int64_t q = at_; q < q_stop; ++q) {
            for (int p = 0; p < (per_lane + W - 1) / W; ++p) {
                if (lane + 32 * p < packs) {
                    int32_t value2 = order[q];
                    const auto grad_outs_row = load_vector<W>(&grad_out[int64_t(value2) * (32 * per_lane) +
                                                                        (lane + 32 * p) * W]);
                    #pragma unroll
                    for (int k = 0; k < W; ++k) {
                        v = grad_outs_row[k];
                        total[W * p + k] += to_compute_type(v);
                    }
                }
            }
        }
        token = tokens[order[at_]];
        for (int p = 0; p < (per_lane + W - 1) / W; ++p) {
            j = lane + 32 * p;
            if (j < packs) {
                aligned_vector<T, W> row;
                const auto grad_wtes_row = load_vector<W>(&grad_wte[token * (32 * per_lane) + j * W]);
                #pragma unroll
                for (int k3 = 0; k3 < W; ++k3)
                    row[k3] = static_cast<T>(to_compute_type(grad_wtes_row[k3]) + total[W * p + k3]);
                store_vector(&grad_wte[token * (32 * per_lane) + j * W], row);
            }
        }
    }
    for (index_t start = first; start < min(first + BUCKET_WARPS, n); ++start) {
        if (ends[start] > static_cast<int32_t>(start + SHORT)) {
            assert(holds_one_token<index_t>(tokens, order, start, int64_t(ends[start])) && "a token has one bucket");
            float total2[(per_lane + W - 1) / W * W];
            float value3 = 0;
            for (int k5 = 0; k5 < (per_lane + W - 1) / W * W; ++k5)
                total2[k5] = value3;
            int64_t q_stop_ = ends[start];
            for (int64_t q = start + warp; q < q_stop_; q += BUCKET_WARPS) {
                for (int p = 0; p < (per_lane + W - 1) / W; ++p) {
                    if (lane + 32 * p < packs) {
                        int32_t value4 = order[q];
                        const auto grad_outs_row2 = load_vector<W>(&grad_out[int64_t(value4) * (32 * per_lane) +
                                                                             (lane + 32 * p) * W]);
                        #pragma unroll
                        for (int k = 0; k < W; ++k) {
                            v = grad_outs_row2[k];
                            total2[W * p + k] += to_compute_type(v);
                        }
                    }
                }
            }
            for (int k = 0; k < (per_lane + W - 1) / W * W; ++k)
                part[warp][k][lane] = total2[k];
            __syncthreads();
            token = tokens[order[start]];
            for (int j_count = threadIdx.x; j_count < packs; j_count += 32 * BUCKET_WARPS) {
                j = j_count;
                float added[W];
                for (int k6 = 0; k6 < W; ++k6) {
                    float total3 = 0.0f;
                    for (int w = 0; w < BUCKET_WARPS; ++w)
                        total3 += part[w][W * (j / 32) + k6][j % 32];
                    added[k6] = total3;
                }
                aligned_vector<T, W> row2;
                const auto grad_wtes_row2 = load_vector<W>(&grad_wte[token * (32 * per_lane) + j * W]);
                #pragma unroll
                for (int k7 = 0; k7 < W; ++k7)
                    row2[k7] = static_cast<T>(to_compute_type(grad_wtes_row2[k7]) + added[k7]);
                store_vector(&grad_wte[token * (32 * per_lane) + j * W], row2);
            }
            __syncthreads();  // before `part` is used again
        }
    }
}

template <int per_lane, typename T>
cudaError_t launch_token_gradient(
    const int64_t* tokens, const int32_t* order, const int32_t* ends, const T* grad_out, T* grad_wte, int64_t n,
    int64_t v_extent, dim3 grid, dim3 block, cudaStream_t stream)
{
    if (std::max({int64_t(block.x) + 8 * int64_t(grid.x) + 7, n + 16, 32 * n * per_lane, 32 * per_lane * v_extent,
                  int64_t(block.x) + 8 * int64_t(grid.x) + n + 1}) <= INT32_MAX)
        token_gradient_kernel<per_lane, T, int><<<grid, block, 0, stream>>>(
            tokens, order, ends, grad_out, grad_wte, n);
    else
        token_gradient_kernel<per_lane, T, int64_t><<<grid, block, 0, stream>>>(
            tokens, order, ends, grad_out, grad_wte, n);
    return cudaGetLastError();
}

template <int per_lane, typename T>
cudaError_t launch_token_gradient(
    const int64_t* tokens, const int32_t* order, const int32_t* ends, const T* grad_out, T* grad_wte, int64_t n,
    int64_t v_extent, cudaStream_t stream)
{
    if (n == 0) return cudaSuccess;
    const dim3 block(32 * BUCKET_WARPS);
    const dim3 grid((32 * n + block.x - 1) / block.x);
    return launch_token_gradient<per_lane>(
        tokens, order, ends, grad_out, grad_wte, n, v_extent, grid, block, stream);
}

// Rows of mean 0 and variance 1, times the weights, plus the bias; the backward takes `mean` and `rstd`.
// per_lane is 24.
// T is float or __nv_bfloat16.
template <int per_lane, typename T, typename index_t>  // index_t: int, or int64_t where an extent needs it
__global__ void layer_norm_kernel(
    const T* __restrict__ x, const T* __restrict__ weight, const T* __restrict__ bias, T* __restrict__ out,
    float* __restrict__ mean, float* __restrict__ rstd, float eps, index_t rows)
{
    index_t r = index_t(blockIdx.x) * ROWS + threadIdx.x / 32;
    int lane = threadIdx.x % 32;
    if (r >= rows) return;
    constexpr int W = 16 / sizeof(T);
    float row[(per_lane + W - 1) / W * W];  // the packs of a lane
    for (int k = 0; k < (per_lane + W - 1) / W * W; ++k)
        row[k] = 0;  // where a short row has no pack
    for (int p = 0; p < (per_lane + W - 1) / W; ++p) {
        if (lane + 32 * p < 32 * per_lane / W) {
            const auto xs_row = load_vector<W>(&x[r * (32 * per_lane) + (lane + 32 * p) * W]);
            #pragma unroll
            for (int k = 0; k < W; ++k) {
                T v = xs_row[k];
                row[W * p + k] = to_compute_type(v);
            }
        }
    }
    const auto [m, s] = standardise<index_t>(row, 32 * per_lane / W, W, eps, index_t((per_lane + W - 1) / W * W));
    for (int p = 0; p < (per_lane + W - 1) / W; ++p) {
        int j = lane + 32 * p;
        if (j < 32 * per_lane / W) {
            aligned_vector<T, W> row2;
            const auto weights_row = load_vector<W>(&weight[j * W]);
            const auto biases_row = load_vector<W>(&bias[j * W]);
            #pragma unroll
            for (int k2 = 0; k2 < W; ++k2)
                row2[k2] = static_cast<T>(row[W * p + k2] * s * to_compute_type(weights_row[k2]) +
                                          to_compute_type(biases_row[k2]));
            store_vector(&out[r * (32 * per_lane) + j * W], row2);
        }
    }
    if (lane == 0) {
        mean[r] = m;
        rstd[r] = s;
    }
}

template <int per_lane, typename T>
cudaError_t launch_layer_norm(
    const T* x, const T* weight, const T* bias, T* out, float* mean, float* rstd, double eps, int64_t rows,
    dim3 grid, dim3 block, cudaStream_t stream)
{
    if (std::max({int64_t(block.x) + 4 * int64_t(grid.x), 32 * per_lane * rows, 32 * int64_t(per_lane), rows}) <=
        INT32_MAX)
        layer_norm_kernel<per_lane, T, int><<<grid, block, 0, stream>>>(x, weight, bias, out, mean, rstd, eps, rows);
    else
        layer_norm_kernel<per_lane, T, int64_t><<<grid, block, 0, stream>>>(
            x, weight, bias, out, mean, rstd, eps, rows);
    return cudaGetLastError();
}

template <int per_lane, typename T>
cudaError_t launch_layer_norm(
    const T* x, const T* weight, const T* bias, T* out, float* mean, float* rstd, double eps, int64_t rows,
    cudaStream_t stream)
{
    if (rows == 0) return cudaSuccess;
    const dim3 block(32 * ROWS);
    const dim3 grid((32 * rows + block.x - 1) / block.x);
    return launch_layer_norm<per_lane>(x, weight, bias, out, mean, rstd, eps, rows, grid, block, stream);
}

// The sum of `x` and `y`, and its layer norm.
// per_lane is 24.
// T is float or __nv_bfloat16.
template <int per_lane, typename T, typename index_t>  // index_t: int, or int64_t where an extent needs it
__global__ void residual_layer_norm_kernel(
    const T* __restrict__ x, const T* __restrict__ y, const T* __restrict__ weight, const T* __restrict__ bias,
    T* __restrict__ total, T* __restrict__ out, float* __restrict__ mean, float* __restrict__ rstd, float eps,
    index_t rows)
{
    index_t r = index_t(blockIdx.x) * ROWS + threadIdx.x / 32;
    int lane = threadIdx.x % 32;
    if (r >= rows) return;
    constexpr int W = 16 / sizeof(T);
    float row[(per_lane + W - 1) / W * W];
    for (int k = 0; k < (per_lane + W - 1) / W * W; ++k)
        row[k] = 0;
    int j;
    for (int p = 0; p < (per_lane + W - 1) / W; ++p) {
        j = lane + 32 * p;
        if (j < 32 * per_lane / W) {
            const auto xs_row = load_vector<W>(&x[r * (32 * per_lane) + j * W]);
            const auto ys_row = load_vector<W>(&y[r * (32 * per_lane) + j * W]);
            #pragma unroll
            for (int k = 0; k < W; ++k) {
                T a = xs_row[k];
                T b = ys_row[k];
                row[W * p + k] = to_compute_type(a) + to_compute_type(b);
            }
            aligned_vector<T, W> row2;
            #pragma unroll
            for (int k2 = 0; k2 < W; ++k2)
                row2[k2] = static_cast<T>(row[W * p + k2]);
            store_vector(&total[r * (32 * per_lane) + j * W], row2);
        }
    }
    const auto [m, s] = standardise<index_t>(row, 32 * per_lane / W, W, eps, index_t((per_lane + W - 1) / W * W));
    for (int p = 0; p < (per_lane + W - 1) / W; ++p) {
        j = lane + 32 * p;
        if (j < 32 * per_lane / W) {
            aligned_vector<T, W> row3;
            const auto weights_row = load_vector<W>(&weight[j * W]);
            const auto biases_row = load_vector<W>(&bias[j * W]);
            #pragma unroll
            for (int k4 = 0; k4 < W; ++k4)
                row3[k4] = static_cast<T>(row[W * p + k4] * s * to_compute_type(weights_row[k4]) +
                                          to_compute_type(biases_row[k4]));
            store_vector(&out[r * (32 * per_lane) + j * W], row3);
        }
    }
    if (lane == 0) {
        mean[r] = m;
        rstd[r] = s;
    }
}

template <int per_lane, typename T>
cudaError_t launch_residual_layer_norm(
    const T* x, const T* y, const T* weight, const T* bias, T* total, T* out, float* mean, float* rstd, double eps,
    int64_t rows, dim3 grid, dim3 block, cudaStream_t stream)
{
    if (std::max({int64_t(block.x) + 4 * int64_t(grid.x), 32 * per_lane * rows, 32 * int64_t(per_lane), rows}) <=
        INT32_MAX)
        residual_layer_norm_kernel<per_lane, T, int><<<grid, block, 0, stream>>>(
            x, y, weight, bias, total, out, mean, rstd, eps, rows);
    else
        residual_layer_norm_kernel<per_lane, T, int64_t><<<grid, block, 0, stream>>>(
            x, y, weight, bias, total, out, mean, rstd, eps, rows);
    return cudaGetLastError();
}

template <int per_lane, typename T>
cudaError_t launch_residual_layer_norm(
    const T* x, const T* y, const T* weight, const T* bias, T* total, T* out, float* mean, float* rstd, double eps,
    int64_t rows, cudaStream_t stream)
{
    if (rows == 0) return cudaSuccess;
    const dim3 block(32 * ROWS);
    const dim3 grid((32 * rows + block.x - 1) / block.x);
    return launch_residual_layer_norm<per_lane>(
        x, y, weight, bias, total, out, mean, rstd, eps, rows, grid, block, stream);
}

// The gradients of `x`, weights and bias; `with_total` adds `grad_total`, that of the residual stream, to `grad_x`.
//
// Each warp walks over its rows and accumulates the gradients of weights and bias in registers. The last block of each
// group sums the group's partial results, and the last group sums those of all groups.
// per_lane is 24.
// with_total is false or true.
// T is float or __nv_bfloat16.
// index_t is int, or int64_t where an extent needs it.
template <int per_lane, bool with_total, typename T, typename index_t>
__global__ void __launch_bounds__(256, 2) layer_norm_backward_kernel(
    const T* __restrict__ x, const T* __restrict__ weight, const float* __restrict__ mean,
    const float* __restrict__ rstd, const T* __restrict__ grad_out, T* __restrict__ grad_x,
    T* __restrict__ grad_weight, T* __restrict__ grad_bias, float* partial, int32_t* tickets,
    const T* __restrict__ grad_total, index_t rows, index_t blocks_)
{
    constexpr int W = 16 / sizeof(T);
    constexpr int F = 16 / sizeof(float);
    __shared__ float part[NORM_WARPS][(per_lane + W - 1) / W * W][32];
    __shared__ int32_t is_last[1];
    int lane = threadIdx.x % 32;
    int warp = threadIdx.x / 32;
    float of_weight[(per_lane + W - 1) / W * W];
    float value = 0;
    for (int k2 = 0; k2 < (per_lane + W - 1) / W * W; ++k2)
        of_weight[k2] = value;
    float of_bias[(per_lane + W - 1) / W * W];
    float value2 = 0;
    for (int k3 = 0; k3 < (per_lane + W - 1) / W * W; ++k3)
        of_bias[k3] = value2;
    int j;
    float v;
    for (index_t r = index_t(blockIdx.x) * NORM_WARPS + warp; r < rows; r += index_t(gridDim.x) * NORM_WARPS) {
        float normed[(per_lane + W - 1) / W * W];
        float value3 = 0;
        for (int k4 = 0; k4 < (per_lane + W - 1) / W * W; ++k4)
            normed[k4] = value3;
        float scaled[(per_lane + W - 1) / W * W];
        float value4 = 0;
        for (int k5 = 0; k5 < (per_lane + W - 1) / W * W; ++k5)
            scaled[k5] = value4;
        for (int p = 0; p < (per_lane + W - 1) / W; ++p) {
            j = lane + 32 * p;
            if (j < 32 * per_lane / W) {
                const auto xs_row = load_vector<W>(&x[r * (32 * per_lane) + j * W]);
                const auto grad_outs_row = load_vector<W>(&grad_out[r * (32 * per_lane) + j * W]);
                const auto weights_row = load_vector<W>(&weight[j * W]);
                #pragma unroll
                for (int k = 0; k < W; ++k) {
                    v = static_cast<float>(xs_row[k]);
                    T up = grad_outs_row[k];
                    T w = weights_row[k];
                    normed[W * p + k] = (v - mean[r]) * rstd[r];
                    scaled[W * p + k] = to_compute_type(up) * to_compute_type(w);
                    of_weight[W * p + k] += to_compute_type(up) * normed[W * p + k];
                    of_bias[W * p + k] += to_compute_type(up);
                }
            }
        }
        float total2 = 0.0f;
        for (int k6 = 0; k6 < (per_lane + W - 1) / W * W; ++k6)
            total2 += scaled[k6];
        float average = warp_sum(total2) / (32 * per_lane);
        float total3 = 0.0f;
        for (int k7 = 0; k7 < (per_lane + W - 1) / W * W; ++k7)
            total3 += scaled[k7] * normed[k7];
        float dot = warp_sum(total3) / (32 * per_lane);
        for (int p = 0; p < (per_lane + W - 1) / W; ++p) {
            j = lane + 32 * p;
            if (j < 32 * per_lane / W) {
                float grad[W];
                for (int k8 = 0; k8 < W; ++k8)
                    grad[k8] = rstd[r] * (scaled[W * p + k8] - average - normed[W * p + k8] * dot);
                if constexpr (with_total) {
                    const auto grad_totals_row = load_vector<W>(&grad_total[r * (32 * per_lane) + j * W]);
                    #pragma unroll
                    for (int k = 0; k < W; ++k) {
                        v = static_cast<float>(grad_totals_row[k]);
                        grad[k] += v;
                    }
                }
                aligned_vector<T, W> row;
                #pragma unroll
                for (int k9 = 0; k9 < W; ++k9)
                    row[k9] = static_cast<T>(grad[k9]);
                store_vector(&grad_x[r * (32 * per_lane) + j * W], row);
            }
        }
    }
    #pragma unroll
    for (int which = 0; which < 2; ++which) {
        for (int k = 0; k < (per_lane + W - 1) / W * W; ++k)
            part[warp][k][lane] = which == 0 ? of_weight[k] : of_bias[k];
        __syncthreads();
        for (int k = warp; k < (per_lane + W - 1) / W * W; k += NORM_WARPS) {
            int c = W * (lane + 32 * (k / W)) + k % W;
            if (c < 32 * per_lane) {
                float total4 = 0.0f;
                for (int w2 = 0; w2 < NORM_WARPS; ++w2)
                    total4 += part[w2][k][lane];
                partial[index_t(blockIdx.x) * (64 * per_lane) + (32 * per_lane * which + c)] = total4;
            }
        }
        __syncthreads();
    }
    index_t first = index_t(blockIdx.x) / GROUP * GROUP;
    index_t end = min(first + GROUP, index_t(gridDim.x));
    if (is_last_block<index_t>(tickets, 1 + index_t(blockIdx.x) / GROUP, end - first, is_last)) {
        for (int j_count = threadIdx.x; j_count < 64 * per_lane / F; j_count += 32 * NORM_WARPS) {
            j = j_count;
            float total[F];
            float value5 = 0;
            for (int k11 = 0; k11 < F; ++k11)
                total[k11] = value5;
            for (index_t block_ = first; block_ < end; ++block_) {
                const auto partials_row = load_vector<F>(&partial[block_ * (64 * per_lane) + j * F]);
                #pragma unroll
                for (int k = 0; k < F; ++k) {
                    v = partials_row[k];
                    total[k] += v;
                }
            }
            aligned_vector<float, F> row2;
            #pragma unroll
            for (int k12 = 0; k12 < F; ++k12)
                row2[k12] = total[k12];
            store_vector(&partial[first * (64 * per_lane) + j * F], row2);
        }
        if (is_last_block<index_t>(tickets, 1 + (blocks_ + 15) / 16 - 1, is_last)) {
            for (int j_count_ = threadIdx.x; j_count_ < 64 * per_lane / F; j_count_ += 32 * NORM_WARPS) {
                j = j_count_;
                float total5[F];
                float value6 = 0;
                for (int k14 = 0; k14 < F; ++k14)
                    total5[k14] = value6;
                for (index_t block_ = 0; block_ < gridDim.x; block_ += GROUP) {
                    const auto partials_row2 = load_vector<F>(&partial[block_ * (64 * per_lane) + j * F]);
                    #pragma unroll
                    for (int k = 0; k < F; ++k) {
                        v = partials_row2[k];
                        total5[k] += v;
                    }
                }
                for (int k = 0; k < F; ++k) {
                    if (F * j < 32 * per_lane)
                        grad_weight[F * j + k] = static_cast<T>(total5[k]);
                    else
                        grad_bias[F * j + k - 32 * per_lane] = static_cast<T>(total5[k]);
                }
            }
        }
    }
}

template <int per_lane, bool with_total, typename T>
cudaError_t launch_layer_norm_backward(
    const T* x, const T* weight, const float* mean, const float* rstd, const T* grad_out, T* grad_x, T* grad_weight,
    T* grad_bias, float* partial, int32_t* tickets, const T* grad_total, int64_t rows, int64_t blocks_, dim3 grid,
    dim3 block, cudaStream_t stream)
{
    if (std::max({int64_t(block.x) + 8 * int64_t(grid.x), 8 * int64_t(grid.x) + rows, 16 * int64_t(grid.x) + 16,
                  blocks_ + 16, 32 * per_lane * rows, 32 * int64_t(per_lane), 64 * blocks_ * per_lane}) <= INT32_MAX)
        layer_norm_backward_kernel<per_lane, with_total, T, int><<<grid, block, 0, stream>>>(
            x, weight, mean, rstd, grad_out, grad_x, grad_weight, grad_bias, partial, tickets, grad_total, rows,
            blocks_);
    else
        layer_norm_backward_kernel<per_lane, with_total, T, int64_t><<<grid, block, 0, stream>>>(
            x, weight, mean, rstd, grad_out, grad_x, grad_weight, grad_bias, partial, tickets, grad_total, rows,
            blocks_);
    return cudaGetLastError();
}

template <int per_lane, bool with_total, typename T>
cudaError_t launch_layer_norm_backward(
    const T* x, const T* weight, const float* mean, const float* rstd, const T* grad_out, T* grad_x, T* grad_weight,
    T* grad_bias, float* partial, int32_t* tickets, const T* grad_total, int64_t rows, int64_t blocks_,
    cudaStream_t stream)
{
    if (blocks_ == 0) return cudaSuccess;
    const dim3 block(32 * NORM_WARPS);
    const dim3 grid(covering_blocks(blocks_ * 32 * NORM_WARPS, block.x));
    return launch_layer_norm_backward<per_lane, with_total>(
        x, weight, mean, rstd, grad_out, grad_x, grad_weight, grad_bias, partial, tickets, grad_total, rows,
        blocks_, grid, block, stream);
}

// The softmax of `scale * x` up to the diagonal. Packs behind it are not read or written: `out` keeps its zeros.
//
// Online: a lane keeps its maximum so far, and the sum of exp(scale * (score - maximum)), which is scaled down where a
// greater score comes. Only a pack across the diagonal is masked.
// T is float or __nv_bfloat16.
template <typename T, typename index_t>  // index_t: int, or int64_t where an extent needs it
__global__ void causal_softmax_kernel(
    const T* __restrict__ x, T* __restrict__ out, index_t t, index_t heads, float scale_term)
{
    index_t at_ = index_t(blockIdx.x) * SCORE_ROWS + threadIdx.x / 32;
    int lane = threadIdx.x % 32;
    if (at_ >= heads * t) return;
    index_t h = at_ / t;
    index_t r = at_ % t;
    constexpr int W = 16 / sizeof(T);
    float factor = scale_term;
    float top = -INFINITY;
    float total = 0;
    float greatest;
    for (index_t j = lane; j < r / W + 1; j += 32) {
        float row[W];
        const auto xs_row = load_vector<W>(&x[(h * t + r) * t + j * W]);
        #pragma unroll
        for (int k2 = 0; k2 < W; ++k2)
            row[k2] = to_compute_type(xs_row[k2]);
        if (W * j + W > r + 1) {
            for (int k = 0; k < W; ++k) {
                if (W * j + k > r)
                    row[k] = -INFINITY;
            }
        }
        float highest = row[0];
        for (int k3 = 1; k3 < W; ++k3)
            highest = python_max(highest, row[k3]);
        greatest = highest;
        if (greatest > top) {
            total *= exp2(factor * top - factor * greatest);
            top = greatest;
        }
        float total2 = 0.0f;
        for (int k4 = 0; k4 < W; ++k4)
            total2 += exp2(factor * row[k4] - factor * top);
        total += total2;
    }
    greatest = warp_max(top);
    if (top < greatest)  // also of a lane behind the diagonal, whose maximum is -inf
        total *= exp2(factor * top - factor * greatest);
    float shift = factor * greatest + log2(warp_sum(total));
    for (index_t j = lane; j < r / W + 1; j += 32) {
        float row2[W];
        const auto xs_row2 = load_vector<W>(&x[(h * t + r) * t + j * W]);
        #pragma unroll
        for (int k5 = 0; k5 < W; ++k5)
            row2[k5] = exp2(factor * to_compute_type(xs_row2[k5]) - shift);
        if (W * j + W > r + 1) {
            for (int k = 0; k < W; ++k) {
                if (W * j + k > r)
                    row2[k] = 0.0f;
            }
        }
        aligned_vector<T, W> row3;
        #pragma unroll
        for (int k6 = 0; k6 < W; ++k6)
            row3[k6] = static_cast<T>(row2[k6]);
        store_vector(&out[(h * t + r) * t + j * W], row3);
    }
}

template <typename T>
cudaError_t launch_causal_softmax(
    const T* x, T* out, int64_t t, int64_t heads, double scale, dim3 grid, dim3 block, cudaStream_t stream)
{
    const float scale_term = static_cast<float>(LOG2E * scale);
    if (std::max({int64_t(block.x) + 8 * int64_t(grid.x), heads * t, heads, heads * t * t, 8 * t + 272}) <= INT32_MAX)
        causal_softmax_kernel<T, int><<<grid, block, 0, stream>>>(x, out, t, heads, scale_term);
    else
        causal_softmax_kernel<T, int64_t><<<grid, block, 0, stream>>>(x, out, t, heads, scale_term);
    return cudaGetLastError();
}

template <typename T>
cudaError_t launch_causal_softmax(const T* x, T* out, int64_t t, int64_t heads, double scale, cudaStream_t stream)
{
    if (heads * t == 0) return cudaSuccess;
    const dim3 block(32 * SCORE_ROWS);
    const dim3 grid(covering_blocks(32 * heads * t, block.x));
    return launch_causal_softmax(x, out, t, heads, scale, grid, block, stream);
}

// T is float or __nv_bfloat16.
template <typename T, typename index_t>  // index_t: int, or int64_t where an extent needs it
__global__ void causal_softmax_backward_kernel(
    const T* __restrict__ out, const T* __restrict__ grad_out, T* __restrict__ grad_x, index_t t, index_t heads,
    float scale)
{
    index_t at_ = index_t(blockIdx.x) * SCORE_ROWS + threadIdx.x / 32;
    int lane = threadIdx.x % 32;
    if (at_ >= heads * t) return;
    index_t h = at_ / t;
    index_t r = at_ % t;
    constexpr int W = 16 / sizeof(T);
    float dot = 0;
    for (index_t j = lane; j < r / W + 1; j += 32) {
        float row[W];
        const auto outs_row = load_vector<W>(&out[(h * t + r) * t + j * W]);
        const auto grad_outs_row = load_vector<W>(&grad_out[(h * t + r) * t + j * W]);
        #pragma unroll
        for (int k = 0; k < W; ++k)
            row[k] = to_compute_type(outs_row[k]) * to_compute_type(grad_outs_row[k]);
        float total = 0.0f;
        for (int k2 = 0; k2 < W; ++k2)
            total += W * j + k2 <= r ? row[k2] : 0.0f;
        dot += total;
    }
    dot = warp_sum(dot);
    for (index_t j = lane; j < t / W; j += 32) {
        if (W * j <= r) {
            float row2[W];
            const auto outs_row2 = load_vector<W>(&out[(h * t + r) * t + j * W]);
            const auto grad_outs_row2 = load_vector<W>(&grad_out[(h * t + r) * t + j * W]);
            #pragma unroll
            for (int k3 = 0; k3 < W; ++k3)
                row2[k3] = scale * to_compute_type(outs_row2[k3]) * (to_compute_type(grad_outs_row2[k3]) - dot);
            aligned_vector<T, W> row3;
            #pragma unroll
            for (int k4 = 0; k4 < W; ++k4)
                row3[k4] = static_cast<T>(W * j + k4 <= r ? row2[k4] : 0.0f);
            store_vector(&grad_x[(h * t + r) * t + j * W], row3);
        } else {
            aligned_vector<T, W> row4;
            #pragma unroll
            for (int _ = 0; _ < W; ++_)
                row4[_] = T(0);
            store_vector(&grad_x[(h * t + r) * t + j * W], row4);
        }
    }
}

template <typename T>
cudaError_t launch_causal_softmax_backward(
    const T* out, const T* grad_out, T* grad_x, int64_t t, int64_t heads, double scale, dim3 grid, dim3 block,
    cudaStream_t stream)
{
    if (std::max({int64_t(block.x) + 8 * int64_t(grid.x), heads * t, heads, heads * t * t, 8 * t + 272}) <= INT32_MAX)
        causal_softmax_backward_kernel<T, int><<<grid, block, 0, stream>>>(out, grad_out, grad_x, t, heads, scale);
    else
        causal_softmax_backward_kernel<T, int64_t><<<grid, block, 0, stream>>>(
            out, grad_out, grad_x, t, heads, scale);
    return cudaGetLastError();
}

template <typename T>
cudaError_t launch_causal_softmax_backward(
    const T* out, const T* grad_out, T* grad_x, int64_t t, int64_t heads, double scale, cudaStream_t stream)
{
    if (heads * t == 0) return cudaSuccess;
    const dim3 block(32 * SCORE_ROWS);
    const dim3 grid(covering_blocks(32 * heads * t, block.x));
    return launch_causal_softmax_backward(out, grad_out, grad_x, t, heads, scale, grid, block, stream);
}

// A thread computes PACKS packs of N neighbours, a block apart.
// T is float or __nv_bfloat16.
template <int N, int PACKS, typename T>
__global__ void gelu_kernel(const T* x, T* out, int64_t elements)
{
    const int64_t step = int64_t(blockDim.x) * N;
    const int64_t first = (int64_t(blockIdx.x) * blockDim.x * PACKS + threadIdx.x) * N;
    aligned_vector<T, N> xs[PACKS];
    #pragma unroll
    for (int pack = 0; pack < PACKS; ++pack) {
        const int64_t i = first + pack * step;
        if (i + N <= elements)
            xs[pack] = load_vector<N>(&x[i]);
    }
    #pragma unroll
    for (int pack = 0; pack < PACKS; ++pack) {
        const int64_t i = first + pack * step;
        if (i + N <= elements) {
            aligned_vector<T, N> outs;
            #pragma unroll
            for (int k = 0; k < N; ++k)
                outs[k] = gelu(xs[pack][k]);
            store_vector(&out[i], outs);
        } else {
            #pragma unroll 1
            for (int64_t last = i; last < elements; ++last)  // fewer than N
                out[last] = gelu(x[last]);
        }
    }
}

template <typename T>
cudaError_t launch_gelu(const T* x, T* out, int64_t elements, dim3 grid, dim3 block, cudaStream_t stream)
{
    gelu_kernel<1, 1, T><<<grid, block, 0, stream>>>(x, out, elements);
    return cudaGetLastError();
}

template <typename T>
cudaError_t launch_gelu(const T* x, T* out, int64_t elements, cudaStream_t stream)
{
    if (elements == 0) return cudaSuccess;
    const dim3 block(128);
    constexpr int N = 16 / sizeof(T), PACKS = sizeof(T) == 2 || sizeof(T) == 4 ? 2 : 1;
    const auto launch = [&](auto kernel, int64_t elements2) {
        const dim3 grid((elements + block.x * elements2 - 1) / (block.x * elements2));
        kernel<<<grid, block, 0, stream>>>(x, out, elements);
        return cudaGetLastError();
    };
    if (elements <= 4096)  // too few to fill a GPU: one element a thread
        return launch(gelu_kernel<1, 1, T>, 1);
    // Packs of 16 bytes; where an array or its rows are not aligned, four elements a thread, a block apart.
    if (are_aligned({x, out}))
        return launch(gelu_kernel<N, PACKS, T>, N * PACKS);
    return launch(gelu_kernel<1, 4, T>, 4);
}

// A thread computes PACKS packs of N neighbours, a block apart.
// T is float or __nv_bfloat16.
template <int N, int PACKS, typename T>
__global__ void gelu_backward_kernel(const T* x, const T* grad_out, T* grad_x, int64_t elements)
{
    const int64_t step = int64_t(blockDim.x) * N;
    const int64_t first = (int64_t(blockIdx.x) * blockDim.x * PACKS + threadIdx.x) * N;
    aligned_vector<T, N> xs[PACKS];
    aligned_vector<T, N> grad_outs[PACKS];
    #pragma unroll
    for (int pack = 0; pack < PACKS; ++pack) {
        const int64_t i = first + pack * step;
        if (i + N <= elements) {
            xs[pack] = load_vector<N>(&x[i]);
            grad_outs[pack] = load_vector<N>(&grad_out[i]);
        }
    }
    #pragma unroll
    for (int pack = 0; pack < PACKS; ++pack) {
        const int64_t i = first + pack * step;
        if (i + N <= elements) {
            aligned_vector<T, N> grad_xs;
            #pragma unroll
            for (int k = 0; k < N; ++k)
                grad_xs[k] = gelu_backward(xs[pack][k], grad_outs[pack][k]);
            store_vector(&grad_x[i], grad_xs);
        } else {
            #pragma unroll 1
            for (int64_t last = i; last < elements; ++last)  // fewer than N
                grad_x[last] = gelu_backward(x[last], grad_out[last]);
        }
    }
}

template <typename T>
cudaError_t launch_gelu_backward(
    const T* x, const T* grad_out, T* grad_x, int64_t elements, dim3 grid, dim3 block, cudaStream_t stream)
{
    gelu_backward_kernel<1, 1, T><<<grid, block, 0, stream>>>(x, grad_out, grad_x, elements);
    return cudaGetLastError();
}

template <typename T>
cudaError_t launch_gelu_backward(const T* x, const T* grad_out, T* grad_x, int64_t elements, cudaStream_t stream)
{
    if (elements == 0) return cudaSuccess;
    const dim3 block(128);
    constexpr int N = 16 / sizeof(T), PACKS = sizeof(T) == 2 ? 2 : 1;
    const auto launch = [&](auto kernel, int64_t elements2) {
        const dim3 grid((elements + block.x * elements2 - 1) / (block.x * elements2));
        kernel<<<grid, block, 0, stream>>>(x, grad_out, grad_x, elements);
        return cudaGetLastError();
    };
    if (elements <= 4096)  // too few to fill a GPU: one element a thread
        return launch(gelu_backward_kernel<1, 1, T>, 1);
    // Packs of 16 bytes; where an array or its rows are not aligned, four elements a thread, a block apart.
    if (are_aligned({x, grad_out, grad_x}))
        return launch(gelu_backward_kernel<N, PACKS, T>, N * PACKS);
    return launch(gelu_backward_kernel<1, 4, T>, 4);
}

// The sums of all columns. A block has 32 columns; a warp reads `W` rows of them at a time, `32 // W` packs each.
//
// The bound of one block a multiprocessor leaves a thread the registers for eight packs, which it loads at a time.
// T is float or __nv_bfloat16.
template <typename T, typename index_t>  // index_t: int, or int64_t where an extent needs it
__global__ void __launch_bounds__(1024, 1) bias_gradient_kernel(
    const T* __restrict__ grad_out, T* __restrict__ grad_bias, index_t rows, index_t c_extent)
{
    constexpr int W = 16 / sizeof(T);
    __shared__ float part[COLUMN_WARPS][32];
    int packs = 32 / W;  // of a row, in this block
    int lane = threadIdx.x % 32;
    int warp = threadIdx.x / 32;
    index_t j = index_t(blockIdx.x) * packs + lane % packs;
    float total[W];
    float value = 0;
    for (int k2 = 0; k2 < W; ++k2)
        total[k2] = value;
    if (j < c_extent / W) {
        #pragma unroll 8
        for (index_t r = W * warp + lane / packs; r < rows; r += W * COLUMN_WARPS) {
            const auto grad_outs_row = load_vector<W>(&grad_out[r * c_extent + j * W]);
            #pragma unroll
            for (int k = 0; k < W; ++k) {
                T v = grad_outs_row[k];
                total[k] += to_compute_type(v);
            }
        }
    }
    for (int offset = 16; offset >= packs; offset /= 2) {  // lanes that are `packs` apart have the same columns
        for (int k = 0; k < W; ++k)
            total[k] += __shfl_xor_sync(FULL, total[k], offset);
    }
    if (lane < packs) {
        for (int k = 0; k < W; ++k)
            part[warp][W * lane + k] = total[k];
    }
    __syncthreads();
    index_t c = index_t(blockIdx.x) * 32 + lane;
    if (warp == 0 && c < c_extent) {
        float total2 = 0.0f;
        for (int w = 0; w < COLUMN_WARPS; ++w)
            total2 += part[w][lane];
        grad_bias[c] = static_cast<T>(total2);
    }
}

template <typename T>
cudaError_t launch_bias_gradient(
    const T* grad_out, T* grad_bias, int64_t rows, int64_t c_extent, dim3 grid, dim3 block, cudaStream_t stream)
{
    if (std::max({32 * int64_t(grid.x), c_extent, c_extent * rows, rows + 256}) <= INT32_MAX)
        bias_gradient_kernel<T, int><<<grid, block, 0, stream>>>(grad_out, grad_bias, rows, c_extent);
    else
        bias_gradient_kernel<T, int64_t><<<grid, block, 0, stream>>>(grad_out, grad_bias, rows, c_extent);
    return cudaGetLastError();
}

template <typename T>
cudaError_t launch_bias_gradient(
    const T* grad_out, T* grad_bias, int64_t rows, int64_t c_extent, cudaStream_t stream)
{
    if ((c_extent + 31) / 32 == 0) return cudaSuccess;
    const dim3 block(32 * COLUMN_WARPS);
    const dim3 grid(covering_blocks(32 * COLUMN_WARPS * ((c_extent + 31) / 32), block.x));
    return launch_bias_gradient(grad_out, grad_bias, rows, c_extent, grid, block, stream);
}

// The losses of all rows; the gradients of the logits, times `grad_loss`, take the place of the logits.
//
// Columns from `vocabulary` on are padding: they take no part, and their gradient is 0. The softmax is online. The
// second loop goes backwards: what the first one read last is still in the cache.
// T is float or __nv_bfloat16.
template <typename T, typename index_t>  // index_t: int, or int64_t where an extent needs it
__global__ void classifier_kernel(
    T* logits, const int64_t* __restrict__ targets, float* __restrict__ losses, float grad_loss, index_t vocabulary,
    index_t c)
{
    constexpr int W = 16 / sizeof(T);
    __shared__ float tops[32];
    __shared__ float totals[32];
    index_t r = blockIdx.x;
    int t = threadIdx.x;
    int64_t target = targets[r];
    float of_target = to_compute_type(logits[r * c + target]);
    float top = -INFINITY;
    float total = 0;
    float greatest;
    for (index_t j = t; j < floor_div(vocabulary + W - 1, index_t(W)); j += 1024) {
        float row[W];
        const auto packs_row = load_vector<W>(&logits[r * c + j * W]);
        #pragma unroll
        for (int k2 = 0; k2 < W; ++k2)
            row[k2] = to_compute_type(packs_row[k2]);
        if (W * j + W > vocabulary) {
            for (int k = 0; k < W; ++k) {
                if (W * j + k >= vocabulary)
                    row[k] = -INFINITY;
            }
        }
        float highest = row[0];
        for (int k3 = 1; k3 < W; ++k3)
            highest = python_max(highest, row[k3]);
        greatest = highest;
        if (greatest > top) {
            total *= exp2(static_cast<float>(LOG2E) * top - static_cast<float>(LOG2E) * greatest);
            top = greatest;
        }
        float total2 = 0.0f;
        for (int k4 = 0; k4 < W; ++k4)
            total2 += exp2(static_cast<float>(LOG2E) * row[k4] - static_cast<float>(LOG2E) * top);
        total += total2;
    }
    greatest = warp_max(top);
    if (top < greatest)
        total *= exp2(static_cast<float>(LOG2E) * top - static_cast<float>(LOG2E) * greatest);
    total = warp_sum(total);
    if (t % 32 == 0) {
        tops[t / 32] = greatest;
        totals[t / 32] = total;
    }
    __syncthreads();  // also: all threads have read the target's logit
    greatest = warp_max(tops[t % 32]);
    total = warp_sum(totals[t % 32] *
                     exp2(static_cast<float>(LOG2E) * tops[t % 32] - static_cast<float>(LOG2E) * greatest));
    float shift = greatest + log(total);
    for (index_t j = c / W - 1 - t; j > -1; j -= 1024) {
        float row2[W];
        const auto packs_row2 = load_vector<W>(&logits[r * c + j * W]);
        #pragma unroll
        for (int k5 = 0; k5 < W; ++k5)
            row2[k5] = grad_loss *
                       exp2(static_cast<float>(LOG2E) * to_compute_type(packs_row2[k5]) -
                            static_cast<float>(LOG2E) * shift);
        if (W * j + W > vocabulary) {
            for (int k = 0; k < W; ++k) {
                if (W * j + k >= vocabulary)
                    row2[k] = 0.0f;
            }
        }
        aligned_vector<T, W> row3;
        #pragma unroll
        for (int k6 = 0; k6 < W; ++k6)
            row3[k6] = static_cast<T>(row2[k6]);
        store_vector(&logits[r * c + j * W], row3);
    }
    __syncthreads();  // the target's pack has been written
    if (t == 0) {
        losses[r] = shift - of_target;
        logits[r * c + target] = static_cast<T>(grad_loss *
                                                (exp2(static_cast<float>(LOG2E) * of_target -
                                                      static_cast<float>(LOG2E) * shift) - 1));
    }
}

template <typename T>
cudaError_t launch_classifier(
    T* logits, const int64_t* targets, float* losses, double grad_loss, int64_t vocabulary, int64_t rows, int64_t c,
    dim3 grid, dim3 block, cudaStream_t stream)
{
    if (std::max({int64_t(grid.x), c * rows, rows}) <= INT32_MAX &&
        8 * int64_t(block.x) + 8 * c + 8 * std::fabs(vocabulary) + 8272 <= INT32_MAX)
        classifier_kernel<T, int><<<grid, block, 0, stream>>>(logits, targets, losses, grad_loss, vocabulary, c);
    else
        classifier_kernel<T, int64_t><<<grid, block, 0, stream>>>(logits, targets, losses, grad_loss, vocabulary, c);
    return cudaGetLastError();
}

template <typename T>
cudaError_t launch_classifier(
    T* logits, const int64_t* targets, float* losses, double grad_loss, int64_t vocabulary, int64_t rows, int64_t c,
    cudaStream_t stream)
{
    if (rows == 0) return cudaSuccess;
    const dim3 block(1024);
    const dim3 grid(covering_blocks(1024 * rows, block.x));
    return launch_classifier(logits, targets, losses, grad_loss, vocabulary, rows, c, grid, block, stream);
}

// A thread computes PACKS packs of N neighbours, a block apart.
template <int N, int PACKS>
__global__ void adamw_kernel(
    float* parameters, const float* gradients, float* m, float* v, const float* __restrict__ squares,
    int64_t decayed, float lr, float beta1, float beta2, float eps, float greatest_norm, int64_t n,
    float beta1_term, float beta2_term, float lr_term, float beta1_step_term, float beta2_step_term)
{
    const int64_t step2 = int64_t(blockDim.x) * N;
    const int64_t first = (int64_t(blockIdx.x) * blockDim.x * PACKS + threadIdx.x) * N;
    aligned_vector<float, N> gradients_pack[PACKS];
    aligned_vector<float, N> ms[PACKS];
    aligned_vector<float, N> vs[PACKS];
    aligned_vector<float, N> parameters_pack[PACKS];
    #pragma unroll
    for (int pack = 0; pack < PACKS; ++pack) {
        const int64_t i = first + pack * step2;
        if (i + N <= n) {
            gradients_pack[pack] = load_vector<N>(&gradients[i]);
            ms[pack] = load_vector<N>(&m[i]);
            vs[pack] = load_vector<N>(&v[i]);
            parameters_pack[pack] = load_vector<N>(&parameters[i]);
        }
    }
    #pragma unroll
    for (int pack = 0; pack < PACKS; ++pack) {
        const int64_t i = first + pack * step2;
        if (i + N <= n) {
            #pragma unroll
            for (int k = 0; k < N; ++k) {
                const auto result = adamw<int64_t>(gradients_pack[pack][k], ms[pack][k], vs[pack][k],
                                                   parameters_pack[pack][k], i + k, squares, decayed, lr, beta1, beta2,
                                                   eps, greatest_norm, beta1_term, beta2_term, lr_term, beta1_step_term,
                                                   beta2_step_term);
                ms[pack][k] = result.m;
                vs[pack][k] = result.v;
                parameters_pack[pack][k] = result.parameters;
            }
            store_vector(&m[i], ms[pack]);
            store_vector(&v[i], vs[pack]);
            store_vector(&parameters[i], parameters_pack[pack]);
        } else {
            #pragma unroll 1
            for (int64_t last = i; last < n; ++last) {  // fewer than N
                const auto result = adamw<int64_t>(gradients[last], m[last], v[last], parameters[last], last, squares,
                                                   decayed, lr, beta1, beta2, eps, greatest_norm, beta1_term,
                                                   beta2_term, lr_term, beta1_step_term, beta2_step_term);
                m[last] = result.m;
                v[last] = result.v;
                parameters[last] = result.parameters;
            }
        }
    }
}

// A thread computes PACKS packs of N neighbours, a block apart.
template <int N, int PACKS>
__global__ void adamw_of_halves_kernel(
    __nv_bfloat16* parameters, float* __restrict__ master, const __nv_bfloat16* gradients, float* __restrict__ m,
    float* __restrict__ v, const float* __restrict__ squares, int64_t decayed, int64_t seed, float lr, float beta1,
    float beta2, float eps, float greatest_norm, int64_t n, float beta1_term, float beta2_term, float lr_term,
    float beta1_step_term, float beta2_step_term)
{
    const int64_t step2 = int64_t(blockDim.x) * N;
    const int64_t first = (int64_t(blockIdx.x) * blockDim.x * PACKS + threadIdx.x) * N;
    aligned_vector<__nv_bfloat16, N> gradients_pack[PACKS];
    aligned_vector<float, N> ms[PACKS];
    aligned_vector<float, N> vs[PACKS];
    aligned_vector<float, N> masters[PACKS];
    #pragma unroll
    for (int pack = 0; pack < PACKS; ++pack) {
        const int64_t i = first + pack * step2;
        if (i + N <= n) {
            gradients_pack[pack] = load_vector<N>(&gradients[i]);
            ms[pack] = load_vector<N>(&m[i]);
            vs[pack] = load_vector<N>(&v[i]);
            masters[pack] = load_vector<N>(&master[i]);
        }
    }
    #pragma unroll
    for (int pack = 0; pack < PACKS; ++pack) {
        const int64_t i = first + pack * step2;
        if (i + N <= n) {
            aligned_vector<__nv_bfloat16, N> parameters_pack;
            #pragma unroll
            for (int k = 0; k < N; ++k) {
                const auto result = adamw_of_halves<int64_t>(gradients_pack[pack][k], ms[pack][k], vs[pack][k],
                                                             masters[pack][k], i + k, squares, decayed, seed, lr, beta1,
                                                             beta2, eps, greatest_norm, beta1_term, beta2_term, lr_term,
                                                             beta1_step_term, beta2_step_term);
                ms[pack][k] = result.m;
                vs[pack][k] = result.v;
                masters[pack][k] = result.master;
                parameters_pack[k] = result.parameters;
            }
            store_vector(&m[i], ms[pack]);
            store_vector(&v[i], vs[pack]);
            store_vector(&master[i], masters[pack]);
            store_vector(&parameters[i], parameters_pack);
        } else {
            #pragma unroll 1
            for (int64_t last = i; last < n; ++last) {  // fewer than N
                const auto result = adamw_of_halves<int64_t>(gradients[last], m[last], v[last], master[last], last,
                                                             squares, decayed, seed, lr, beta1, beta2, eps,
                                                             greatest_norm, beta1_term, beta2_term, lr_term,
                                                             beta1_step_term, beta2_step_term);
                m[last] = result.m;
                v[last] = result.v;
                master[last] = result.master;
                parameters[last] = result.parameters;
            }
        }
    }
}

// The square of the norm of one buffer.
// T is float or __nv_bfloat16.
template <typename T, typename index_t>  // index_t: int, or int64_t where an extent needs it
__global__ void sum_of_squares_kernel(
    const T* __restrict__ x, float* __restrict__ out, float* partial, int32_t* ticket, index_t n, index_t blocks_)
{
    __shared__ float part[BLOCK_WARPS];
    __shared__ int32_t is_last[1];
    constexpr int W = 16 / sizeof(T);
    float total = 0;
    for (index_t i = index_t(blockIdx.x) * THREADS + threadIdx.x; i < n / W; i += index_t(gridDim.x) * THREADS) {
        float total2 = 0.0f;
        const auto packs_row = load_vector<W>(&x[i * W]);
        #pragma unroll
        for (int k2 = 0; k2 < W; ++k2)
            total2 += square(to_compute_type(packs_row[k2]));
        total += total2;
    }
    total = block_sum(part, total);
    if (threadIdx.x == 0)
        partial[blockIdx.x] = total;
    if (is_last_block<index_t>(ticket, index_t(gridDim.x), is_last)) {
        total = 0;
        for (index_t k = threadIdx.x; k < blocks_; k += THREADS)
            total += partial[k];
        total = block_sum(part, total);
        if (threadIdx.x == 0)
            out[0] = total;
    }
}

template <typename T>
cudaError_t launch_sum_of_squares(
    const T* x, float* out, float* partial, int32_t* ticket, int64_t n, int64_t blocks_, dim3 grid, dim3 block,
    cudaStream_t stream)
{
    if (std::max({int64_t(block.x) + 512 * int64_t(grid.x), 512 * int64_t(grid.x) + n, blocks_ + 512}) <= INT32_MAX)
        sum_of_squares_kernel<T, int><<<grid, block, 0, stream>>>(x, out, partial, ticket, n, blocks_);
    else
        sum_of_squares_kernel<T, int64_t><<<grid, block, 0, stream>>>(x, out, partial, ticket, n, blocks_);
    return cudaGetLastError();
}

template <typename T>
cudaError_t launch_sum_of_squares(
    const T* x, float* out, float* partial, int32_t* ticket, int64_t n, int64_t blocks_, cudaStream_t stream)
{
    if (blocks_ == 0) return cudaSuccess;
    const dim3 block(THREADS);
    const dim3 grid(covering_blocks(blocks_ * THREADS, block.x));
    return launch_sum_of_squares(x, out, partial, ticket, n, blocks_, grid, block, stream);
}

}  // namespace

cudaError_t encoder_launch(
    const int64_t* tokens, const float* wte, const float* wpe, float* out, int64_t b_extent, int64_t t_extent,
    int64_t c_extent, int64_t v, int64_t positions, dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_encoder(tokens, wte, wpe, out, b_extent, t_extent, c_extent, v, positions, grid, block, stream);
}

cudaError_t encoder_launch(
    const int64_t* tokens, const __nv_bfloat16* wte, const __nv_bfloat16* wpe, __nv_bfloat16* out, int64_t b_extent,
    int64_t t_extent, int64_t c_extent, int64_t v, int64_t positions, dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_encoder(tokens, wte, wpe, out, b_extent, t_extent, c_extent, v, positions, grid, block, stream);
}

cudaError_t encoder_launch(
    const int64_t* tokens, const float* wte, const float* wpe, float* out, int64_t b_extent, int64_t t_extent,
    int64_t c_extent, int64_t v, int64_t positions, cudaStream_t stream)
{
    return launch_encoder(tokens, wte, wpe, out, b_extent, t_extent, c_extent, v, positions, stream);
}

cudaError_t encoder_launch(
    const int64_t* tokens, const __nv_bfloat16* wte, const __nv_bfloat16* wpe, __nv_bfloat16* out, int64_t b_extent,
    int64_t t_extent, int64_t c_extent, int64_t v, int64_t positions, cudaStream_t stream)
{
    return launch_encoder(tokens, wte, wpe, out, b_extent, t_extent, c_extent, v, positions, stream);
}

cudaError_t position_gradient_launch(
    const float* grad_out, float* grad_wpe, int64_t t_extent, int64_t c, int64_t b_extent, dim3 grid, dim3 block,
    cudaStream_t stream)
{
    return launch_position_gradient(grad_out, grad_wpe, t_extent, c, b_extent, grid, block, stream);
}

cudaError_t position_gradient_launch(
    const __nv_bfloat16* grad_out, __nv_bfloat16* grad_wpe, int64_t t_extent, int64_t c, int64_t b_extent,
    dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_position_gradient(grad_out, grad_wpe, t_extent, c, b_extent, grid, block, stream);
}

cudaError_t position_gradient_launch(
    const float* grad_out, float* grad_wpe, int64_t t_extent, int64_t c, int64_t b_extent, cudaStream_t stream)
{
    return launch_position_gradient(grad_out, grad_wpe, t_extent, c, b_extent, stream);
}

cudaError_t position_gradient_launch(
    const __nv_bfloat16* grad_out, __nv_bfloat16* grad_wpe, int64_t t_extent, int64_t c, int64_t b_extent,
    cudaStream_t stream)
{
    return launch_position_gradient(grad_out, grad_wpe, t_extent, c, b_extent, stream);
}

template <>
cudaError_t token_gradient_launch<24>(
    const int64_t* tokens, const int32_t* order, const int32_t* ends, const float* grad_out, float* grad_wte,
    int64_t n, int64_t v_extent, dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_token_gradient<24>(tokens, order, ends, grad_out, grad_wte, n, v_extent, grid, block, stream);
}

template <>
cudaError_t token_gradient_launch<24>(
    const int64_t* tokens, const int32_t* order, const int32_t* ends, const __nv_bfloat16* grad_out,
    __nv_bfloat16* grad_wte, int64_t n, int64_t v_extent, dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_token_gradient<24>(tokens, order, ends, grad_out, grad_wte, n, v_extent, grid, block, stream);
}

template <>
cudaError_t token_gradient_launch<24>(
    const int64_t* tokens, const int32_t* order, const int32_t* ends, const float* grad_out, float* grad_wte,
    int64_t n, int64_t v_extent, cudaStream_t stream)
{
    return launch_token_gradient<24>(tokens, order, ends, grad_out, grad_wte, n, v_extent, stream);
}

template <>
cudaError_t token_gradient_launch<24>(
    const int64_t* tokens, const int32_t* order, const int32_t* ends, const __nv_bfloat16* grad_out,
    __nv_bfloat16* grad_wte, int64_t n, int64_t v_extent, cudaStream_t stream)
{
    return launch_token_gradient<24>(tokens, order, ends, grad_out, grad_wte, n, v_extent, stream);
}

template <>
cudaError_t layer_norm_launch<24>(
    const float* x, const float* weight, const float* bias, float* out, float* mean, float* rstd, double eps,
    int64_t rows, dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_layer_norm<24>(x, weight, bias, out, mean, rstd, eps, rows, grid, block, stream);
}

template <>
cudaError_t layer_norm_launch<24>(
    const __nv_bfloat16* x, const __nv_bfloat16* weight, const __nv_bfloat16* bias, __nv_bfloat16* out, float* mean,
    float* rstd, double eps, int64_t rows, dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_layer_norm<24>(x, weight, bias, out, mean, rstd, eps, rows, grid, block, stream);
}

template <>
cudaError_t layer_norm_launch<24>(
    const float* x, const float* weight, const float* bias, float* out, float* mean, float* rstd, double eps,
    int64_t rows, cudaStream_t stream)
{
    return launch_layer_norm<24>(x, weight, bias, out, mean, rstd, eps, rows, stream);
}

template <>
cudaError_t layer_norm_launch<24>(
    const __nv_bfloat16* x, const __nv_bfloat16* weight, const __nv_bfloat16* bias, __nv_bfloat16* out, float* mean,
    float* rstd, double eps, int64_t rows, cudaStream_t stream)
{
    return launch_layer_norm<24>(x, weight, bias, out, mean, rstd, eps, rows, stream);
}

template <>
cudaError_t residual_layer_norm_launch<24>(
    const float* x, const float* y, const float* weight, const float* bias, float* total, float* out, float* mean,
    float* rstd, double eps, int64_t rows, dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_residual_layer_norm<24>(
        x, y, weight, bias, total, out, mean, rstd, eps, rows, grid, block, stream);
}

template <>
cudaError_t residual_layer_norm_launch<24>(
    const __nv_bfloat16* x, const __nv_bfloat16* y, const __nv_bfloat16* weight, const __nv_bfloat16* bias,
    __nv_bfloat16* total, __nv_bfloat16* out, float* mean, float* rstd, double eps, int64_t rows, dim3 grid,
    dim3 block, cudaStream_t stream)
{
    return launch_residual_layer_norm<24>(
        x, y, weight, bias, total, out, mean, rstd, eps, rows, grid, block, stream);
}

template <>
cudaError_t residual_layer_norm_launch<24>(
    const float* x, const float* y, const float* weight, const float* bias, float* total, float* out, float* mean,
    float* rstd, double eps, int64_t rows, cudaStream_t stream)
{
    return launch_residual_layer_norm<24>(x, y, weight, bias, total, out, mean, rstd, eps, rows, stream);
}

template <>
cudaError_t residual_layer_norm_launch<24>(
    const __nv_bfloat16* x, const __nv_bfloat16* y, const __nv_bfloat16* weight, const __nv_bfloat16* bias,
    __nv_bfloat16* total, __nv_bfloat16* out, float* mean, float* rstd, double eps, int64_t rows,
    cudaStream_t stream)
{
    return launch_residual_layer_norm<24>(x, y, weight, bias, total, out, mean, rstd, eps, rows, stream);
}

template <>
cudaError_t layer_norm_backward_launch<24, false>(
    const float* x, const float* weight, const float* mean, const float* rstd, const float* grad_out, float* grad_x,
    float* grad_weight, float* grad_bias, float* partial, int32_t* tickets, const float* grad_total, int64_t rows,
    int64_t blocks_, dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_layer_norm_backward<24, false>(
        x, weight, mean, rstd, grad_out, grad_x, grad_weight, grad_bias, partial, tickets, grad_total, rows,
        blocks_, grid, block, stream);
}

template <>
cudaError_t layer_norm_backward_launch<24, true>(
    const float* x, const float* weight, const float* mean, const float* rstd, const float* grad_out, float* grad_x,
    float* grad_weight, float* grad_bias, float* partial, int32_t* tickets, const float* grad_total, int64_t rows,
    int64_t blocks_, dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_layer_norm_backward<24, true>(
        x, weight, mean, rstd, grad_out, grad_x, grad_weight, grad_bias, partial, tickets, grad_total, rows,
        blocks_, grid, block, stream);
}

template <>
cudaError_t layer_norm_backward_launch<24, false>(
    const __nv_bfloat16* x, const __nv_bfloat16* weight, const float* mean, const float* rstd,
    const __nv_bfloat16* grad_out, __nv_bfloat16* grad_x, __nv_bfloat16* grad_weight, __nv_bfloat16* grad_bias,
    float* partial, int32_t* tickets, const __nv_bfloat16* grad_total, int64_t rows, int64_t blocks_, dim3 grid,
    dim3 block, cudaStream_t stream)
{
    return launch_layer_norm_backward<24, false>(
        x, weight, mean, rstd, grad_out, grad_x, grad_weight, grad_bias, partial, tickets, grad_total, rows,
        blocks_, grid, block, stream);
}

template <>
cudaError_t layer_norm_backward_launch<24, true>(
    const __nv_bfloat16* x, const __nv_bfloat16* weight, const float* mean, const float* rstd,
    const __nv_bfloat16* grad_out, __nv_bfloat16* grad_x, __nv_bfloat16* grad_weight, __nv_bfloat16* grad_bias,
    float* partial, int32_t* tickets, const __nv_bfloat16* grad_total, int64_t rows, int64_t blocks_, dim3 grid,
    dim3 block, cudaStream_t stream)
{
    return launch_layer_norm_backward<24, true>(
        x, weight, mean, rstd, grad_out, grad_x, grad_weight, grad_bias, partial, tickets, grad_total, rows,
        blocks_, grid, block, stream);
}

template <>
cudaError_t layer_norm_backward_launch<24, false>(
    const float* x, const float* weight, const float* mean, const float* rstd, const float* grad_out, float* grad_x,
    float* grad_weight, float* grad_bias, float* partial, int32_t* tickets, const float* grad_total, int64_t rows,
    int64_t blocks_, cudaStream_t stream)
{
    return launch_layer_norm_backward<24, false>(
        x, weight, mean, rstd, grad_out, grad_x, grad_weight, grad_bias, partial, tickets, grad_total, rows,
        blocks_, stream);
}

template <>
cudaError_t layer_norm_backward_launch<24, true>(
    const float* x, const float* weight, const float* mean, const float* rstd, const float* grad_out, float* grad_x,
    float* grad_weight, float* grad_bias, float* partial, int32_t* tickets, const float* grad_total, int64_t rows,
    int64_t blocks_, cudaStream_t stream)
{
    return launch_layer_norm_backward<24, true>(
        x, weight, mean, rstd, grad_out, grad_x, grad_weight, grad_bias, partial, tickets, grad_total, rows,
        blocks_, stream);
}

template <>
cudaError_t layer_norm_backward_launch<24, false>(
    const __nv_bfloat16* x, const __nv_bfloat16* weight, const float* mean, const float* rstd,
    const __nv_bfloat16* grad_out, __nv_bfloat16* grad_x, __nv_bfloat16* grad_weight, __nv_bfloat16* grad_bias,
    float* partial, int32_t* tickets, const __nv_bfloat16* grad_total, int64_t rows, int64_t blocks_,
    cudaStream_t stream)
{
    return launch_layer_norm_backward<24, false>(
        x, weight, mean, rstd, grad_out, grad_x, grad_weight, grad_bias, partial, tickets, grad_total, rows,
        blocks_, stream);
}

template <>
cudaError_t layer_norm_backward_launch<24, true>(
    const __nv_bfloat16* x, const __nv_bfloat16* weight, const float* mean, const float* rstd,
    const __nv_bfloat16* grad_out, __nv_bfloat16* grad_x, __nv_bfloat16* grad_weight, __nv_bfloat16* grad_bias,
    float* partial, int32_t* tickets, const __nv_bfloat16* grad_total, int64_t rows, int64_t blocks_,
    cudaStream_t stream)
{
    return launch_layer_norm_backward<24, true>(
        x, weight, mean, rstd, grad_out, grad_x, grad_weight, grad_bias, partial, tickets, grad_total, rows,
        blocks_, stream);
}

cudaError_t causal_softmax_launch(
    const float* x, float* out, int64_t t, int64_t heads, double scale, dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_causal_softmax(x, out, t, heads, scale, grid, block, stream);
}

cudaError_t causal_softmax_launch(
    const __nv_bfloat16* x, __nv_bfloat16* out, int64_t t, int64_t heads, double scale, dim3 grid, dim3 block,
    cudaStream_t stream)
{
    return launch_causal_softmax(x, out, t, heads, scale, grid, block, stream);
}

cudaError_t causal_softmax_launch(
    const float* x, float* out, int64_t t, int64_t heads, double scale, cudaStream_t stream)
{
    return launch_causal_softmax(x, out, t, heads, scale, stream);
}

cudaError_t causal_softmax_launch(
    const __nv_bfloat16* x, __nv_bfloat16* out, int64_t t, int64_t heads, double scale, cudaStream_t stream)
{
    return launch_causal_softmax(x, out, t, heads, scale, stream);
}

cudaError_t causal_softmax_backward_launch(
    const float* out, const float* grad_out, float* grad_x, int64_t t, int64_t heads, double scale, dim3 grid,
    dim3 block, cudaStream_t stream)
{
    return launch_causal_softmax_backward(out, grad_out, grad_x, t, heads, scale, grid, block, stream);
}

cudaError_t causal_softmax_backward_launch(
    const __nv_bfloat16* out, const __nv_bfloat16* grad_out, __nv_bfloat16* grad_x, int64_t t, int64_t heads,
    double scale, dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_causal_softmax_backward(out, grad_out, grad_x, t, heads, scale, grid, block, stream);
}

cudaError_t causal_softmax_backward_launch(
    const float* out, const float* grad_out, float* grad_x, int64_t t, int64_t heads, double scale,
    cudaStream_t stream)
{
    return launch_causal_softmax_backward(out, grad_out, grad_x, t, heads, scale, stream);
}

cudaError_t causal_softmax_backward_launch(
    const __nv_bfloat16* out, const __nv_bfloat16* grad_out, __nv_bfloat16* grad_x, int64_t t, int64_t heads,
    double scale, cudaStream_t stream)
{
    return launch_causal_softmax_backward(out, grad_out, grad_x, t, heads, scale, stream);
}

cudaError_t gelu_launch(const float* x, float* out, int64_t elements, dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_gelu(x, out, elements, grid, block, stream);
}

cudaError_t gelu_launch(
    const __nv_bfloat16* x, __nv_bfloat16* out, int64_t elements, dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_gelu(x, out, elements, grid, block, stream);
}

cudaError_t gelu_launch(const float* x, float* out, int64_t elements, cudaStream_t stream)
{
    return launch_gelu(x, out, elements, stream);
}

cudaError_t gelu_launch(const __nv_bfloat16* x, __nv_bfloat16* out, int64_t elements, cudaStream_t stream)
{
    return launch_gelu(x, out, elements, stream);
}

cudaError_t gelu_backward_launch(
    const float* x, const float* grad_out, float* grad_x, int64_t elements, dim3 grid, dim3 block,
    cudaStream_t stream)
{
    return launch_gelu_backward(x, grad_out, grad_x, elements, grid, block, stream);
}

cudaError_t gelu_backward_launch(
    const __nv_bfloat16* x, const __nv_bfloat16* grad_out, __nv_bfloat16* grad_x, int64_t elements, dim3 grid,
    dim3 block, cudaStream_t stream)
{
    return launch_gelu_backward(x, grad_out, grad_x, elements, grid, block, stream);
}

cudaError_t gelu_backward_launch(
    const float* x, const float* grad_out, float* grad_x, int64_t elements, cudaStream_t stream)
{
    return launch_gelu_backward(x, grad_out, grad_x, elements, stream);
}

cudaError_t gelu_backward_launch(
    const __nv_bfloat16* x, const __nv_bfloat16* grad_out, __nv_bfloat16* grad_x, int64_t elements,
    cudaStream_t stream)
{
    return launch_gelu_backward(x, grad_out, grad_x, elements, stream);
}

cudaError_t bias_gradient_launch(
    const float* grad_out, float* grad_bias, int64_t rows, int64_t c_extent, dim3 grid, dim3 block,
    cudaStream_t stream)
{
    return launch_bias_gradient(grad_out, grad_bias, rows, c_extent, grid, block, stream);
}

cudaError_t bias_gradient_launch(
    const __nv_bfloat16* grad_out, __nv_bfloat16* grad_bias, int64_t rows, int64_t c_extent, dim3 grid, dim3 block,
    cudaStream_t stream)
{
    return launch_bias_gradient(grad_out, grad_bias, rows, c_extent, grid, block, stream);
}

cudaError_t bias_gradient_launch(
    const float* grad_out, float* grad_bias, int64_t rows, int64_t c_extent, cudaStream_t stream)
{
    return launch_bias_gradient(grad_out, grad_bias, rows, c_extent, stream);
}

cudaError_t bias_gradient_launch(
    const __nv_bfloat16* grad_out, __nv_bfloat16* grad_bias, int64_t rows, int64_t c_extent, cudaStream_t stream)
{
    return launch_bias_gradient(grad_out, grad_bias, rows, c_extent, stream);
}

cudaError_t classifier_launch(
    float* logits, const int64_t* targets, float* losses, double grad_loss, int64_t vocabulary, int64_t rows,
    int64_t c, dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_classifier(logits, targets, losses, grad_loss, vocabulary, rows, c, grid, block, stream);
}

cudaError_t classifier_launch(
    __nv_bfloat16* logits, const int64_t* targets, float* losses, double grad_loss, int64_t vocabulary,
    int64_t rows, int64_t c, dim3 grid, dim3 block, cudaStream_t stream)
{
    return launch_classifier(logits, targets, losses, grad_loss, vocabulary, rows, c, grid, block, stream);
}

cudaError_t classifier_launch(
    float* logits, const int64_t* targets, float* losses, double grad_loss, int64_t vocabulary, int64_t rows,
    int64_t c, cudaStream_t stream)
{
    return launch_classifier(logits, targets, losses, grad_loss, vocabulary, rows, c, stream);
}

cudaError_t classifier_launch(
    __nv_bfloat16* logits, const int64_t* targets, float* losses, double grad_loss, int64_t vocabulary,
    int64_t rows, int64_t c, cudaStream_t stream)
{
    return launch_classifier(logits, targets, losses, grad_loss, vocabulary, rows, c, stream);
}

cudaError_t adamw_launch(
    float* parameters, const float* gradients, float* m, float* v, const float* squares, int64_t step,
    int64_t decayed, double lr, double beta1, double beta2, double eps, double weight_decay, double greatest_norm,
    int64_t n, dim3 grid, dim3 block, cudaStream_t stream)
{
    const float beta1_term = static_cast<float>(1 - beta1);
    const float beta2_term = static_cast<float>(1 - beta2);
    const float lr_term = static_cast<float>(1 - lr * weight_decay);
    const float beta1_step_term = static_cast<float>(1 - std::pow(beta1, step));
    const float beta2_step_term = static_cast<float>(1 - std::pow(beta2, step));
    adamw_kernel<1, 1><<<grid, block, 0, stream>>>(
        parameters, gradients, m, v, squares, decayed, lr, beta1, beta2, eps, greatest_norm, n, beta1_term,
        beta2_term, lr_term, beta1_step_term, beta2_step_term);
    return cudaGetLastError();
}

cudaError_t adamw_launch(
    float* parameters, const float* gradients, float* m, float* v, const float* squares, int64_t step,
    int64_t decayed, double lr, double beta1, double beta2, double eps, double weight_decay, double greatest_norm,
    int64_t n, cudaStream_t stream)
{
    if (n == 0) return cudaSuccess;
    const dim3 block(128);
    const float beta1_term = static_cast<float>(1 - beta1);
    const float beta2_term = static_cast<float>(1 - beta2);
    const float lr_term = static_cast<float>(1 - lr * weight_decay);
    const float beta1_step_term = static_cast<float>(1 - std::pow(beta1, step));
    const float beta2_step_term = static_cast<float>(1 - std::pow(beta2, step));
    const auto launch = [&](auto kernel, int64_t elements) {
        const dim3 grid((n + block.x * elements - 1) / (block.x * elements));
        kernel<<<grid, block, 0, stream>>>(
            parameters, gradients, m, v, squares, decayed, lr, beta1, beta2, eps, greatest_norm, n, beta1_term,
            beta2_term, lr_term, beta1_step_term, beta2_step_term);
        return cudaGetLastError();
    };
    if (n <= 4096)  // too few to fill a GPU: one element a thread
        return launch(adamw_kernel<1, 1>, 1);
    // Packs of 16 bytes; where an array or its rows are not aligned, four elements a thread, a block apart.
    if (are_aligned({gradients, m, v, parameters}))
        return launch(adamw_kernel<4, 1>, 4);
    return launch(adamw_kernel<1, 4>, 4);
}

cudaError_t adamw_of_halves_launch(
    __nv_bfloat16* parameters, float* master, const __nv_bfloat16* gradients, float* m, float* v,
    const float* squares, int64_t step, int64_t decayed, int64_t seed, double lr, double beta1, double beta2,
    double eps, double weight_decay, double greatest_norm, int64_t n, dim3 grid, dim3 block, cudaStream_t stream)
{
    const float beta1_term = static_cast<float>(1 - beta1);
    const float beta2_term = static_cast<float>(1 - beta2);
    const float lr_term = static_cast<float>(1 - lr * weight_decay);
    const float beta1_step_term = static_cast<float>(1 - std::pow(beta1, step));
    const float beta2_step_term = static_cast<float>(1 - std::pow(beta2, step));
    adamw_of_halves_kernel<1, 1><<<grid, block, 0, stream>>>(
        parameters, master, gradients, m, v, squares, decayed, seed, lr, beta1, beta2, eps, greatest_norm, n,
        beta1_term, beta2_term, lr_term, beta1_step_term, beta2_step_term);
    return cudaGetLastError();
}

cudaError_t adamw_of_halves_launch(
    __nv_bfloat16* parameters, float* master, const __nv_bfloat16* gradients, float* m, float* v,
    const float* squares, int64_t step, int64_t decayed, int64_t seed, double lr, double beta1, double beta2,
    double eps, double weight_decay, double greatest_norm, int64_t n, cudaStream_t stream)
{
    if (n == 0) return cudaSuccess;
    const dim3 block(128);
    const float beta1_term = static_cast<float>(1 - beta1);
    const float beta2_term = static_cast<float>(1 - beta2);
    const float lr_term = static_cast<float>(1 - lr * weight_decay);
    const float beta1_step_term = static_cast<float>(1 - std::pow(beta1, step));
    const float beta2_step_term = static_cast<float>(1 - std::pow(beta2, step));
    const auto launch = [&](auto kernel, int64_t elements) {
        const dim3 grid((n + block.x * elements - 1) / (block.x * elements));
        kernel<<<grid, block, 0, stream>>>(
            parameters, master, gradients, m, v, squares, decayed, seed, lr, beta1, beta2, eps, greatest_norm, n,
            beta1_term, beta2_term, lr_term, beta1_step_term, beta2_step_term);
        return cudaGetLastError();
    };
    if (n <= 4096)  // too few to fill a GPU: one element a thread
        return launch(adamw_of_halves_kernel<1, 1>, 1);
    // Packs of 16 bytes; where an array or its rows are not aligned, four elements a thread, a block apart.
    if (are_aligned({gradients, m, v, master, parameters}))
        return launch(adamw_of_halves_kernel<4, 1>, 4);
    return launch(adamw_of_halves_kernel<1, 4>, 4);
}

cudaError_t sum_of_squares_launch(
    const float* x, float* out, float* partial, int32_t* ticket, int64_t n, int64_t blocks_, dim3 grid, dim3 block,
    cudaStream_t stream)
{
    return launch_sum_of_squares(x, out, partial, ticket, n, blocks_, grid, block, stream);
}

cudaError_t sum_of_squares_launch(
    const __nv_bfloat16* x, float* out, float* partial, int32_t* ticket, int64_t n, int64_t blocks_, dim3 grid,
    dim3 block, cudaStream_t stream)
{
    return launch_sum_of_squares(x, out, partial, ticket, n, blocks_, grid, block, stream);
}

cudaError_t sum_of_squares_launch(
    const float* x, float* out, float* partial, int32_t* ticket, int64_t n, int64_t blocks_, cudaStream_t stream)
{
    return launch_sum_of_squares(x, out, partial, ticket, n, blocks_, stream);
}

cudaError_t sum_of_squares_launch(
    const __nv_bfloat16* x, float* out, float* partial, int32_t* ticket, int64_t n, int64_t blocks_,
    cudaStream_t stream)
{
    return launch_sum_of_squares(x, out, partial, ticket, n, blocks_, stream);
}

}  // namespace gpt2
