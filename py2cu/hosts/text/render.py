"""The text of `NAME_host.cpp`: the host functions of a file, with the wrappers of the kernels that they call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from py2cu.hosts.model.signatures import Callee, HostSignature
from py2cu.hosts.model.values import Value
from py2cu.hosts.text.wrappers import wrapper_lines
from py2cu.ir.abi.schemas import ALLOCATES
from py2cu.targets.cxx.lines import Line
from py2cu.targets.cxx.wrap_lines import wrap_line
from py2cu.targets.render import render_text
from py2cu.translation import Text


@dataclass(frozen=True, slots=True)
class HostFunction:
    """A host function in C++."""

    signature: HostSignature
    lines: tuple[Line, ...]
    helpers: tuple[str, ...]
    headers: tuple[str, ...]
    constants: Mapping[str, Value]
    called: Mapping[tuple[str, str], Callee]


def _checked(name: str, sign: str) -> str:
    """A sum, a difference or a product of integers that may leave 64 bits."""
    return f"""\
int64_t checked_{name}(int64_t a, int64_t b)
{{
    int64_t result = 0;
    TORCH_CHECK(!__builtin_{name}_overflow(a, b, &result), "an integer is beyond 64 bits: ", a, " {sign} ", b);
    return result;
}}"""


HELPERS: Final = {
    "check_count": """\
void check_count(int64_t count, int64_t wanted)
{
    TORCH_CHECK_VALUE(count >= wanted, "not enough values to unpack (expected ", wanted, ", got ", count, ")");
    TORCH_CHECK_VALUE(count <= wanted, "too many values to unpack (expected ", wanted, ")");
}""",
    "item_at": """\
template <typename Items>
auto item_at(const Items& items, int64_t at)
{
    const auto count = static_cast<int64_t>(items.size());
    TORCH_CHECK_INDEX(-count <= at && at < count, "tuple index out of range");
    return items[at < 0 ? at + count : at];
}""",
    **{f"checked_{name}": _checked(name, sign) for name, sign in (("add", "+"), ("sub", "-"), ("mul", "*"))},
    "checked_div": """\
double checked_div(double a, double b)
{
    TORCH_CHECK(b != 0, "division by zero");
    return a / b;
}""",
    "floor_div": """\
int64_t floor_div(int64_t a, int64_t b)
{
    TORCH_CHECK(b != 0, "integer division or modulo by zero");
    TORCH_CHECK(a != INT64_MIN || b != -1, "an integer is beyond 64 bits: ", a, " // ", b);
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}""",
    "floor_mod": """\
int64_t floor_mod(int64_t a, int64_t b)
{
    TORCH_CHECK(b != 0, "integer division or modulo by zero");
    const int64_t rest = b == -1 ? 0 : a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}""",
    "check_dtype_and_dims": """\
void check_dtype_and_dims(
    const char* function, const char* name, const at::Tensor& tensor, at::ArrayRef<at::ScalarType> dtypes, int64_t dims)
{
    check_dtype(function, name, tensor, dtypes);
    TORCH_CHECK(
        tensor.dim() == dims, function, ": `", name, "` must have ", dims, " dimensions, got ", tensor.dim());
}""",
    "check_dtype_and_least_dims": """\
void check_dtype_and_least_dims(
    const char* function, const char* name, const at::Tensor& tensor, at::ArrayRef<at::ScalarType> dtypes, int64_t dims)
{
    check_dtype(function, name, tensor, dtypes);
    TORCH_CHECK(
        tensor.dim() >= dims, function, ": `", name, "` must have at least ", dims, " dimensions, got ", tensor.dim());
}""",
    "check_extent": """\
void check_extent(
    const char* function, const char* name, const at::Tensor& tensor, int64_t axis, const char* dim, int64_t extent)
{
    TORCH_CHECK(
        tensor.size(axis) == extent, function, ": dimension ", axis < 0 ? axis + tensor.dim() : axis, " of `", name,
        "` is `", dim, "` = ", extent, ", got ", tensor.size(axis));
}""",
}
_STANDARD: Final = {
    "algorithm": ("std::min", "std::max"), "cstdint": ("int64_t", "INT64_MIN"), "optional": ("std::optional",),
    "string": ("std::string",), "tuple": ("std::tuple",), "vector": ("std::vector",),
}  # fmt: skip
_CHECK_DTYPE: Final = """\
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
}"""


def render_host(name: str, source: str, functions: Sequence[HostFunction]) -> Text:
    """The text for these functions; each follows the functions that it calls."""
    called = {key: callee for function in functions for key, callee in function.called.items()}
    helpers = [helper for helper in HELPERS if any(helper in function.helpers for function in functions)]
    headers = {f"ATen/ops/{header}.h" for function in functions for header in function.headers}
    wrappers = [
        list(chain.from_iterable(map(wrap_line, wrapper_lines(callee, overload))))
        for (_, overload), callee in sorted(called.items(), key=lambda item: (item[1].name, item[0][1] != ALLOCATES))
    ]
    constants = {key: value for function in functions for key, value in function.constants.items()}
    uses_dtypes = any(helper.startswith("check_dtype") for helper in helpers)
    lines = [*chain.from_iterable(wrappers), *(line.code for function in functions for line in function.lines)]
    body = "\n".join([*lines, *(HELPERS[helper] for helper in helpers), *([_CHECK_DTYPE] if uses_dtypes else [])])
    facts = {
        "name": name,
        "source": source,
        "headers": sorted(headers),
        "standard_headers": [header for header, words in _STANDARD.items() if any(word in body for word in words)],
        "uses_kernels": bool(called),
        "uses_dtypes": uses_dtypes,
        "check_dtype": _CHECK_DTYPE,
        "helpers": [HELPERS[helper] for helper in helpers],
        "constants": [f"constexpr {value.kind.cpp} {key} = {value.text};" for key, value in constants.items()],
        "wrappers": wrappers,
        "functions": [function.lines for function in functions],
        "definitions": ["\n".join(wrap_line(f"    m.def({_schema(f)}, {_dispatch(f)});")) for f in functions],
    }
    return render_text(f"{name}_host.cpp", "host/host.cpp.j2", facts)


def _schema(function: HostFunction) -> str:
    """The schema as a literal, or as several where it is long."""
    arguments = function.signature.schema.split(", ")
    lines = [arguments[0]]
    for argument in arguments[1:]:
        if len(lines[-1]) + len(argument) > 96:
            lines[-1] += ", "
            lines.append(argument)
        else:
            lines[-1] += f", {argument}"
    return "\n          ".join(f'"{line}"' for line in lines)


def _dispatch(function: HostFunction) -> str:
    """Torch ignores, without a word, what is registered as the gradient of a `CompositeImplicitAutograd`."""
    key = f"Composite{'Explicit' if function.signature.has_backward else 'Implicit'}Autograd"
    return f"torch::dispatch(c10::DispatchKey::{key}, TORCH_FN({function.signature.cpp_name}))"
