"""The annotations of kernels, as `typing` and type checkers see them."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import typing
from pathlib import Path
from typing import Annotated, Final

import numpy as np
import pytest
from jaxtyping import Float32
from torch import Tensor

from py2cu import Constexpr, Index, kernel

ROOT: Final = Path(__file__).parents[2]
README: Final = (ROOT / "README.md").read_text(encoding="utf-8")
EXAMPLE: Final = README.split("```python\n")[1].partition("```")[0]
EDITS: Final = {
    'Index["n"]': 'Index[int, "n"]',
    "]):": "]) -> None:",
    "from jaxtyping": "import torch\nfrom jaxtyping",
    "grey = ": "pixels = torch.zeros(3, 4)\ngrey = ",
}
TYPED: Final = functools.reduce(lambda text, edit: text.replace(*edit), EDITS.items(), EXAMPLE)


@kernel
def scaled(
    i: Index["n"],  # noqa: UP037
    j: Index[int, "m"],  # noqa: UP037
    x: Float32[Tensor, "n m"],
    out: Float32[Tensor, "n m"],
    by: float,
    times: np.int32,
    tile: Constexpr[int] = 4,
) -> None:
    out[i, j] = x[i, j] * by * times * tile


POSTPONED: Final = {"i": int, "j": int, "by": float, "times": np.int32, "tile": int, "return": type(None)}


def test_hints_of_postponed_annotations() -> None:
    hints = typing.get_type_hints(scaled)
    assert {name: hint for name, hint in hints.items() if name not in ("x", "out")} == POSTPONED
    assert hints["x"].__name__ == "Float32[Tensor, 'n m']"
    assert typing.get_type_hints(scaled.python).keys() == hints.keys()


def test_hints_of_evaluated_annotations() -> None:
    names = {"Index": Index, "kernel": kernel}
    exec("@kernel\ndef f(i: Index['n'], j: Index[int, 'n'], k: Index[4]): pass", names)  # without this file's future
    assert typing.get_type_hints(names["f"]) == {"i": int, "j": int, "k": int}


def test_both_forms_are_one_annotation() -> None:
    assert Index["n"] == Index[int, "n"] != Index[int, "m"]
    assert typing.get_origin(Index["n"]) is Annotated
    assert typing.get_args(Index[int, 64])[0] is int


@pytest.mark.parametrize("wrong", [int, (float, "n"), ("h", "w"), (int, "h", "w"), (int, 2.5), None])
def test_other_arguments_raise(wrong: object) -> None:
    with pytest.raises(TypeError, match="Index"):
        Index[wrong]


# --- type checkers ---


def run(folder: Path, *command: str) -> str:
    """What `command` prints about the README's example with `Index[int, "n"]`; empty if it finds nothing."""
    folder.joinpath("example.py").write_text(TYPED, encoding="utf-8")
    environment = {**os.environ, "MYPYPATH": str(ROOT), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([*command, "example.py"], cwd=folder, env=environment, capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.proof
def test_mypy_accepts_the_example(tmp_path: Path) -> None:
    config, cache = ROOT / "pyproject.toml", ROOT / ".mypy_cache"  # which holds torch's types already
    assert run(tmp_path, sys.executable, "-m", "mypy", "--config-file", str(config), "--cache-dir", str(cache)) == ""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pyright") is None, reason="pyright is a package of npm")
def test_pyright_accepts_the_example(tmp_path: Path) -> None:
    (tmp_path / "py2cu").symlink_to(ROOT / "py2cu")
    (tmp_path / "pyrightconfig.json").write_text('{"include": ["example.py"]}', encoding="utf-8")
    assert run(tmp_path, "pyright", "--pythonpath", sys.executable) == ""


def test_ruff_accepts_the_example_without_two_rules(tmp_path: Path) -> None:
    assert (
        run(tmp_path, sys.executable, "-m", "ruff", "check", "--isolated", "--select", "F", "--ignore", "F722,F821")
        == ""
    )
