"""Compile one instance of a CUDA kernel by nvcc, on machines without NVRTC.

In: the text, the instance as a C++ expression, the architecture. Out: a `Cubin`. Errors: `CompileError`, and
`EnvironmentLacks` without nvcc. Promises: writes into a temporary directory alone; nvcc ends with this process.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from py2cu.build import processes, toolchain
from py2cu.build.cubin import CompileError, Cubin
from py2cu.diagnostics import EnvironmentLacks

_STANDARD_HEADERS: Final = ("cassert", "cmath", "cstdint", "cstdio", "cstring", "type_traits")
_HINT: Final = "pip install cuda-bindings nvidia-cuda-nvrtc, which torch's CUDA wheels bring, or set CUDA_HOME"


def find_nvcc(lack: EnvironmentLacks) -> Path:
    """Nvcc's path; `lack` is why NVRTC cannot be used.

    Raises:
        EnvironmentLacks: there is no nvcc either.
    """
    if (nvcc := toolchain.find_nvcc()) is None:
        what = f"compiling a CUDA kernel needs NVRTC or nvcc, and neither is here: {lack.message}"
        raise EnvironmentLacks(what, _HINT)
    return nvcc


def compile_by_nvcc(
    nvcc: Path, text: str, expression: str, *, architecture: str, fma: bool, headers: Iterable[str], name: str
) -> Cubin:
    """Compile an instance by nvcc; arguments and result as of `nvrtc.compile_cubin`."""
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
