"""Every refusal as a user sees it, `tests/cases/errors/*.case`, and in `tests/cases/notes` what `--notes` says.

A case is a sentence, `=== python` with a file, `=== error` with all that is printed about it. `--update-golden`
writes the latter, which a new case lacks; the diff is the review.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from py2cu.codes import CODES
from py2cu.diagnostics import TranslationError, render
from py2cu.pipeline import translate_file
from py2cu.source import SourceFile

FOLDER = Path(__file__).parent / "cases"
CASES = sorted([*FOLDER.glob("errors/*.case"), *FOLDER.glob("notes/*.case")])
WITHOUT_CASE = {"P100", "P102", "P601"}  # not about a text that can be shown: tests/test_bad_input.py, test_build.py


def sections(path: Path) -> tuple[str, str, str]:
    """The sentence, the Python, and the expected output, "" for a new case."""
    text = path.read_text(encoding="utf-8")
    sentence, python, *error = re.split(r"^=== (?:python|error)\n", text, flags=re.MULTILINE)
    return sentence.strip(), python.rstrip("\n") + "\n", "".join(error).strip("\n")


def said_about(path: Path, python: str) -> str:
    """What is printed about a file: its errors, else its notes."""
    try:
        return render(translate_file(SourceFile("case.py", python), notes=path.parent.name == "notes").notes)
    except TranslationError as error:
        return render(error.diagnostics)


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_error_case(path: Path, pytestconfig: pytest.Config) -> None:
    sentence, python, expected = sections(path)
    said = said_about(path, python)
    assert said == said_about(path, python), "two runs differ"
    if pytestconfig.getoption("--update-golden"):
        path.write_text(f"{sentence}\n\n=== python\n{python}\n=== error\n{said}\n", encoding="utf-8")
    else:
        assert said == expected


def test_the_repr_of_an_error_is_no_copy_of_the_file() -> None:
    with pytest.raises(TranslationError) as caught:
        translate_file(SourceFile("case.py", "from py2cu import kernel\n@kernel\ndef f(x): pass\n"))
    assert "case.py" in repr(caught.value)
    assert "def f(x)" not in repr(caught.value)


def test_every_code_has_a_case() -> None:
    shown = {code for path in CASES for code in re.findall(r"(?:error|note)\[(P\d\d\d)\]", sections(path)[2])}
    assert shown == set(CODES) - WITHOUT_CASE


def test_notes_on_performance_are_for_those_who_ask() -> None:
    for path in FOLDER.glob("notes/*.case"):
        assert translate_file(SourceFile("case.py", sections(path)[1])).notes == ()


def test_every_case_says_something() -> None:
    assert [path.name for path in CASES if not sections(path)[2]] == []
