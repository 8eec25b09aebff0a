"""Torch's headers, compiled once for all bindings of a test run: each of hundreds takes half its time to build.

The examples are built in processes of their own, as users build: there a binding has its includes and nothing else.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final

import filelock

from py2cu.build import toolchain
from py2cu.build.library import Build
from py2cu.translation import Artifacts
from tests.support.compilers import torch_headers

_HEADERS: Final = ("library.h", "ops.h", "tensor.h")


def with_headers(plan: Callable[..., Build], folder: Path) -> Callable[..., Build]:
    """`library._plan` with a precompiled header, kept in `folder`, for bindings of the CPU target."""

    def planned(artifacts: Artifacts, fma: bool) -> Build:
        build = plan(artifacts, fma)
        if build.for_cuda:
            return build
        return dataclasses.replace(build, prelude=f'#include "{_compiled(folder, build.prelude, build.cxx_flags)}"\n')

    return planned


@functools.cache
def _compiled(folder: Path, prelude: str, flags: tuple[str, ...]) -> Path:
    """The header; a compiler that cannot use what lies beside it reads the header itself."""
    name = f"torch_{hashlib.sha256(repr((prelude, flags)).encode()).hexdigest()[:16]}"
    header = folder / f"{name}.h"
    with filelock.FileLock(folder / f"{name}.lock"):
        if not header.exists():
            text = prelude + "".join(f"#include <torch/csrc/stable/{name}>\n" for name in _HEADERS)
            header.write_text(text, encoding="utf-8")
            own = [flag for flag in flags if flag not in ("-x", "c++")]
            command = [str(toolchain.find_cxx()), *own, "-fPIC", *torch_headers(), "-x", "c++-header"]
            subprocess.run([*command, str(header), "-o", f"{header}.gch"], capture_output=True, check=True)
    return header
