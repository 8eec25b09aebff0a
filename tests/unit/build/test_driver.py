"""What is missing to launch kernels is named; what needs a GPU stands in tests/gpu/test_driver.py."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import pytest

from py2cu.build import driver, nvrtc
from py2cu.diagnostics import EnvironmentLacks


@pytest.fixture(autouse=True)
def _forgetful() -> Iterator[None]:
    driver.load_driver.cache_clear()
    yield
    driver.load_driver.cache_clear()


class Driver:
    """A driver of a version, which refuses every cubin."""

    def __init__(self, version: int, status: int = 0) -> None:
        self.version, self.status = version, status

    def cuInit(self, flags: int) -> int:
        assert flags == 0
        return self.status

    def cuDriverGetVersion(self, version: Any) -> int:
        version._obj.value = self.version
        return 0

    def cuLibraryLoadData(self, *_: object) -> int:
        return 222

    def cuGetErrorName(self, status: int, name: Any) -> int:
        name._obj.value = b"CUDA_ERROR_UNSUPPORTED_PTX_VERSION"
        return 0

    def cuGetErrorString(self, status: int, text: Any) -> int:
        text._obj.value = b"the PTX was compiled with an unsupported toolchain"
        return 0


def install(monkeypatch: pytest.MonkeyPatch, fake: Driver) -> None:
    monkeypatch.setattr(ctypes, "CDLL", {"libcuda.so.1": fake}.__getitem__)


def test_without_a_driver_the_error_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(ctypes, "CDLL", missing)
    with pytest.raises(EnvironmentLacks, match="no NVIDIA driver"):
        driver.load_driver()


def test_an_old_driver_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, Driver(11080))
    with pytest.raises(EnvironmentLacks, match=r"supports CUDA 11\.8; 12\.0 is needed"):
        driver.load_driver()


def test_without_a_device_the_error_has_cudas_name(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, Driver(13000, status=100))
    with pytest.raises(EnvironmentLacks, match="CUDA does not start: CUDA_ERROR"):
        driver.load_driver()


def test_a_compiler_newer_than_the_driver_is_an_error_with_both_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, Driver(12040))
    monkeypatch.setattr(nvrtc, "nvrtc_version", lambda: (13, 0))
    with pytest.raises(EnvironmentLacks, match=r"the driver supports CUDA 12\.4, and NVRTC is of CUDA 13\.0"):
        driver.load_kernel(b"", "k")


def test_another_refusal_has_cudas_name_and_text(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, Driver(13000))
    monkeypatch.setattr(nvrtc, "nvrtc_version", lambda: (13, 0))
    with pytest.raises(RuntimeError, match="cannot load the kernel k: CUDA_ERROR_UNSUPPORTED_PTX_VERSION: the PTX"):
        driver.load_kernel(b"", "k")
