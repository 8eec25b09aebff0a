"""Builds: hand-written artifacts become ops, once per content, whatever happens on the way."""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from py2cu.build import cache, library, toolchain  # noqa: E402
from py2cu.build.messages import BuildError  # noqa: E402
from py2cu.diagnostics import EnvironmentLacks  # noqa: E402
from py2cu.source import SourceFile, Span  # noqa: E402
from py2cu.translation import Artifacts, TargetName, Text  # noqa: E402
from tests.support.processes import processes_in, wait_for  # noqa: E402
from tests.support.samples import proofs  # noqa: E402

pytestmark = [
    pytest.mark.builds,
    pytest.mark.skipif(toolchain.find_cxx() is None, reason="needs a C++ compiler"),
]
needs_nvcc = pytest.mark.skipif(toolchain.find_nvcc() is None, reason="needs nvcc")

PYTHON = SourceFile("saxpy.py", "@kernel\ndef saxpy(i, a, x, y):\n    if a:\n        y[i] = a * x[i] + y[i]\n")

HEADER = """\
#pragma once
#include <cstdint>
#ifdef USE_CUDA
#include <cuda_runtime.h>
cudaError_t saxpy_launch(float a, const float* x, float* y, int64_t n, cudaStream_t stream);
#else
void saxpy_launch(float a, const float* x, float* y, int64_t n);
#endif
"""

CPU_KERNEL = """\
#include "saxpy.h"

void saxpy_launch(float a, const float* x, float* y, int64_t n)
{
#pragma omp parallel for
    for (int64_t i = 0; i < n; ++i)
        y[i] = a * x[i] + y[i];
}
"""
CPU_ORIGIN = (0, 0, 2, 0, 0, 0, 4, 0)

CUDA_KERNEL = """\
#include <cstdint>
#include <cuda_runtime.h>

__global__ void saxpy_kernel(float a, const float* __restrict__ x, float* __restrict__ y, int64_t n)
{
    const int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
    if (i >= n) return;
    y[i] = a * x[i] + y[i];
}

cudaError_t saxpy_launch(float a, const float* x, float* y, int64_t n, cudaStream_t stream)
{
    if (n == 0) return cudaSuccess;
    saxpy_kernel<<<(n + 255) / 256, 256, 0, stream>>>(a, x, y, n);
    return cudaGetLastError();
}
"""
CUDA_ORIGIN = (0, 0, 0, 2, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0)

BINDING = """\
#include "saxpy.h"
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/tensor.h>

using torch::stable::Tensor;

static void saxpy(double a, Tensor x, Tensor y)
{
    const float* from = static_cast<const float*>(x.data_ptr());
    float* to = static_cast<float*>(y.data_ptr());
#ifdef USE_CUDA
    void* stream = nullptr;
    TORCH_ERROR_CODE_CHECK(aoti_torch_get_current_cuda_stream(x.get_device_index(), &stream));
    const cudaError_t status = saxpy_launch(a, from, to, x.numel(), static_cast<cudaStream_t>(stream));
    STD_TORCH_CHECK(status == cudaSuccess, cudaGetErrorString(status));
#else
    saxpy_launch(a, from, to, x.numel());
#endif
}

STABLE_TORCH_LIBRARY_FRAGMENT(TORCH_EXTENSION_NAME, m) { m.def("saxpy(float a, Tensor x, Tensor(a!) y) -> ()"); }
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, DEVICE, m) { m.impl("saxpy", TORCH_BOX(&saxpy)); }
"""


def artifacts(target: TargetName, kernel: str | None = None) -> Artifacts:
    """Saxpy for `target`, with another kernel text if one is given."""
    cuda = target is TargetName.CUDA
    text = kernel or (CUDA_KERNEL if cuda else CPU_KERNEL)
    return Artifacts(
        name="saxpy",
        target=target,
        kernel=Text("saxpy.cu" if cuda else "saxpy_cpu.cpp", text, CUDA_ORIGIN if cuda else CPU_ORIGIN),
        header=Text("saxpy.h", HEADER, (0,) * HEADER.count("\n")),
        binding=Text("saxpy.cpp", BINDING.replace("DEVICE", target.name), (0,) * BINDING.count("\n")),
    )


CPU = artifacts(TargetName.CPU)
CUDA = artifacts(TargetName.CUDA)
BROKEN = artifacts(TargetName.CPU, CPU_KERNEL.replace("a * x[i]", "b * x[i]"))


