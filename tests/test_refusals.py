"""Every place in the translator that reports a code is reached by a case."""

from __future__ import annotations

import ast
import contextlib
import re
import sys
from pathlib import Path

import pytest

import py2cu
from py2cu.diagnostics import Reporter, TranslationError
from py2cu.options import KernelOptions
from py2cu.pipeline import translate_file, translate_function
from py2cu.source import SourceFile

PACKAGE = Path(py2cu.__file__).parent
CASES = sorted((Path(__file__).parent / "cases").glob("[en]*/*.case"))
FOLDERS = ("analysis", "frontend", "passes")
ELSEWHERE = {
    "P101": "text that LibCST alone refuses: none is known",
    "P102": "pages of nesting: tests/test_huge_input.py",
}


def refusals() -> dict[tuple[str, int], str]:
    """Every call that reports a code, by its file relative to the package and its line."""
    found = {}
    for path in [PACKAGE / "pipeline.py", *(file for folder in FOLDERS for file in (PACKAGE / folder).rglob("*.py"))]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(args=[ast.Constant(value=str(code)), *_]) if re.fullmatch(r"P\d{3}", code):
                    found[path.relative_to(PACKAGE).as_posix(), node.lineno] = code
    return found


@pytest.fixture
def reached(monkeypatch: pytest.MonkeyPatch) -> set[tuple[str, int]]:
    """The lines, callers of callers included, from which something was reported."""
    lines: set[tuple[str, int]] = set()
    report = Reporter._add

    def recording(self: Reporter, *args: object) -> None:
        frame = sys._getframe(1)
        for _ in range(4):
            file = Path(frame.f_code.co_filename)
            if file.is_relative_to(PACKAGE):
                lines.add((file.relative_to(PACKAGE).as_posix(), frame.f_lineno))
            assert frame.f_back is not None
            frame = frame.f_back
        report(self, *args)

    monkeypatch.setattr(Reporter, "_add", recording)
    return lines


def test_every_refusal_has_a_case(reached: set[tuple[str, int]]) -> None:
    for path in CASES:
        python = re.split(r"^=== \w+\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1]
        with contextlib.suppress(TranslationError):
            translate_file(SourceFile("case.py", python), notes=True)
    with contextlib.suppress(TranslationError):  # a file that is read has no such kernel
        translate_function(SourceFile("case.py", "k = kernel(lambda x: x)"), 1, "<lambda>", KernelOptions(), {})
    missing = {place: code for place, code in refusals().items() if place not in reached and code not in ELSEWHERE}
    assert missing == {}
