"""Emitted files link with each other: helpers and kernels are local to their file, launchers are not."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from py2cu.pipeline import translate_file
from py2cu.source import SourceFile
from py2cu.translation import TargetName, Translation
from tests.support.compilers import GXX_STRICT, NVCC_STRICT, gxx, nvcc, torch_headers
from tests.support.samples import proofs
from tests.test_goldens import EXAMPLES
from tests.test_goldens import translate as translate_example
from tests.test_kernel_cases import PRELUDE

# A helper of one name, one signature and one generic form in two files, for blocks of 128 and of 256 threads.
BLOCK_SUMS = """
from py2cu import blockIdx, shared, syncthreads, threadIdx
THREADS = {{n}}
WEIGHTS = (1.0, {{n}}.0)

def total(part, t, value):
    part[t] = value
    syncthreads()
    half = THREADS // 2
    while half > 0:
        if t < half:
            part[t] += part[t + half]
        syncthreads()
        half //= 2
    return part[0] * WEIGHTS[t % 2]

@kernel(size="rows * THREADS", block=THREADS)
def sums_of_{{n}}(x: Float32[Tensor, "rows {{n}}"], out: Float32[Tensor, "rows"]):
    part = shared(THREADS, np.float32)
    out[blockIdx.x] = total(part, threadIdx.x, x[blockIdx.x, threadIdx.x])

@kernel(size="rows * THREADS", block=THREADS)
def any_sums_of_{{n}}(x: Float[Tensor, "rows {{n}}"], out: Float[Tensor, "rows"]):
    part = shared(THREADS, x.dtype)
    out[blockIdx.x] = total(part, threadIdx.x, x[blockIdx.x, threadIdx.x])
"""
KERNELS = {
    "plain": """
