"""Kernels on two processes with gloo: DTensors, layers under DDP and FSDP2, and a new kernel that both call first."""

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from tests.support.distributed import (  # noqa: E402
    Layer,
    data,
    dtensors,
    first_call,
    losses,
    on_processes,
    silu,
    trained,
)

pytestmark = [pytest.mark.builds, pytest.mark.slow]


@pytest.mark.proof
def test_dtensors(tmp_path: Path) -> None:
    on_processes(tmp_path / "meeting", dtensors)


def test_layers_train_as_torchs_own_under_ddp_and_fsdp(tmp_path: Path) -> None:
    on_processes(tmp_path / "meeting", trained)
    alone = losses(Layer(torch.nn.functional.silu), *data())
    assert losses(Layer(silu), *data()) == pytest.approx(alone, rel=1e-5)


@pytest.mark.proof
def test_a_new_kernel_that_both_processes_call_is_built_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PY2CU_CACHE_DIR", str(tmp_path / "cache"))
    on_processes(tmp_path / "meeting", first_call)
