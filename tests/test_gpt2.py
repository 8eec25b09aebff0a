"""`examples/gpt2`: it trains as torch does, on the CPU and in two processes, and refuses bad input by name."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

torch = pytest.importorskip("torch")

from tests.support.modules import import_file  # noqa: E402

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "examples" / "gpt2"
TRAIN = FOLDER / "train.py"
NEEDS_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
DEVICES = ["cpu", pytest.param("cuda", marks=[pytest.mark.gpu, NEEDS_GPU])]


@pytest.fixture
def train(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module; Python puts its folder on the path where it runs it as a program."""
    monkeypatch.syspath_prepend(FOLDER)
    for name in ("model", "kernels"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return import_file(TRAIN)


def losses_of(
    train: ModuleType, *, by_kernels: bool, dtype: torch.dtype, device: str, compiled: bool = False
) -> list[float]:
    text = train.read_text(ROOT / "examples")
    return train.train(
        train.SIZES["tiny"], text, by_kernels=by_kernels, dtype=dtype, device=device, steps=20, batch=2, length=32,
        lr=1e-3, compiled=compiled,
    )  # fmt: skip


@pytest.mark.builds
@pytest.mark.slow
@pytest.mark.proof
def test_every_kernel_agrees_with_its_python(capsys: pytest.CaptureFixture[str]) -> None:
    import_file(FOLDER / "kernels.py").main()
    said = capsys.readouterr().out
    assert said.count("agrees with its Python") + said.count("is not checked") == 2 * 14
    assert "DIFFERS" not in said
    assert said.count("is not checked") <= 1  # stochastic rounding takes bits


@pytest.mark.builds
@pytest.mark.slow
@pytest.mark.proof
def test_invented_cases_grow_to_what_the_classifier_reads_and_stay_within_the_budget() -> None:
    report = import_file(FOLDER / "kernels.py").classifier.check()
    assert report.ok
    assert report.compared


@pytest.mark.builds
@pytest.mark.parametrize("device", DEVICES)
def test_losses_of_twenty_steps_are_those_of_torch(train: ModuleType, device: str) -> None:
    ours, theirs = (
        losses_of(train, by_kernels=by_kernels, dtype=torch.float32, device=device) for by_kernels in (True, False)
    )
    assert ours == pytest.approx(theirs, rel=1e-4)
    assert ours[-1] < ours[0] - 1


@pytest.mark.builds
@pytest.mark.slow
@pytest.mark.proof
@pytest.mark.parametrize("device", DEVICES)
def test_bfloat16_trains_as_well(train: ModuleType, device: str) -> None:
    ours, theirs = (
        losses_of(train, by_kernels=by_kernels, dtype=torch.bfloat16, device=device) for by_kernels in (True, False)
    )
    assert ours == pytest.approx(theirs, rel=2e-2)


@pytest.mark.builds
@pytest.mark.slow
@pytest.mark.proof
def test_losses_are_the_same_under_torch_compile(train: ModuleType) -> None:
    eager, compiled = (
        losses_of(train, by_kernels=True, dtype=torch.float32, device="cpu", compiled=compiled)
        for compiled in (False, True)
    )
    assert compiled == pytest.approx(eager, rel=1e-4)


def run(*arguments: object, launcher: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join([str(ROOT), *sys.path])
    environment = {**os.environ, "PYTHONPATH": paths, "CUDA_VISIBLE_DEVICES": "", "GLOO_SOCKET_IFNAME": "lo"}
    command = [sys.executable, *launcher, str(TRAIN), *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.builds
@pytest.mark.slow
@pytest.mark.proof
def test_two_processes_train_as_torch_does() -> None:
    launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    done = run("--steps", 20, "--batch", 2, launcher=launcher)
    assert done.returncode == 0, done.stderr
    ours, theirs = ([float(loss) for loss in line.split()[1:]] for line in done.stdout.splitlines()[-2:])
    assert ours == pytest.approx(theirs, abs=1e-3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--size", "medium"], "argument --size: invalid choice: 'medium' (choose from"),
        (["--length", 65], "--length 65: the model has 64 positions"),
        (["--batch", 0], "--batch must be at least 1"),
        (["--text", FOLDER.parent / "program"], "have 0 bytes, and a sequence takes 65"),
    ],
    ids=["size", "length", "batch", "text"],
)
def test_bad_input_is_refused(
    train: ModuleType, arguments: list[object], message: str, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr(sys, "argv", ["train.py", *map(str, arguments)])
    with pytest.raises(SystemExit) as refused:
        train.main()
    assert refused.value.code == 2
    assert message in capsys.readouterr().err


def test_a_sequence_longer_than_the_model_is_refused(train: ModuleType) -> None:
    model = train.GPT2(train.SIZES["tiny"], train.Torch)
    tokens = torch.zeros(1, 65, dtype=torch.int64)
    with pytest.raises(ValueError, match="the sequences have 65 tokens, the model has 64 positions"):
        model(tokens, tokens, *train.buckets(tokens))
