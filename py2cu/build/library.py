"""The libraries of written files: how `py2cu build --files` and `check --built` build and load them.

In: `Artifacts`. Out: the path of a shared library, or the `torch.ops` namespace into which it is loaded.

The key of a build is a hash of its content: texts, flags, torch's version, and what the flags depend on (GPU
architectures, the CPU for `-march=native`). The namespace contains the key, so two versions of a kernel can live in one
process.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Final

from py2cu.build import toolchain
from py2cu.build.compiler import Build
from py2cu.build.libraries import Source
from py2cu.build.store import FORMAT
from py2cu.diagnostics import EnvironmentLacks
from py2cu.translation import Artifacts, TargetName

_COMMON_FLAGS: Final = (
    "-DTORCH_TARGET_VERSION=0x020b000000000000",  # the stable ABI of torch 2.11: later ones load it too
    "-fvisibility=hidden",  # else two versions of a kernel in one process could share a launcher or its statics
)

_NVCC_FLAGS: Final = (
    "-O3",
    "-Xcompiler=-fvisibility=hidden",
    # Torch disables the operators of half types; a .cu should compile here as it does with plain nvcc.
    "-U__CUDA_NO_HALF_OPERATORS__",
    "-U__CUDA_NO_HALF_CONVERSIONS__",
    "-U__CUDA_NO_HALF2_OPERATORS__",
    "-U__CUDA_NO_BFLOAT16_CONVERSIONS__",
)

_CPU_PRELUDE: Final = """\
#undef __F16C__  // else torch's half type includes all of immintrin.h, a quarter of the build
#pragma GCC optimize("O1")  // a binding only checks and calls; `load_inline` has one set of flags for both files
"""


def build_library(artifacts: Artifacts, *, fma: bool = True, source: Source | None = None) -> Path:
    """The path of the shared library of `artifacts`, compiled unless it is cached.

    `fma=False` disables contraction.

    Raises:
        BuildError: a compiler refused the text.
        EnvironmentLacks: the library is not cached, and a tool to build it is missing.
    """
    return _plan(artifacts, fma).library(source)


def load(artifacts: Artifacts, *, fma: bool = True, source: Source | None = None) -> str:
    """Load the library of `artifacts` into this process, once; the ops are in `torch.ops.<the name returned>`.

    Raises:
        BuildError, EnvironmentLacks: as `build_library`; EnvironmentLacks also if the library is for CUDA and torch is
        built without CUDA.
    """
    import torch

    if artifacts.target is TargetName.CUDA and torch.version.cuda is None:
        raise EnvironmentLacks(
            "this torch is built without CUDA", "install a CUDA build of torch (https://pytorch.org), or use the CPU"
        )
    build = _plan(artifacts, fma)
    build.load(source)
    return build.namespace


def _plan(artifacts: Artifacts, fma: bool) -> Build:
    import torch

    standard = cxx_standard(torch.__version__)
    target = artifacts.target
    cxx: tuple[str, ...]
    nvcc: tuple[str, ...] = ()
    link: tuple[str, ...] = ()
    if target is TargetName.CUDA:
        machine = toolchain.gencode_flags(toolchain.gpu_architectures())
        cxx = (standard, *_COMMON_FLAGS, "-DUSE_CUDA", "-O1")  # for the binding alone
        nvcc = (standard, *_NVCC_FLAGS, *machine, *(() if fma else ("--fmad=false",)))  # rule: no-contraction
        prelude = ""
    else:
        machine = (toolchain.cpu_identity(),)
        # `-x c++`, since `load_inline` writes the kernel to a file named .cu. Binding and kernel are two files, so that
        # they compile in parallel.
        cxx = (standard, *_COMMON_FLAGS, *toolchain.cpu_flags())
        prelude, link = _CPU_PRELUDE, ("-fopenmp",)
    texts = [(text.name, text.text) for text in artifacts.files]
    content = [FORMAT, torch.__version__, target.value, artifacts.name, texts, prelude, cxx, nvcc, machine]
    key = hashlib.sha256(json.dumps(content).encode()).hexdigest()
    namespace = re.sub(r"\W", "_", f"{target.value}_{artifacts.name}_{key[:12]}", flags=re.ASCII)
    notice = f"building {artifacts.name} for {target.value}"
    return Build(key, notice, namespace, *artifacts.files, prelude, cxx, nvcc, link)


def cxx_standard(torch_version: str) -> str:
    """C++17 builds a quarter faster than torch's default, C++20. Torch's headers are known to accept it up to 2.13."""
    major, minor = (int(part) for part in re.findall(r"\d+", torch_version)[:2])
    return "-std=c++17" if (major, minor) <= (2, 13) else "-std=c++20"
