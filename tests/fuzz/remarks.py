"""Comments and docstrings between the lines of a kernel, made of words that mean something in C++.

In: the lines of a kernel and of its functions. Out: the same code with comments above and behind lines, and with
docstrings. None of them may change what is computed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from tests.fuzz.writer import Writer

# `tests/support/emulator.py` reads the text of a kernel, too, so that words for barriers and atomics are left out.
WORDS: Final = (
    "index_t", "T", 'printf("%d", i);', "INFINITY", "NAN", "assert(i < n)", "*/", "/*", "// twice", "ends in \\",
    "ends in ??/", "threadIdx.x", "std::max(a, b)", "complex<float>", "#include <cmath>", "#define n 3", "#endif",
    'R"(', "'", '"', "}", "return;", "__half", "float16 bfloat16", "floor_div(a, b)", "int64_t unsigned", "tab\there",
    "naïve ∑ 数", "{{ name }} {% if %}", "static_cast<int>(x) <<= 1", "template <typename T>", "\\n \\0 \\u0041 %s",
    "__restrict__ const", "dim3 grid(1);", "inline namespace {", "é" * 50 + " " + "long " * 30,
)  # fmt: skip
_HEAD: Final = re.compile(r"( *)def \w+\(.*\):$")


def remarked(w: Writer, lines: Sequence[str]) -> list[str]:
    """`lines` with remarks here and there."""
    return [each for line in lines for each in _with_remarks(w, line)]


def _with_remarks(w: Writer, line: str) -> Iterator[str]:
    indent = " " * (len(line) - len(line.lstrip(" ")))
    where = w.pick(["", "", "", "", "", "above", "behind", "two above", "between blank lines"])
    if where in ("above", "two above", "between blank lines"):
        yield from [""] * (where == "between blank lines")
        yield f"{indent}# {w.pick(WORDS)}"
        yield from [f"{indent}#{w.pick(WORDS)}"] * (where == "two above")
        yield from [""] * (where == "between blank lines")
    yield f"{line}  # {w.pick(WORDS)}" if where == "behind" and line else line
    head = _HEAD.match(line)
    if head and w.chance(2):
        yield from _docstring(w, f"{head[1]}    ")


def _docstring(w: Writer, indent: str) -> list[str]:
    words = [w.pick(WORDS) for _ in range(w.pick([1, 2, 3]))]
    if len(words) == 1:
        return [f'{indent}r"""{words[0]} ."""']
    return [f'{indent}r"""{words[0]}', "", *(f"{indent}{word}" for word in words[1:]), f'{indent}"""']
