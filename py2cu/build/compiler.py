"""Compile a library with torch's `load_inline`: texts in, a shared library out, kept in the cache.

In: a `Build`. Out: the path of the library.
Promises: prints nothing; restores the process's environment; an interrupt ends the compilers too; threads may compile
in parallel.

`load_inline` does three things: it writes the sources and a build file, runs ninja, and loads the library. This module
uses only the first, under a lock, with the tools that `toolchain` finds: the ninja that torch meets builds nothing, so
there is no library to load. `processes.py` runs the true one, since `load_inline` kills it on Ctrl-C without ending the
compilers that it started. Nothing is loaded, so a CUDA kernel can be built on a machine without a GPU.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shlex
import warnings
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from py2cu.build import cache, toolchain
from py2cu.build.processes import require_space, run_ninja
from py2cu.diagnostics import EnvironmentLacks
from py2cu.threads import ForkSafeLock
from py2cu.translation import Text


class CompileError(Exception):
    """A compiler or linker failed; the argument is the log."""


@dataclass(frozen=True, slots=True)
class Tools:
    """The programs of one build; `cuda_home` is None if only C++ is compiled."""

    cxx: Path
    ninja: Path
    cuda_home: Path | None


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
    binding_flags: tuple[str, ...] = ()  # for the binding only, after the others
    nvcc_flags: tuple[str, ...] = ()
    link_flags: tuple[str, ...] = ("-Wl,--as-needed",)  # without those of torch's libraries that the code does not use

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

    def library(self, step: contextlib.AbstractContextManager[None], error: Callable[[str], Exception]) -> Path:
        """The library, compiled unless it is cached, within `step`; `error` makes an error of a compiler's log.

        Raises:
            BuildError: a compiler refused the text.
            EnvironmentLacks: the library is not cached, and a tool to build it is missing.
        """
        if (path := self.cached) is not None:
            return path
        tools = find_tools(cuda=self.for_cuda)
        try:
            with step:
                return cache.put_library(self.key, str(self.compiler), lambda at: compile_library(self, tools, at))
        except CompileError as failure:
            raise error(str(failure)) from None


_LOAD_INLINE: Final = ForkSafeLock()
_LINKER_FAILED: Final = ("ld returned", "linker command failed")  # g++, clang++


def find_tools(*, cuda: bool) -> Tools:
    """The programs of a build.

    Raises:
        EnvironmentLacks: for the first missing program, with a hint what to install.
    """
    with _LOAD_INLINE:  # meanwhile there is an idle ninja on PATH
        cxx, ninja = toolchain.require_cxx(), toolchain.find_ninja()
    if ninja is None:
        raise EnvironmentLacks("ninja was not found", toolchain.NINJA_HINT)
    if cuda and toolchain.find_nvcc() is None:
        raise EnvironmentLacks("no CUDA compiler (nvcc) was found", toolchain.NVCC_HINT)
    return Tools(cxx, ninja, toolchain.cuda_home() if cuda else None)


def compile_library(job: Build, tools: Tools, directory: Path) -> Path:
    """Compile and link `job` in `directory`.

    Raises:
        CompileError: with the log.
        EnvironmentLacks: torch's extension builder cannot be imported.
        OSError: the directory cannot be written, or is full.
    """
    for text in filter(None, (job.kernel, job.header, job.binding)):
        # For messages, compilers read the lines that they quote from files of these names, as `#line` states.
        (directory / text.name).write_text(text.text, encoding="utf-8")
    log = _attempt(job, tools, directory, toolchain.find_linker())
    if any(sign in log for sign in _LINKER_FAILED):
        # Fast linkers fail with unusual installations of a compiler: link again with the default one.
        log = _attempt(job, tools, directory, None)
    library = directory / f"{job.namespace}.so"
    if library.is_file():
        return library
    require_space(log, directory)
    raise CompileError(log)


def _attempt(job: Build, tools: Tools, directory: Path, linker: str | None) -> str:
    _write_build_files(job, tools, directory, linker)
    return run_ninja(tools.ninja, directory)


def _write_build_files(job: Build, tools: Tools, directory: Path, linker: str | None) -> None:
    cuda = tools.cuda_home
    linker_scripts = _write_linker_scripts(cuda, directory / "libraries") if cuda else []
    linker_flags = [f"-fuse-ld={linker}"] if linker else []
    variables = _variables(tools, _write_idle_ninja(directory / "idle"))
    with _LOAD_INLINE, _silence(), _replaced(os.environ, variables):
        extension = _import_builder()
        # After an earlier failure, torch would name the library `<name>_v1`.
        extension.JIT_EXTENSION_VERSIONER.entries.pop(job.namespace, None)
        with _replaced(vars(extension), {"CUDA_HOME": str(cuda) if cuda else None}), _without_library():
            extension.load_inline(
                job.namespace,
                cpp_sources=[f"{job.prelude}{_line_one(job.binding)}{job.binding.text}"],
                cuda_sources=[f"{_line_one(job.kernel)}{job.kernel.text}"] if job.kernel is not None else None,
                extra_cflags=list(job.cxx_flags),
                extra_cuda_cflags=list(job.nvcc_flags),
                extra_ldflags=[*job.link_flags, *linker_flags, *_link_flags(cuda, linker_scripts)],
                extra_include_paths=_extra_includes(cuda),
                build_directory=str(directory),
                with_cuda=cuda is not None,
                is_python_module=False,
                no_implicit_headers=True,
            )
    _flag_binding(directory / "build.ninja", job.binding_flags)


def _flag_binding(build_file: Path, flags: tuple[str, ...]) -> None:
    """Add flags for the binding only: `load_inline` has one set of flags for the two C++ files of a CPU build."""
    text = build_file.read_text(encoding="utf-8")
    flagged_rule = rf"\g<0>\n  post_cflags = {' '.join(flags)}"
    build_file.write_text(re.sub(r"(?m)^build main\.o: .*", flagged_rule, text), encoding="utf-8")


def _line_one(text: Text) -> str:
    """A `#line` directive: messages name the emitted file, and the library contains no temporary path."""
    name = text.name.replace("\\", "\\\\").replace('"', '\\"')
    return f'#line 1 "{name}"\n'


def _write_idle_ninja(directory: Path) -> Path:
    """Write a ninja that does nothing, and return its directory.

    Raises:
        EnvironmentLacks: it cannot be executed.
    """
    directory.mkdir(exist_ok=True)
    ninja = directory / "ninja"
    ninja.write_text("#!/bin/sh\n", encoding="utf-8")
    ninja.chmod(0o700)
    if not os.access(ninja, os.X_OK):
        raise EnvironmentLacks(f"no program in {directory.parent} can be executed", "set TMPDIR to another directory")
    return directory


@contextlib.contextmanager
def _without_library() -> Iterator[None]:
    """Expect that the library cannot be loaded, which has no number of the system's: errors of files have one."""
    try:
        yield
    except OSError as error:
        if error.errno is not None:
            raise


