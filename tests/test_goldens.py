"""What the examples are translated to, kept as files and compiled by every compiler that is here.

`pytest --update-golden` rewrites the files; the diff is the review.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from py2cu.pipeline import translate_file
from py2cu.source import SourceFile
from py2cu.translation import TargetName, Translation
from tests.support.compilers import GXX_STRICT, NVCC_STRICT, gxx, nvcc, torch_headers
from tests.support.samples import proofs

HERE = Path(__file__).parent
EXAMPLES = [*sorted((HERE.parent / "examples").glob("*.py")), HERE.parent / "examples" / "gpt2" / "kernels.py"]
GOLDEN = HERE / "golden"
# The types of kernels that take them from a launch.
SIGNATURES = {
    "numba_kernels": (
        "cu_add_vectors(float32[::1], float32[::1], float32[::1])",
        "cu_mv_product(float32[:, ::1], float32[::1], float32[::1])",
        "sigmoid_forward(float32[::1], int32, float32[::1])",
        "sigmoid_backward(float32[::1], int32, float32[::1])",
        "tiled_matmul(float32[:, ::1], float32[:, ::1], float32[:, ::1])",
    )
}
WHOLE = {"grayscale", "matmul"}  # of these every file is kept, of the others the `.cu` and the host functions
ARCHITECTURES = ("75", "90", "100")


def translate(path: Path) -> Translation:
    namespace = "" if path.parent.name == "examples" else path.parent.name  # others have launchers of these names
    return translate_file(SourceFile.read(path), signatures=SIGNATURES.get(path.stem, ()), namespace=namespace)


def texts(path: Path) -> dict[str, str]:
    """The files to keep, by name."""
    translation = translate(path)
    files = [translation.cuda.kernel, *([translation.host] if translation.host is not None else [])]
    if path.stem in WHOLE:
        files = [*files, *translation.cuda.files[1:], *translation.texts[TargetName.CPU].files[:2]]
    return {file.name: file.text for file in files}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_translation_is_as_kept(path, request):
    emitted = texts(path)
    if request.config.getoption("--update-golden"):
        for name, text in emitted.items():
            (GOLDEN / name).write_bytes(text.encode())
    for name, text in emitted.items():
        assert text == (GOLDEN / name).read_bytes().decode(), f"tests/golden/{name} (--update-golden accepts it)"


@pytest.mark.slow
@pytest.mark.parametrize("path", proofs(EXAMPLES), ids=lambda path: path.stem)
def test_two_translations_of_one_file_are_equal(path):
    assert texts(path) == texts(path)


def test_every_golden_belongs_to_an_example():
    of_examples = {f"{path.stem}.cu" for path in EXAMPLES}
    more = [path for path in EXAMPLES if path.stem in WHOLE or "@host" in path.read_text(encoding="utf-8")]
    of_examples |= {name for path in more for name in texts(path)}
    assert {path.name for path in GOLDEN.iterdir()} == of_examples


@pytest.mark.builds
@pytest.mark.slow
@pytest.mark.parametrize("path", proofs(EXAMPLES, 9), ids=lambda path: path.stem)
@pytest.mark.parametrize(
    "sm", [ARCHITECTURES[0], *(pytest.param(sm, marks=pytest.mark.proof) for sm in ARCHITECTURES[1:])]
)
def test_cuda_compiles_without_warnings(path, sm, tmp_path):
    artifacts = translate(path).cuda
    for text in (artifacts.kernel, artifacts.header):
        (tmp_path / text.name).write_text(text.text, encoding="utf-8")
    source, made = tmp_path / artifacts.kernel.name, tmp_path / "kernel.o"
    compile_quietly([nvcc(), *NVCC_STRICT, "-O1", f"-arch=sm_{sm}", "-c", source, "-o", made])


@pytest.mark.builds
@pytest.mark.parametrize("path", proofs(EXAMPLES, 9), ids=lambda path: path.stem)
def test_cpu_text_compiles_without_warnings(path, tmp_path):
    artifacts = translate(path).artifacts(TargetName.CPU)
    for text in (artifacts.kernel, artifacts.header):
        (tmp_path / text.name).write_text(text.text, encoding="utf-8")
    headers = torch_headers() if "<torch/" in artifacts.header.text else ()
    source, made = tmp_path / artifacts.kernel.name, tmp_path / "kernel.o"
    compile_quietly([gxx(), *GXX_STRICT, *headers, "-O1", "-c", source, "-o", made])


def compile_quietly(command: list[str | Path]) -> None:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert not said, said
