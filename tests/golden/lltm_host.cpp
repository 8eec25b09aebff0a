// lltm: host functions, in libtorch.
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/elu.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/tanh.h>
#include <torch/library.h>

#ifndef KERNEL  // the operator of a kernel, by its name
#define KERNEL(name) C10_STRINGIZE(TORCH_EXTENSION_NAME) "::" name
#endif

namespace host {
namespace {

const char* dtype_name(at::ScalarType dtype)
{
    switch (dtype) {
        case at::kBool: return "bool";
        case at::kByte: return "uint8";
        case at::kChar: return "int8";
        case at::kShort: return "int16";
        case at::kInt: return "int32";
        case at::kLong: return "int64";
        case at::kUInt16: return "uint16";
        case at::kUInt32: return "uint32";
        case at::kUInt64: return "uint64";
        case at::kHalf: return "float16";
        case at::kBFloat16: return "bfloat16";
        case at::kFloat: return "float32";
        case at::kDouble: return "float64";
        case at::kComplexFloat: return "complex64";
        case at::kComplexDouble: return "complex128";
        default: return "another dtype";
    }
}

void check_dtype(
    const char* function, const char* name, const at::Tensor& tensor, at::ArrayRef<at::ScalarType> dtypes)
{
    std::string names;
    for (const auto dtype : dtypes) {
        if (tensor.scalar_type() == dtype) return;
        names += (names.empty() ? "" : ", ") + std::string(dtype_name(dtype));
    }
    TORCH_CHECK(
        false, function, ": `", name, "` must be ", dtypes.size() > 1 ? "one of " : "", names, ", got ",
        dtype_name(tensor.scalar_type()));
}

void check_dtype_and_dims(
    const char* function, const char* name, const at::Tensor& tensor, at::ArrayRef<at::ScalarType> dtypes, int64_t dims)
{
    check_dtype(function, name, tensor, dtypes);
    TORCH_CHECK(
        tensor.dim() == dims, function, ": `", name, "` must have ", dims, " dimensions, got ", tensor.dim());
}

void check_extent(
    const char* function, const char* name, const at::Tensor& tensor, int64_t axis, const char* dim, int64_t extent)
{
    TORCH_CHECK(
        tensor.size(axis) == extent, function, ": dimension ", axis < 0 ? axis + tensor.dim() : axis, " of `", name,
        "` is `", dim, "` = ", extent, ", got ", tensor.size(axis));
}

template <typename Function>
auto kernel_operator(const char* name, const char* overload)
{
    return c10::Dispatcher::singleton().findSchemaOrThrow(name, overload).typed<Function>();
}

// The kernel `lltm_gates`.
std::vector<at::Tensor> lltm_gates(const at::Tensor& gates, const at::Tensor& old_cell)
{
    const auto op = kernel_operator<std::tuple<at::Tensor,
                    at::Tensor>(const at::Tensor&, const at::Tensor&)>(KERNEL("lltm_gates"), "");
    auto [output0, output1] = op.call(gates, old_cell);
    return {output0, output1};
}

std::vector<at::Tensor> lltm_forward(
    const at::Tensor& input, const at::Tensor& weights, const at::Tensor& bias, const at::Tensor& old_h,
    const at::Tensor& old_cell)
{
    auto X = at::cat({old_h, input}, /*dim=*/1);

    auto gate_weights = at::addmm(bias, X, weights.transpose(0, 1));
    auto gates = gate_weights.chunk(3, /*dim=*/1);
    TORCH_CHECK_INDEX(gates.size() > 2, "tuple index out of range");

    auto input_gate = at::sigmoid(gates[0]);
    auto output_gate = at::sigmoid(gates[1]);
    auto candidate_cell = at::elu(gates[2], /*alpha=*/1.0);

    auto new_cell = old_cell + candidate_cell * input_gate;
    auto new_h = at::tanh(new_cell) * output_gate;

    return {new_h, new_cell, input_gate, output_gate, candidate_cell, X, gate_weights};
}

// The new state and the new cell.
std::vector<at::Tensor> lltm_fused(
    const at::Tensor& input, const at::Tensor& weights, const at::Tensor& bias, const at::Tensor& old_h,
    const at::Tensor& old_cell)
{
    check_dtype_and_dims("lltm_fused", "input", input, {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16}, 2);
    check_dtype_and_dims("lltm_fused", "weights", weights, {input.scalar_type()}, 2);
    check_dtype_and_dims("lltm_fused", "bias", bias, {input.scalar_type()}, 1);
    check_dtype_and_dims("lltm_fused", "old_h", old_h, {input.scalar_type()}, 2);
    check_dtype_and_dims("lltm_fused", "old_cell", old_cell, {input.scalar_type()}, 2);
    check_extent("lltm_fused", "weights", weights, 0, "3 * s", 3 * old_h.size(1));
    check_extent("lltm_fused", "weights", weights, 1, "s + f", old_h.size(1) + input.size(1));
    check_extent("lltm_fused", "bias", bias, 0, "3 * s", 3 * old_h.size(1));
    check_extent("lltm_fused", "old_h", old_h, 0, "b", input.size(0));
    check_extent("lltm_fused", "old_cell", old_cell, 0, "b", input.size(0));
    check_extent("lltm_fused", "old_cell", old_cell, 1, "s", old_h.size(1));
    auto X = at::cat({old_h, input}, /*dim=*/1);
    auto gates = at::addmm(bias, X, weights.transpose(0, 1));
    auto parts = lltm_gates(gates, old_cell);
    auto new_h = parts[0];
    auto new_cell = parts[1];
    return {new_h, new_cell};
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(TORCH_EXTENSION_NAME, m)
{
    m.def("lltm_forward(Tensor input, Tensor weights, Tensor bias, Tensor old_h, Tensor old_cell) -> Tensor[]",
          torch::dispatch(c10::DispatchKey::CompositeImplicitAutograd, TORCH_FN(lltm_forward)));
    m.def("lltm_fused(Tensor input, Tensor weights, Tensor bias, Tensor old_h, Tensor old_cell) -> Tensor[]",
          torch::dispatch(c10::DispatchKey::CompositeImplicitAutograd, TORCH_FN(lltm_fused)));
}

}  // namespace host
