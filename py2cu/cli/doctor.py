"""Diagnose this machine: which tools to build and run kernels are present, and how to install missing ones.

In: the machine. Out: one `Finding` for each component, and the exit status; the command line prints them.
Promises: never raises. A component that `check` and `build` need is MISSING if absent (status 3); any other is a
warning.
"""

from __future__ import annotations

import enum
import platform
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Final

from py2cu import devices
from py2cu.build import driver, nvrtc, store, toolchain
from py2cu.diagnostics import EnvironmentLacks
from py2cu.translation import TargetName

EXIT_FINE: Final = 0
EXIT_LACKING: Final = 3

_OLDEST_PYTHON: Final = (3, 11)
_OLDEST_TORCH: Final = (2, 11)


class State(enum.Enum):
    OK = "ok"
    WARN = "warn"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Finding:
    """One component: its state, its version or place, and a hint if it needs attention."""

    component: str
    state: State
    detail: str
    hint: str | None = None


def diagnose() -> list[Finding]:
    """Examine every component, in the order in which a build uses it."""
    torch = _import_torch()
    examinations: tuple[Callable[[], Finding], ...] = (
        _python,
        lambda: _torch(torch),
        lambda: _tool("C++ compiler", toolchain.find_cxx(), toolchain.CXX_HINT),
        lambda: _tool("ninja", toolchain.find_ninja(), toolchain.NINJA_HINT),
        lambda: _nvrtc(torch),
        lambda: _nvcc(torch),
        lambda: _cuda(torch),
        lambda: _gpu(torch),
        _cache,
    )
    return [examine() for examine in examinations]


def exit_status(findings: Iterable[Finding]) -> int:
    """3 if a component that `check` and `build` need is missing, else 0."""
    return EXIT_LACKING if any(item.state is State.MISSING for item in findings) else EXIT_FINE


def _import_torch() -> ModuleType | str:
    """Torch, or the reason why it cannot be imported; a broken installation may raise anything."""
    try:
        import torch
    except Exception as error:
        return str(error).splitlines()[0] if str(error) else type(error).__name__
    return torch


def _python() -> Finding:
    detail = f"{platform.python_version()} ({sys.executable})"
    if sys.version_info < _OLDEST_PYTHON:
        return Finding("Python", State.MISSING, detail, "py2cu needs Python 3.11 or newer")
    return Finding("Python", State.OK, detail)


def _torch(torch: ModuleType | str) -> Finding:
    if isinstance(torch, str):
        return Finding("torch", State.MISSING, torch, "pip install 'torch>=2.11'")
    version = str(torch.__version__)
    if tuple(int(part) for part in version.split(".")[:2]) < _OLDEST_TORCH:
        return Finding("torch", State.MISSING, version, "pip install --upgrade 'torch>=2.11'")
    return Finding("torch", State.OK, version)


def _tool(component: str, path: Path | None, hint: str) -> Finding:
    if path is None:
        return Finding(component, State.MISSING, "not found", hint)
    return Finding(component, State.OK, str(path))


def _nvrtc(torch: ModuleType | str) -> Finding:
    """NVRTC and cuda-bindings, which compile the kernels of calls on a GPU; without them, nvcc does."""
    try:
        return Finding("NVRTC", State.OK, _dotted(nvrtc.nvrtc_version()))
    except EnvironmentLacks as lack:
        if toolchain.find_nvcc() is not None:
            return Finding("NVRTC", State.WARN, f"{lack.message}; nvcc compiles instead, slower", lack.hint)
        if _has_gpu(torch):
            return Finding("NVRTC", State.MISSING, lack.message, lack.hint)
        return Finding("NVRTC", State.WARN, f"{lack.message}; needed only for calls on a GPU", lack.hint)


def _nvcc(torch: ModuleType | str) -> Finding:
    """Missing only if there is a GPU, and no NVRTC to compile for it."""
    finding = _tool("nvcc", toolchain.find_nvcc(), toolchain.NVCC_HINT)
    if finding.state is State.OK or (_has_gpu(torch) and _nvrtc(torch).state is not State.OK):
        return finding
    return Finding("nvcc", State.WARN, "not found; needed only for `build --files` and `check --built`", finding.hint)


def _cuda(torch: ModuleType | str) -> Finding:
    if isinstance(torch, str):
        return Finding("CUDA in torch", State.WARN, "unknown without torch")
    if torch.version.cuda is None:
        state = State.MISSING if devices.capabilities() else State.WARN
        hint = "install a CUDA build of torch to run on a GPU: https://pytorch.org"
        return Finding("CUDA in torch", state, "none: this is a CPU build of torch", hint)
    return Finding("CUDA in torch", State.OK, str(torch.version.cuda))


def _gpu(torch: ModuleType | str) -> Finding:
    if not isinstance(torch, str) and _has_gpu(torch):
        numbers = range(torch.cuda.device_count())
        names = [f"{torch.cuda.get_device_name(i)} ({_dotted(torch.cuda.get_device_capability(i))})" for i in numbers]
        try:
            driver.load_driver()
        except EnvironmentLacks as lack:
            return Finding("GPU", State.MISSING, f"{', '.join(names)}; {lack.message}", lack.hint)
        return Finding("GPU", State.OK, ", ".join(names))
    if capabilities := devices.capabilities():
        detail = f"{len(capabilities)} of capability {_dotted(capabilities[0])}, which torch cannot use"
        return Finding("GPU", State.WARN, detail, "check the driver, CUDA_VISIBLE_DEVICES and torch's CUDA version")
    return Finding("GPU", State.WARN, "none; kernels run on the CPU")


def _has_gpu(torch: ModuleType | str) -> bool:
    return not isinstance(torch, str) and devices.best() is TargetName.CUDA


def _dotted(capability: tuple[int, int]) -> str:
    return ".".join(map(str, capability))


def _cache() -> Finding:
    try:
        store.probe()
    except EnvironmentLacks as lack:
        return Finding("cache", State.WARN, lack.message, lack.hint)
    sizes = [entry.size for entry in store.entries()]
    return Finding("cache", State.OK, f"{store.location()} ({len(sizes)} entries, {sum(sizes) / 2**20:.1f} MB)")
