// scan: host functions, in libtorch.
#include <cstdint>
#include <string>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>

#ifndef KERNEL  // the operator of a kernel, by its name
#define KERNEL(name) C10_STRINGIZE(TORCH_EXTENSION_NAME) "::" name
#endif

namespace host {
namespace {

constexpr int64_t THREADS = 256;

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

template <typename Function>
auto kernel_operator(const char* name, const char* overload)
{
    return c10::Dispatcher::singleton().findSchemaOrThrow(name, overload).typed<Function>();
}

// The kernel `add_totals`.
void add_totals(const at::Tensor& out, const at::Tensor& totals)
{
    const auto op = kernel_operator<decltype(add_totals)>(KERNEL("add_totals"), "");
    op.call(out, totals);
}

// The kernel `scan_blocks`, with outputs of the caller.
at::Tensor scan_blocks_out(const at::Tensor& x, const at::Tensor& out, const at::Tensor& totals)
{
    const auto op = kernel_operator<void(const at::Tensor&, const at::Tensor&,
                                         const at::Tensor&)>(KERNEL("scan_blocks"), "out");
    op.call(x, out, totals);
    return out;
}

// The running sums of `x`, of any length.
at::Tensor scan(const at::Tensor& x)
{
    check_dtype_and_dims("scan", "x", x, {at::kFloat}, 1);
    const int64_t blocks = (x.numel() + THREADS - 1) / THREADS;
    auto out = at::empty_like(x);
    auto totals = x.new_empty({blocks});
    scan_blocks_out(x, out, totals);
    if (blocks > 1)
        add_totals(out, scan(totals));
    return out;
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(TORCH_EXTENSION_NAME, m)
{
    m.def("scan(Tensor x) -> Tensor", torch::dispatch(c10::DispatchKey::CompositeImplicitAutograd, TORCH_FN(scan)));
}

}  // namespace host
