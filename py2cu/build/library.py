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
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from py2cu.build import cache, toolchain
from py2cu.build.notices import announced
from py2cu.build.store import FORMAT
from py2cu.diagnostics import EnvironmentLacks
from py2cu.source import SourceFile
from py2cu.threads import ForkSafeLock
from py2cu.translation import Artifacts, TargetName

if TYPE_CHECKING:
    from py2cu.build.compiler import CompileJob

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


@dataclass(frozen=True, slots=True)
class _BuildPlan:
    """How artifacts are compiled on this machine, and the key that follows from it."""

    artifacts: Artifacts
    cxx_flags: tuple[str, ...]
    nvcc_flags: tuple[str, ...]
    key: str

    @property
    def for_cuda(self) -> bool:
        return self.artifacts.target is TargetName.CUDA

    @property
    def namespace(self) -> str:
        return re.sub(
            r"\W", "_", f"{self.artifacts.target.value}_{self.artifacts.name}_{self.key[:12]}", flags=re.ASCII
        )


def build_library(artifacts: Artifacts, *, fma: bool = True, source: Callable[[], SourceFile] | None = None) -> Path:
    """The path of the shared library of `artifacts`, compiled unless it is cached.

    `source` returns the Python that they were translated from, for messages. `fma=False` disables contraction.

    Raises:
        BuildError: a compiler refused the text.
        EnvironmentLacks: the library is not cached, and a tool to build it is missing.
    """
    return _library(_plan(artifacts, fma), source)


def load(artifacts: Artifacts, *, fma: bool = True, source: Callable[[], SourceFile] | None = None) -> str:
    """Load the library of `artifacts` into this process, once; the ops are in `torch.ops.<the name returned>`.

    Raises:
        BuildError, EnvironmentLacks: as `build_library`; EnvironmentLacks also if the library is for CUDA and torch is
        built without CUDA.
    """
    plan = _plan(artifacts, fma)
    if plan.key not in _loaded:
        _require_cuda_in_torch(artifacts.target)
        path = _library(plan, source)
        with _LOADING:
            if plan.key not in _loaded:
                _load(path, plan, source)
                _loaded.add(plan.key)
    return plan.namespace


_loaded: set[str] = set()
_LOADING: Final = ForkSafeLock()


def _load(path: Path, plan: _BuildPlan, source: Callable[[], SourceFile] | None) -> None:
    """Load `path`, whose content the cache has just checked; rebuild once what does not load here."""
    with contextlib.suppress(OSError):
        return load_path(path)
    cache.discard(path)
    try:
        load_path(_library(plan, source))
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


def _plan(artifacts: Artifacts, fma: bool) -> _BuildPlan:
    import torch

    standard = cxx_standard(torch.__version__)
    cxx: tuple[str, ...]
    nvcc: tuple[str, ...]
    if artifacts.target is TargetName.CUDA:
        machine = toolchain.gencode_flags(toolchain.gpu_architectures())
        cxx = (standard, *_COMMON_FLAGS, "-DUSE_CUDA")  # for the binding alone
        nvcc = (standard, *_NVCC_FLAGS, *machine, *(() if fma else ("--fmad=false",)))  # rule: no-contraction
    else:
        machine = (toolchain.cpu_identity(),)
        cxx, nvcc = (standard, *_COMMON_FLAGS, *toolchain.cpu_flags()), ()
    texts = [(text.name, text.text) for text in artifacts.files]
    flags = [cxx, _BINDING_FLAGS, nvcc]
    content = [FORMAT, torch.__version__, artifacts.target.value, artifacts.name, texts, flags, machine]
    return _BuildPlan(artifacts, cxx, nvcc, hashlib.sha256(json.dumps(content).encode()).hexdigest())


def cxx_standard(torch_version: str) -> str:
    """C++17 builds a quarter faster than torch's default, C++20. Torch's headers are known to accept it up to 2.13."""
    major, minor = (int(part) for part in re.findall(r"\d+", torch_version)[:2])
    return "-std=c++17" if (major, minor) <= (2, 13) else "-std=c++20"


def _library(plan: _BuildPlan, source: Callable[[], SourceFile] | None) -> Path:
    compiler = toolchain.cxx_identity()
    if plan.for_cuda:
        nvcc = toolchain.tool_fingerprint(toolchain.find_nvcc())
        compiler = compiler and nvcc and f"{compiler}-{nvcc}"
    return cache.get_library(plan.key, compiler) or _build(plan, compiler, source)


def _build(plan: _BuildPlan, compiler: str | None, source: Callable[[], SourceFile] | None) -> Path:
    # Imported here, since a cached kernel does not need them.
    from py2cu.build.compiler import CompileError, compile_library, find_tools
    from py2cu.build.messages import build_error

    tools, job = find_tools(cuda=plan.for_cuda), _job(plan)
    try:
        with announced(f"building {plan.artifacts.name} for {plan.artifacts.target.value}"):
            return cache.put_library(plan.key, str(compiler), lambda directory: compile_library(job, tools, directory))
    except CompileError as failure:
        raise build_error(str(failure), plan.artifacts, source() if source else None) from None


def _job(plan: _BuildPlan) -> CompileJob:
    from py2cu.build.compiler import CompileJob

    artifacts = plan.artifacts
    return CompileJob(
        name=plan.namespace,
        kernel=artifacts.kernel,
        header=artifacts.header,
        binding=artifacts.binding,
        prelude="" if plan.for_cuda else _CPU_PRELUDE,
        cxx_flags=plan.cxx_flags,
        binding_flags=_BINDING_FLAGS,
        nvcc_flags=plan.nvcc_flags,
        # `--as-needed` links only those of torch's libraries that the code uses, which leaves out its Python library.
        link_flags=("-Wl,--as-needed", *(() if plan.for_cuda else ("-fopenmp",))),
    )
