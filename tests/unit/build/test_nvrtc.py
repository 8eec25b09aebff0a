"""NVRTC compiles single instances of kernels, without a GPU; nvcc does where NVRTC is missing."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from py2cu.build import nvrtc, toolchain
from py2cu.build.nvrtc import CompileError, Cubin, compile_cubin
from py2cu.diagnostics import EnvironmentLacks
from py2cu.targets.cuda.helpers import HELPERS_OF_CUDA
from py2cu.targets.cxx.helpers.catalogue import HELPERS

AXPY = """\
template <typename T, typename index_t>
__global__ void axpy_kernel(const T* x, T* out, index_t n)
{
    index_t i = blockIdx.x * index_t(blockDim.x) + threadIdx.x;
    if (i < n) out[i] += x[i] * T(3);
}
"""
# Everything that texts use of the C++ library without a CUDA header.
STANDARD = """\
static_assert(sizeof(int8_t) == 1 && sizeof(uint16_t) == 2 && sizeof(int32_t) == 4 && sizeof(uint64_t) == 8);
static_assert(INT64_MIN < INT32_MIN && INT32_MAX < INT64_MAX && UINT32_MAX > 0);
static_assert(std::is_integral_v<int64_t> && !std::is_integral_v<float> && std::is_floating_point_v<double>);
static_assert(std::is_signed_v<int8_t> && !std::is_signed_v<uint64_t> && !std::is_signed_v<float4>);
static_assert(std::is_same_v<std::make_unsigned_t<decltype(1LL)>, unsigned long long>);
static_assert(std::is_same_v<std::make_unsigned_t<uint8_t>, uint8_t>);
static_assert(std::is_same_v<std::conditional_t<sizeof(int) == 2, float, int>, int>);
static_assert(std::true_type() && !std::false_type());
__constant__ float table[] = {INFINITY, -INFINITY, NAN};
template <typename Flag>
__global__ void standard_kernel(float* out, uintptr_t address, size_t size)
{
    extern __shared__ float shared[];
    assert(size > 0);
    std::memcpy(&size, &address, sizeof(size));
    if constexpr (Flag::value) printf("%lld\\n", static_cast<int64_t>(address));
    shared[threadIdx.x] = table[threadIdx.x % 3] + fmaxf(tanhf(out[0]), abs(out[1]));
    __syncthreads();
    atomicAdd(out, shared[0] + __shfl_down_sync(0xffffffff, shared[threadIdx.x], 1));
}
"""
GRID = """\
template <typename index_t>
__global__ void grid_kernel(int* out, index_t n)
{
    out[n] = 1;
    cooperative_groups::this_grid().sync();
}
"""
COMPLEX = "using cuda::std::complex;\n" + AXPY


def has_nvrtc() -> bool:
    try:
        nvrtc.nvrtc_version()
    except EnvironmentLacks:
        return False
    return True


def has_headers(*names: str) -> bool:
    folders = toolchain.header_folders(None)
    return all(any((folder / name).is_file() for folder in folders) for name in (*names, "nv/target"))


needs_nvrtc = pytest.mark.skipif(not has_nvrtc(), reason="needs cuda-bindings and NVRTC")
needs_nvcc = pytest.mark.skipif(toolchain.find_nvcc() is None, reason="needs nvcc")
needs_headers = pytest.mark.skipif(not has_headers("cuda_fp16.h"), reason="needs the CUDA headers")
INSTANCES = [
    pytest.param(AXPY, "axpy_kernel<float, int>", (), id="float"),
    pytest.param(AXPY, "axpy_kernel<float, int64_t>", ("cstdint", "algorithm", "cuda_runtime.h"), id="wide"),
    pytest.param(STANDARD, "standard_kernel<std::true_type>", ("cstdio", "cassert", "cmath"), id="standard"),
    pytest.param(AXPY, "axpy_kernel<__half, int>", ("cuda_fp16.h",), id="half", marks=needs_headers),
    pytest.param(AXPY, "axpy_kernel<__nv_bfloat16, int>", ("cuda_bf16.h",), id="bfloat16", marks=needs_headers),
    pytest.param(GRID, "grid_kernel<int>", ("cooperative_groups.h",), id="grid", marks=needs_headers),
    pytest.param(
        COMPLEX, "axpy_kernel<complex<float>, int>", ("cuda/std/complex",), id="complex", marks=needs_headers
    ),
]  # fmt: skip


@pytest.fixture
def _nvrtc_forgotten() -> Iterator[None]:
    """What is known of NVRTC counts in this test alone."""
    found = (nvrtc._nvrtc, nvrtc._wheel)
    for each in found:
        each.cache_clear()
    yield
    for each in found:
        each.cache_clear()


@pytest.fixture
def _without_nvrtc(monkeypatch: pytest.MonkeyPatch, _nvrtc_forgotten: None) -> None:
    """As if cuda-bindings were not installed."""
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)


def is_cubin(cubin: Cubin) -> bool:
    return cubin.image.startswith(b"\x7fELF") and cubin.symbol.encode() in cubin.image


def test_helpers_use_no_other_names_of_the_library() -> None:
    texts = [HELPERS_OF_CUDA.text(name) for name in {**HELPERS, **HELPERS_OF_CUDA.own}]
    used = {name for text in texts for name in re.findall(r"std::(\w+)", text)}
    assert used and used <= {*re.findall(r"std::(\w+)", STANDARD)}


@needs_nvrtc
@pytest.mark.parametrize(("text", "expression", "headers"), INSTANCES)
def test_an_instance_compiles_first_and_again(text: str, expression: str, headers: tuple[str, ...]) -> None:
    first, again = [compile_cubin(text, expression, architecture="sm_90", headers=headers) for _ in range(2)]
    assert is_cubin(first)
    assert first == again
    kernel = expression.partition("<")[0]
    assert first.symbol.startswith(f"_Z{len(kernel)}{kernel}I")


@needs_nvcc
@pytest.mark.builds
@pytest.mark.usefixtures("_without_nvrtc")
@pytest.mark.parametrize(("text", "expression", "headers"), INSTANCES)
def test_nvcc_compiles_without_nvrtc(text: str, expression: str, headers: tuple[str, ...]) -> None:
    cubin = compile_cubin(text, expression, architecture="sm_90", headers=headers)
    assert is_cubin(cubin)
    kernel = expression.partition("<")[0]
    assert cubin.symbol.startswith(f"_Z{len(kernel)}{kernel}I")
    assert nvrtc.compiler_identity().startswith("nvcc ")


@needs_nvrtc
def test_fma_is_an_option() -> None:
    fused, separate = [
        compile_cubin(AXPY, "axpy_kernel<float, int>", architecture="sm_90", fma=fma).image for fma in (True, False)
    ]
    assert fused != separate


@needs_nvrtc
def test_an_unknown_gpu_gets_the_ptx_of_the_newest_known_before_it() -> None:
    cubin = compile_cubin(AXPY, "axpy_kernel<float, int>", architecture="sm_999")
    assert f".visible .entry {cubin.symbol}(".encode() in cubin.image or b".weak .entry" in cubin.image
    assert cubin.image.endswith(b"\0")


@needs_nvrtc
def test_a_gpu_that_is_too_old_is_an_error_with_both_versions() -> None:
    with pytest.raises(EnvironmentLacks, match=r"NVRTC \d+\.\d+ compiles for sm_\d+ and later, .* sm_20"):
        compile_cubin(AXPY, "axpy_kernel<float, int>", architecture="sm_20")


@needs_nvrtc
@pytest.mark.parametrize("headers", [(), pytest.param(("cuda_fp16.h",), marks=needs_headers)])
@pytest.mark.parametrize("round_", ["first", "again"])
def test_an_error_stands_at_the_line_of_the_text(headers: tuple[str, ...], round_: str) -> None:
    with pytest.raises(CompileError) as caught:
        compile_cubin("\n\n__device__ int x = y;\n", "k<int>", architecture="sm_86", headers=headers, name="axpy.cu")
    assert str(caught.value).startswith('axpy.cu(3): error: identifier "y" is undefined')


@needs_nvcc
@pytest.mark.builds
@pytest.mark.usefixtures("_without_nvrtc")
def test_an_error_of_nvcc_stands_there_too() -> None:
    with pytest.raises(CompileError) as caught:
        compile_cubin("\n\n__device__ int x = y;\n", "k<int>", architecture="sm_90", name="axpy.cu")
    assert 'axpy.cu(3): error: identifier "y" is undefined' in str(caught.value)


@needs_nvrtc
def test_an_instance_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(CompileError, match="other_kernel"):
        compile_cubin(AXPY, "other_kernel<int>", architecture="sm_90")


@needs_nvrtc
def test_a_missing_header_is_named() -> None:
    with pytest.raises(EnvironmentLacks, match="no_such_header"):
        compile_cubin(AXPY, "axpy_kernel<float, int>", architecture="sm_90", headers=["no_such_header.h"])


@pytest.mark.usefixtures("_without_nvrtc")
def test_without_any_compiler_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "find_nvcc", lambda: None)
    for ask in (
        lambda: compile_cubin(AXPY, "axpy_kernel<float, int>", architecture="sm_90"),
        nvrtc.compiler_identity,
    ):
        with pytest.raises(EnvironmentLacks, match="pip install cuda-bindings nvidia-cuda-nvrtc"):
            ask()


@pytest.mark.usefixtures("_nvrtc_forgotten")
@pytest.mark.parametrize("error", ["libnvrtc.so.12 is missing", "Function nvrtcVersion not found"])
def test_an_nvrtc_of_another_cuda_is_an_error_with_the_version(error: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cuda-bindings of CUDA 12 load no NVRTC of CUDA 13; without nvcc, nothing else compiles."""

    def missing() -> None:
        raise RuntimeError(error)

    library = ModuleType("cuda.bindings.nvrtc")  # a module can be a key
    library.__dict__["nvrtcVersion"] = missing
    bindings = SimpleNamespace(nvrtc=library, __version__="12.9.1")
    monkeypatch.setitem(sys.modules, "cuda", SimpleNamespace(bindings=bindings))
    monkeypatch.setitem(sys.modules, "cuda.bindings", bindings)
    monkeypatch.setattr(toolchain, "find_nvcc", lambda: None)
    for ask in (
        lambda: compile_cubin(AXPY, "axpy_kernel<float, int>", architecture="sm_90"),
        nvrtc.compiler_identity,
        nvrtc.nvrtc_version,
    ):
        with pytest.raises(EnvironmentLacks, match=r"cuda-bindings 12\.9\.1 finds no NVRTC of CUDA 12"):
            ask()


