"""A user's name may be whatever C's and CUDA's headers declare: each is taken for each kind of name, and compiled."""

from __future__ import annotations

import builtins
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from py2cu.pipeline import translate_file
from py2cu.source import SourceFile
from py2cu.translation import TargetName
from tests.support.header_names import header_names

pytestmark = [pytest.mark.builds, pytest.mark.slow]

IMPORTS = (
    "import numpy as np\nfrom jaxtyping import Float32\nfrom torch import Tensor\nfrom py2cu import kernel, shared\n"
)
OWN = {"np", "Float32", "Tensor", "kernel", "shared", "blockIdx", "threadIdx", *dir(builtins)}
KERNEL = """
{table} = (1.5, 2.5)


def {helper}({argument}):
    return {argument} + 1.


@kernel(size="{dim}", block=64)
def {function}(
    blockIdx, threadIdx, {array}: Float32[Tensor, "{dim}"], {number}: float, {out}: Float32[Tensor, "{dim}"]
):
    {dynamic} = shared({array}.shape[0], np.float32)
    {static} = shared(64, np.float32)
    {local} = {helper}({array}[threadIdx.x]) * {number}
    {dynamic}[threadIdx.x] = {local}
    {static}[threadIdx.x] = {dynamic}[threadIdx.x] + {table}[blockIdx.x % 2]
    {out}[threadIdx.x] = {static}[threadIdx.x]
"""
KINDS = sorted(set(re.findall(r"{(\w+)}", KERNEL)))
TURNS = range(len(KINDS))  # after all of them, each name has been of each kind
HEADERS = {
    "cuda": "algorithm cassert climits cmath cooperative_groups.h cstdint cstdio cuda/std/complex cuda_bf16.h "
    "cuda_fp16.h cuda_runtime.h",
    "cpu": "algorithm atomic cmath complex condition_variable cstdint cstdio cstring functional limits memory mutex "
    "omp.h optional stdexcept string thread ucontext.h vector",
}
COMPILERS = {
    "cuda": ["nvcc", "-arch=sm_90", "-std=c++17"],
    "cpu": ["g++", "-std=c++17", "-fopenmp"],
}
SYNTAX = {"cuda": ["-ptx", "-o", "/dev/null"], "cpu": ["-fsyntax-only"]}


def kernels_of(names: list[str], turn: int) -> str:
    """Kernels in which each of `names` is of one kind, another one each turn."""
    groups = [names[start : start + len(KINDS)] for start in range(0, len(names), len(KINDS))]
    kinds = KINDS[turn:] + KINDS[:turn]
    spare = [f"spare{number}" for number in range(len(KINDS))]
    texts = (
        KERNEL.format_map(dict(zip(kinds, [*group, *(f"{name}_{at}" for name in spare)], strict=False)))
        for at, group in enumerate(groups)
    )
    return IMPORTS + "".join(texts)


@pytest.fixture(scope="module", params=["cuda", "cpu"])
def target(request: pytest.FixtureRequest) -> TargetName:
    if shutil.which(COMPILERS[request.param][0]) is None:
        pytest.skip(f"needs {COMPILERS[request.param][0]}")
    return TargetName(request.param)


@pytest.fixture(scope="module")
def names(target: TargetName, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    source = tmp_path_factory.mktemp("headers") / ("all.cu" if target is TargetName.CUDA else "all.cpp")
    source.write_text("".join(f"#include <{header}>\n" for header in HEADERS[target].split()))
    return [name for name in header_names([*COMPILERS[target], "-E"], source) if name not in OWN]


@pytest.mark.parametrize("turn", [pytest.param(turn, marks=[pytest.mark.proof] if turn > 0 else []) for turn in TURNS])
def test_names_that_headers_declare(target: TargetName, names: list[str], turn: int, tmp_path: Path) -> None:
    file = SourceFile("named.py", kernels_of(names, turn))
    texts = translate_file(file, targets=[target]).artifacts(target)
    for text in (texts.kernel, texts.header):
        (tmp_path / text.name).write_text(text.text)
    command = [*COMPILERS[target], *SYNTAX[target], texts.kernel.name]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:6000]
