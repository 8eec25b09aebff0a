"""The libraries of written files: how `py2cu build --files` and `check --built` build and load them.

In: `Artifacts`, or texts and flags as a `Build`. Out: the path of a shared library, or the `torch.ops` namespace into
which it is loaded. Promises: prints nothing.

The key of a build is a hash of its content: texts, flags, torch's version, and what the flags depend on (GPU
architectures, the CPU for `-march=native`). The namespace contains the key, so two versions of a kernel can live in one
process.

Torch's `load_inline` compiles. It also loads what it built, reads environment variables and prints, so it runs in a
child process. A library that this machine cannot load is built all the same: CUDA kernels where there is no GPU.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import re
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from py2cu.build import processes, toolchain
from py2cu.build.libraries import LibraryBuild, Source
from py2cu.build.messages import build_error
from py2cu.build.store import key_of
from py2cu.diagnostics import EnvironmentLacks
from py2cu.translation import Artifacts, TargetName, Text

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

_LOAD_INLINE: Final = """
import json, signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)  # ninja ends its compilers, and this process follows
from torch.utils import cpp_extension
with open("options.json") as file:
    options = json.load(file)
cpp_extension.CUDA_HOME = options.pop("cuda_home")
try:
    cpp_extension.load_inline(**options)
except (OSError, RuntimeError) as error:
    print(error)