@pytest.fixture(scope="module")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that holds the CPU build of saxpy; tests that only read it share it."""
    root = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PY2CU_CACHE_DIR", str(root))
        library.build_library(CPU)
    return root


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PY2CU_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def start(code: str, root: Path, **environment: str) -> subprocess.Popen[str]:
    """Run `code` in another Python that has this module's names and the cache `root`."""
    lines = "import sys, time, torch\nfrom test_build import *\n" + textwrap.dedent(code)
    paths = os.pathsep.join([str(Path(library.__file__).parents[2]), str(Path(__file__).parent)])
    variables = os.environ | {"PY2CU_CACHE_DIR": str(root), "PYTHONPATH": paths} | environment
    return subprocess.Popen([sys.executable, "-c", lines], env=variables, stdout=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> str:
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    return output


def left_behind(root: Path) -> list[Path]:
    return list(root.glob("v2/libraries/*.build-*"))


def test_a_cpu_build_is_called_through_torch_ops(
    shared_cache: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PY2CU_CACHE_DIR", str(shared_cache))
    namespace = library.load(CPU)
    assert namespace == library.load(CPU) == library._plan(CPU, fma=True).namespace
    x, y = torch.arange(1000.0), torch.ones(1000)
    getattr(torch.ops, namespace).saxpy(2.0, x, y)
    assert torch.equal(y, 2 * torch.arange(1000.0) + 1)
    assert left_behind(shared_cache) == []
    assert capfd.readouterr() == ("", "")


def test_the_next_process_needs_no_compiler_and_is_ready_in_50_ms(shared_cache: Path) -> None:
    """The limit is generous here, for a loaded machine; printed is what it took."""
    code = """
        subprocess.Popen = None
        begin = time.perf_counter()
        op = getattr(torch.ops, library.load(CPU)).saxpy
        took = time.perf_counter() - begin
        y = torch.ones(2)
        op(3.0, torch.ones(2), y)
        assert y.tolist() == [4.0, 4.0] and "torch.utils.cpp_extension" not in sys.modules
        print(took)
    """
    took = min(float(finish(start(code, shared_cache, PATH="", CXX=""))) for _ in range(2))
    assert took < 0.05


@pytest.mark.proof
def test_of_four_processes_one_compiles(empty_cache: Path) -> None:
    code = """
        original = library.Build.compile
        library.Build.compile = lambda *a: print("compiled") or original(*a)
        library.load(CPU)
    """
    outputs = [finish(process) for process in [start(code, empty_cache) for _ in range(4)]]
    assert sorted(outputs) == ["", "", "", "compiled\n"]


def test_threads_build_different_kernels_at_once(empty_cache: Path) -> None:
    other = artifacts(TargetName.CPU, CPU_KERNEL + "// another\n")
    with ThreadPoolExecutor(4) as threads:
        paths = list(threads.map(library.build_library, [CPU, other, CPU, other]))
    assert len(set(paths)) == 2
    assert library._plan(CPU, fma=True).namespace != library._plan(other, fma=True).namespace


@pytest.mark.parametrize("number", proofs([signal.SIGKILL, signal.SIGINT], 2))
def test_after_a_build_that_was_ended_the_next_one_works(empty_cache: Path, number: signal.Signals) -> None:
    code = """
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in a shell's background ignores it
        try: library.build_library(CPU)
        except KeyboardInterrupt: pass
    """
    process = start(code, empty_cache)
    wait_for(lambda: processes_in(empty_cache))
    process.send_signal(number)
    process.communicate(timeout=30)
    assert list(empty_cache.glob("v2/libraries/*.so")) == []
    if number == signal.SIGINT:
        assert left_behind(empty_cache) == []
        # They are killed, but may take a moment to vanish; their guard alone would let them live for a second.
        wait_for(lambda: not processes_in(empty_cache), seconds=0.9)
    wait_for(lambda: not processes_in(empty_cache))
    assert library.build_library(CPU).is_file()
    assert left_behind(empty_cache) == []


def test_without_a_usable_cache_it_builds_for_this_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PY2CU_CACHE_DIR", str(tmp_path / "file"))
    monkeypatch.setattr(cache, "_private_roots", [])
    monkeypatch.setattr(cache, "_warned", [])
    with pytest.warns(UserWarning, match="cache cannot be used"):
        path = library.build_library(CPU)
    assert path.is_file() and library.build_library(CPU) == path


def test_a_full_disk_counts_as_an_unusable_cache(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ninja = empty_cache.parent / "ninja"
    ninja.write_text("#!/bin/sh\necho 'error: x.o: No space left on device'\n[ $1 = --version ]\n")
    ninja.chmod(0o755)
    monkeypatch.setattr(cache, "_private_roots", [empty_cache.parent / "private"])
    (empty_cache.parent / "private").mkdir(mode=0o700)
    monkeypatch.setattr(cache, "_warned", [])
    monkeypatch.setenv("PATH", f"{ninja.parent}{os.pathsep}{os.environ['PATH']}")
    # The private directory is as full as the first.
    with pytest.warns(UserWarning, match="no space left"), pytest.raises(OSError, match="no space left"):
        library.build_library(CPU)
    assert left_behind(empty_cache) == left_behind(empty_cache.parent / "private") == []


@pytest.mark.parametrize("left", proofs([1000, 0], 2))
def test_a_damaged_entry_is_built_again(left: int, empty_cache: Path, shared_cache: Path) -> None:
    shutil.copytree(shared_cache, empty_cache)
    (path,) = empty_cache.glob("v2/libraries/*.so")
    path.write_bytes(path.read_bytes()[:left])
    finish(start("getattr(torch.ops, library.load(CPU)).saxpy", empty_cache))


def test_an_error_of_the_cpp_compiler_points_at_the_python(empty_cache: Path) -> None:
    with pytest.raises(BuildError) as caught:
        library.build_library(BROKEN, source=lambda: PYTHON)
    found = caught.value.diagnostics[0]
    assert (found.code, found.file, found.span) == ("P601", PYTHON, Span(4, 8, 4, 30))
    assert "'b' was not declared" in found.message and "(saxpy_cpu.cpp:7)" in found.message
    assert "y[i] = a * x[i] + y[i]" in str(caught.value) and "saxpy_cpu.cpp:7:16: error" in caught.value.log
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    assert list(empty_cache.glob("v2/libraries/*.so")) == left_behind(empty_cache) == []


def test_an_error_that_no_python_line_caused_points_at_the_emitted_text(empty_cache: Path) -> None:
    with pytest.raises(BuildError) as caught:
        library.build_library(BROKEN)
    assert caught.value.diagnostics[0].headline.startswith("saxpy_cpu.cpp:7:16: error[P601]: ")
    text = CPU.binding.text.replace("    saxpy_launch(", "    saxpy_lunch(")
    with pytest.raises(BuildError, match=r"saxpy\.cpp:17:5: error\[P601\]: the C\+\+ compiler"):
        library.build_library(replace(CPU, binding=Text("saxpy.cpp", text, CPU.binding.origin)), source=lambda: PYTHON)


def test_an_error_without_a_place_is_told_as_it_came(empty_cache: Path) -> None:
    with pytest.raises(BuildError, match=r"undefined reference to .*saxpy_launch") as caught:
        library.build_library(
            artifacts(TargetName.CPU, CPU_KERNEL.replace("saxpy_launch", "other")), source=lambda: PYTHON
        )
    assert caught.value.diagnostics == ()


@needs_nvcc
def test_a_cuda_build_links_without_cuda_in_torch(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "9.0")
    path = library.build_library(CUDA)
    text = path.read_bytes()
    assert b"aoti_torch_get_current_cuda_stream" in text and b"libcudart.so" in text
    if torch.version.cuda is None:
        with pytest.raises(EnvironmentLacks, match="built without CUDA"):
            library.load(CUDA)


@needs_nvcc
def test_an_error_of_nvcc_points_at_the_python(empty_cache: Path) -> None:
    with pytest.raises(BuildError) as caught:
        library.build_library(
            artifacts(TargetName.CUDA, CUDA_KERNEL.replace("a * x[i]", "b * x[i]")), source=lambda: PYTHON
        )
    found = caught.value.diagnostics[0]
    assert (found.file, found.span) == (PYTHON, Span(4, 8, 4, 30))
    assert found.message == 'nvcc refuses this line: identifier "b" is undefined (saxpy.cu:8)'


def test_flags_and_target_are_part_of_the_content(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "9.0")
    names = {
        library._plan(CPU, fma=True).namespace,
        library._plan(CUDA, fma=True).namespace,
        library._plan(CUDA, fma=False).namespace,
    }
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "8.0")
    names.add(library._plan(CUDA, fma=True).namespace)
    assert len(names) == 4 and all(name.isidentifier() for name in names)


@pytest.mark.parametrize(
    ("tool", "target", "message"),
    [
        ("find_cxx", TargetName.CPU, "no C\\+\\+ compiler"),
        ("find_ninja", TargetName.CPU, "ninja was not found"),
        ("find_nvcc", TargetName.CUDA, "nvcc"),
    ],
)
def test_a_missing_tool_is_named(
    tool: str, target: TargetName, message: str, empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toolchain, tool, lambda: None)
    with pytest.raises(EnvironmentLacks, match=message) as caught:
        library.build_library(artifacts(target))
    assert "install" in caught.value.hint
