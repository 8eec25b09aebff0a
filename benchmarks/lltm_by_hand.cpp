// The LLTM cell as an extension written by hand, in calls of ATen; `benchmarks/lltm.py` compiles it.
// It has the functions of PyTorch's tutorial on extensions. Gradients are computed from the saved activations.
#include <torch/extension.h>

#include <vector>

std::vector<torch::Tensor> lltm_forward(
    torch::Tensor input,
    torch::Tensor weights,
    torch::Tensor bias,
    torch::Tensor old_h,
    torch::Tensor old_cell)
{
    auto X = torch::cat({old_h, input}, /*dim=*/1);
    auto gates = torch::addmm(bias, X, weights.t()).chunk(3, /*dim=*/1);

    auto input_gate = torch::sigmoid(gates[0]);
    auto output_gate = torch::sigmoid(gates[1]);
    auto candidate = torch::elu(gates[2]);

    auto new_cell = torch::addcmul(old_cell, candidate, input_gate);
    auto new_h = torch::tanh(new_cell) * output_gate;

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
    auto tanh_cell = torch::tanh(new_cell);
    auto d_cell = torch::addcmul(grad_cell, grad_h * output_gate, 1 - tanh_cell * tanh_cell);

    auto d_input_gate = d_cell * candidate * input_gate * (1 - input_gate);
    auto d_output_gate = grad_h * tanh_cell * output_gate * (1 - output_gate);
    auto d_candidate = d_cell * input_gate * (1 + candidate.clamp_max(0));  // elu'(z) is 1, or elu(z) + 1 below zero
    auto d_gates = torch::cat({d_input_gate, d_output_gate, d_candidate}, /*dim=*/1);

    auto d_X = d_gates.mm(weights);
    const auto state = new_cell.size(1);
    return {
        d_X.slice(/*dim=*/1, state),               // input
        d_gates.t().mm(X),                         // weights
        d_gates.sum(/*dim=*/0),                    // bias
        d_X.slice(/*dim=*/1, /*start=*/0, state),  // old_h
        d_cell,                                    // old_cell
    };
}
