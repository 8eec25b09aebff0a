"""The names that headers put into the global scope: macros, functions, variables, types and enumerators.

In: a compiler, as it is called to preprocess, and a text that includes the headers. Out: identifiers that Python can
have too, sorted. Names that begin with two underscores, or with one and a capital, are left out: users' names with
these are spelled otherwise in any case.
"""

from __future__ import annotations

import keyword
import re
import subprocess
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

_TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|[A-Za-z_]\w*|\d[\w.]*|::|->|[^\s\w]')
_RESERVED = re.compile(r"__|_[A-Z]")


def header_names(preprocess: Sequence[str], source: Path) -> list[str]:
    """What the headers that `source` includes declare or define."""
    run = [*preprocess, str(source)]
    text = subprocess.run(run, check=True, capture_output=True, text=True).stdout
    found = set(declared(text)) | set(_macros(run))
    return sorted(name for name in found if not _RESERVED.match(name) and not keyword.iskeyword(name))


def _macros(run: Sequence[str]) -> Iterator[str]:
    text = subprocess.run(
        [*run, *(["-Xcompiler"] if run[0].endswith("nvcc") else []), "-dM"], check=True, capture_output=True, text=True
    ).stdout
    yield from re.findall(r"(?m)^#define ([A-Za-z_]\w*)", text)


def declared(text: str) -> Iterator[str]:
    """The names that preprocessed text declares outside namespaces, classes and functions."""
    lines = (line for line in text.splitlines() if not line.startswith("#"))
    scopes: list[bool] = []  # of the braces that are open: whether what is in them is of the global scope
    before: list[str] = []  # the declaration so far
    brackets = 0
    for token in _TOKEN.findall("\n".join(lines)):
        if token == "{":
            is_enum = not brackets and "enum" in before and "class" not in before and all(scopes)
            is_linkage = before[-2:-1] == ["extern"] and before[-1].startswith('"')
            if all(scopes):
                yield from _tags(before)
                yield from () if is_linkage or brackets else _declarator(before)
            scopes.append(is_linkage or is_enum)
            before = []
        elif token == "}":
            if scopes and all(scopes):
                yield from _tags(before) if not before or len(before) > 1 else before[:1]
            if scopes:
                scopes.pop()
            before = []
        elif not all(scopes):
            continue
        elif token in "([":
            if not brackets:
                yield from before[-1:] if before and before[-1].isidentifier() else ()
            brackets += 1
            before.append(token)
        elif token in ")]":
            brackets = max(0, brackets - 1)
            before.append(token)
        elif token in (";", ",", "=") and not brackets:
            yield from _tags(before)
            yield from before[-1:] if before and before[-1].isidentifier() else ()
            before = [] if token == ";" else before
        else:
            before.append(token)


def _tags(before: Sequence[str]) -> Iterator[str]:
    for word, name in pairwise(before):
        if word in ("struct", "class", "union", "enum", "namespace") and name.isidentifier():
            yield name


def _declarator(before: Sequence[str]) -> Iterator[str]:
    """The function whose body opens here: the identifier before its first bracket."""
    if "(" in before:
        name = before[before.index("(") - 1]
        if name.isidentifier():
            yield name
