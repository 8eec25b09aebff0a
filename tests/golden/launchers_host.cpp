// launchers: host functions, in libtorch.
#include <cstdint>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#ifndef KERNEL  // the operator of a kernel, by its name
#define KERNEL(name) C10_STRINGIZE(TORCH_EXTENSION_NAME) "::" name
#endif

namespace host {
namespace {

constexpr int64_t THREADS = 256;
constexpr int64_t TILE = 16;

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

// The kernel `matmul_k`, with a grid and a block.
void matmul_k_launch(
    const at::Tensor& m, const at::Tensor& n, const at::Tensor& out, at::IntArrayRef grid, at::IntArrayRef block)
{
    const auto op = kernel_operator<decltype(matmul_k_launch)>(KERNEL("matmul_k"), "grid");
    op.call(m, n, out, grid, block);
}

// The kernel `rgb2grey_k`, with a grid and a block.
void rgb2grey_k_launch(const at::Tensor& x, const at::Tensor& out, at::IntArrayRef grid, at::IntArrayRef block)
{
    const auto op = kernel_operator<decltype(rgb2grey_k_launch)>(KERNEL("rgb2grey_k"), "grid");
    op.call(x, out, grid, block);
}

// The grey picture of a planar one.
at::Tensor rgb2grey_pybk(const at::Tensor& x)
{
    check_dtype_and_dims("rgb2grey_pybk", "x", x, {at::kByte}, 3);
    check_extent("rgb2grey_pybk", "x", x, 0, "3", 3);
    const int64_t h = x.size(1);
    const int64_t w = x.size(2);
    const int64_t n = h * w;
    auto out = at::empty({n}, x.options());
    const int64_t blocks = (n + THREADS - 1) / THREADS;
    rgb2grey_k_launch(x.flatten(/*start_dim=*/1), out, /*grid=*/{blocks}, /*block=*/{THREADS});
    return out.view({h, w});
}

// The product of two matrices.
at::Tensor matmul_2d(const at::Tensor& m, const at::Tensor& n)
{
    check_dtype_and_dims("matmul_2d", "m", m, {at::kFloat}, 2);
    check_dtype_and_dims("matmul_2d", "n", n, {at::kFloat}, 2);
    const int64_t h = m.size(0);
    const int64_t k = m.size(1);
    const int64_t k2 = n.size(0);
    const int64_t w = n.size(1);
    TORCH_CHECK(k == k2, "Inner dims must match!");
    auto out = at::empty({h, w}, m.options());
    std::vector<int64_t> threads = {TILE, TILE};
    std::vector<int64_t> blocks = {(w + TILE - 1) / TILE, (h + TILE - 1) / TILE};
    matmul_k_launch(m, n, out, /*grid=*/blocks, /*block=*/threads);
    return out;
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(TORCH_EXTENSION_NAME, m)
{
    m.def("rgb2grey_pybk(Tensor x) -> Tensor",
          torch::dispatch(c10::DispatchKey::CompositeImplicitAutograd, TORCH_FN(rgb2grey_pybk)));
    m.def("matmul_2d(Tensor m, Tensor n) -> Tensor",
          torch::dispatch(c10::DispatchKey::CompositeImplicitAutograd, TORCH_FN(matmul_2d)));
}

}  // namespace host
