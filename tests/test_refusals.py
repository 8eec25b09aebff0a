"""Every place in the translator that reports a code is reached by a case, and errors by one whose rewrite a test
translates (`tests/test_error_cases.py`).
"""

from __future__ import annotations

import ast
import contextlib
import re
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

import py2cu
from py2cu.diagnostics import Reporter, Severity, TranslationError
from py2cu.options import KernelOptions
from py2cu.pipeline import lower_function, translate_file
from py2cu.source import SourceFile

PACKAGE = Path(py2cu.__file__).parent
CASES = sorted((Path(__file__).parent / "cases").glob("[en]*/*.case"))
FOLDERS = ("analysis", "frontend", "passes")
ELSEWHERE = {
    "P101": "text that LibCST alone refuses: none is known",
    "P102": "pages of nesting: tests/test_huge_input.py",
    "P413": "the checks of gradients: tests/unit/check/test_gradients.py",
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


class Reached(dict[tuple[str, int], set[Severity]]):
    """The lines, callers of callers included, from which something was reported, with its severities."""

    def of(self, severity: Severity) -> set[tuple[str, int]]:
        return {place for place, severities in self.items() if severity in severities}


@pytest.fixture
def reached(monkeypatch: pytest.MonkeyPatch) -> Reached:
    places = Reached()
    report = Reporter._add

    def recording(self: Reporter, severity: Severity, *args: object) -> None:
        frame = sys._getframe(1)
        for _ in range(4):
            file = Path(frame.f_code.co_filename)
            if file.is_relative_to(PACKAGE):
                places.setdefault((file.relative_to(PACKAGE).as_posix(), frame.f_lineno), set()).add(severity)
            assert frame.f_back is not None
            frame = frame.f_back
        report(self, severity, *args)

    monkeypatch.setattr(Reporter, "_add", recording)
    return places


def translate_cases(paths: Iterable[Path]) -> None:
    for path in paths:
        python = re.split(r"^=== \w+\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1]
        with contextlib.suppress(TranslationError):
            translate_file(SourceFile("case.py", python), notes=True)


def test_every_refusal_has_a_case_and_every_error_a_rewrite(reached: Reached) -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in CASES}
    translate_cases(path for path, text in texts.items() if "\n=== rewrite\n" in text)
    rewritten = reached.of(Severity.ERROR)
    translate_cases(path for path, text in texts.items() if "\n=== rewrite\n" not in text)
    without_rewrite = reached.of(Severity.ERROR) - rewritten
    with contextlib.suppress(TranslationError):  # a file that is read has no such kernel
        lower_function(SourceFile("case.py", "k = kernel(lambda x: x)"), 1, "<lambda>", KernelOptions(), {})
    places = refusals()
    assert {place: code for place, code in places.items() if place not in reached and code not in ELSEWHERE} == {}
    assert {place: code for place, code in places.items() if place in without_rewrite} == {}
