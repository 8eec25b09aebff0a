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
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple

from py2cu.build import processes, toolchain
from py2cu.diagnostics import EnvironmentLacks

_PRELUDE: Final = "py2cu_prelude.cuh"
_FIRST_WITH_MINIMAL: Final = (12, 6)
_FIRST_WITH_PRECOMPILED_HEADERS: Final = (12, 8)
_FIRST_WITH_SEED: Final = (13, 0)
_STANDARD_HEADERS: Final = ("cassert", "cmath", "cstdint", "cstdio", "cstring", "type_traits")
_COMPILER_HINT: Final = "pip install cuda-bindings nvidia-cuda-nvrtc, which torch's CUDA wheels bring, or set CUDA_HOME"
_HEADERS_HINT: Final = "pip install nvidia-cuda-runtime nvidia-cuda-cccl of NVRTC's version, or set CUDA_HOME"
_KEPT: Final = 31 << 20
_MOST_PRECOMPILED: Final = 16  # each takes 5 to 120 MB of the temporary directory


class Cubin(NamedTuple):
    """The code of one kernel for one architecture: a cubin, or PTX if NVRTC does not know the architecture."""

    image: bytes  # PTX ends with a zero byte
    symbol: str  # the mangled name of the kernel


class CompileError(Exception):
    """The CUDA compiler refused a text; the error's own text is its output, with the lines of the text."""


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
        version = nvrtc_version()
    except EnvironmentLacks as lack:
        nvcc = _find_nvcc(lack)
        return compile_by_nvcc(nvcc, text, expression, architecture=architecture, fma=fma, headers=headers, name=name)
    # The prelude replaces the headers of the C++ library, which have a name without `.` and `/`.
    includes = sorted({header for header in headers if re.search("[./]", header)} - {"cuda_runtime.h"})
    lines = "".join(f"#include <{header}>\n" for header in (*includes, _PRELUDE))
    source = f'{lines}#pragma nv_hdrstop\n#line 1 "{name}"\n{text}'
    options = [f"-arch={_target(architecture)}", "-std=c++17", "-w"]
    options += ["--minimal"] * (version >= _FIRST_WITH_MINIMAL)
    options += ["-frandom-seed=py2cu"] * (version >= _FIRST_WITH_SEED)  # else symbols of CCCL have random names
    options += [f"-I{folder}" for folder in _header_folders(includes)] if includes else []
    key = (*options, *includes)
    options += [] if fma else ["-fmad=false"]
    if not includes or version < _FIRST_WITH_PRECOMPILED_HEADERS:
        return _compile(source, expression, options)
    return _compile_with_precompiled_header(source, expression, [*options, "--pch-messages=false"], key)


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
    prelude = hashlib.sha256(_prelude()).hexdigest()[:16]
    if (wheel := _wheel()) is not None:  # loading it would take a third of the first cached call
        return f"NVRTC {toolchain.tool_fingerprint(wheel)} {prelude}"
    try:
        major, minor = nvrtc_version()
    except EnvironmentLacks as lack:
        return f"nvcc {toolchain.tool_fingerprint(_find_nvcc(lack))}"
    return f"NVRTC {major}.{minor} {toolchain.tool_fingerprint(_library())} {prelude}"


def _compile(source: str, expression: str, options: Sequence[str]) -> Cubin:
    """Compile by NVRTC.

    Raises:
        CompileError: NVRTC refuses the text.
        OSError: it can neither write nor read the precompiled header that the options name.
    """
    nvrtc = _nvrtc()
    headers = ([_prelude()], [_PRELUDE.encode()])
    program = _value(nvrtc.nvrtcCreateProgram(source.encode(), b"kernel.cu", 1, *headers))
    try:
        _value(nvrtc.nvrtcAddNameExpression(program, expression.encode()))
        (status,) = nvrtc.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])
        signal.siginterrupt(signal.SIGINT, True)  # which NVRTC undoes: Ctrl-C would not interrupt a blocking read
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            log = _result(program, "ProgramLog").decode(errors="replace").strip("\0\n ")
            if "catastrophic error" in log.lower() and "precompiled header" in log:
                raise OSError("the disk is full, or there is no /proc")
            raise CompileError(log or status.name)
        image = _result(program, "PTX" if options[0].startswith("-arch=compute_") else "CUBIN")
        symbol: bytes = _value(nvrtc.nvrtcGetLoweredName(program, expression.encode()))
        return Cubin(image, symbol.decode())
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _result(program: Any, kind: str) -> bytes:
    """A result of a compiled program: "CUBIN", "PTX" or "ProgramLog"."""
    buffer = bytearray(_value(getattr(_nvrtc(), f"nvrtcGet{kind}Size")(program)))
    _value(getattr(_nvrtc(), f"nvrtcGet{kind}")(program, buffer))
    return bytes(buffer)


def _value(answer: tuple[Any, ...]) -> Any:
    """The value of a call of NVRTC, which answers with a status and at most one value."""
    status, *values = answer
    if status != _nvrtc().nvrtcResult.NVRTC_SUCCESS:
        raise CompileError(f"NVRTC fails: {status.name}")
    return values[0] if values else None


