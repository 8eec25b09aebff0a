// grayscale: torch operators around the launchers in grayscale.h, on torch's stable ABI.
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

#include "grayscale.h"

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

// --- rgb2grey ------------------------------------------------------------------------------------------------------

struct rgb2grey_extents {
    int64_t n;
};

// Checks the arguments, and returns the extents that they agree on.
rgb2grey_extents rgb2grey_check(const Tensor& x)
{
    check_array("rgb2grey", "x", x, ScalarType::Byte, 2);
    rgb2grey_extents at{};
    at.n = x.size(1);
    check_extent("rgb2grey", "x", x, 0, "3", 3);
    return at;
}

void rgb2grey_check_outputs(const rgb2grey_extents& at, const Tensor& x, const Tensor& out)
{
    check_array("rgb2grey", "out", out, ScalarType::Byte, 1);
    check_same_device("rgb2grey", "out", out, "x", x);
    check_extent("rgb2grey", "out", out, 0, "n", at.n);
    check_no_overlap("rgb2grey", "out", out, "x", x);
}

Tensor rgb2grey_new(const Tensor& x)
{
    const rgb2grey_extents at = rgb2grey_check(x);
    Tensor out = torch::stable::new_empty(x, std::vector<int64_t>{at.n}, ScalarType::Byte);
    const torch::stable::accelerator::DeviceGuard guard(x.get_device_index());
    const cudaError_t error = rgb2grey_launch(
        x.const_data_ptr<uint8_t>(), out.mutable_data_ptr<uint8_t>(), at.n, current_stream(x));
    if (error != cudaSuccess) fail("rgb2grey: the launch failed: ", cudaGetErrorString(error));
    return out;
}

void rgb2grey_fill(const Tensor& x, const Tensor& out)
{
    const rgb2grey_extents at = rgb2grey_check(x);
    rgb2grey_check_outputs(at, x, out);
    const torch::stable::accelerator::DeviceGuard guard(x.get_device_index());
    const cudaError_t error = rgb2grey_launch(
        x.const_data_ptr<uint8_t>(), out.mutable_data_ptr<uint8_t>(), at.n, current_stream(x));
    if (error != cudaSuccess) fail("rgb2grey: the launch failed: ", cudaGetErrorString(error));
}

void rgb2grey_on_grid(
    const Tensor& x, const Tensor& out, const std::vector<int64_t>& grid, const std::vector<int64_t>& block)
{
    const rgb2grey_extents at = rgb2grey_check(x);
    rgb2grey_check_outputs(at, x, out);
    const dim3 blocks = to_dim3("rgb2grey", "grid", grid);
    const dim3 threads = to_dim3("rgb2grey", "block", block);
    const torch::stable::accelerator::DeviceGuard guard(x.get_device_index());
    const cudaError_t error = rgb2grey_launch(
        x.const_data_ptr<uint8_t>(), out.mutable_data_ptr<uint8_t>(), at.n, blocks, threads, current_stream(x));
    if (error != cudaSuccess) fail("rgb2grey: the launch failed: ", cudaGetErrorString(error));
}

// --- rgb2grey_2d ---------------------------------------------------------------------------------------------------

struct rgb2grey_2d_extents {
    int64_t h;
    int64_t w;
};

// Checks the arguments, and returns the extents that they agree on.
rgb2grey_2d_extents rgb2grey_2d_check(const Tensor& x)
{
    check_array("rgb2grey_2d", "x", x, ScalarType::Byte, 3);
    rgb2grey_2d_extents at{};
    at.h = x.size(1);
    at.w = x.size(2);
    check_extent("rgb2grey_2d", "x", x, 0, "3", 3);
    return at;
}

void rgb2grey_2d_check_outputs(const rgb2grey_2d_extents& at, const Tensor& x, const Tensor& out)
{
    check_array("rgb2grey_2d", "out", out, ScalarType::Byte, 2);
    check_same_device("rgb2grey_2d", "out", out, "x", x);
    check_extent("rgb2grey_2d", "out", out, 0, "h", at.h);
    check_extent("rgb2grey_2d", "out", out, 1, "w", at.w);
    check_no_overlap("rgb2grey_2d", "out", out, "x", x);
}