"""

_AS_NEEDED: Final = "-Wl,--as-needed"  # without those of torch's libraries that the code does not use
_NO_GAPS: Final = "-Wl,-z,defs"  # an undefined launcher fails the build, not the load


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
        hint = "install a CUDA build of torch (https://pytorch.org), or use the CPU"
        raise EnvironmentLacks("this torch is built without CUDA", hint)
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
        machines = toolchain.gencode_flags(toolchain.gpu_architectures())
        cxx = (standard, *_COMMON_FLAGS, "-DUSE_CUDA", "-O1")  # for the binding alone
        nvcc = (standard, *_NVCC_FLAGS, *machines, *(() if fma else ("--fmad=false",)))  # rule: no-contraction
        prelude = ""
    else:
        # `-x c++`, since `load_inline` writes the kernel to a file named .cu. Binding and kernel are two files, so that
        # they compile in parallel.
        cxx = (standard, *_COMMON_FLAGS, *toolchain.cpu_flags())
        prelude, link = _CPU_PRELUDE, ("-fopenmp",)
    texts = [(text.name, text.text) for text in artifacts.files]
    key = key_of(torch.__version__, target.value, artifacts.name, texts, prelude, cxx, nvcc, toolchain.cpu_identity())
    namespace = re.sub(r"\W", "_", f"{target.value}_{artifacts.name}_{key[:12]}", flags=re.ASCII)
    notice = f"building {artifacts.name} for {target.value}"
    return Build(key, notice, namespace, *artifacts.files, prelude, cxx, nvcc, link)


def cxx_standard(torch_version: str) -> str:
    """C++17 builds a quarter faster than torch's default, C++20. Torch's headers are known to accept it up to 2.13."""
    major, minor = (int(part) for part in re.findall(r"\d+", torch_version)[:2])
    return "-std=c++17" if (major, minor) <= (2, 13) else "-std=c++20"


# --- how it is built ---


@dataclass(frozen=True, slots=True)
class Build(LibraryBuild[ctypes.CDLL]):
    """How the texts of a library are compiled on this machine, and the key that follows from it.

    `prelude` goes before the first line of the binding, or of host functions, which have no kernel beside them.
    """

    key: str
    notice: str
    namespace: str  # of the operators under `torch.ops`; the name of the library
    kernel: Text | None
    header: Text | None
    binding: Text
    prelude: str
    cxx_flags: tuple[str, ...]
    nvcc_flags: tuple[str, ...] = ()
    link_flags: tuple[str, ...] = ()

    @property
    def for_cuda(self) -> bool:
        return bool(self.nvcc_flags)

    @property
    def compiler(self) -> str | None:
        compiler = toolchain.cxx_identity()
        if not self.for_cuda:
            return compiler
        nvcc = toolchain.tool_fingerprint(toolchain.find_nvcc())
        return compiler and nvcc and f"{compiler}-{nvcc}"

    def require_tools(self) -> None:
        toolchain.require_cxx()
        if toolchain.find_ninja() is None:
            raise EnvironmentLacks("ninja was not found", toolchain.NINJA_HINT)
        if importlib.util.find_spec("setuptools") is None:
            raise EnvironmentLacks("torch cannot build extensions without setuptools", "pip install setuptools")
        if self.for_cuda and toolchain.find_nvcc() is None:
            raise EnvironmentLacks("no CUDA compiler (nvcc) was found", toolchain.NVCC_HINT)

    def compile(self, folder: Path, source: Source | None) -> Path:
        texts = {text.name: text for text in (self.kernel, self.header, self.binding) if text is not None}
        for text in texts.values():
            # For messages, compilers read the lines that they quote from files of these names, as `#line` states.
            (folder / text.name).write_text(text.text, encoding="utf-8")
        (folder / "options.json").write_text(json.dumps(_options(self, folder)), encoding="utf-8")
        log = processes.run([sys.executable, "-P", "-c", _LOAD_INLINE], folder, variables=_variables()).output
        library = folder / f"{self.namespace}.so"
        if library.is_file():
            return library
        processes.require_space(log, folder)
        raise build_error(log, texts, source, of_nvcc=self.kernel if self.for_cuda else None)

    def open(self, path: Path) -> ctypes.CDLL:
        import torch

        try:
            torch.ops.load_library(str(path))  # type: ignore[no-untyped-call]
            return ctypes.CDLL(str(path))
        except OSError as error:
            raise EnvironmentLacks(f"the built library does not load: {error}", "see `py2cu doctor`") from error


def _options(build: Build, folder: Path) -> dict[str, object]:
    """The arguments of `load_inline`, and the CUDA toolkit."""
    cuda = toolchain.cuda_home() if build.for_cuda else None
    return {
        "cuda_home": cuda and str(cuda),
        "name": build.namespace,
        "cpp_sources": [f"{build.prelude}{_line_one(build.binding)}{build.binding.text}"],
        "cuda_sources": [f"{_line_one(build.kernel)}{build.kernel.text}"] if build.kernel is not None else None,
        "extra_cflags": build.cxx_flags,
        "extra_cuda_cflags": build.nvcc_flags,
        "extra_ldflags": [_AS_NEEDED, *build.link_flags, *(_cuda_link_flags(cuda, folder) if cuda else [_NO_GAPS])],
        "extra_include_paths": _cuda_includes(cuda) if cuda else [],
        "build_directory": str(folder),
        "with_cuda": build.for_cuda,
        "is_python_module": False,
        "no_implicit_headers": True,
        "verbose": True,
    }


def _line_one(text: Text) -> str:
    """A `#line` directive: messages name the emitted file, and the library contains no temporary path."""
    name = text.name.replace("\\", "\\\\").replace('"', '\\"')
    return f'#line 1 "{name}"\n'


def _variables() -> dict[str, str]:
    ninja = toolchain.find_ninja()
    path = os.environ.get("PATH", os.defpath)
    return {
        "CXX": shlex.join(toolchain.cxx_command()),
        "CC": os.environ.get("CC") or str(toolchain.find_cxx()),  # the host compiler of nvcc: one for both files
        "PATH": f"{path}{os.pathsep}{ninja.parent}" if ninja else path,
        "PYTHONPATH": os.pathsep.join(map(os.path.abspath, filter(None, sys.path))),
        "TORCH_DONT_CHECK_COMPILER_ABI": "1",  # the check runs the compiler once more
        "TORCH_EXTENSION_SKIP_NVCC_GEN_DEPENDENCIES": "1",  # dependencies need a second preprocessor run
    }


def _cuda_includes(home: Path) -> list[str]:
    """Header folders that torch does not search. Listing /usr/include twice would break libstdc++'s headers."""
    include = toolchain.cuda_include(home)
    libraries = include / "cccl"  # cuda::std; nvcc finds it, the host compiler does not
    return [*([str(include)] if include.parent != home else []), *([str(libraries)] if libraries.is_dir() else [])]


def _cuda_link_flags(home: Path, folder: Path) -> list[str]:
    """Where the linker finds libraries that torch's link line names and this machine lacks: as scripts in `folder`.

    A CPU wheel of torch lacks torch's CUDA libraries: a script names another of torch's libraries in their place, and
    symbols may stay undefined. The wheel of the CUDA runtime has libcudart.so with its version only.
    """
    import torch

    of_torch, of_cuda = Path(torch.__file__).parent / "lib", toolchain.cuda_libraries(home)
    missing = [name for name in ("libc10_cuda.so", "libtorch_cuda.so") if not (of_torch / name).exists()]
    targets = dict.fromkeys(missing, of_torch / "libc10.so")
    runtimes = sorted(of_cuda.glob("libcudart.so*"))
    if runtimes and runtimes[0].name != "libcudart.so":
        targets["libcudart.so"] = runtimes[0]
    for name, target in targets.items():
        (folder / name).write_text(f'INPUT ( "{target}" )\n', encoding="utf-8")
    # Found at run time for a torch without a CUDA runtime of this version; one that is already loaded takes precedence.
    return [f"-L{folder}", f"-Wl,-rpath,{of_cuda}", *([] if missing else [_NO_GAPS])]
