// The LLTM cell as an extension written by hand, with a kernel for all gates; `benchmarks/lltm.py` compiles it.
// It has the functions and kernels of PyTorch's tutorial on extensions. Gradients are computed from the saved
// activations, and arrays that a kernel fills are not zeroed before.
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/types.h>

#include <vector>

#define CHECK_INPUT(x)                                   \
    TORCH_CHECK(x.is_cuda(), #x " must be a CUDA tensor"); \
    TORCH_CHECK(x.is_contiguous(), #x " must be contiguous")

namespace {

constexpr int THREADS = 256;

template <typename scalar_t>
__device__ __forceinline__ scalar_t sigmoid(scalar_t z)
{
    return scalar_t(1) / (scalar_t(1) + exp(-z));
}

template <typename scalar_t>
__device__ __forceinline__ scalar_t elu(scalar_t z)
{
    return z > 0 ? z : expm1(z);
}

template <typename scalar_t>
__global__ void forward_kernel(
    const scalar_t* __restrict__ gates,
    const scalar_t* __restrict__ old_cell,
    scalar_t* __restrict__ new_h,
    scalar_t* __restrict__ new_cell,
    scalar_t* __restrict__ input_gate,
    scalar_t* __restrict__ output_gate,
    scalar_t* __restrict__ candidate,
    int state)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column >= state) return;
    const int index = blockIdx.y * state + column;
    const scalar_t* row = gates + blockIdx.y * 3 * state;

    const scalar_t i = sigmoid(row[column]);
    const scalar_t o = sigmoid(row[state + column]);
    const scalar_t c = elu(row[2 * state + column]);
    const scalar_t cell = old_cell[index] + c * i;

    input_gate[index] = i;
    output_gate[index] = o;
    candidate[index] = c;
    new_cell[index] = cell;
    new_h[index] = tanh(cell) * o;
}

template <typename scalar_t>
__global__ void backward_kernel(
    const scalar_t* __restrict__ grad_h,
    const scalar_t* __restrict__ grad_cell,
    const scalar_t* __restrict__ new_cell,
    const scalar_t* __restrict__ input_gate,
    const scalar_t* __restrict__ output_gate,
    const scalar_t* __restrict__ candidate,
    scalar_t* __restrict__ d_gates,
    scalar_t* __restrict__ d_old_cell,
    int state)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column >= state) return;
    const int index = blockIdx.y * state + column;
    scalar_t* row = d_gates + blockIdx.y * 3 * state;

    const scalar_t i = input_gate[index], o = output_gate[index], c = candidate[index];
    const scalar_t t = tanh(new_cell[index]);
    const scalar_t d_cell = grad_cell[index] + grad_h[index] * o * (1 - t * t);

    row[column] = d_cell * c * i * (1 - i);
    row[state + column] = grad_h[index] * t * o * (1 - o);
    row[2 * state + column] = d_cell * i * (c > 0 ? scalar_t(1) : c + 1);  // elu'(z) is elu(z) + 1 below zero
    d_old_cell[index] = d_cell;
}

dim3 grid(int64_t batch, int64_t state)
{
    return dim3((state + THREADS - 1) / THREADS, batch);
}

}  // namespace

std::vector<torch::Tensor> lltm_forward(
    torch::Tensor input,
    torch::Tensor weights,
    torch::Tensor bias,
    torch::Tensor old_h,
    torch::Tensor old_cell)
{
    CHECK_INPUT(input);
    CHECK_INPUT(weights);
    CHECK_INPUT(bias);
    CHECK_INPUT(old_h);
    CHECK_INPUT(old_cell);
    const c10::cuda::CUDAGuard guard(input.device());

    auto X = torch::cat({old_h, input}, /*dim=*/1);
    auto gates = torch::addmm(bias, X, weights.t());

    auto new_h = torch::empty_like(old_cell);
    auto new_cell = torch::empty_like(old_cell);
    auto input_gate = torch::empty_like(old_cell);
    auto output_gate = torch::empty_like(old_cell);
    auto candidate = torch::empty_like(old_cell);

    const auto batch = old_cell.size(0), state = old_cell.size(1);
    AT_DISPATCH_FLOATING_TYPES(gates.scalar_type(), "lltm_forward", [&] {
        forward_kernel<scalar_t><<<grid(batch, state), THREADS, 0, c10::cuda::getCurrentCUDAStream()>>>(
            gates.const_data_ptr<scalar_t>(), old_cell.const_data_ptr<scalar_t>(), new_h.data_ptr<scalar_t>(),
            new_cell.data_ptr<scalar_t>(), input_gate.data_ptr<scalar_t>(), output_gate.data_ptr<scalar_t>(),
            candidate.data_ptr<scalar_t>(), state);
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    });
    return {new_h, new_cell, input_gate, output_gate, candidate, X};
}

std::vector<torch::Tensor> lltm_backward(
    torch::Tensor grad_h,
    torch::Tensor grad_cell,
    torch::Tensor new_cell,
    torch::Tensor input_gate,
    torch::Tensor output_gate,
    torch::Tensor candidate,
    torch::Tensor X,
    torch::Tensor weights)
{
    CHECK_INPUT(grad_h);
    CHECK_INPUT(grad_cell);
    const c10::cuda::CUDAGuard guard(grad_h.device());

    const auto batch = new_cell.size(0), state = new_cell.size(1);
    auto d_gates = torch::empty({batch, 3 * state}, new_cell.options());
    auto d_old_cell = torch::empty_like(new_cell);
    AT_DISPATCH_FLOATING_TYPES(new_cell.scalar_type(), "lltm_backward", [&] {
        backward_kernel<scalar_t><<<grid(batch, state), THREADS, 0, c10::cuda::getCurrentCUDAStream()>>>(
            grad_h.const_data_ptr<scalar_t>(), grad_cell.const_data_ptr<scalar_t>(),
            new_cell.const_data_ptr<scalar_t>(), input_gate.const_data_ptr<scalar_t>(),
            output_gate.const_data_ptr<scalar_t>(), candidate.const_data_ptr<scalar_t>(), d_gates.data_ptr<scalar_t>(),
            d_old_cell.data_ptr<scalar_t>(), state);
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    });

    auto d_X = d_gates.mm(weights);
    return {
        d_X.slice(/*dim=*/1, state),               // input
        d_gates.t().mm(X),                         // weights
        d_gates.sum(/*dim=*/0),                    // bias
        d_X.slice(/*dim=*/1, /*start=*/0, state),  // old_h
        d_old_cell,                                // old_cell
    };
}