_precompiled: Final[dict[tuple[str, ...], int]] = {}
"""Descriptors of precompiled headers, by options and headers. The files are unlinked: none outlives the process."""


def _compile_with_precompiled_header(
    source: str, expression: str, options: Sequence[str], key: tuple[str, ...]
) -> Cubin:
    """Use the precompiled header of `key`, or write it; do without if that fails."""
    with contextlib.suppress(OSError):
        if (descriptor := _precompiled.get(key)) is not None:
            return _compile(source, expression, [*options, f"--use-pch=/proc/self/fd/{descriptor}"])
        if len(_precompiled) < _MOST_PRECOMPILED:
            with tempfile.TemporaryDirectory(prefix="py2cu-") as folder:
                file = os.path.join(folder, "headers.pch")
                try:
                    return _compile(source, expression, [*options, f"--create-pch={file}"])
                finally:
                    _keep(key, file)
    return _compile(source, expression, options)


def _keep(key: tuple[str, ...], file: str) -> None:
    """Hold a precompiled header open, if NVRTC wrote it: it does so even if the text behind the headers is wrong."""
    if not os.path.exists(file):
        return
    descriptor = os.open(file, os.O_RDONLY)
    if _precompiled.setdefault(key, descriptor) != descriptor:
        os.close(descriptor)


def _header_folders(headers: Sequence[str]) -> tuple[Path, ...]:
    """Where to look for CUDA headers, none of which may be missing."""
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
def _wheel() -> Path | None:
    """The file of NVRTC in the wheel of its CUDA, which cuda-bindings prefers to others; it is not loaded."""
    try:
        bindings = importlib.import_module("cuda.bindings")
    except ImportError:
        return None
    major = bindings.__version__.partition(".")[0]
    return next(toolchain.in_wheels(f"*/lib/libnvrtc.so.{major}"), None)


@functools.cache
def _library() -> Path | None:
    """The file of NVRTC, if cuda-bindings says which it loaded."""
    from cuda.pathfinder import load_nvidia_dynamic_lib

    found = load_nvidia_dynamic_lib("nvrtc").abs_path
    return Path(found) if found else None


@functools.cache
def _target(architecture: str) -> str:
    """`architecture`, or the newest one before it that NVRTC knows, as PTX."""
    known: list[int] = _value(_nvrtc().nvrtcGetSupportedArchs())
    number = int(re.sub(r"\D", "", architecture))
    if number in known:
        return architecture
    earlier = [one for one in known if one < number]
    if not earlier:
        version = ".".join(map(str, nvrtc_version()))
        what = f"NVRTC {version} compiles for sm_{min(known)} and later, and this GPU is of {architecture}"
        raise EnvironmentLacks(what, "install an earlier CUDA, with the torch that was built for it")
    return f"compute_{max(earlier)}"


# --- nvcc ---


def _find_nvcc(lack: EnvironmentLacks) -> Path:
    """Nvcc's path; `lack` is why NVRTC cannot be used, for the message if there is no nvcc either."""
    if (nvcc := toolchain.find_nvcc()) is None:
        what = f"compiling a CUDA kernel needs NVRTC or nvcc, and neither is here: {lack.message}"
        raise EnvironmentLacks(what, _COMPILER_HINT)
    return nvcc


def compile_by_nvcc(
    nvcc: Path, text: str, expression: str, *, architecture: str, fma: bool, headers: Iterable[str], name: str
) -> Cubin:
    """Compile an instance by nvcc; arguments and result as of `compile_cubin`."""
    includes = "".join(f"#include <{header}>\n" for header in sorted({*_STANDARD_HEADERS, *headers}))
    # Taking its address instantiates the kernel.
    instance = f"void* instance = reinterpret_cast<void*>(&{expression});\n"
    with tempfile.TemporaryDirectory(prefix="py2cu-") as folder:
        source, cubin = Path(folder, "kernel.cu"), Path(folder, "kernel.cubin")
        source.write_text(f'{includes}#line 1 "{name}"\n{text}\n{instance}', encoding="utf-8")
        flags = ["-cubin", f"-arch={architecture}", "-std=c++17", f"-fmad={'true' if fma else 'false'}"]
        done = processes.run([str(nvcc), *flags, "-o", str(cubin), str(source)], Path(folder))
        if done.status != 0:
            raise CompileError(done.output)
        image = cubin.read_bytes()
    return Cubin(image, symbol_of_kernel(image, expression))


def symbol_of_kernel(image: bytes, expression: str) -> str:
    """The mangled name of an instance in a cubin: each kernel has a section of parameters that is named after it.

    Raises:
        CompileError: the cubin has no kernel of this name.
    """
    kernel = expression.partition("<")[0].rpartition("::")[2].strip()
    symbols: list[str] = [match.decode() for match in re.findall(rb"\.nv\.constant0\.(\w+)\0", image)]
    mangled = re.compile(rf"(?<!\d){len(kernel)}{re.escape(kernel)}(?![a-z_])")
    found = next((symbol for symbol in symbols if mangled.search(symbol)), None)
    if found is None:
        raise CompileError(f"nvcc compiled no kernel {expression}, but {', '.join(symbols) or 'nothing'}")
    return found