@kernel
def twice(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    out[i] = 2 * x[i]
""",
    "generic": """
@kernel
def twice(i: Index["n"], x: Float[Tensor, "n"], out: Float[Tensor, "n"]):
    out[i] = 2 * x[i]
""",
    "template": """
@kernel
def twice(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"], k: Constexpr[int] = 2):
    out[i] = k * x[i]
""",
    "generic-template": """
@kernel
def twice(i: Index["n"], x: Float[Tensor, "n"], out: Float[Tensor, "n"], k: Constexpr[int] = 2):
    out[i] = k * x[i]
""",
}


THREADS = (128, 256)


def write(folder: Path, target: TargetName, name: str, python: str, namespace: str = "") -> str:
    """Write kernels and header of a translation; returns the name of the file to compile."""
    return write_texts(folder, translate_file(SourceFile(f"{name}.py", PRELUDE + python), namespace=namespace), target)


def write_texts(folder: Path, translation: Translation, target: TargetName) -> str:
    artifacts = translation.artifacts(target)
    for text in (artifacts.kernel, artifacts.header):
        (folder / text.name).write_text(text.text, encoding="utf-8")
    return artifacts.kernel.name


def done(command: Iterable[object], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(word) for word in command], cwd=folder, capture_output=True, text=True, check=False)


def compiled(folder: Path, target: TargetName, names: Sequence[str], *flags: str) -> list[str]:
    """The objects of these files, compiled without a warning."""
    if target is TargetName.CUDA:
        command = [nvcc(), *NVCC_STRICT, "-Xptxas=-O0", "--threads=2", "-arch=sm_75", *flags]
    else:
        command = [gxx(), *GXX_STRICT, *torch_headers(), "-O0"]
    result = done([*command, "-c", *names], folder)
    assert result.returncode == 0, result.stdout + result.stderr
    return [f"{Path(name).stem}.o" for name in names]


def linked(folder: Path, target: TargetName, objects: Sequence[str], *flags: str) -> subprocess.CompletedProcess[str]:
    """The link of these objects to a program."""
    command = [nvcc(), "-arch=sm_75", *flags] if target is TargetName.CUDA else [gxx()]
    return done([*command, *objects, "-o", "program"], folder)


def write_main(folder: Path, headers: Iterable[str], calls: Iterable[str]) -> str:
    """Write a program of these calls."""
    lines = [*(f'#include "{header}"' for header in headers), "int main()", "{", *(f"    {call};" for call in calls)]
    (folder / "main.cpp").write_text("\n".join([*lines, "}", ""]), encoding="utf-8")
    return "main.cpp"


@pytest.mark.builds
@pytest.mark.parametrize("flags", proofs([("-rdc=true",), (), ("-rdc=true", "-G")], 3), ids=" ".join)
def test_helpers_of_one_name_stay_in_their_file(flags, tmp_path):
    stems = [f"blocks_of_{threads}" for threads in THREADS]
    names = [write(tmp_path, TargetName.CUDA, f"blocks_of_{n}", BLOCK_SUMS.replace("{{n}}", str(n))) for n in THREADS]
    calls = [
        f"{kernel}_of_{n}_launch(static_cast<const float*>(nullptr), nullptr, 0, nullptr)"
        for kernel in ("sums", "any_sums")
        for n in THREADS
    ]
    main = write_main(tmp_path, [f"{stem}.h" for stem in stems], calls)
    objects = compiled(tmp_path, TargetName.CUDA, [*names, main], *flags)
    link = linked(tmp_path, TargetName.CUDA, objects, *flags)
    assert link.returncode == 0, link.stderr
    if "-G" in flags:  # nothing is inlined
        device = done([nvcc(), "-arch=sm_75", *flags, "-dlink", "-cubin", *objects, "-o", "program.cubin"], tmp_path)
        assert device.returncode == 0, device.stderr
        symbols = done(["readelf", "--symbols", "--wide", "program.cubin"], tmp_path).stdout
        for parameters in ("EPfif", "IfE"):  # total(float*, int, float), total<float>
            assert len(re.findall(rf" FUNC .*total{parameters}", symbols)) == len(THREADS), symbols


@pytest.mark.builds
@pytest.mark.slow
@pytest.mark.proof
@pytest.mark.parametrize("flags", [(), ("-rdc=true",)], ids=" ".join)
def test_all_examples_link(flags, tmp_path):
    names = [write_texts(tmp_path, translate_example(path), TargetName.CUDA) for path in EXAMPLES]
    main = write_main(tmp_path, [f"{path.stem}.h" for path in EXAMPLES], ())
    link = linked(tmp_path, TargetName.CUDA, compiled(tmp_path, TargetName.CUDA, [*names, main], *flags), *flags)
    assert link.returncode == 0, link.stderr


@pytest.mark.builds
@pytest.mark.parametrize(
    ("target", "form"),
    [
        *((TargetName.CPU, form) for form in KERNELS),
        *(pytest.param(TargetName.CUDA, *each.values, marks=each.marks) for each in proofs(KERNELS, len(KERNELS))),
    ],
)
def test_two_launchers_of_one_name_are_a_link_error(target, form, tmp_path):
    """They link in different namespaces."""
    names = [write(tmp_path, target, stem, KERNELS[form]) for stem in ("one", "other")]
    names.append(write(tmp_path, target, "third", KERNELS[form], namespace="mine::third"))
    headers = [name.replace(".cpp", ".h").replace(".cu", ".h") for name in (names[0], names[2])]
    types = ("float", "double") if "generic" in form else ("float",)
    last = ", nullptr" if target is TargetName.CUDA else ""
    launcher = "twice_launch<2>" if "template" in form else "twice_launch"
    main = write_main(
        tmp_path,
        headers,
        (
            f"{scope}{launcher}(static_cast<const {type_}*>(nullptr), nullptr, 0{last})"
            for scope in ("", "mine::third::")
            for type_ in types
        ),
    )
    one, other, third, program = compiled(tmp_path, target, [*names, main])
    assert linked(tmp_path, target, [one, third, program]).returncode == 0
    failure = linked(tmp_path, target, [one, other, program])
    assert failure.returncode != 0
    assert re.search(r"multiple definition of .*twice_launch", failure.stderr), failure.stderr
