"""Find the tools of a build on this machine: compilers, ninja, the CUDA toolkit, and the architectures to compile for.

In: environment variables, PATH, installed wheels. Out: paths and short names, or None for a missing tool.
Promises: never raises for a missing tool, and runs no program but nvidia-smi, and a wrapper script in place of nvcc to
learn which nvcc it wraps. The toolkit is searched anew when the environment variables behind it change.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import Final

from py2cu import devices
from py2cu.diagnostics import EnvironmentLacks

DEFAULT_ARCHITECTURES: Final = ("7.5+PTX",)
"""Used without a GPU: the oldest architecture of CUDA 13, and PTX, which the driver compiles for every later one."""

CXX_HINT: Final = "install g++ (Debian, Ubuntu: apt install g++; Fedora: dnf install gcc-c++), or name one in CXX"
NINJA_HINT: Final = "pip install ninja"
NVCC_HINT: Final = "pip install 'py2cu[cuda]', or set CUDA_HOME to a CUDA toolkit"

_GENERATIONS: Final = {
    "Volta": "7.0+PTX",
    "Turing": "7.5+PTX",
    "Ampere": "8.0;8.6+PTX",
    "Ada": "8.9+PTX",
    "Hopper": "9.0+PTX",
    "Blackwell": "10.0;12.0+PTX",
}


def find_cxx() -> Path | None:
    """The C++ compiler: `CXX` if it is set, else the first of c++, g++ and clang++ on PATH."""
    return _first_on_path(_cxx_words()[:1] or ["c++", "g++", "clang++"])


def cxx_command() -> list[str]:
    """The C++ compiler with the words behind it in `CXX`, such as `ccache g++` or flags; empty if there is none."""
    found = find_cxx()
    return [str(found), *_cxx_words()[1:]] if found else []


def cxx_identity() -> str | None:
    """A hash of the C++ compiler, and of the flags or the compiler behind it in `CXX`; None if there is none."""
    rest = _cxx_words()[1:]
    fingerprint = tool_fingerprint(find_cxx(), *filter(None, (_first_on_path([word]) for word in rest)))
    return fingerprint and hashlib.sha256(repr((fingerprint, rest)).encode()).hexdigest()[:16]


def require_cxx() -> None:
    """Raise EnvironmentLacks if there is no C++ compiler, or not the one that `CXX` names."""
    if find_cxx() is None:
        named = _cxx_words()
        where = f": CXX names {named[0]}, which is not here" if named else ""
        raise EnvironmentLacks(f"no C++ compiler was found{where}", CXX_HINT)


def _cxx_words() -> list[str]:
    """The words of `CXX`, quoted as in a shell."""
    text = os.environ.get("CXX", "")
    try:
        return shlex.split(text)
    except ValueError:  # a quote without an end
        return text.split()


def find_ninja() -> Path | None:
    """Ninja on PATH, else beside this Python: of a virtual environment that was not activated."""
    return _first_on_path(["ninja"], str(Path(sys.executable).parent), sysconfig.get_path("scripts"))


def find_nvcc() -> Path | None:
    """Nvcc in `CUDA_HOME`, on PATH, in the nvidia-cuda-nvcc wheel, or in /usr/local/cuda."""
    home = cuda_home()
    return home / "bin" / "nvcc" if home else None


def cuda_home() -> Path | None:
    """The root of the CUDA toolkit: a directory with bin/nvcc and the CUDA headers."""
    names = ("CUDA_HOME", "CUDA_PATH", "PATH")
    return _cuda_home(*(os.environ.get(name, "") for name in names))


def cuda_include(home: Path) -> Path:
    """The folder of the CUDA headers; conda keeps them per platform."""
    return _place_of("cuda_runtime.h", home, "include", "targets/*/include")


def header_folders(nvrtc: Path | None) -> tuple[Path, ...]:
    """Where the CUDA headers may be: beside the library `nvrtc`, in NVIDIA's wheels, in the toolkit.

    CUDA 13 keeps the headers of CCCL (`cuda/std`, `nv`) in a folder of their own, of which NVRTC does not know.
    """
    places = [nvrtc.parent.parent / "include"] if nvrtc else []
    places += in_wheels("*/include")
    if home := cuda_home():
        places.append(cuda_include(home))
    folders = [folder for place in places for folder in (place, place / "cccl") if folder.is_dir()]
    return tuple(dict.fromkeys(folders))


def in_wheels(pattern: str) -> Iterator[Path]:
    """The files and folders of this pattern in NVIDIA's wheels, the last by name first."""
    spec = importlib.util.find_spec("nvidia")
    for place in (spec and spec.submodule_search_locations) or ():
        yield from sorted(Path(place).glob(pattern), reverse=True)


def cuda_libraries(home: Path) -> Path:
    """The folder of libcudart: lib64 in a toolkit, lib in a wheel."""
    return _place_of("libcudart.so*", home, "lib64", "lib", "targets/*/lib")


def _place_of(file: str, home: Path, *folders: str) -> Path:
    """The first of these folders of a toolkit that has such a file."""
    places = (place for folder in folders for place in sorted(home.glob(folder)))
    return next((place for place in places if any(place.glob(file))), home / folders[0])


