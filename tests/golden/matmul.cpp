// matmul: torch operators around the launchers in matmul.h, on torch's stable ABI.
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>
#include <torch/csrc/stable/accelerator.h>

#include "matmul.h"

namespace {

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

std::string text(const char* part) { return part; }
std::string text(int64_t part) { return std::to_string(part); }

template <typename... Parts>
[[noreturn]] void fail(const Parts&... parts)
{
    throw std::runtime_error((text(parts) + ...));
}

const char* dtype_name(ScalarType type)
{
    switch (type) {
        case ScalarType::Bool: return "bool";
        case ScalarType::Byte: return "uint8";
        case ScalarType::Char: return "int8";
        case ScalarType::Short: return "int16";
        case ScalarType::Int: return "int32";
        case ScalarType::Long: return "int64";
        case ScalarType::UInt16: return "uint16";
        case ScalarType::UInt32: return "uint32";
        case ScalarType::UInt64: return "uint64";
        case ScalarType::Half: return "float16";
        case ScalarType::BFloat16: return "bfloat16";
        case ScalarType::Float: return "float32";
        case ScalarType::Double: return "float64";
        case ScalarType::ComplexFloat: return "complex64";
        case ScalarType::ComplexDouble: return "complex128";
        default: return "another dtype";
    }
}

void check_array(const char* op, const char* name, const Tensor& array, ScalarType dtype, int64_t rank)
{
    if (!array.is_cuda()) fail(op, ": `", name, "` must be on a CUDA device");
    if (array.scalar_type() != dtype)
        fail(op, ": `", name, "` must be ", dtype_name(dtype), ", got ", dtype_name(array.scalar_type()));
    if (array.dim() != rank) fail(op, ": `", name, "` must have ", rank, " dimensions, got ", array.dim());
    if (!array.is_contiguous()) fail(op, ": `", name, "` must be contiguous; pass `", name, ".contiguous()`");
}

void check_extent(
    const char* op, const char* name, const Tensor& array, int64_t axis, const char* dim, int64_t extent)
{
    if (array.size(axis) != extent)
        fail(op, ": dimension ", axis, " of `", name, "` is `", dim, "` = ", extent, ", got ", array.size(axis));
}

// Kernels take their pointers as __restrict__: an array that is written may not overlap another argument.
void check_no_overlap(
    const char* op, const char* name, const Tensor& array, const char* other_name, const Tensor& other)
{
    const char* a = static_cast<const char*>(array.data_ptr());
    const char* b = static_cast<const char*>(other.data_ptr());
    if (a < b + other.numel() * other.element_size() && b < a + array.numel() * array.element_size())
        fail(op, ": `", name, "` is written and overlaps `", other_name, "` in memory");
}

void check_same_device(
    const char* op, const char* name, const Tensor& array, const char* first_name, const Tensor& first)
{
    const auto here = array.get_device_index(), there = first.get_device_index();
    if (here != there) fail(op, ": `", name, "` is on device ", here, " and `", first_name, "` on device ", there);
}

cudaStream_t current_stream(const Tensor& array)
{
    void* stream = nullptr;
    TORCH_ERROR_CODE_CHECK(aoti_torch_get_current_cuda_stream(array.get_device_index(), &stream));
    return static_cast<cudaStream_t>(stream);
}

dim3 to_dim3(const char* op, const char* name, const std::vector<int64_t>& sizes)
{
    if (sizes.empty() || sizes.size() > 3) fail(op, ": `", name, "` has one to three extents");
    for (int64_t size : sizes)
        if (size < 1 || size > INT32_MAX) fail(op, ": `", name, "` has an extent of ", size);
    dim3 result;
    result.x = sizes[0];
    if (sizes.size() > 1) result.y = sizes[1];
    if (sizes.size() > 2) result.z = sizes[2];
    return result;
}

// --- matmul --------------------------------------------------------------------------------------------------------

struct matmul_extents {
    int64_t h;
    int64_t k;
    int64_t w;
};

// Checks the arguments, and returns the extents that they agree on.
matmul_extents matmul_check(
    const Tensor& m, const Tensor& n, std::optional<int64_t> h, std::optional<int64_t> w, std::optional<int64_t> k)
{
    check_array("matmul", "m", m, ScalarType::Float, 2);
    check_array("matmul", "n", n, ScalarType::Float, 2);
    check_same_device("matmul", "n", n, "m", m);
    matmul_extents at{};
    at.h = m.size(0);
    if (h && *h != at.h)
        fail("matmul: `h` is ", *h, ", but dimension 0 of `m` has ", at.h);
    at.k = m.size(1);
    if (k && *k != at.k)
        fail("matmul: `k` is ", *k, ", but dimension 1 of `m` has ", at.k);
    at.w = n.size(1);
    if (w && *w != at.w)
        fail("matmul: `w` is ", *w, ", but dimension 1 of `n` has ", at.w);
    check_extent("matmul", "n", n, 0, "k", at.k);
    return at;
}

void matmul_check_outputs(const matmul_extents& at, const Tensor& m, const Tensor& n, const Tensor& out)
{
    check_array("matmul", "out", out, ScalarType::Float, 2);
    check_same_device("matmul", "out", out, "m", m);
    check_extent("matmul", "out", out, 0, "h", at.h);
    check_extent("matmul", "out", out, 1, "w", at.w);
    check_no_overlap("matmul", "out", out, "m", m);
    check_no_overlap("matmul", "out", out, "n", n);
}

Tensor matmul_new(
    const Tensor& m, const Tensor& n, std::optional<int64_t> h, std::optional<int64_t> w, std::optional<int64_t> k)
{
    const matmul_extents at = matmul_check(m, n, h, w, k);
    Tensor out = torch::stable::new_empty(m, std::vector<int64_t>{at.h, at.w}, ScalarType::Float);
    const torch::stable::accelerator::DeviceGuard guard(m.get_device_index());
    const cudaError_t error = matmul_launch(
        m.const_data_ptr<float>(), n.const_data_ptr<float>(), out.mutable_data_ptr<float>(), at.h, at.w, at.k,
        current_stream(m));
    if (error != cudaSuccess) fail("matmul: the launch failed: ", cudaGetErrorString(error));
    return out;
}

void matmul_fill(
    const Tensor& m, const Tensor& n, const Tensor& out, std::optional<int64_t> h, std::optional<int64_t> w,
    std::optional<int64_t> k)
{
    const matmul_extents at = matmul_check(m, n, h, w, k);
    matmul_check_outputs(at, m, n, out);
    const torch::stable::accelerator::DeviceGuard guard(m.get_device_index());
    const cudaError_t error = matmul_launch(
        m.const_data_ptr<float>(), n.const_data_ptr<float>(), out.mutable_data_ptr<float>(), at.h, at.w, at.k,
        current_stream(m));
    if (error != cudaSuccess) fail("matmul: the launch failed: ", cudaGetErrorString(error));
}

void matmul_on_grid(
    const Tensor& m, const Tensor& n, const Tensor& out, std::optional<int64_t> h, std::optional<int64_t> w,
    std::optional<int64_t> k, const std::vector<int64_t>& grid, const std::vector<int64_t>& block)
{
    const matmul_extents at = matmul_check(m, n, h, w, k);
    matmul_check_outputs(at, m, n, out);
    const dim3 blocks = to_dim3("matmul", "grid", grid);
    const dim3 threads = to_dim3("matmul", "block", block);
    const torch::stable::accelerator::DeviceGuard guard(m.get_device_index());
    const cudaError_t error = matmul_launch(
        m.const_data_ptr<float>(), n.const_data_ptr<float>(), out.mutable_data_ptr<float>(), at.h, at.w, at.k,
        blocks, threads, current_stream(m));
    if (error != cudaSuccess) fail("matmul: the launch failed: ", cudaGetErrorString(error));
}

}  // namespace

STABLE_TORCH_LIBRARY_FRAGMENT(TORCH_EXTENSION_NAME, m)
{
    m.def("matmul(Tensor m, Tensor n, int? h=None, int? w=None, int? k=None) -> Tensor");
    m.def("matmul.out(Tensor m, Tensor n, Tensor(a!) out, int? h, int? w, int? k) -> ()");
    m.def("matmul.grid(Tensor m, Tensor n, Tensor(a!) out, int? h, int? w, int? k, int[] grid, int[] block) -> ()");
}

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m)
{
    m.impl("matmul", TORCH_BOX(&matmul_new));
    m.impl("matmul.out", TORCH_BOX(&matmul_fill));
    m.impl("matmul.grid", TORCH_BOX(&matmul_on_grid));
}
