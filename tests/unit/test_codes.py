"""Every diagnostic code in the package has a row, every row is used, and its example shows what it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import py2cu
from py2cu.codes import CODES
from py2cu.diagnostics import TranslationError
from py2cu.pipeline import translate_file
from py2cu.source import SourceFile

PACKAGE = Path(py2cu.__file__).parent
UNSHOWN = {
    "P100": "no text to show",
    "P102": "the example would fill a page",
    "P601": "the compiler's, not the translator's",
}
NOTES = {code for code in CODES if code.startswith("P7")}
SHOWN = sorted(set(CODES) - set(UNSHOWN))


def used_codes() -> set[str]:
    sources = [path.read_text() for path in PACKAGE.rglob("*.py") if path.name != "codes.py"]
    return {code for source in sources for code in re.findall(r'"(P\d\d\d)"', source)}


def found(source: str, notes: bool) -> list[str]:
    """The codes that a file gets, errors and notes."""
    try:
        return [item.code for item in translate_file(SourceFile("example.py", source), notes=notes).notes]
    except TranslationError as refused:
        return [item.code for item in refused.diagnostics]


def test_every_code_has_a_row_and_every_row_is_used() -> None:
    assert used_codes() == set(CODES)


@pytest.mark.parametrize("code", sorted(UNSHOWN))
def test_codes_that_no_kernel_shows_have_no_example(code: str) -> None:
    assert (CODES[code].wrong, CODES[code].right) == ("", "")


@pytest.mark.parametrize("code", SHOWN)
def test_the_wrong_example_gets_exactly_this_code(code: str) -> None:
    assert set(found(CODES[code].wrong, notes=code in NOTES)) == {code}


@pytest.mark.parametrize("code", SHOWN)
def test_the_right_example_translates_without_a_word(code: str) -> None:
    assert found(CODES[code].right, notes=code in NOTES) == []


@pytest.mark.parametrize("code", SHOWN)
def test_an_example_imports_a_thing_once(code: str) -> None:
    for example in (CODES[code].wrong, CODES[code].right):
        imports = [line for line in example.splitlines() if line.startswith(("import ", "from "))]
        assert len(imports) == len(set(imports)), example


@pytest.mark.parametrize("code", CODES)
def test_the_prose_can_be_read(code: str) -> None:
    row = CODES[code]
    assert re.fullmatch(r"P[1-7]\d\d", code)
    assert row.title and row.meaning.endswith(".") and len(row.title) <= 60 and not row.title.endswith(".")
