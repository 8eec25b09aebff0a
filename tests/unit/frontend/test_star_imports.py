"""One text, one verdict: star imports mean to the decorator what they mean to who reads the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from py2cu.kernels import Kernel
from py2cu.pipeline import translate_file
from py2cu.source import SourceFile
from tests.support.constants import with_numbers
from tests.support.modules import import_file

KERNELS = """
@kernel(size="n", block=32)
def together(x: Float32[Tensor, "n"], out: Float32[Tensor, "n"], total: Float32[Tensor, "1"], t: Constexpr[int] = 32):
    tile = shared(t, x.dtype)
    i = blockIdx.x * blockDim.x + threadIdx.x
    tile[threadIdx.x] = x[i] if i < x.shape[0] else 0.
    syncthreads()
    v = shfl_sync(-1, tile[threadIdx.x], 0) + exp(v0(laneid, warpSize))
    if i < x.shape[0]:
        out[i] = tile[threadIdx.x] + v
        atomic.add(total, 0, tile[threadIdx.x])


def v0(lane, lanes):
    return float32(lane) / lanes


@kernel
def alone(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    acc = local(2, x.dtype)
    for k in unroll(range(2)):
        acc[k] = floor(x[i]) * k
    out[i] = acc[0] + acc[1] + pi
"""
OF_TORCH = """
@kernel
def of_torch(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    out[i] = exp(x[i])
"""
STARS = ("jaxtyping", "math", "numpy", "py2cu")


@pytest.mark.builds
@pytest.mark.parametrize(
    ("stars", "kernels"),
    [(STARS, KERNELS), (STARS[::-1], KERNELS), (("jaxtyping", "torch", "py2cu"), OF_TORCH)],
    ids=["py2cu last", "py2cu first", "torch"],
)
def test_a_kernel_is_read_alike_from_its_file_and_by_its_decorator(
    stars: tuple[str, ...], kernels: str, tmp_path: Path
) -> None:
    pytest.importorskip("torch")
    path = tmp_path / "starred.py"
    imports = [f"from {module} import *" for module in stars]
    path.write_text("\n".join([*imports, "from torch import Tensor", kernels]), encoding="utf-8")
    module = import_file(path)
    for name, kernel in vars(module).items():
        if isinstance(kernel, Kernel):
            alone = translate_file(SourceFile.read(path), only=name).cuda.kernel
            texts = [with_numbers("\n".join(each.code)) for each in (kernel.translation.cuda.kernel, alone)]
            own, read = ([line for line in text.split("\n") if line and "constexpr" not in line] for text in texts)
            assert own == read, "all but the lines that name the file, and constants"
            assert kernel.check().ok
