"""Compile one instance of a CUDA kernel at run time by NVRTC, or by nvcc where there is no NVRTC.

In: CUDA C++ without `#include` lines, the instance as a C++ expression, the headers that the text needs. Out: a
`Cubin`. Errors: `CompileError` with the compiler's log, `EnvironmentLacks` for a missing tool or header. Promises: no
cache of results and nothing left on disk; threads may compile at the same time (NVRTC lets one of them compile).

`prelude.cuh` stands in for the headers of C++. NVRTC takes up to 1.2 s to read CUDA headers, so the first compile that
includes them also writes a precompiled header, and later compiles in this process use it (0.1 to 0.2 s). NVRTC rejects
a precompiled header of another process, because it holds addresses.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import os
import re
import signal
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from py2cu.build import toolchain
from py2cu.build.cubin import CompileError, Cubin
from py2cu.build.nvcc import compile_by_nvcc, find_nvcc
from py2cu.diagnostics import EnvironmentLacks

_PRELUDE: Final = "py2cu_prelude.cuh"
_FIRST_WITH_MINIMAL: Final = (12, 6)
_FIRST_WITH_PRECOMPILED_HEADERS: Final = (12, 8)
_FIRST_WITH_SEED: Final = (13, 0)
_HEADERS_HINT: Final = "pip install nvidia-cuda-runtime nvidia-cuda-cccl of NVRTC's version, or set CUDA_HOME"
_KEPT: Final = 31 << 20
_MOST_PRECOMPILED: Final = 16  # each takes 5 to 120 MB of the temporary directory


def compile_cubin(
    text: str,
    expression: str,
    *,
    architecture: str,
    fma: bool = True,
    headers: Iterable[str] = (),
    name: str = "kernel.cu",
) -> Cubin:
    """Compile the instance `expression`, "silu_kernel<float, int>", of a kernel in `text` for `architecture`, "sm_90".

    `headers` are names such as "cuda_fp16.h"; those of the C++ library ("cmath") cost nothing. `name` is the file in
    messages and asserts, where lines are those of `text`. `fma=False` forbids fused multiply-adds.

    Raises:
        CompileError: the compiler refuses the text.
        EnvironmentLacks: neither NVRTC nor nvcc is here, or a CUDA header is missing, or the GPU is too old for NVRTC.
    """
    try:
        nvrtc = _nvrtc()
    except EnvironmentLacks as lack:
        nvcc = find_nvcc(lack)
        return compile_by_nvcc(nvcc, text, expression, architecture=architecture, fma=fma, headers=headers, name=name)
    includes = _cuda_headers(headers)
    lines = "".join(f"#include <{header}>\n" for header in (*includes, _PRELUDE))
    source = f'{lines}#pragma nv_hdrstop\n#line 1 "{name}"\n{text}'
    version = nvrtc_version()
    options = [f"-arch={_target(architecture)}", "-std=c++17", "-w"]
    options += ["--minimal"] * (version >= _FIRST_WITH_MINIMAL)
    options += ["-frandom-seed=py2cu"] * (version >= _FIRST_WITH_SEED)  # else symbols of CCCL have random names
    options += [f"-I{folder}" for folder in _header_folders(includes)]
    key = (*options, *includes)
    options += [] if fma else ["-fmad=false"]
    if not includes or version < _FIRST_WITH_PRECOMPILED_HEADERS:
        return _compile(nvrtc, source, expression, options)
    return _compile_with_precompiled_header(nvrtc, source, expression, [*options, "--pch-messages=false"], key)


def nvrtc_version() -> tuple[int, int]:
    """NVRTC's version, (13, 0).

    Raises:
        EnvironmentLacks: there is no NVRTC, or no cuda-bindings.
    """
    _, major, minor = _nvrtc().nvrtcVersion()
    return major, minor


def compiler_identity() -> str:
    """What the code depends on beside the arguments of `compile_cubin`, for keys of caches: compiler and prelude.

    Raises:
        EnvironmentLacks: neither NVRTC nor nvcc is here.
    """
    try:
        major, minor = nvrtc_version()
    except EnvironmentLacks as lack:
        return f"nvcc {toolchain.tool_fingerprint(find_nvcc(lack))}"
    prelude = hashlib.sha256(_prelude()).hexdigest()[:16]
    return f"NVRTC {major}.{minor} {toolchain.tool_fingerprint(_library())} {prelude}"


class _PrecompiledHeaderFails(Exception):
    """NVRTC can neither write nor read the precompiled header: the disk is full, or there is no /proc."""


def _compile(nvrtc: ModuleType, source: str, expression: str, options: Sequence[str]) -> Cubin:
    with _program(nvrtc, source) as program:
        _check(nvrtc, nvrtc.nvrtcAddNameExpression(program, expression.encode()))
        (status,) = nvrtc.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])
        signal.siginterrupt(signal.SIGINT, True)  # which NVRTC undoes: Ctrl-C would not interrupt a blocking read
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            log = _text(nvrtc, program, "ProgramLog").decode(errors="replace").strip("\0\n ")
            if "catastrophic error" in log.lower() and "precompiled header" in log:
                raise _PrecompiledHeaderFails
            raise CompileError(log or status.name)
        image = _text(nvrtc, program, "PTX" if options[0].startswith("-arch=compute_") else "CUBIN")
        symbol: bytes = _check(nvrtc, nvrtc.nvrtcGetLoweredName(program, expression.encode()))
        return Cubin(image, symbol.decode())


@contextlib.contextmanager
def _program(nvrtc: ModuleType, source: str) -> Iterator[Any]:
    """A program of NVRTC, destroyed at the end."""
    headers = ([_prelude()], [_PRELUDE.encode()])
    program = _check(nvrtc, nvrtc.nvrtcCreateProgram(source.encode(), b"kernel.cu", 1, *headers))
    try:
        yield program
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _text(nvrtc: ModuleType, program: Any, kind: str) -> bytes:
    """A result of a compiled program: "CUBIN", "PTX" or "ProgramLog"."""
    size = _check(nvrtc, getattr(nvrtc, f"nvrtcGet{kind}Size")(program))
    buffer = bytearray(size)
    _check(nvrtc, getattr(nvrtc, f"nvrtcGet{kind}")(program, buffer))
    return bytes(buffer)


def _check(nvrtc: ModuleType, answer: tuple[Any, ...]) -> Any:
    """The value of a call that answers with a status and at most one value."""
    status, *values = answer
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise CompileError(f"NVRTC fails: {status.name}")
    return values[0] if values else None


_precompiled: Final[dict[tuple[str, ...], int]] = {}
"""Descriptors of precompiled headers, by options and headers. The files are unlinked: none outlives the process."""


def _compile_with_precompiled_header(
    nvrtc: ModuleType, source: str, expression: str, options: Sequence[str], key: tuple[str, ...]
) -> Cubin:
    """Use the precompiled header of `key`, or write it; do without if that fails."""
    with contextlib.suppress(_PrecompiledHeaderFails, OSError):
        if (descriptor := _precompiled.get(key)) is not None:
            return _compile(nvrtc, source, expression, [*options, f"--use-pch=/proc/self/fd/{descriptor}"])
        if len(_precompiled) < _MOST_PRECOMPILED:
            with tempfile.TemporaryDirectory(prefix="py2cu-") as folder:
                file = os.path.join(folder, "headers.pch")
                try:
                    return _compile(nvrtc, source, expression, [*options, f"--create-pch={file}"])
                finally:
                    _keep(key, file)
    return _compile(nvrtc, source, expression, options)


def _keep(key: tuple[str, ...], file: str) -> None:
    """Hold a precompiled header open, if NVRTC wrote it: it does so even if the text behind the headers is wrong."""
    if not os.path.exists(file):
        return
    descriptor = os.open(file, os.O_RDONLY)
    if _precompiled.setdefault(key, descriptor) != descriptor:
        os.close(descriptor)


def _cuda_headers(headers: Iterable[str]) -> tuple[str, ...]:
    """The headers that the prelude does not replace: those of the C++ library have a name without `.` and `/`."""
    return tuple(sorted({header for header in headers if re.search("[./]", header)} - {"cuda_runtime.h"}))


def _header_folders(headers: Sequence[str]) -> tuple[Path, ...]:
    """Where to look for CUDA headers; empty if there are no `headers`.

    Raises:
        EnvironmentLacks: a header is missing.
    """
    if not headers:
        return ()
    folders = toolchain.header_folders(_library())
    for header in (*headers, "nv/target"):  # which the others include
        if not any((folder / header).is_file() for folder in folders):
            raise EnvironmentLacks(f"the CUDA header {header} is missing", _HEADERS_HINT)
    return folders


@functools.cache
def _prelude() -> bytes:
    return Path(__file__).with_name("prelude.cuh").read_bytes()


@functools.cache
def _nvrtc() -> ModuleType:
    try:
        from cuda.bindings import nvrtc

        nvrtc.nvrtcVersion()
    except ImportError:
        raise EnvironmentLacks("cuda-bindings is not installed", "pip install cuda-bindings") from None
    except RuntimeError:  # the library is missing, or of another CUDA
        version = importlib.import_module("cuda.bindings").__version__
        what = f"cuda-bindings {version} finds no NVRTC of CUDA {version.partition('.')[0]}"
        raise EnvironmentLacks(what, "install nvidia-cuda-nvrtc and cuda-bindings of one CUDA version") from None
    # After a compile, glibc returns the memory to the system, and a seventh of the next compile is page faults. Once a
    # block of this size was freed, it keeps as much; 32 MB is the most that it learns from.
    bytes(_KEPT)
    return nvrtc  # type: ignore[no-any-return, unused-ignore]  # typed where cuda-bindings is installed


@functools.cache
def _library() -> Path | None:
    """The file of NVRTC, if cuda-bindings says which it loaded."""
    try:
        from cuda.pathfinder import load_nvidia_dynamic_lib
    except ImportError:
        return None
    found = load_nvidia_dynamic_lib("nvrtc").abs_path
    return Path(found) if found else None


@functools.cache
def _target(architecture: str) -> str:
    """`architecture`, or the newest one before it that NVRTC knows, as PTX.

    Raises:
        EnvironmentLacks: NVRTC knows only later ones.
    """
    nvrtc = _nvrtc()
    known: list[int] = _check(nvrtc, nvrtc.nvrtcGetSupportedArchs())
    number = int(re.sub(r"\D", "", architecture))
    if number in known:
        return architecture
    earlier = [one for one in known if one < number]
    if not earlier:
        version = ".".join(map(str, nvrtc_version()))
        raise EnvironmentLacks(
            f"NVRTC {version} compiles for sm_{min(known)} and later, and this GPU is of {architecture}",
            "install an earlier CUDA, with the torch that was built for it",
        )
    return f"compute_{max(earlier)}"
