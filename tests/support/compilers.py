"""The compilers that tests call themselves; a test whose compiler is not here is skipped, with the reason."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from py2cu.build import toolchain

NVCC_STRICT = ("-std=c++17", "-Xcompiler=-Wall,-Wextra,-Wno-unused-parameter,-Werror", "-Werror=all-warnings")
# Who fills shared memory is another thread, which compilers do not follow: hence the last one.
GXX_STRICT = (
    "-std=c++17", "-Wall", "-Wextra", "-Wno-unknown-pragmas", "-Wno-unused-parameter", "-Werror",
    "-Wno-maybe-uninitialized",
)  # fmt: skip


def nvcc() -> str:
    path = toolchain.find_nvcc()
    if path is None:
        pytest.skip("no nvcc here")
    return str(path)


def torch_headers() -> tuple[str, ...]:
    """Where the half types of the CPU's text come from."""
    found = importlib.util.find_spec("torch")
    if found is None or found.origin is None:
        pytest.skip("no torch here")
    return ("-isystem", str(Path(found.origin).parent / "include"))


def gxx() -> str:
    path = toolchain.find_cxx()
    if path is None:
        pytest.skip("no C++ compiler here")
    return str(path)
