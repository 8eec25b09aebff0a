"""Every diagnostic code has a row and a page, every row is used, and the examples of its page show the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import py2cu
from py2cu.codes import CODES, explanation
from py2cu.diagnostics import TranslationError
from py2cu.pipeline import translate_file
from py2cu.source import SourceFile

PACKAGE = Path(py2cu.__file__).parent
UNSHOWN = {
    "P100": "no text to show",
    "P102": "the example would fill a page",
    "P413": "of the copy whose gradients are checked, not of the kernel",
    "P601": "the compiler's, not the translator's",
}
NOTES = {code for code in CODES if code.startswith("P7")}  # only with `--notes`
SHOWN = sorted(set(CODES) - set(UNSHOWN))


def used_codes() -> set[str]:
    sources = [path.read_text() for path in PACKAGE.rglob("*.py") if path.name != "codes.py"]
    return {code for source in sources for code in re.findall(r'"(P\d\d\d)"', source)}


def codes_of(source: str, notes: bool) -> list[str]:
    """The codes that a file gets, errors and notes."""
    try:
        return [item.code for item in translate_file(SourceFile("example.py", source), notes=notes).notes]
    except TranslationError as refused:
        return [item.code for item in refused.diagnostics]


def test_every_code_has_a_row_and_every_row_is_used() -> None:
    assert used_codes() == set(CODES)


@pytest.mark.parametrize("code", sorted(UNSHOWN))
def test_codes_that_no_kernel_shows_have_no_example(code: str) -> None:
    assert (explanation(code).wrong, explanation(code).right) == ("", "")


FORM = {"P706"}  # `--notes` tells it of every index kernel


@pytest.mark.parametrize("code", SHOWN)
def test_the_wrong_example_gets_exactly_this_code(code: str) -> None:
    found = set(codes_of(explanation(code).wrong, notes=code in NOTES))
    assert found - FORM | {code} & found == {code}


@pytest.mark.parametrize("code", SHOWN)
def test_the_right_example_translates_without_a_word(code: str) -> None:
    assert set(codes_of(explanation(code).right, notes=code in NOTES)) <= FORM


@pytest.mark.parametrize("code", SHOWN)
def test_an_example_imports_a_thing_once(code: str) -> None:
    for example in (explanation(code).wrong, explanation(code).right):
        imports = [line for line in example.splitlines() if line.startswith(("import ", "from "))]
        assert len(imports) == len(set(imports)), example


@pytest.mark.parametrize("code", CODES)
def test_the_prose_can_be_read(code: str) -> None:
    title, meaning = CODES[code].title, explanation(code).meaning
    assert re.fullmatch(r"P[1-8]\d\d", code)
    assert title and meaning.endswith(".") and len(title) <= 60 and not title.endswith(".")


def test_every_page_belongs_to_a_row() -> None:
    assert {path.stem for path in (PACKAGE / "explanations").iterdir()} == set(CODES)


@pytest.mark.parametrize("code", SHOWN)
def test_notes_and_warnings_are_marked_as_such(code: str) -> None:
    try:
        shown = translate_file(SourceFile("example.py", explanation(code).wrong)).notes
    except TranslationError as refused:
        shown = refused.diagnostics
    kinds = {item.severity.value for item in shown}
    assert kinds == ({CODES[code].kind.value} if code not in NOTES else set())
