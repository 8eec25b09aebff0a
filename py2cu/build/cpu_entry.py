"""Compile one instance of a kernel for calls on the CPU: one process of a C++ compiler, no torch, no binding.

In: the text of calls, and the instance. Out: a C function of the addresses of arguments, launch and message. Promises:
a cached library is loaded without a compiler; a compiler that hangs is ended after a minute.
"""

from __future__ import annotations

import ctypes
import functools
import shlex
import signal
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import torch

from py2cu.build import processes, store, toolchain
from py2cu.build.libraries import LibraryBuild, Source
from py2cu.diagnostics import EnvironmentLacks
from py2cu.records import record
from py2cu.translation import CallText

Entry = Callable[..., int]
"""`entry(arguments, launch, message)`, arrays of ctypes: 0, or 1 with the error in `message`."""

_SECONDS: Final = 60.0
_OTHER_HINT: Final = "name another compiler in CXX"
_FLAGS: Final = ("-std=c++17", "-fvisibility=hidden", "-shared", "-fPIC", "-w")
_NO_ARCHIVE: Final = "lstdc++"
"""Part of a linker's message where there is no static C++ library."""
_lean_flags: Final = ["-static-libstdc++"]
"""Flags of kernels that need no C++ library: linkers read less. Cleared where there is no archive of it."""


@record(frozen=True, slots=True)
class CpuInstance(LibraryBuild[Entry]):
    """An instance of a kernel: the name of its functions in the text, and the template arguments, `<16, float>`.

    `has_own_block`: its blocks have the kernel's own extents, so that loops over threads have a known length.
    """

    code: CallText
    symbol: str
    template: str
    has_own_block: bool

    @property
    def can_be_lean(self) -> bool:
        """Whether only headers of C are needed: `math_prelude.h` may stand for <cmath>, and no C++ library is used."""
        return {*self.code.headers} <= {"cmath", "cstdint", "cstdio"}

    def source(self, *, lean: bool) -> str:
        """The text behind its headers; `lean`: the prelude in place of <cmath>."""
        text, replaced = self.code.text, {"cmath": _math_prelude()} if lean else {}
        heads = (replaced.get(name, f"#include <{name}>\n") for name in self.code.headers)
        return f'{"".join(heads)}#line 1 "{text.name}"\n{text.text}'

    @property
    def flags(self) -> list[str]:
        """The flags of a build, but for the place of torch's headers."""
        own_block = [f"-DOWN_BLOCK_OF_{self.symbol}"] * self.has_own_block
        return [*toolchain.cpu_flags(), *_FLAGS, f"-DINSTANCE_OF_{self.symbol}={self.template}", *own_block]

    @property
    def notice(self) -> str:  # type: ignore[override]
        return f"compiling {self.symbol} for the CPU"

    @property
    def key(self) -> str:  # type: ignore[override]
        source = self.source(lean=self.can_be_lean)
        return store.key_of(source, self.flags, torch.__version__, toolchain.cpu_identity())

    def compile(self, folder: Path, source: Source | None) -> Path:
        text, library = folder / "kernel.cpp", folder / f"{self.symbol}.so"
        torch_headers = f"-I{Path(torch.__file__).parent / 'include'}"  # of half types
        line = [*toolchain.cxx_command(), *self.flags, torch_headers, text.name, "-o", library.name]
        for lean in (True, False) if self.can_be_lean else (False,):
            text.write_text(self.source(lean=lean), encoding="utf-8")
            done = _run([*line, *_lean_flags] if lean else line, folder)
            if done.status == 0 and library.is_file():
                return library
            if lean and _NO_ARCHIVE in done.output:
                _lean_flags.clear()
        processes.require_space(done.output, folder)
        if done.status == 0:
            raise EnvironmentLacks(f"{_compiler_name()} made no library", _OTHER_HINT)
        if done.status < 0:
            name = signal.Signals(-done.status).name
            raise EnvironmentLacks(f"{_compiler_name()} was ended by {name}", "free some memory, and try again")
        from py2cu.build.messages import build_error

        raise build_error(done.output, {self.code.text.name: self.code.text}, source)

    def open(self, path: Path) -> Entry:
        try:
            entry: Entry = getattr(ctypes.CDLL(str(path)), f"{self.symbol}_entry")  # without types, arrays pass fastest
        except (OSError, AttributeError) as error:
            what = f"the library that {_compiler_name()} built does not load: {error}"
            raise EnvironmentLacks(what, _OTHER_HINT) from error
        return entry


def _run(line: Sequence[str], directory: Path) -> processes.Finished:
    try:
        return processes.run(line, directory, timeout=_SECONDS)
    except subprocess.TimeoutExpired:
        what = f"{_compiler_name()} did not end within {_SECONDS:.0f} seconds"
        raise EnvironmentLacks(what, _OTHER_HINT) from None
    except OSError as error:
        raise EnvironmentLacks(f"{_compiler_name()} does not run: {error}", toolchain.CXX_HINT) from error


def _compiler_name() -> str:
    return f"the C++ compiler `{shlex.join(toolchain.cxx_command())}`"


@functools.cache
def _math_prelude() -> str:
    return Path(__file__).with_name("math_prelude.h").read_text(encoding="utf-8").replace("#pragma once\n", "")
