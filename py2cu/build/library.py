"""Build and load the library of a translation: from the cache, else with a compiler.

In: `Artifacts`. Out: the path of a shared library, or the `torch.ops` namespace into which it is loaded.
Promises: a cached library is found and loaded without a compiler, a child process or torch's extension builder;
compiler messages are placed on Python lines (`BuildError`).

The key of a build is a hash of its content: texts, flags, torch's version, and what the flags depend on (GPU
architectures, the CPU for `-march=native`). The namespace contains the key, so two versions of a kernel can live in one
process.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from py2cu.build import cache, toolchain
from py2cu.build.compiler import Build
from py2cu.build.messages import build_error
from py2cu.build.notices import announced
from py2cu.build.store import FORMAT
from py2cu.diagnostics import EnvironmentLacks
from py2cu.source import SourceFile
from py2cu.threads import ForkSafeLock
from py2cu.translation import Artifacts, TargetName

__all__ = ["build_library", "load"]

_COMMON_FLAGS: Final = (
    "-DTORCH_TARGET_VERSION=0x020b000000000000",  # the stable ABI of torch 2.11: later ones load it too
    "-fvisibility=hidden",  # else two versions of a kernel in one process could share a launcher or its statics
)
"""`-x c++`, since load_inline writes the kernel to a file named .cu. Binding and kernel are two files, so that they
compile in parallel."""

_BINDING_FLAGS: Final = ("-O1",)
"""The binding only checks and calls: a higher level gains nothing measurable, and takes a quarter of the build."""

_NVCC_FLAGS: Final = (
    "-O3",
    "-Xcompiler=-fvisibility=hidden",
    # Torch disables the operators of half types; a .cu should compile here as it does with plain nvcc.
    "-U__CUDA_NO_HALF_OPERATORS__",
    "-U__CUDA_NO_HALF_CONVERSIONS__",
    "-U__CUDA_NO_HALF2_OPERATORS__",
    "-U__CUDA_NO_BFLOAT16_CONVERSIONS__",
)

_CPU_PRELUDE: Final = "#undef __F16C__  // else torch's half type includes all of immintrin.h, a quarter of the build\n"


def build_library(artifacts: Artifacts, *, fma: bool = True, source: Callable[[], SourceFile] | None = None) -> Path:
    """The path of the shared library of `artifacts`, compiled unless it is cached.

    `source` returns the Python that they were translated from, for messages. `fma=False` disables contraction.

    Raises:
        BuildError: a compiler refused the text.
        EnvironmentLacks: the library is not cached, and a tool to build it is missing.
    """
    return _library(_plan(artifacts, fma), artifacts, source)


def load(artifacts: Artifacts, *, fma: bool = True, source: Callable[[], SourceFile] | None = None) -> str:
    """Load the library of `artifacts` into this process, once; the ops are in `torch.ops.<the name returned>`.

    Raises:
        BuildError, EnvironmentLacks: as `build_library`; EnvironmentLacks also if the library is for CUDA and torch is
        built without CUDA.
    """
    plan = _plan(artifacts, fma)
    if plan.key not in _loaded:
        _require_cuda_in_torch(artifacts.target)
        path = _library(plan, artifacts, source)
        with _LOADING:
            if plan.key not in _loaded:
                _load(path, lambda: _library(plan, artifacts, source))
                _loaded.add(plan.key)
    return plan.namespace


_loaded: set[str] = set()
_LOADING: Final = ForkSafeLock()


def _load(path: Path, build: Callable[[], Path]) -> None:
    """Load `path`, whose content the cache has just checked; rebuild once what does not load here."""
    with contextlib.suppress(OSError):
        return load_path(path)
    cache.discard(path)
    try:
        load_path(build())
    except OSError as error:
        raise EnvironmentLacks(f"the built library does not load: {error}", "see `py2cu doctor`") from error


def load_path(path: Path) -> None:
    """Load a library with operators into this process."""
    import torch

    torch.ops.load_library(str(path))  # type: ignore[no-untyped-call]


def _require_cuda_in_torch(target: TargetName) -> None:
    import torch

    if target is TargetName.CUDA and torch.version.cuda is None:
        raise EnvironmentLacks(
            "this torch is built without CUDA", "install a CUDA build of torch (https://pytorch.org), or use the CPU"
        )


def _plan(artifacts: Artifacts, fma: bool) -> Build:
    import torch

    standard = cxx_standard(torch.__version__)
    cxx: tuple[str, ...]
    nvcc: tuple[str, ...]
    link: tuple[str, ...] = ("-Wl,--as-needed",)
    target = artifacts.target
    if target is TargetName.CUDA:
        machine = toolchain.gencode_flags(toolchain.gpu_architectures())
        cxx = (standard, *_COMMON_FLAGS, "-DUSE_CUDA")  # for the binding alone
        nvcc = (standard, *_NVCC_FLAGS, *machine, *(() if fma else ("--fmad=false",)))  # rule: no-contraction
        prelude = ""
    else:
        machine = (toolchain.cpu_identity(),)
        cxx, nvcc = (standard, *_COMMON_FLAGS, *toolchain.cpu_flags()), ()
        prelude, link = _CPU_PRELUDE, (*link, "-fopenmp")
    texts = [(text.name, text.text) for text in artifacts.files]
    flags = [cxx, _BINDING_FLAGS, nvcc]
    content = [FORMAT, torch.__version__, target.value, artifacts.name, texts, flags, machine]
    key = hashlib.sha256(json.dumps(content).encode()).hexdigest()
    namespace = re.sub(r"\W", "_", f"{target.value}_{artifacts.name}_{key[:12]}", flags=re.ASCII)
    return Build(namespace, key, *artifacts.files, prelude, cxx, _BINDING_FLAGS, nvcc, link)


def cxx_standard(torch_version: str) -> str:
    """C++17 builds a quarter faster than torch's default, C++20. Torch's headers are known to accept it up to 2.13."""
    major, minor = (int(part) for part in re.findall(r"\d+", torch_version)[:2])
    return "-std=c++17" if (major, minor) <= (2, 13) else "-std=c++20"


def _library(plan: Build, artifacts: Artifacts, source: Callable[[], SourceFile] | None) -> Path:
    step = announced(f"building {artifacts.name} for {artifacts.target.value}")
    return plan.library(step, lambda log: build_error(log, artifacts, source() if source else None))