Tensor rgb2grey_2d_new(const Tensor& x)
{
    const rgb2grey_2d_extents at = rgb2grey_2d_check(x);
    Tensor out = torch::stable::new_empty(x, std::vector<int64_t>{at.h, at.w}, ScalarType::Byte);
    const torch::stable::accelerator::DeviceGuard guard(x.get_device_index());
    const cudaError_t error = rgb2grey_2d_launch(
        x.const_data_ptr<uint8_t>(), out.mutable_data_ptr<uint8_t>(), at.h, at.w, current_stream(x));
    if (error != cudaSuccess) fail("rgb2grey_2d: the launch failed: ", cudaGetErrorString(error));
    return out;
}

void rgb2grey_2d_fill(const Tensor& x, const Tensor& out)
{
    const rgb2grey_2d_extents at = rgb2grey_2d_check(x);
    rgb2grey_2d_check_outputs(at, x, out);
    const torch::stable::accelerator::DeviceGuard guard(x.get_device_index());
    const cudaError_t error = rgb2grey_2d_launch(
        x.const_data_ptr<uint8_t>(), out.mutable_data_ptr<uint8_t>(), at.h, at.w, current_stream(x));
    if (error != cudaSuccess) fail("rgb2grey_2d: the launch failed: ", cudaGetErrorString(error));
}

void rgb2grey_2d_on_grid(
    const Tensor& x, const Tensor& out, const std::vector<int64_t>& grid, const std::vector<int64_t>& block)
{
    const rgb2grey_2d_extents at = rgb2grey_2d_check(x);
    rgb2grey_2d_check_outputs(at, x, out);
    const dim3 blocks = to_dim3("rgb2grey_2d", "grid", grid);
    const dim3 threads = to_dim3("rgb2grey_2d", "block", block);
    const torch::stable::accelerator::DeviceGuard guard(x.get_device_index());
    const cudaError_t error = rgb2grey_2d_launch(
        x.const_data_ptr<uint8_t>(), out.mutable_data_ptr<uint8_t>(), at.h, at.w, blocks, threads, current_stream(x));
    if (error != cudaSuccess) fail("rgb2grey_2d: the launch failed: ", cudaGetErrorString(error));
}

// --- rgb2grey_block ------------------------------------------------------------------------------------------------

struct rgb2grey_block_extents {
    int64_t h;
    int64_t w;
};

// Checks the arguments, and returns the extents that they agree on.
rgb2grey_block_extents rgb2grey_block_check(const Tensor& x, std::optional<int64_t> w, std::optional<int64_t> h)
{
    check_array("rgb2grey_block", "x", x, ScalarType::Byte, 3);
    rgb2grey_block_extents at{};
    at.h = x.size(1);
    if (h && *h != at.h)
        fail("rgb2grey_block: `h` is ", *h, ", but dimension 1 of `x` has ", at.h);
    at.w = x.size(2);
    if (w && *w != at.w)
        fail("rgb2grey_block: `w` is ", *w, ", but dimension 2 of `x` has ", at.w);
    check_extent("rgb2grey_block", "x", x, 0, "3", 3);
    return at;
}

void rgb2grey_block_check_outputs(const rgb2grey_block_extents& at, const Tensor& x, const Tensor& out)
{
    check_array("rgb2grey_block", "out", out, ScalarType::Byte, 2);
    check_same_device("rgb2grey_block", "out", out, "x", x);
    check_extent("rgb2grey_block", "out", out, 0, "h", at.h);
    check_extent("rgb2grey_block", "out", out, 1, "w", at.w);
    check_no_overlap("rgb2grey_block", "out", out, "x", x);
}

