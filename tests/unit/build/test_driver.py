"""What is missing to launch kernels is named; what needs a GPU stands in tests/gpu/test_driver.py."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from py2cu.build import driver, nvrtc
from py2cu.diagnostics import EnvironmentLacks


@pytest.fixture(autouse=True)
def _forgetful() -> Iterator[None]:
    driver.load_driver.cache_clear()
    yield
    driver.load_driver.cache_clear()


class Result(int):
    CUDA_SUCCESS = 0
    name = "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"


def library(version: int, status: int = 0) -> SimpleNamespace:
    """A driver of a version, which refuses every cubin."""
    return SimpleNamespace(
        CUresult=Result,
        cuInit=lambda flags: (Result(status),),
        cuDriverGetVersion=lambda: (Result(0), version),
        cuLibraryLoadData=lambda *arguments: (Result(222), None),
        cuGetErrorName=lambda result: (Result(0), b"CUDA_ERROR_UNSUPPORTED_PTX_VERSION"),
        cuGetErrorString=lambda result: (Result(0), b"the PTX was compiled with an unsupported toolchain"),
    )


def install(monkeypatch: pytest.MonkeyPatch, fake: object) -> None:
    monkeypatch.setitem(sys.modules, "cuda", SimpleNamespace(bindings=SimpleNamespace(driver=fake)))
    monkeypatch.setitem(sys.modules, "cuda.bindings", SimpleNamespace(driver=fake))


def test_without_cuda_bindings_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    with pytest.raises(EnvironmentLacks, match="pip install cuda-bindings"):
        driver.load_kernel(b"", "k")


def test_without_a_driver_the_error_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(flags: int) -> None:
        raise RuntimeError("libcuda.so.1 is missing")

    install(monkeypatch, SimpleNamespace(cuInit=missing))
    with pytest.raises(EnvironmentLacks, match="no NVIDIA driver"):
        driver.load_driver()


def test_an_old_driver_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, library(11080))
    with pytest.raises(EnvironmentLacks, match=r"supports CUDA 11\.8; 12\.0 is needed"):
        driver.load_driver()


def test_without_a_device_the_error_has_cudas_name(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, library(13000, status=100))
    with pytest.raises(EnvironmentLacks, match="CUDA does not start: CUDA_ERROR"):
        driver.load_driver()


def test_a_compiler_newer_than_the_driver_is_an_error_with_both_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, library(12040))
    monkeypatch.setattr(nvrtc, "nvrtc_version", lambda: (13, 0))
    with pytest.raises(EnvironmentLacks, match=r"the driver supports CUDA 12\.4, and NVRTC is of CUDA 13\.0"):
        driver.load_kernel(b"", "k")


def test_another_refusal_has_cudas_name_and_text(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, library(13000))
    monkeypatch.setattr(nvrtc, "nvrtc_version", lambda: (13, 0))
    with pytest.raises(RuntimeError, match="cannot load the kernel k: CUDA_ERROR_UNSUPPORTED_PTX_VERSION: the PTX"):
        driver.load_kernel(b"", "k")
