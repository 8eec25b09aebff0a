"""The documents are true: the IR and CUDA that they show, the files that they name, the program of `from-cuda.md`."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner

from py2cu.cli import app
from tests.support.compilers import NVCC_STRICT, nvcc
from tests.support.modules import import_file

ROOT: Final = Path(__file__).parents[1]
ARCHITECTURE: Final = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
README: Final = (ROOT / "README.md").read_text(encoding="utf-8")
FROM_CUDA: Final = (ROOT / "docs" / "from-cuda.md").read_text(encoding="utf-8")
_FILE: Final = re.compile(r"`([\w/]+\.py)`")


def blocks(language: str, page: str = ARCHITECTURE) -> list[tuple[str, str]]:
    """The fenced blocks of a page: what stands behind the language, and the text."""
    return re.findall(rf"^```{language} ?(\w*)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The kernel that the page follows, as a file."""
    ((_, python),) = blocks("python")
    path = tmp_path_factory.mktemp("page") / "centre.py"
    path.write_text(python, encoding="utf-8")
    return path


@pytest.mark.parametrize(("name", "lines"), blocks("ir"), ids=[name for name, _ in blocks("ir")])
def test_the_ir_is_what_the_pass_makes(source: Path, name: str, lines: str) -> None:
    result = CliRunner().invoke(app, ["translate", str(source), f"--dump-ir={name}"])
    assert result.exit_code == 0
    assert set(lines.splitlines()) <= set(result.stdout.splitlines())


def test_the_cuda_is_what_is_emitted(source: Path) -> None:
    ((_, cuda),) = blocks("cuda")
    assert cuda in CliRunner().invoke(app, ["translate", str(source)]).stdout


def test_the_cuda_of_the_readme_is_what_is_emitted(tmp_path: Path) -> None:
    (_, python), *_ = blocks("python", README)
    (_, cuda), *_ = blocks("cuda", README)
    path = tmp_path / "rgb2grey.py"
    path.write_text(python.partition("\ngrey = ")[0], encoding="utf-8")
    assert cuda in CliRunner().invoke(app, ["translate", str(path)]).stdout


@pytest.mark.builds
def test_the_program_of_from_cuda_runs(tmp_path: Path) -> None:
    """Its asserts hold; every block is Python or CUDA."""
    program = tmp_path / "program.py"
    program.write_text("".join(text for _, text in blocks("python", FROM_CUDA)), encoding="utf-8")
    import_file(program)
    assert len(blocks("", FROM_CUDA)) == len(blocks("(?:python|cuda)", FROM_CUDA))


@pytest.mark.builds
def test_the_cuda_of_from_cuda_compiles(tmp_path: Path) -> None:
    source = tmp_path / "program.cu"
    source.write_text("".join(text for _, text in blocks("cuda", FROM_CUDA)), encoding="utf-8")
    command = [nvcc(), *NVCC_STRICT, "-arch=sm_75", "-rdc=true", "-c", str(source), "-o", str(tmp_path / "program.o")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", ["docs/architecture.md", "docs/from-cuda.md", "CONTRIBUTING.md"])
def test_files_exist(page: str) -> None:
    named = set(_FILE.findall((ROOT / page).read_text(encoding="utf-8")))
    folders = [ROOT, ROOT / "py2cu", *(path.parent for path in (ROOT / "py2cu").rglob("__init__.py"))]
    assert {name for name in named if not any((folder / name).is_file() for folder in folders)} == set()