def tool_fingerprint(*tools: Path | None) -> str | None:
    """A hash of the paths, sizes and times of `tools`; None if one of them is missing."""
    if not all(tools):
        return None
    found = [tool.resolve() for tool in tools if tool is not None]
    facts = [(str(tool), tool.stat().st_size, tool.stat().st_mtime_ns) for tool in found]
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:16]


def cpu_identity() -> str:
    """A hash of what `-march=native` depends on: the model and features of the first processor."""
    return hashlib.sha256("\n".join(_cpu_facts()).encode()).hexdigest()[:16]


def cpu_flags() -> tuple[str, ...]:
    """The flags that decide which machine code a kernel on the CPU becomes.

    With AVX-512, they ask for full vectors, from which a loop over bytes gains a third: compilers use half by default.
    """
    wide = ("-mprefer-vector-width=512",) if any("avx512bw" in fact for fact in _cpu_facts()) else ()
    return "-O3", "-march=native", "-fopenmp", "-ffp-contract=off", "-x", "c++", *wide


@functools.cache
def _cpu_facts() -> tuple[str, ...]:
    """The architecture, and the lines of /proc/cpuinfo about the first processor."""
    fields = ("vendor_id", "cpu family", "model", "flags", "Features", "CPU implementer", "CPU part", "CPU variant")
    facts = [os.uname().machine]
    # Reading costs the kernel time for each processor, and a server has many: stop after the first.
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
        found = (line.strip() for line in takewhile(str.strip, lines) if line.split(":")[0].strip() in fields)
        facts.extend(found)
    return tuple(facts)


def gpu_architectures() -> tuple[str, ...]:
    """The CUDA architectures to compile for, in torch's spelling ("9.0", "7.5+PTX"), sorted.

    `TORCH_CUDA_ARCH_LIST` if it is set, else those of the GPUs here, else `DEFAULT_ARCHITECTURES`.

    Raises:
        EnvironmentLacks: the variable names no architecture.
    """
    listed = os.environ.get("TORCH_CUDA_ARCH_LIST", "").strip()
    if listed and listed != "native":
        return _parse_architectures(listed)
    return tuple(sorted({f"{major}.{minor}" for major, minor in devices.capabilities()})) or DEFAULT_ARCHITECTURES


def gencode_flags(architectures: tuple[str, ...]) -> tuple[str, ...]:
    """Nvcc's flags for architectures in torch's spelling: machine code for each, and PTX for names with "+PTX"."""
    flags = []
    for architecture in architectures:
        number = architecture.removesuffix("+PTX").replace(".", "")
        flags.append(f"-gencode=arch=compute_{number},code=sm_{number}")
        if architecture.endswith("+PTX"):
            flags.append(f"-gencode=arch=compute_{number},code=compute_{number}")
    return tuple(flags)


def _parse_architectures(listed: str) -> tuple[str, ...]:
    for name, members in _GENERATIONS.items():
        listed = listed.replace(name, members)
    names = [name for name in re.split(r"[;,\s]+", listed) if name]
    wrong = [name for name in names if not re.fullmatch(r"\d+\.\d[af]?(\+PTX)?", name)]
    if wrong:
        hint = "write it as in TORCH_CUDA_ARCH_LIST='8.0;9.0+PTX', or unset it to build for the GPU here"
        raise EnvironmentLacks(f"TORCH_CUDA_ARCH_LIST names no CUDA architecture: '{wrong[0]}'", hint)
    return tuple(sorted(set(names)))


def _first_on_path(names: list[str], *more: str) -> Path | None:
    """The first of these programs on PATH and in the folders `more`; absolute, for builds in other folders."""
    path = os.pathsep.join([os.environ.get("PATH", ""), *more])
    program = next(filter(None, (shutil.which(name, path=path) for name in names)), None)
    return Path(program).absolute() if program else None


@functools.cache
def _cuda_home(cuda_home: str, cuda_path: str, path: str) -> Path | None:
    for home in _cuda_homes(cuda_home, cuda_path, path):
        if os.access(home / "bin" / "nvcc", os.X_OK) and (cuda_include(home) / "cuda_runtime.h").is_file():
            return home
    return None


def _cuda_homes(cuda_home: str, cuda_path: str, path: str) -> Iterator[Path]:
    """The places that may hold a toolkit, in order of preference; searched lazily."""
    yield from (Path(named) for named in (cuda_home, cuda_path) if named)
    if nvcc := shutil.which("nvcc", path=path):
        yield Path(nvcc).resolve().parent.parent
        yield Path(nvcc).parent.parent
        yield from _wrapped_home(nvcc)
    yield from in_wheels("cu[0-9]*")
    yield Path("/usr/local/cuda")


def _wrapped_home(nvcc: str) -> Iterator[Path]:
    """The toolkit behind a wrapper script, such as distributions put on PATH; a dry run of nvcc prints its path."""
    try:
        run = subprocess.run([nvcc, "--dryrun", "-c", "x.cu"], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.SubprocessError):
        return
    if root := re.search(r"^#\$ TOP=(.+)$", run.stderr, re.MULTILINE):
        yield Path(root[1].strip()).resolve()
