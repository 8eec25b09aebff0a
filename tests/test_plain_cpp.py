"""The emitted `.cu` and `.h` stand alone: a plain C++ program, without torch and Python, compiles, links and runs."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from py2cu.pipeline import translate_file
from py2cu.source import SourceFile
from tests.support.compilers import NVCC_STRICT, nvcc

EXAMPLES = Path(__file__).parent.parent / "examples"

MAIN = r"""
#include <cmath>
#include <cstdio>
#include <vector>

#include "grayscale.h"
#include "matmul.h"

static void* on_device(const void* host, size_t bytes)
{
    void* device = nullptr;
    if (cudaMalloc(&device, bytes) != cudaSuccess) return nullptr;
    cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice);
    return device;
}

static int grey_differs(int64_t n)
{
    std::vector<uint8_t> x(3 * n), out(n);
    for (int64_t i = 0; i < 3 * n; ++i) x[i] = static_cast<uint8_t>(i * 7919 % 251);
    auto* device_x = static_cast<uint8_t*>(on_device(x.data(), x.size()));
    auto* device_out = static_cast<uint8_t*>(on_device(out.data(), out.size()));
    if (rgb2grey_launch(device_x, device_out, n, nullptr) != cudaSuccess) return 1;
    if (cudaMemcpy(out.data(), device_out, n, cudaMemcpyDeviceToHost) != cudaSuccess) return 2;
    int wrong = 0;
    for (int64_t i = 0; i < n; ++i) {
        const float grey = 0.2989f * x[i] + 0.5870f * x[n + i] + 0.1140f * x[2 * n + i];
        wrong += std::fabs(grey - 0.5f - out[i]) > 0.5001f;  // truncated
    }
    cudaFree(device_x);
    cudaFree(device_out);
    return wrong;
}

static int product_differs(int h, int w, int k, bool by_hand)
{
    std::vector<float> m(h * k), n(k * w), out(h * w);
    for (int i = 0; i < h * k; ++i) m[i] = i % 7 - 3;
    for (int i = 0; i < k * w; ++i) n[i] = i % 5 - 2;
    auto* device_m = static_cast<float*>(on_device(m.data(), m.size() * sizeof(float)));
    auto* device_n = static_cast<float*>(on_device(n.data(), n.size() * sizeof(float)));
    auto* device_out = static_cast<float*>(on_device(out.data(), out.size() * sizeof(float)));
    const dim3 block(8, 4), grid((w + 7) / 8, (h + 3) / 4);
    const cudaError_t error =
        by_hand ? matmul_launch(device_m, device_n, device_out, h, w, k, grid, block, cudaStream_t(nullptr))
                : matmul_launch(device_m, device_n, device_out, h, w, k, nullptr);
    if (error != cudaSuccess) return 1;
    if (cudaMemcpy(out.data(), device_out, out.size() * sizeof(float), cudaMemcpyDeviceToHost) != cudaSuccess) return 2;
    int wrong = 0;
    for (int r = 0; r < h; ++r)
        for (int c = 0; c < w; ++c) {
            float o = 0;
            for (int i = 0; i < k; ++i) o += m[r * k + i] * n[i * w + c];
            wrong += o != out[r * w + c];
        }
    cudaFree(device_m);
    cudaFree(device_n);
    cudaFree(device_out);
    return wrong;
}

int main()
{
    const int wrong = grey_differs(1000) + grey_differs(1) + grey_differs(0) + product_differs(37, 20, 11, false) +
                      product_differs(37, 20, 11, true);
    std::printf("%d wrong\n", wrong);
    return wrong != 0;
}
"""


PROGRAM = ("layers", "matvec")  # the examples of `examples/program`


@pytest.fixture(params=["tests", "examples"])
def program(request, tmp_path):
    """A program of two examples: the one above, or that of `examples/program`."""
    is_above = request.param == "tests"
    names = ("grayscale", "matmul") if is_above else PROGRAM
    write_texts(tmp_path, names)
    main = MAIN if is_above else (EXAMPLES / "program" / "main.cpp").read_text(encoding="utf-8")
    (tmp_path / "main.cpp").write_text(main, encoding="utf-8")
    architecture = "native" if has_gpu() else "sm_75"
    sources = ["main.cpp", *(f"{name}.cu" for name in names)]
    run([nvcc(), *NVCC_STRICT, "--threads=2", f"-arch={architecture}", "-o", "program", *sources], tmp_path)
    return tmp_path / "program"


def write_texts(folder: Path, names: Iterable[str]) -> None:
    """Write `.cu` and `.h` of these examples."""
    for name in names:
        for text in translate_file(SourceFile.read(EXAMPLES / f"{name}.py")).cuda.files[:2]:
            (folder / text.name).write_text(text.text, encoding="utf-8")


def run(command: Sequence[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def has_gpu() -> bool:
    torch = pytest.importorskip("torch")
    return torch.cuda.is_available()


@pytest.mark.builds
def test_compiles_and_links(program):
    assert program.exists()


@pytest.mark.gpu
def test_computes(program):
    if not has_gpu():
        pytest.skip("no GPU here")
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert done.stdout in ("0 wrong\n", "0 of 1000 rows are wrong\n")
    assert done.returncode == 0


@pytest.mark.builds
@pytest.mark.slow
@pytest.mark.proof
@pytest.mark.skipif(shutil.which("cmake") is None, reason="needs cmake")
def test_cmake_builds_the_program_of_the_examples(tmp_path):
    shutil.copytree(EXAMPLES / "program", tmp_path, dirs_exist_ok=True)
    (tmp_path / "kernels").mkdir(exist_ok=True)
    write_texts(tmp_path / "kernels", PROGRAM)
    compiler = [f"-DCMAKE_CUDA_COMPILER={nvcc()}", "-DCMAKE_CUDA_ARCHITECTURES=75"]
    run(["cmake", "-S", ".", "-B", "build", *compiler], tmp_path)
    run(["cmake", "--build", "build"], tmp_path)
    assert (tmp_path / "build" / "program").exists()


@pytest.mark.parametrize("name", ["grayscale", "matmul"])
def test_needs_cuda_and_the_standard_library_alone(name):
    translation = translate_file(SourceFile.read(EXAMPLES / f"{name}.py"))
    assert translation.cuda.kernel.text.splitlines()[1] == f'#include "{name}.h"'  # compares the declarations
    for text in translation.cuda.files[:2]:
        includes = {line for line in text.text.splitlines() if line.startswith("#include")}
        assert includes <= {
            f'#include "{name}.h"',
            "#include <algorithm>",
            "#include <initializer_list>",
            "#include <cmath>",
            "#include <cstdint>",
            "#include <cuda_runtime.h>",
            "#include <cuda_runtime_api.h>",
            "#include <type_traits>",
        }
