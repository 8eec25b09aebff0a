"""The emitted CUDA text, compiled for the CPU: what a GPU would compute, without one.

In: a `Translation`. Out: one whose CPU artifacts hold the CUDA text behind a page of stand-ins for CUDA's words, so
that `Kernel.check` runs it. Threads run one after the other, so barriers and shared memory are out of reach; indices of
32 bits, guards, launch geometry and arithmetic are not: a 32-bit instantiation that is too narrow shows here, and not
in the CPU text, which always counts in 64.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable

from py2cu.targets.cpu.target import DIALECT
from py2cu.translation import Artifacts, TargetName, Text, Translation

WORDS = """
#include <functional>
#define __global__ static
#define __launch_bounds__(...)
#define __device__
#define __host__
#define __constant__ static
namespace emulated {
"""
INSIDE = """
using std::abs; using std::acos; using std::acosh; using std::asin; using std::asinh; using std::atan;
using std::atan2; using std::atanh; using std::cbrt; using std::ceil; using std::copysign; using std::cos;
using std::cosh; using std::erf; using std::erfc; using std::exp; using std::exp2; using std::expm1;
using std::fabs; using std::floor; using std::fma; using std::fmod; using std::frexp; using std::hypot;
using std::isfinite; using std::isinf; using std::isnan; using std::ldexp; using std::lgamma; using std::log;
using std::log10; using std::log1p; using std::log2; using std::max; using std::min; using std::nextafter;
using std::pow; using std::remainder; using std::rint; using std::signbit; using std::sin; using std::sinh;
using std::sqrt; using std::tan; using std::tanh; using std::tgamma; using std::trunc;
struct uint3 { Count x, y, z; };
struct dim3 {
    Count x, y, z;
    dim3(Count x = 1, Count y = 1, Count z = 1) : x(x), y(y), z(z) {}
};
using cudaStream_t = void*;
using cudaError_t = int;
constexpr cudaError_t cudaSuccess = 0, cudaErrorInvalidConfiguration = 9;
static thread_local uint3 blockIdx, threadIdx;
static thread_local dim3 blockDim, gridDim;
static cudaError_t last_error = cudaSuccess;
static int __popc(unsigned v) { return __builtin_popcount(v); }
static int __popcll(unsigned long long v) { return __builtin_popcountll(v); }
static int __ffs(int v) { return __builtin_ffs(v); }
static int __ffsll(long long v) { return __builtin_ffsll(v); }
static int __clz(int v) { return v ? __builtin_clz(v) : 32; }
static int __clzll(long long v) { return v ? __builtin_clzll(v) : 64; }
static unsigned long long __brevll(unsigned long long v)
{
    unsigned long long result = 0;
    for (int bit = 0; bit < 64; ++bit) result = result << 1 | (v >> bit & 1);
    return result;
}
static unsigned __brev(unsigned v) { return __brevll(v) >> 32; }
static float __expf(float v) { return std::exp(v); }
static float __logf(float v) { return std::log(v); }
static float __sinf(float v) { return std::sin(v); }
static float __cosf(float v) { return std::cos(v); }
static float __powf(float a, float b) { return std::pow(a, b); }
static float __fdividef(float a, float b) { return a / b; }
struct int2 { int x, y; };
struct int4 { int x, y, z, w; };
template <typename T> T __ldg(const T* at) { return *at; }
template <typename T> T __ldcs(const T* at) { return *at; }
template <typename T> void __stcs(T* at, T value) { *at = value; }
static cudaError_t cudaGetLastError() { cudaError_t error = last_error; last_error = cudaSuccess; return error; }
"""
LAUNCH = """
static void run_grid(dim3 grid, dim3 block, std::function<void()> body)
{
    if (!grid.x || !grid.y || !grid.z || grid.y > 65535 || grid.z > 65535 || grid.x > most_blocks || !block.x ||
        !block.y || !block.z || block.z > 64 || int64_t(block.x) * block.y * block.z > 1024) {
        last_error = cudaErrorInvalidConfiguration;
        return;
    }
    gridDim = grid;
    blockDim = block;
    for (blockIdx.z = 0; blockIdx.z < grid.z; ++blockIdx.z)
        for (blockIdx.y = 0; blockIdx.y < grid.y; ++blockIdx.y)
            for (blockIdx.x = 0; blockIdx.x < grid.x; ++blockIdx.x)
                run_block(block, body);
}
"""

LAUNCHER = re.compile(r"(?<!>\n)^()void (\w+)\(\s*([^;]*?)\);", re.MULTILINE | re.DOTALL)
SPECIALISATION = re.compile(r"^(template <>\n)void (\w+<[^(]*>)\(\s*([^;]*?)\)\n", re.MULTILINE | re.DOTALL)


TOGETHER = re.compile(r"__(sync\w+|shared__|shfl\w*|ballot_sync|\w+_sync)\b|\batomic[A-Z]\w+\(|%%laneid")


def is_within_reach(translation: Translation) -> bool:
    """True where no thread of the CUDA text needs another."""
    return TOGETHER.search(translation.cuda.kernel.text) is None


COUNTS = """
using Count = unsigned;
constexpr int64_t most_blocks = 2147483647;
"""
ONE_AFTER_THE_OTHER = """
static void run_block(dim3 block, const std::function<void()>& body)
{
    for (threadIdx.z = 0; threadIdx.z < block.z; ++threadIdx.z)
        for (threadIdx.y = 0; threadIdx.y < block.y; ++threadIdx.y)
            for (threadIdx.x = 0; threadIdx.x < block.x; ++threadIdx.x) body();
}
"""


@dataclasses.dataclass(frozen=True)
class Words:
    """What CUDA's words are made of: what stands before all, how blocks and threads are counted, and how they run."""