Tensor rgb2grey_block_new(const Tensor& x, std::optional<int64_t> w, std::optional<int64_t> h)
{
    const rgb2grey_block_extents at = rgb2grey_block_check(x, w, h);
    Tensor out = torch::stable::new_empty(x, std::vector<int64_t>{at.h, at.w}, ScalarType::Byte);
    const torch::stable::accelerator::DeviceGuard guard(x.get_device_index());
    const cudaError_t error = rgb2grey_block_launch(
        x.const_data_ptr<uint8_t>(), out.mutable_data_ptr<uint8_t>(), at.w, at.h, current_stream(x));
    if (error != cudaSuccess) fail("rgb2grey_block: the launch failed: ", cudaGetErrorString(error));
    return out;
}

void rgb2grey_block_fill(const Tensor& x, const Tensor& out, std::optional<int64_t> w, std::optional<int64_t> h)
{
    const rgb2grey_block_extents at = rgb2grey_block_check(x, w, h);
    rgb2grey_block_check_outputs(at, x, out);
    const torch::stable::accelerator::DeviceGuard guard(x.get_device_index());
    const cudaError_t error = rgb2grey_block_launch(
        x.const_data_ptr<uint8_t>(), out.mutable_data_ptr<uint8_t>(), at.w, at.h, current_stream(x));
    if (error != cudaSuccess) fail("rgb2grey_block: the launch failed: ", cudaGetErrorString(error));
}

void rgb2grey_block_on_grid(
    const Tensor& x, const Tensor& out, std::optional<int64_t> w, std::optional<int64_t> h,
    const std::vector<int64_t>& grid, const std::vector<int64_t>& block)
{
    const rgb2grey_block_extents at = rgb2grey_block_check(x, w, h);
    rgb2grey_block_check_outputs(at, x, out);
    const dim3 blocks = to_dim3("rgb2grey_block", "grid", grid);
    const dim3 threads = to_dim3("rgb2grey_block", "block", block);
    const torch::stable::accelerator::DeviceGuard guard(x.get_device_index());
    const cudaError_t error = rgb2grey_block_launch(
        x.const_data_ptr<uint8_t>(), out.mutable_data_ptr<uint8_t>(), at.w, at.h, blocks, threads, current_stream(x));
    if (error != cudaSuccess) fail("rgb2grey_block: the launch failed: ", cudaGetErrorString(error));
}

}  // namespace

STABLE_TORCH_LIBRARY_FRAGMENT(TORCH_EXTENSION_NAME, m)
{
    m.def("rgb2grey(Tensor x) -> Tensor");
    m.def("rgb2grey.out(Tensor x, Tensor(a!) out) -> ()");
    m.def("rgb2grey.grid(Tensor x, Tensor(a!) out, int[] grid, int[] block) -> ()");
    m.def("rgb2grey_2d(Tensor x) -> Tensor");
    m.def("rgb2grey_2d.out(Tensor x, Tensor(a!) out) -> ()");
    m.def("rgb2grey_2d.grid(Tensor x, Tensor(a!) out, int[] grid, int[] block) -> ()");
    m.def("rgb2grey_block(Tensor x, int? w=None, int? h=None) -> Tensor");
    m.def("rgb2grey_block.out(Tensor x, Tensor(a!) out, int? w, int? h) -> ()");
    m.def("rgb2grey_block.grid(Tensor x, Tensor(a!) out, int? w, int? h, int[] grid, int[] block) -> ()");
}

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m)
{
    m.impl("rgb2grey", TORCH_BOX(&rgb2grey_new));
    m.impl("rgb2grey.out", TORCH_BOX(&rgb2grey_fill));
    m.impl("rgb2grey.grid", TORCH_BOX(&rgb2grey_on_grid));
    m.impl("rgb2grey_2d", TORCH_BOX(&rgb2grey_2d_new));
    m.impl("rgb2grey_2d.out", TORCH_BOX(&rgb2grey_2d_fill));
    m.impl("rgb2grey_2d.grid", TORCH_BOX(&rgb2grey_2d_on_grid));
    m.impl("rgb2grey_block", TORCH_BOX(&rgb2grey_block_new));
    m.impl("rgb2grey_block.out", TORCH_BOX(&rgb2grey_block_fill));
    m.impl("rgb2grey_block.grid", TORCH_BOX(&rgb2grey_block_on_grid));
}
