"""Refusals and warnings as a user sees them, `tests/cases/errors/*.case`, and what `--notes` says, `tests/cases/notes`.

A case is a sentence, `=== python` with a file, `=== error` with all that is printed about it, and `=== rewrite` with
what the hints say to write instead (`tests/support/rewrites.py`). `--update-golden` writes the errors, which a new case
lacks; the diff is the review.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from py2cu.codes import CODES
from py2cu.diagnostics import Diagnostic, TranslationError, render
from py2cu.pipeline import translate_file
from py2cu.source import SourceFile
from tests.support.rewrites import Rewrite
from tests.support.samples import sampled

FOLDER = Path(__file__).parent / "cases"
CASES = sorted([*FOLDER.glob("errors/*.case"), *FOLDER.glob("notes/*.case")])
# Not about a text that can be shown: tests/test_bad_input.py, test_build.py, unit/check/test_gradients.py.
WITHOUT_CASE = {"P100", "P102", "P413", "P601"}


class Sections(NamedTuple):
    """The parts of a case; "" for one that it lacks."""

    sentence: str
    python: str
    error: str
    rewrite: str

    @property
    def text(self) -> str:
        parts = {"python": self.python.rstrip("\n"), "error": self.error, "rewrite": self.rewrite}
        return "\n\n".join([self.sentence, *(f"=== {name}\n{part}" for name, part in parts.items() if part)]) + "\n"


def sections(path: Path) -> Sections:
    sentence, *parts = re.split(r"^=== (python|error|rewrite)\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    texts = dict(zip(parts[::2], parts[1::2], strict=True))
    python = texts["python"].rstrip("\n") + "\n"
    return Sections(sentence.strip(), python, texts.get("error", "").strip("\n"), texts.get("rewrite", "").strip("\n"))


def reported(path: Path, python: str) -> tuple[Diagnostic, ...]:
    """The errors of a file, else its notes."""
    try:
        return translate_file(SourceFile("case.py", python), notes=path.parent.name == "notes").notes
    except TranslationError as error:
        return error.diagnostics


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_error_case(path: Path, pytestconfig: pytest.Config) -> None:
    case = sections(path)
    said = render(reported(path, case.python))
    if pytestconfig.getoption("--update-golden"):
        path.write_text(case._replace(error=said).text, encoding="utf-8")
    else:
        assert said == case.error


@pytest.mark.parametrize("path", sampled(CASES, 8), ids=lambda path: path.stem)
def test_two_runs_report_the_same(path: Path) -> None:
    python = sections(path).python
    assert render(reported(path, python)) == render(reported(path, python))


def hints_of(shown: str) -> set[str]:
    """The hints of the errors that a case shows, or of its notes."""
    items = re.split(r"^\S+: (?=(?:error|warning|note)\[)", shown, flags=re.MULTILINE)[1:]
    errors = [item for item in items if item.startswith("error")]
    return {hint for item in errors or items for hint in re.findall(r"^  hint: (.*)$", item, flags=re.MULTILINE)}


@pytest.mark.parametrize("path", [path for path in CASES if sections(path).rewrite], ids=lambda path: path.stem)
def test_what_the_hints_say_is_translated(path: Path) -> None:
    case = sections(path)
    rewrite = Rewrite.of(case.rewrite)
    rewritten = translate_file(SourceFile("case.py", rewrite.applied(case.python)))
    assert [hint for hint in hints_of(case.error) if not rewrite.follows(hint)] == []
    if "error[" not in case.error:
        assert rewritten.notes == ()


def test_a_backward_that_is_translated_alone_is_refused_as_in_its_file() -> None:
    path = FOLDER / "errors" / "backwards.case"
    python, alone = sections(path).python, []
    for name in re.findall(r"^def (\w+)", python, flags=re.MULTILINE):
        try:
            translate_file(SourceFile("case.py", python), name, ())
        except TranslationError as error:
            alone += error.diagnostics
    assert render(sorted(alone, key=lambda each: each.span)) == sections(path).error


def test_the_repr_of_an_error_is_no_copy_of_the_file() -> None:
    with pytest.raises(TranslationError) as caught:
        translate_file(SourceFile("case.py", "from py2cu import kernel\n@kernel\ndef f(x): pass\n"))
    assert "case.py" in repr(caught.value)
    assert "def f(x)" not in repr(caught.value)


def test_every_code_has_a_case() -> None:
    shown = {
        code for path in CASES for code in re.findall(r"(?:error|warning|note)\[(P\d\d\d)\]", sections(path).error)
    }
    assert shown == set(CODES) - WITHOUT_CASE


def test_notes_on_performance_are_for_those_who_ask() -> None:
    for path in FOLDER.glob("notes/*.case"):
        assert translate_file(SourceFile("case.py", sections(path).python)).notes == ()


def test_every_case_says_something() -> None:
    assert [path.name for path in CASES if not sections(path).error] == []
