"""What launchers say of shared memory that the launch sizes."""

from __future__ import annotations

import pytest

from py2cu.diagnostics import EnvironmentLacks
from py2cu.options import NO_VALUES, Values
from py2cu.pipeline import translate_file
from py2cu.source import SourceFile
from py2cu.translation import TargetName, Translation

HEAD = """\
import numpy as np
from jaxtyping import Float, Float32, Int32
from torch import Tensor
from py2cu import Constexpr, atomic, blockDim, blockIdx, kernel, shared, shfl_sync, syncthreads, threadIdx

"""
BODY = """
    i = blockIdx.x * blockDim.x + threadIdx.x
    syncthreads()
    if i < len(x):
        out[i] = x[i] + a[0]
"""


def launcher(parameters: str, lines: str, values: Values = NO_VALUES, dtype: str = "Float32") -> str:
    """The launcher on an explicit grid, of a kernel that makes these arrays."""
    head = f'@kernel\ndef f(x: {dtype}[Tensor, "n"], out: {dtype}[Tensor, "n"], {parameters}):\n'
    file = SourceFile("f.py", HEAD + head + lines + BODY)
    text = translate_file(file, values=values).cuda.kernel.text
    name = "launch_f" if "launch_f" in text else "f_launch"  # of a template, and of a function
    return text[text.index(f"cudaError_t {name}(") :].partition("\n}\n")[0].partition("\n{\n")[2]


def test_the_launch_gives_as_many_bytes_as_the_arrays_need() -> None:
    lines = "    a = shared(3 * (m + 1), np.float64)\n    b = shared(blockDim.x // 2, np.int8)\n"
    bytes_ = "3 * (m + 1) * sizeof(double) + block.x / 2 * sizeof(int8_t)"
    assert launcher("m: int", lines).splitlines()[:5] == [
        f"    const size_t shared_bytes = {bytes_};",
        "    if (shared_bytes > 48 * 1024 && allow_shared(f_kernel<int>, shared_bytes) != cudaSuccess)",
        "        return cudaGetLastError();",
        "    if (shared_bytes > 48 * 1024 && allow_shared(f_kernel<int64_t>, shared_bytes) != cudaSuccess)",
        "        return cudaGetLastError();",
    ]
    assert "f_kernel<int><<<grid, block, shared_bytes, stream>>>(" in launcher("m: int", lines)


def test_beside_static_arrays_a_kernel_always_asks() -> None:
    lines = "    a = shared(m, np.float32)\n    b = shared(64, np.float32)\n"
    assert "    if (allow_shared(f_kernel<int>, shared_bytes) != cudaSuccess)" in launcher("m: int", lines)


def test_arrays_that_are_too_large_together_are_not_all_static() -> None:
    lines = "    a = shared(8192, np.float32)\n    b = shared(8192, np.float32)\n"
    assert "shared_bytes = 8192 * sizeof(float);" in launcher("m: int", lines)


@pytest.mark.parametrize(("values", "is_static"), [((16,), True), ((48,), True), ((16, 64), False)])
def test_arrays_of_templates_are_as_large_as_in_the_largest_instance(values: tuple[int, ...], is_static: bool) -> None:
    lines = "    a = shared(k * 256, np.float32)\n"
    text = launcher("k: Constexpr[int] = 16", lines, {"k": values})
    assert ("<<<grid, block, 0, stream>>>" in text) is is_static
    assert ("shared_bytes = k * 256 * sizeof(float);" in text) is not is_static


def test_generic_arrays_are_as_large_as_of_the_widest_type() -> None:
    lines = "    a = shared(8192, x.dtype)\n"
    assert "shared_bytes = 8192 * sizeof(T)" in launcher("m: int", lines, dtype="Float")


def test_without_such_arrays_a_launch_is_as_it_was() -> None:
    assert "<<<grid, block, 0, stream>>>" in launcher("m: int", "    a = shared(8, np.float32)\n")


def test_extents_that_a_local_hides_keep_their_meaning() -> None:
    lines = "    n = 3\n    a = shared(n, np.float32)\n    h = 2\n"
    assert "const size_t shared_bytes" not in launcher("h: int", lines.replace("    h = 2\n", ""))
    restated = "    n, = x.shape\n    a = shared(n, np.float32)\n"
    assert "shared_bytes = n * sizeof(float);" in launcher("m: int", restated)


def test_there_is_no_text_for_the_cpu_where_functions_wait_and_return_early() -> None:
    wait = "def wait(v, n):\n    if n > 3:\n        return v\n    syncthreads()\n    return v + 1\n\n\n"
    head = '@kernel\ndef f(x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):\n    v = wait(x[0], len(x))\n'
    lines = "    i = blockIdx.x * blockDim.x + threadIdx.x\n    if i < len(x):\n        out[i] = v\n"
    translation = translate_file(SourceFile("f.py", HEAD + wait + head + lines))
    assert lack_of_cpu(translation) == "`wait`, in which threads wait for each other, returns early in line 8"


def lack_of_cpu(translation: Translation) -> str:
    """Why a translation has no text for the CPU."""
    with pytest.raises(EnvironmentLacks, match="f has no CPU version: ") as error:
        translation.artifacts(TargetName.CPU)
    return str(error.value).splitlines()[0].partition(": ")[2]


def test_there_is_no_text_for_the_cpu_where_functions_wait_and_call_themselves() -> None:
    wait = "def wait(n):\n    if n > 0:\n        wait(n - 1)\n    syncthreads()\n\n\n"
    head = '@kernel\ndef f(x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):\n'
    lines = "    wait(3)\n    out[threadIdx.x] = x[0]\n"
    translation = translate_file(SourceFile("f.py", HEAD + wait + head + lines))
    assert lack_of_cpu(translation) == "`wait`, in which threads wait for each other, calls itself in line 6"


@pytest.mark.parametrize("array", ["flag", "x"])
def test_there_is_no_text_for_the_cpu_where_a_warp_waits_for_another_one_of_its_block(array: str) -> None:
    head = '@kernel\ndef f(x: Int32[Tensor, "n"], out: Int32[Tensor, "n"]):\n    flag = shared(1, np.int32)\n'
    lines = (
        "    if threadIdx.x < 32:\n"
        "        seen = 0\n"
        "        while seen == 0:\n"
        "            if threadIdx.x == 0:\n"
        f"                seen = atomic.add({array}, 0, 0)\n"
        "            seen = shfl_sync(0xFFFFFFFF, seen, 0)\n"
        "    else:\n"
        f"        atomic.exch({array}, 0, 1)\n"
        "    out[0] = 1\n"
    )
    translation = translate_file(SourceFile("f.py", HEAD + head + lines))
    if array == "x":
        assert TargetName.CPU in translation.texts
    else:
        assert lack_of_cpu(translation) == "threads wait for those of another branch of their block in line 11"