def _import_builder() -> ModuleType:
    try:
        from torch.utils import cpp_extension
    except ImportError as error:
        raise EnvironmentLacks(f"torch cannot build extensions here: {error}", "pip install setuptools") from error
    return cpp_extension


def _variables(tools: Tools, idle: Path) -> dict[str, str]:
    return {
        "CXX": shlex.join([str(tools.cxx), *toolchain.cxx_command()[1:]]),
        "CC": os.environ.get("CC") or str(tools.cxx),  # the host compiler of nvcc: one compiler for both files
        "PATH": os.pathsep.join([str(idle), os.environ.get("PATH", os.defpath)]),
        "TORCH_DONT_CHECK_COMPILER_ABI": "1",  # the check runs the compiler once more
        "TORCH_EXTENSION_SKIP_NVCC_GEN_DEPENDENCIES": "1",  # dependencies need a second preprocessor run
    }


def _extra_includes(cuda_home: Path | None) -> list[str]:
    """Header folders that torch does not search. Listing /usr/include twice would break libstdc++'s headers."""
    if cuda_home is None:
        return []
    include = toolchain.cuda_include(cuda_home)
    libraries = include / "cccl"  # cuda::std; nvcc finds it, the host compiler does not
    return [*([str(include)] if include.parent != cuda_home else []), *([str(libraries)] if libraries.is_dir() else [])]


def _link_flags(cuda_home: Path | None, linker_scripts: list[Path]) -> list[str]:
    flags = [f"-L{place}" for place in {path.parent: None for path in linker_scripts}]
    if not any("torch" in path.name for path in linker_scripts):
        flags.append("-Wl,-z,defs")  # an undefined launcher fails the build, not the load
    if cuda_home is not None:
        # For a torch without a CUDA runtime of this version; a runtime that is already loaded takes precedence.
        flags.append(f"-Wl,-rpath,{toolchain.cuda_libraries(cuda_home)}")
    return flags


def _write_linker_scripts(cuda_home: Path, directory: Path) -> list[Path]:
    """Write linker scripts for libraries that torch's link line names and this machine lacks.

    A CPU wheel of torch lacks torch's CUDA libraries, whose symbols are resolved when the kernel is loaded: a script
    names another of torch's libraries in their place. The wheel of the CUDA runtime has libcudart.so with its version
    only.
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
    directory.mkdir(exist_ok=True)
    for name, target in targets.items():
        (directory / name).write_text(f'INPUT ( "{target}" )\n', encoding="utf-8")
    return [directory / name for name in targets]


@contextlib.contextmanager
def _replaced(values: MutableMapping[str, Any], changes: Mapping[str, Any]) -> Iterator[None]:
    """Change values while the context lasts."""
    before = {name: values[name] for name in changes if name in values}
    values.update(changes)
    try:
        yield
    finally:
        for name in changes.keys() - before:
            values.pop(name, None)
        values.update(before)


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Suppress torch's messages about GPUs and compilers while it writes build files."""
    logger = logging.getLogger("torch.utils.cpp_extension")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
