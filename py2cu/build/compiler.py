"""Build and load shared libraries of operators: texts in, by torch's `load_inline`, a library in the cache out.

In: a `Build`. Out: the path of the library, or the library in this process. Promises: a cached library is found and
loaded without a compiler or a child process; a build prints nothing, and threads may build in parallel. Errors:
`BuildError`, with compiler messages at Python lines, and `EnvironmentLacks` for a missing tool.

`load_inline` runs in a Python of its own, since it loads what it built, reads environment variables, and prints. What
it cannot load is built all the same: a library of CUDA kernels on a machine without a GPU.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import json
import os
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from py2cu.build import cache, processes, toolchain
from py2cu.build.messages import build_error
from py2cu.build.notices import announced
from py2cu.diagnostics import EnvironmentLacks
from py2cu.source import SourceFile
from py2cu.threads import ForkSafeLock
from py2cu.translation import Text

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

Source = Callable[[], SourceFile]
"""Returns the Python that texts were translated from, for messages."""


@dataclass(frozen=True, slots=True)
class Build:
    """How the texts of a library are compiled on this machine, and the key that follows from it.

    `prelude` goes before the first line of the binding, or of host functions, which have no kernel beside them.
    """

    namespace: str  # of the operators under `torch.ops`; the name of the library
    key: str
    kernel: Text | None
    header: Text | None
    binding: Text
    prelude: str
    cxx_flags: tuple[str, ...]
    nvcc_flags: tuple[str, ...] = ()
    link_flags: tuple[str, ...] = ()
    notice: str = ""  # what to say of a build that takes long

    @property
    def for_cuda(self) -> bool:
        return bool(self.nvcc_flags)

    @property
    def compiler(self) -> str | None:
        """What identifies the compilers; None if one is missing."""
        compiler = toolchain.cxx_identity()
        if not self.for_cuda:
            return compiler
        nvcc = toolchain.tool_fingerprint(toolchain.find_nvcc())
        return compiler and nvcc and f"{compiler}-{nvcc}"

    @property
    def cached(self) -> Path | None:
        """The library, if an earlier process built it."""
        return cache.get_library(self.key, self.compiler)

    def library(self, source: Source | None) -> Path:
        """The library, compiled unless it is cached.

        Raises:
            BuildError: a compiler refused the text.
            EnvironmentLacks: the library is not cached, and a tool to build it is missing.
        """
        if (path := self.cached) is not None:
            return path
        require_tools(cuda=self.for_cuda)
        with announced(self.notice) if self.notice else contextlib.nullcontext():
            return cache.put_library(self.key, str(self.compiler), lambda folder: compile_library(self, folder, source))

    def load(self, source: Source | None) -> ctypes.CDLL:
        """The library, loaded into this process, once.

        Raises:
            BuildError, EnvironmentLacks: as `library`; also if the library does not load.
        """
        if self.key not in _loaded:
            path = self.library(source)
            with _LOADING:
                if self.key not in _loaded:
                    _loaded[self.key] = self._load(path, source)
        return _loaded[self.key]

    def _load(self, path: Path, source: Source | None) -> ctypes.CDLL:
        """Load `path`, whose content the cache has just checked; rebuild once what does not load here."""
        with contextlib.suppress(OSError):
            return _load_operators(path)
        cache.discard(path)
        try:
            return _load_operators(self.library(source))
        except OSError as error:
            raise EnvironmentLacks(f"the built library does not load: {error}", "see `py2cu doctor`") from error


_loaded: Final[dict[str, ctypes.CDLL]] = {}
_LOADING: Final = ForkSafeLock()


def _load_operators(path: Path) -> ctypes.CDLL:
    import torch

    torch.ops.load_library(str(path))  # type: ignore[no-untyped-call]
    return ctypes.CDLL(str(path))


def require_tools(*, cuda: bool) -> None:
    """Check that the programs of a build are here.

    Raises:
        EnvironmentLacks: for the first missing program, with a hint what to install.
    """
    toolchain.require_cxx()
    if toolchain.find_ninja() is None:
        raise EnvironmentLacks("ninja was not found", toolchain.NINJA_HINT)
    if importlib.util.find_spec("setuptools") is None:
        raise EnvironmentLacks("torch cannot build extensions here: there is no setuptools", "pip install setuptools")
    if cuda and toolchain.find_nvcc() is None:
        raise EnvironmentLacks("no CUDA compiler (nvcc) was found", toolchain.NVCC_HINT)


def compile_library(build: Build, folder: Path, source: Source | None) -> Path:
    """Compile and link in `folder`, which is empty.

    Raises:
        BuildError: a compiler refused the text.
        OSError: the folder cannot be written, or is full.
    """
    texts = {text.name: text for text in (build.kernel, build.header, build.binding) if text is not None}
    for text in texts.values():
        # For messages, compilers read the lines that they quote from files of these names, as `#line` states.
        (folder / text.name).write_text(text.text, encoding="utf-8")
    (folder / "options.json").write_text(json.dumps(_options(build, folder)), encoding="utf-8")
    log = processes.run([sys.executable, "-P", "-c", _LOAD_INLINE], folder, variables=_variables()).output
    library = folder / f"{build.namespace}.so"
    if library.is_file():
        return library
    processes.require_space(log, folder)
    written = {"main.cpp": build.binding, "cuda.cu": build.kernel or build.binding}  # by `load_inline`
    of_nvcc = build.kernel if build.for_cuda else None
    raise build_error(log, written | texts, source() if source else None, of_nvcc=of_nvcc)


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
        "PATH": f"{ninja.parent}{os.pathsep}{path}" if ninja else path,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
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
