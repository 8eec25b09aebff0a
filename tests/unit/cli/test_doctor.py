"""The doctor looks at everything, raises nothing, and counts as missing only what a build here needs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import cast

import pytest

from py2cu import devices
from py2cu.build import driver, nvrtc, toolchain
from py2cu.cli import doctor
from py2cu.cli.doctor import Finding, State
from py2cu.diagnostics import EnvironmentLacks


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(driver, "load_driver", lambda: None)
    monkeypatch.setenv("PY2CU_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def fake_torch(version: str = "2.13.0", cuda: str | None = None, gpus: int = 0) -> ModuleType:
    functions = SimpleNamespace(
        is_initialized=lambda: gpus > 0,
        is_available=lambda: gpus > 0,
        device_count=lambda: gpus,
        get_device_name=lambda index: f"GPU {index}",
        get_device_capability=lambda index: (9, 0),
    )
    return cast("ModuleType", SimpleNamespace(__version__=version, version=SimpleNamespace(cuda=cuda), cuda=functions))


def diagnose(monkeypatch: pytest.MonkeyPatch, torch: ModuleType | str) -> dict[str, Finding]:
    monkeypatch.setattr(doctor, "_import_torch", lambda: torch)
    if not isinstance(torch, str):
        monkeypatch.setitem(sys.modules, "torch", torch)
    return {finding.component: finding for finding in doctor.diagnose()}


def test_every_component_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    found = diagnose(monkeypatch, fake_torch())
    of_cuda = ["NVRTC", "nvcc", "CUDA in torch", "GPU"]
    assert list(found) == ["Python", "torch", "C++ compiler", "ninja", *of_cuda, "cache"]
    assert found["Python"].state is found["torch"].state is found["cache"].state is State.OK
    assert all(finding.hint for finding in found.values() if finding.state is State.MISSING)


@pytest.fixture
def _without_bindings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As if neither cuda-bindings nor NVRTC were installed."""
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    nvrtc._nvrtc.cache_clear()
    yield
    nvrtc._nvrtc.cache_clear()


@pytest.mark.usefixtures("_without_bindings")
def test_without_cuda_bindings_nvcc_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "find_nvcc", lambda: Path("nvcc"))
    found = diagnose(monkeypatch, fake_torch(cuda="13.0", gpus=1))
    assert found["NVRTC"].state is State.WARN and found["NVRTC"].hint == "pip install cuda-bindings"
    assert found["NVRTC"].detail == "cuda-bindings is not installed; nvcc compiles instead, slower"
    monkeypatch.setattr(toolchain, "find_nvcc", lambda: None)
    found = diagnose(monkeypatch, fake_torch(cuda="13.0", gpus=1))
    assert found["NVRTC"].state is found["nvcc"].state is State.MISSING
    found = diagnose(monkeypatch, fake_torch())
    states = [found[name].state for name in ("NVRTC", "nvcc")]
    assert states == [State.WARN] * 2 and "only for calls on a GPU" in found["NVRTC"].detail


def test_a_gpu_with_nvrtc_needs_no_nvcc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvrtc, "nvrtc_version", lambda: (13, 0))
    monkeypatch.setattr(toolchain, "find_nvcc", lambda: None)
    found = diagnose(monkeypatch, fake_torch(cuda="13.0", gpus=1))
    assert (found["NVRTC"].state, found["NVRTC"].detail) == (State.OK, "13.0")
    assert found["nvcc"].state is State.WARN and "build --files" in found["nvcc"].detail


def test_an_old_driver_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise EnvironmentLacks("the driver supports CUDA 11.8; 12.0 is needed", "update it")

    monkeypatch.setattr(driver, "load_driver", refuse)
    finding = diagnose(monkeypatch, fake_torch(cuda="13.0", gpus=1))["GPU"]
    assert finding.state is State.MISSING and finding.hint == "update it"
    assert finding.detail == "GPU 0 (9.0); the driver supports CUDA 11.8; 12.0 is needed"


@pytest.mark.usefixtures("_without_bindings")
def test_a_cpu_machine_without_nvcc_lacks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("find_nvcc", None), ("find_cxx", Path("g++")), ("find_ninja", Path("ninja"))):
        monkeypatch.setattr(toolchain, name, lambda value=value: value)
    monkeypatch.setattr(devices, "capabilities", lambda: ())
    found = diagnose(monkeypatch, fake_torch())
    assert found["nvcc"].state is found["GPU"].state is found["CUDA in torch"].state is State.WARN
    assert doctor.exit_status(found.values()) == 0


@pytest.mark.usefixtures("_without_bindings")
def test_a_gpu_without_nvcc_lacks_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "find_nvcc", lambda: None)
    found = diagnose(monkeypatch, fake_torch(cuda="13.0", gpus=1))
    assert found["nvcc"].state is State.MISSING and "py2cu[cuda]" in str(found["nvcc"].hint)
    assert (found["GPU"].state, found["GPU"].detail) == (State.OK, "GPU 0 (9.0)")
    assert doctor.exit_status(found.values()) == 3


def test_a_gpu_that_torch_cannot_use_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "capabilities", lambda: ((9, 0),))
    found = diagnose(monkeypatch, fake_torch())
    assert "which torch cannot use" in found["GPU"].detail
    assert found["CUDA in torch"].state is State.MISSING


@pytest.mark.parametrize("torch", ["No module named 'torch'", fake_torch(version="2.9.1+cpu")])
def test_no_torch_or_an_old_one_is_missing(torch: ModuleType | str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = diagnose(monkeypatch, torch)
    assert found["torch"].state is State.MISSING and "torch>=2.11" in str(found["torch"].hint)
    assert doctor.exit_status(found.values()) == 3


def test_missing_compilers_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "find_cxx", lambda: None)
    monkeypatch.setattr(toolchain, "find_ninja", lambda: None)
    found = diagnose(monkeypatch, fake_torch())
    assert found["C++ compiler"].state is found["ninja"].state is State.MISSING
    assert found["ninja"].hint == "pip install ninja"


def test_a_cache_that_cannot_be_written_is_a_warning(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root.write_text("")
    finding = diagnose(monkeypatch, fake_torch())["cache"]
    assert finding.state is State.WARN and "PY2CU_CACHE_DIR" in str(finding.hint)
