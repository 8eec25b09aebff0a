"""The documents for contributors are true: the IR that they show, and the files that they name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner

from py2cu.cli import app

ROOT: Final = Path(__file__).parents[1]
ARCHITECTURE: Final = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
_FILE: Final = re.compile(r"`([\w/]+\.py)`")


def blocks(language: str) -> list[tuple[str, str]]:
    """The fenced blocks of the page: what stands behind the language, and the text."""
    return re.findall(rf"^```{language} ?(\w*)\n(.*?)^```$", ARCHITECTURE, re.MULTILINE | re.DOTALL)


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


@pytest.mark.parametrize("page", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_files_exist(page: str) -> None:
    named = set(_FILE.findall((ROOT / page).read_text(encoding="utf-8")))
    folders = [ROOT, ROOT / "py2cu", *(path.parent for path in (ROOT / "py2cu").rglob("__init__.py"))]
    assert {name for name in named if not any((folder / name).is_file() for folder in folders)} == set()
