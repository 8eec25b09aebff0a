"""Files for Numba at the command line: `--signature`, and files that are run without Numba."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from py2cu.cli.app import app

FILE = """
from numba import cuda, float32, void


@cuda.jit
def scale(x, n):
    i = cuda.grid(1)
    if i < x.shape[0]:
        x[i] *= n


@cuda.jit(void(float32[::1], float32[::1]))
def copied(x, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "kernels.py"
    path.write_text(FILE, encoding="utf-8")
    return path


def translate(file: Path, *options: str) -> Result:
    return CliRunner().invoke(app, ["translate", str(file), *options])


def test_a_kernel_without_types_says_which_option_to_give(file: Path) -> None:
    result = translate(file)
    assert result.exit_code == 2
    assert 'or pass `--signature "scale(float32[:], int32)"`' in result.stderr


def test_signatures_type_the_kernels_that_they_name(file: Path) -> None:
    result = translate(file, "--signature", "scale(f8[::1], i4)")
    assert result.exit_code == 0, result.stderr
    assert "scale_kernel(double* __restrict__ x, index_t n, index_t x_size)" in result.stdout
    assert "copied_kernel(const float* __restrict__ x" in result.stdout
    strided = translate(file, "--signature", "scale(f8[::1], i4)", "--signature", "(f4[:], f4[:])")
    assert "index_t x_stride_0, index_t out_stride_0" in strided.stdout


def test_the_option_chooses_among_signatures(file: Path) -> None:
    file.write_text(
        FILE.replace("@cuda.jit\n", '@cuda.jit(["void(f4[::1], i4)", "void(f8[::1], i4)"])\n'), encoding="utf-8"
    )
    assert "a kernel of a file has one signature" in translate(file).stderr
    chosen = translate(file, "--signature", "scale(f8[::1], i4)")
    assert "scale_kernel(double* __restrict__ x" in chosen.stdout, chosen.stderr


@pytest.mark.parametrize(
    ("signature", "message"),
    [
        (
            "scale(f9[:], i4)",
            "`f9` is no type that a kernel can take\n  1 | scale(f9[:], i4)\n    |       ^^\n  hint: ",
        ),
        ("scales(f4[:], i4)", "no kernel here is called `scales`\n  1 | scales(f4[:], i4)\n    | ^^^^^^\n  hint: "),
        (
            "scale(f4[:], i4",
            "`scale(f4[:], i4` is no signature\n  1 | scale(f4[:], i4\n    | ^^^^^^^^^^^^^^^\n  hint: ",
        ),
        ("scale(f4[:])", "has 1 types, and `scale` 2 parameters"),
    ],
)
def test_what_a_signature_gets_wrong(file: Path, signature: str, message: str) -> None:
    result = translate(file, "--signature", signature)
    assert result.exit_code == 2
    assert message in result.stderr


WITHOUT_NUMBA = """
import sys
sys.modules["numba"] = None  # an import of it fails
from py2cu.cli.app import app
app(["check", *sys.argv[1:]], standalone_mode=False)
"""


OTHER_NAMES = """
import numba
import numba.cuda
import numba as nb
from numba import f4, njit, prange, types
from numba.core import types as inner
from numba_cuda_mlir import cuda as successor


@njit(inline="always")
def third(v):
    return v / inner.float64(3)


@successor.jit("void(float64[::1])")
def thirds(x):
    i = successor.grid(1)
    if i < x.size:
        x[i] = third(x[i])


@numba.cuda.jit("void(float64[::1])")
def scaled(x):
    i = nb.cuda.grid(1)
    kept = nb.cuda.local.array(2, f4)
    if i < x.size:
        kept[1] = types.float32(0.1)
        x[i] = x[i] * nb.float32(0.3) + kept[1]
"""


@pytest.mark.builds
@pytest.mark.parametrize("text", [FILE, OTHER_NAMES], ids=["names", "modules"])
def test_files_are_checked_without_numba(file: Path, text: str) -> None:
    pytest.importorskip("torch")
    file.write_text(text, encoding="utf-8")
    typed = ["--signature", "scale(f4[::1], i4)"] if text is FILE else []
    command = [sys.executable, "-c", WITHOUT_NUMBA, str(file), *typed, "--device", "cpu"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.count("agrees") >= text.count(".jit")


def test_kernels_without_arrays_have_launchers_alone(tmp_path: Path) -> None:
    path = tmp_path / "kernels.py"
    path.write_text(
        "from numba import cuda\n\n\n@cuda.jit\ndef hello():\n    print('hello', cuda.grid(1))\n", encoding="utf-8"
    )
    alone = translate(path, "--signature", "hello()")
    assert alone.exit_code == 0, alone.stderr
    assert "cudaError_t hello_launch(dim3 grid, dim3 block, cudaStream_t stream)" in alone.stdout
    assert "torch/csrc" not in alone.stdout
    path.write_text(path.read_text(encoding="utf-8") + FILE, encoding="utf-8")
    both = translate(path, "--signature", "hello()", "--signature", "scale(f8[::1], i4)")
    assert "hello_launch" in both.stdout and "scale.grid(" in both.stdout and "hello.grid(" not in both.stdout
