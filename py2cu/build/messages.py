"""Place compiler messages on lines of the Python.

In: the log of a failed build, the texts that were built, the Python behind them. Out: a `BuildError`, whose
diagnostics point at the Python line behind each message, or at the emitted text if a template wrote the line.
Promises: reads the messages of g++, clang++ and nvcc; a message without a place stays in the error's text and log.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from typing import Final

from py2cu.diagnostics import Diagnostic, Py2cuError, Severity, render
from py2cu.source import SourceFile, Span
from py2cu.translation import Text

_PLACED: Final = re.compile(
    r"^(?P<file>[^\s:(][^:(\n]*)"
    r"(?::(?P<line>\d+):(?:(?P<column>\d+):)?|\((?P<nvcc_line>\d+)\):) *"
    r"(?:fatal |catastrophic )?error(?: #[\w-]+)?: (?P<message>.+)$",
    re.MULTILINE,
)
"""`a.cpp:12:5: error: …` of g++ and clang++, `a.cu(12): error #20: …` of nvcc."""

_UNPLACED: Final = re.compile(r"^.*(?:\berror\b|\bfatal\b|undefined reference|\bld: |Killed signal).*$", re.MULTILINE)

_HINTS: Final = (
    ("unsupported GNU version", "this nvcc refuses this g++: install an older one, and name it in CC and CXX"),
    (
        "Unsupported gpu architecture",
        "this nvcc does not know the architecture: use another CUDA version, or set TORCH_CUDA_ARCH_LIST",
    ),
    (
        "Unsupported .version",
        "the CUDA tools are of different versions: pip install 'py2cu[cuda]' in a fresh environment",
    ),
    ("Killed signal", "the compiler was killed, most likely because memory ran out: free some memory and try again"),
    ("nv/target: No such file", "the CUDA headers are incomplete: pip install nvidia-cuda-cccl of nvcc's version"),
    ("omp.h", "this compiler has no OpenMP: install g++, or name it in CXX"),
    (
        "uses too much shared data",
        "use less shared memory, or give the array a run-time shape: only that may exceed 48 KB",
    ),
)
_PLACED_HINT: Final = "unless the text was edited, py2cu should have refused this kernel: please report it as a bug"
_UNPLACED_HINT: Final = "check that this compiler builds other programs; set CXX for another compiler or other flags"


class BuildError(Py2cuError):
    """A compiler refused the text: `diagnostics` give the places, `log` is the compiler's output, `hint` a remedy."""

    def __init__(self, diagnostics: Sequence[Diagnostic], log: str, hint: str) -> None:
        self.diagnostics, self.log, self.hint = tuple(diagnostics), log, hint
        super().__init__(self.diagnostics, log, hint)

    def __str__(self) -> str:
        if self.diagnostics:
            return "\n" + render(self.diagnostics)
        errors = [match[0] for match in _UNPLACED.finditer(self.log)] or self.log.splitlines()[-10:]
        return "\n".join(["the build failed:", *dict.fromkeys(errors), f"  hint: {self.hint}"])


def build_error(
    log: str, texts: Mapping[str, Text], source: Callable[[], SourceFile] | None, *, of_nvcc: Text | None = None
) -> BuildError:
    """Read `log`; `texts` by the names of the files that it names, `of_nvcc` the one that nvcc or NVRTC compiled.

    `source` returns the Python whose lines `Text.origin` counts; None if only the emitted text is known.
    """
    known = next((hint for sign, hint in _HINTS if sign in log), None)
    python = source() if source is not None else None
    found: dict[Diagnostic, None] = {}
    for match in _PLACED.finditer(log):
        if (text := texts.get(PurePath(match["file"]).name)) is None:
            continue
        line = int(match["line"] or match["nvcc_line"])
        file, span = _place(text, line, int(match["column"] or 1), python)
        by = "nvcc" if text is of_nvcc else "the C++ compiler"
        where = f" ({text.name}:{line})" if file is python else ""
        message = f"{by} refuses this line: {match['message']}{where}"
        found[Diagnostic(Severity.ERROR, "P601", message, span, file, known or _PLACED_HINT)] = None
    hint = known or (_PLACED_HINT if found else _UNPLACED_HINT)
    return BuildError(sorted(found, key=lambda item: (item.file.name, item.span)), log, hint)


def _place(text: Text, line: int, column: int, source: SourceFile | None) -> tuple[SourceFile, Span]:
    """The Python line behind a line of `text`; if there is none, the place in `text` itself."""
    python_line = text.origin[line - 1] if 0 < line <= len(text.origin) else 0
    if source is None or python_line == 0:
        return SourceFile(text.name, text.text), Span(line, column - 1, line, column)
    code = source.line(python_line)
    return source, Span(python_line, len(code) - len(code.lstrip()), python_line, max(1, len(code.rstrip())))
