"""One run of torch's `load_inline`: texts in, a shared library out.

In: a `Job` and an empty directory. Out: the library's path in that directory.
Promises: prints nothing; leaves the process's environment as it was; an interrupt ends the compilers too; threads may
compile at once.

`load_inline` does three things: it writes the sources and a build file, runs ninja, and loads the library. Only the
first is left to it, under a lock, with the tools that were found here. Ninja is run by `ninja.py`, since `load_inline`
kills it on Ctrl-C without ending the compilers that it started. Nothing is loaded: a CUDA kernel can be built where
CUDA cannot run. Should a later torch rename what is replaced here, `load_inline` does all three, and ninja makes the
binding once more, with its own flags.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import re
import threading
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Final

from py2cu.build import toolchain
from py2cu.build.ninja import run_ninja
from py2cu.diagnostics import EnvironmentLacks
from py2cu.translation import Text


class CompileError(Exception):
    """A compiler or linker said no; the argument is the log."""


@dataclass(frozen=True, slots=True)
class Tools:
    """The programs of one build; `cuda_home` is None where only C++ is compiled."""

    cxx: Path
    ninja: Path
    cuda_home: Path | None


@dataclass(frozen=True, slots=True)
class CompileJob:
    """What to compile, and how. `prelude` goes before the binding's first line."""

    name: str
    kernel: Text
    header: Text
    binding: Text
    prelude: str
    cxx_flags: tuple[str, ...]
    binding_flags: tuple[str, ...]  # behind the others, for the binding alone
    nvcc_flags: tuple[str, ...]
    link_flags: tuple[str, ...]


_STEERING: Final = threading.Lock()
_UNLINKED: Final = ("ld returned", "linker command failed")  # g++, clang++
_FULL: Final = ("No space left on device", "Disk quota exceeded")


def find_tools(*, cuda: bool) -> Tools:
    """The programs that a build needs.

    Raises:
        EnvironmentLacks: for the first that is missing, with what to install.
    """
    cxx, ninja = toolchain.find_cxx(), toolchain.find_ninja()
    if cxx is None:
        raise EnvironmentLacks("no C++ compiler was found", toolchain.CXX_HINT)
    if ninja is None:
        raise EnvironmentLacks("ninja was not found", toolchain.NINJA_HINT)
    if cuda and toolchain.find_nvcc() is None:
        raise EnvironmentLacks("no CUDA compiler (nvcc) was found", toolchain.NVCC_HINT)
    return Tools(cxx, ninja, toolchain.cuda_home() if cuda else None)


def compile_library(job: CompileJob, tools: Tools, directory: Path) -> Path:
    """Compile and link `job` in `directory`.

    Raises:
        CompileError: with the log.
        EnvironmentLacks: torch's extension builder cannot be imported.
        OSError: the directory cannot be written, or is full.
    """
    for text in (job.kernel, job.header, job.binding):
        # Compilers quote the lines that they complain of from files of these names, which `#line` makes them look for.
        (directory / text.name).write_text(text.text, encoding="utf-8")
    log = _attempt(job, tools, directory, toolchain.find_linker())
    if any(sign in log for sign in _UNLINKED):
        # Fast linkers stumble over unusual installations of a compiler; this links again, and compiles nothing.
        log = _attempt(job, tools, directory, None)
    library = directory / f"{job.name}.so"
    if library.is_file():
        return library
    if any(sign in log for sign in _FULL):
        raise OSError(errno.ENOSPC, "no space left to build in", str(directory))
    raise CompileError(log)


def _attempt(job: CompileJob, tools: Tools, directory: Path, linker: str | None) -> str:
    _write_build_files(job, tools, directory, linker)
    return run_ninja(tools.ninja, directory)


def _write_build_files(job: CompileJob, tools: Tools, directory: Path, linker: str | None) -> None:
    cuda = tools.cuda_home
    stand_ins = _write_stand_ins(cuda, directory / "libraries") if cuda else []
    chosen = [f"-fuse-ld={linker}"] if linker else []
    with _STEERING, _silence(), _environment(_variables(tools)):
        extension = _import_builder()
        extension.JIT_EXTENSION_VERSIONER.entries.pop(job.name, None)  # an earlier failure would make it `<name>_v1`
        with _replaced(extension, CUDA_HOME=str(cuda) if cuda else None, **_LEFT_OUT):
            extension.load_inline(
                job.name,
                cpp_sources=[f"{job.prelude}{_line_one(job.binding)}{job.binding.text}"],
                cuda_sources=[f"{_line_one(job.kernel)}{job.kernel.text}"],
                extra_cflags=list(job.cxx_flags),
                extra_cuda_cflags=list(job.nvcc_flags),
                extra_ldflags=[*job.link_flags, *chosen, *_link_flags(cuda, stand_ins)],
                extra_include_paths=_extra_includes(cuda),
                build_directory=str(directory),
                with_cuda=cuda is not None,
                is_python_module=False,
                no_implicit_headers=True,
            )
    _flag_binding(directory / "build.ninja", job.binding_flags)