    before: str = ""
    counts: str = COUNTS
    threads: str = ONE_AFTER_THE_OTHER


PLAIN = Words()


def emulate(
    translation: Translation, change: Callable[[str], str] = lambda text: text, words: Words = PLAIN
) -> Translation:
    """`translation` with the CUDA text, or what `change` makes of it, in place of the CPU's."""
    cuda, cpu = (translation.texts[target] for target in TargetName)
    declared = change(cuda.header.text.replace("#pragma once\n", ""))
    return translation.with_texts(_artifacts(f"{declared}\n{change(cuda.kernel.text)}", cpu, words))


def _artifacts(cuda: str, cpu: Artifacts, words: Words) -> Artifacts:
    includes = [line for line in cpu.kernel.text.splitlines() if line.startswith("#include <")]
    body = "\n".join(line for line in cuda.splitlines() if not line.startswith("#include"))
    body = re.sub(
        r"(\w+(?:<[\w, <>]+?>)?)<<<(\w+), (\w+), [^>]*>>>\((.*?)\);",
        r"run_grid(\2, \3, [&] { \1(\4); });",
        body,
        flags=re.DOTALL,
    )
    assert "<<<" not in body, body
    body = body.replace("cuda::std::complex", "std::complex")
    standard = ("algorithm", "cassert", "cmath", "cstdlib", "stdexcept")
    headers = [f'#include "{cpu.header.name}"', *(f"#include <{name}>" for name in standard)]
    halves = [f"using {c} = {name};" for c, name in DIALECT.types.items() if name in cpu.kernel.text and "::" not in c]
    launchers = LAUNCHER.findall(re.sub(r" /\* = .*? \*/", "", cpu.header.text))
    bridges = [_bridge(*found) for found in (*launchers, *SPECIALISATION.findall(cpu.kernel.text))]
    start = [*headers, *includes, words.before, WORDS, words.counts, INSIDE, words.threads, LAUNCH]
    text = "\n".join([*start, *halves, body, "}  // namespace emulated", *bridges, ""])
    return dataclasses.replace(cpu, kernel=Text(cpu.kernel.name, text, (0,) * text.count("\n")))


def _bridge(template: str, name: str, parameters: str) -> str:
    """The CPU's launcher, or a specialisation of it, which calls CUDA's."""
    names = [parameter.split()[-1].lstrip("*&") for parameter in parameters.split(",")]
    converted = [
        f"emulated::dim3({n}.x, {n}.y, {n}.z)" if p.split()[-2] == "Dim3" else n
        for n, p in zip(names, parameters.split(","), strict=True)
    ]
    call = f"emulated::{name}({', '.join([*converted, 'nullptr'])})"
    return (
        f'{template}void {name}({parameters})\n{{\n    if ({call}) throw std::runtime_error("the launch failed");\n}}'
    )
