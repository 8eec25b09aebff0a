"""The examples run, as a newcomer runs them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
torch = pytest.importorskip("torch")

from py2cu import Kernel  # noqa: E402
from py2cu.ir.abi.gradients import match_backwards  # noqa: E402
from tests.support.modules import import_file  # noqa: E402

LONGEST = "train_digits"


@pytest.mark.builds
@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=[pytest.mark.proof] if path.stem == LONGEST else []) for path in EXAMPLES],
    ids=lambda path: path.stem,
)
def test_example_runs(path, tmp_path, monkeypatch, capsys):
    pytest.importorskip("skimage")
    pytest.importorskip("sklearn")
    monkeypatch.chdir(tmp_path)
    import_file(path).main()
    said = capsys.readouterr().out
    assert "agrees with its Python" in said
    assert "DIFFERS" not in said
    assert "not checked" not in said


@pytest.mark.builds
def test_first_command_of_the_readme(tmp_path):
    pytest.importorskip("skimage")
    command = [sys.executable, str(ROOT / "examples" / "grayscale.py")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) <= 8
    made = {path.name for path in (tmp_path / "out").iterdir()}
    assert made == {"grey.png", "rgb2grey.cu", "rgb2grey.h", "rgb2grey.cpp"}
    assert all(f"out/{name}" in done.stdout for name in made)


@pytest.mark.builds
@pytest.mark.slow
@pytest.mark.proof
def test_digits_train_in_two_processes():
    pytest.importorskip("sklearn")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    paths = os.pathsep.join([str(ROOT), *sys.path])
    environment = {**os.environ, "PYTHONPATH": paths, "CUDA_VISIBLE_DEVICES": "", "GLOO_SOCKET_IFNAME": "lo"}
    done = subprocess.run(
        [*command, str(ROOT / "examples" / "train_digits.py")],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    accuracies = [line.split()[-3] for line in done.stdout.splitlines() if "%" in line]
    assert len(accuracies) == 3  # of one process
    assert min(map(float, accuracies)) > 90
    assert done.stdout.count("agrees with its Python") == 3


def test_every_example_says_how_it_is_run():
    for path in EXAMPLES:
        assert f"\n    python examples/{path.name}\n" in path.read_text(encoding="utf-8")


TRAINABLE = [path for path in EXAMPLES if ".backward" in path.read_text(encoding="utf-8")]


@pytest.mark.slow
@pytest.mark.parametrize("path", TRAINABLE, ids=lambda path: path.stem)
def test_gradients_of_every_example_can_be_checked_in_float64(path):
    pytest.importorskip("sklearn")
    kernels = [each for each in vars(import_file(path)).values() if isinstance(each, Kernel) and each.backwards]
    assert kernels
    for each in kernels:
        twin = each.with_options(float64=True)
        assert twin.signature.arrays
        assert match_backwards(twin.signature, [backward.signature for backward in twin.backwards]).all_roles