def _flag_binding(build_file: Path, flags: tuple[str, ...]) -> None:
    """Both files of a CPU build are C++ to `load_inline`, which has the same flags for them."""
    text = build_file.read_text(encoding="utf-8")
    of_binding = rf"\g<0>\n  post_cflags = {' '.join(flags)}"
    build_file.write_text(re.sub(r"(?m)^build main\.o: .*", of_binding, text), encoding="utf-8")


def _line_one(text: Text) -> str:
    """Messages then speak of the emitted file, and nothing in the library names a temporary directory."""
    name = text.name.replace("\\", "\\\\").replace('"', '\\"')
    return f'#line 1 "{name}"\n'


def _nothing(*_arguments: object, **_options: object) -> None:
    """Stands in for the steps of `load_inline` that are not wanted."""


_LEFT_OUT: Final = {
    "_run_ninja_build": _nothing,
    "_import_module_from_library": _nothing,
    "verify_ninja_availability": _nothing,
}


def _import_builder() -> ModuleType:
    try:
        from torch.utils import cpp_extension
    except ImportError as error:
        raise EnvironmentLacks(f"torch cannot build extensions here: {error}", "pip install setuptools") from error
    return cpp_extension


def _variables(tools: Tools) -> dict[str, str]:
    return {
        "CXX": str(tools.cxx),
        "CC": os.environ.get("CC") or str(tools.cxx),  # what torch makes nvcc call: one compiler for both files
        "PATH": os.pathsep.join([os.environ.get("PATH", os.defpath), str(tools.ninja.parent)]),
        "TORCH_DONT_CHECK_COMPILER_ABI": "1",  # asks the compiler for its version, in a process of its own
        "TORCH_EXTENSION_SKIP_NVCC_GEN_DEPENDENCIES": "1",  # a second preprocessor run, for a directory used once
    }


def _extra_includes(cuda_home: Path | None) -> list[str]:
    """Headers that are not where torch looks; naming /usr/include twice would break the standard library's."""
    if cuda_home is None:
        return []
    include = toolchain.cuda_include(cuda_home)
    libraries = include / "cccl"  # cuda::std, which nvcc finds by itself and the host's compiler does not
    return [*([str(include)] if include.parent != cuda_home else []), *([str(libraries)] if libraries.is_dir() else [])]


def _link_flags(cuda_home: Path | None, stand_ins: list[Path]) -> list[str]:
    flags = [f"-L{place}" for place in {path.parent: None for path in stand_ins}]
    if not any("torch" in path.name for path in stand_ins):
        flags.append("-Wl,-z,defs")  # a launcher that is called and not defined is an error of the build, not the load
    if cuda_home is not None:
        # Serves a process whose torch brings no CUDA runtime of this version; one that is loaded comes first.
        flags.append(f"-Wl,-rpath,{toolchain.cuda_libraries(cuda_home)}")
    return flags


def _write_stand_ins(cuda_home: Path, place: Path) -> list[Path]:
    """Linker scripts in place of libraries that torch's link line names and this machine has not.

    A CPU wheel of torch lacks the CUDA half of torch, whose symbols are found when the library is loaded; until then
    another of torch's libraries stands in. The wheel of the CUDA runtime has libcudart.so with its version only.
    """
    import torch

    torch_libraries = Path(torch.__file__).parent / "lib"
    targets = {
        name: torch_libraries / "libc10.so"
        for name in ("libc10_cuda.so", "libtorch_cuda.so")
        if not (torch_libraries / name).exists()
    }
    runtimes = sorted(toolchain.cuda_libraries(cuda_home).glob("libcudart.so*"))
    if runtimes and runtimes[0].name != "libcudart.so":
        targets["libcudart.so"] = runtimes[0]
    place.mkdir(exist_ok=True)
    for name, target in targets.items():
        (place / name).write_text(f'INPUT ( "{target}" )\n', encoding="utf-8")
    return [place / name for name in targets]


@contextlib.contextmanager
def _environment(changes: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _replaced(module: ModuleType, **attributes: object) -> Iterator[None]:
    """Give existing attributes of `module` other values for a while."""
    before = {name: getattr(module, name) for name in attributes if hasattr(module, name)}
    for name in before:
        setattr(module, name, attributes[name])
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(module, name, value)


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """What torch says about GPUs and compilers while it writes build files is no concern of the user."""
    logger = logging.getLogger("torch.utils.cpp_extension")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