@needs_nvrtc
def test_threads_compile_at_the_same_time() -> None:
    results: list[Cubin] = []

    def compile_one(number: int) -> None:
        text = AXPY.replace("T(3)", f"T({number % 4})")
        headers = ("cuda_fp16.h",) if has_headers("cuda_fp16.h") else ()
        results.append(compile_cubin(text, "axpy_kernel<float, int>", architecture="sm_80", headers=headers))

    threads = [threading.Thread(target=compile_one, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 16
    assert len({result.image for result in results}) == 4


@needs_nvrtc
@needs_headers
@pytest.mark.parametrize("fault", ["no directory", "closed"])
def test_a_precompiled_header_that_cannot_be_kept_is_not_needed(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvrtc, "_precompiled", {})
    if fault == "no directory":
        monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    for _ in range(2):
        cubin = compile_cubin(AXPY, "axpy_kernel<__half, int>", architecture="sm_90", headers=("cuda_fp16.h",))
        assert is_cubin(cubin)
        if fault == "closed":  # as a process does that becomes a daemon
            for descriptor in nvrtc._precompiled.values():
                os.close(descriptor)
            fault = "none"


@needs_nvrtc
def test_an_interrupt_during_a_read_is_noticed_after_compiling() -> None:
    compile_cubin(AXPY, "axpy_kernel<float, int>", architecture="sm_90")
    command = f"sleep 0.2; kill -INT {os.getpid()}; sleep 20"
    with subprocess.Popen(["sh", "-c", command], stdout=subprocess.PIPE) as process:
        start = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            process.communicate()
        process.kill()
    assert time.monotonic() - start < 10


@needs_nvrtc
def test_compiling_leaves_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvrtc, "_precompiled", {})
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    headers = ("cuda_fp16.h",) if has_headers("cuda_fp16.h") else ()
    compile_cubin(AXPY, "axpy_kernel<float, int>", architecture="sm_90", headers=headers)
    assert not list(tmp_path.iterdir())


@needs_nvcc
@pytest.mark.builds
def test_an_interrupt_ends_nvcc_and_removes_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nvcc is a script that interrupts the caller, then waits in a child for longer than this test."""
    script = tmp_path / "nvcc"
    script.write_text(f"#!/bin/sh\nsleep 60 &\necho $! > {tmp_path}/child\nsleep 0.3; kill -INT {os.getpid()}\nwait\n")
    script.chmod(0o755)
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(work))
    options = {"architecture": "sm_90", "fma": True, "headers": (), "name": "a.cu"}
    with pytest.raises(KeyboardInterrupt):
        nvrtc.compile_by_nvcc(script, AXPY, "axpy_kernel<float, int>", **options)  # type: ignore[arg-type]
    assert not list(work.iterdir())
    child = Path("/proc", (tmp_path / "child").read_text().strip(), "stat")
    end = time.monotonic() + 5
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        while child.read_text().split()[2] != "Z":  # killed, and not reaped yet
            assert time.monotonic() < end


@pytest.mark.parametrize(
    ("expression", "symbol"),
    [
        ("add_kernel<int>", "_Z10add_kernelIiEvT_"),
        ("k", "_Z1kPf"),
        ("ns::add_kernel<float, int>", "_ZN2ns10add_kernelIfiEEvT_"),
    ],
)
def test_the_symbol_is_the_one_of_the_expression(expression: str, symbol: str) -> None:
    others = ["_Z14other_add_kernelIiEvT_", "_Z11add_kernel_IiEvT_"]
    image = b"".join(f"\0.nv.constant0.{name}\0".encode() for name in (*others, symbol))
    assert nvrtc.symbol_of_kernel(image, expression) == symbol
    with pytest.raises(CompileError, match="compiled no kernel none"):
        nvrtc.symbol_of_kernel(image, "none<int>")


@needs_nvrtc
def test_the_identity_names_nvrtc(monkeypatch: pytest.MonkeyPatch) -> None:
    major, minor = nvrtc.nvrtc_version()
    if (wheel := nvrtc._wheel()) is not None:
        assert wheel.samefile(nvrtc._library())
        assert nvrtc.compiler_identity().startswith("NVRTC ")
    monkeypatch.setattr(nvrtc, "_wheel", lambda: None)
    assert nvrtc.compiler_identity().startswith(f"NVRTC {major}.{minor} ")


@needs_nvrtc
def test_a_wheel_is_identified_without_loading_it() -> None:
    if nvrtc._wheel() is None:
        pytest.skip("NVRTC is not installed as a wheel")
    program = (
        "import sys; from py2cu.build import nvrtc; nvrtc.compiler_identity(); "
        "assert 'cuda.bindings.nvrtc' not in sys.modules and 'cuda.pathfinder' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_importing_the_engine_loads_no_cuda() -> None:
    program = "import sys, py2cu.build.nvrtc, py2cu.build.driver; assert 'cuda' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)
