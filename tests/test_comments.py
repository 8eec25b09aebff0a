"""A user's comments reach the texts, stay with their statements, and change no code, whatever they say.

Each case of `tests/cases/kernels` is translated with a comment behind every line of its Python and in place of every
docstring: once with harmless ones, once with words of C++ that mean something to a compiler or once did to the
translator.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from typing import Final

import pytest

from py2cu.pipeline import translate_file
from py2cu.source import SourceFile
from py2cu.translation import Text, Translation
from tests.support.samples import sampled
from tests.test_kernel_cases import CASES, Case, read_case, translate, values_of

HARMLESS: Final = "as it is"
WORDS: Final = (
    "index_t T U INFINITY NAN printf( assert( threadIdx blockIdx thread complex<float> std::complex<double> std::max("
    " std::atomic< std::function<void()> std::vector<int> __half c10::Half memcpy( sqrt( exp( std::runtime_error"
    " cooperative_groups:: ucontext_t std::is_integral_v<T> std::string std::mutex {{ body }} {% raw %} */ /* #include"
    ' "a", (b, [c {d R"x( ??/ \x0c \u2028 \u202e \\u12 \\ ??/ \\'
)
ENDS: Final = (WORDS, f"{WORDS} ", f"{WORDS} .", f"{WORDS} ??/", "\\", "??/", "*/")
_TEXT_OR_COMMENT: Final = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*')


def commented(source: str, comments: tuple[str, ...]) -> str:
    """`source` with `comments` in turn behind its lines and in the place of its docstrings; no line comes or goes."""
    lines = source.splitlines()
    tokens = [*tokenize.generate_tokens(io.StringIO(source).readline)]
    kept = {token.start[0]: token.start[1] for token in tokens if token.type == tokenize.COMMENT}
    ends = {token.end[0] for token in tokens if token.type in (tokenize.NEWLINE, tokenize.NL)}
    for number in ends | {token.start[0] for token in tokens if token.type == tokenize.NEWLINE}:
        if number <= len(lines) and lines[number - 1].strip():
            before = lines[number - 1][: kept.get(number)].rstrip("\n")
            lines[number - 1] = f"{before}  # {_as_source(comments[number % len(comments)])}"
    for doc in docstrings(source):
        text = comments[doc.lineno % len(comments)].replace('"', "'")
        first, last = doc.lineno - 1, (doc.end_lineno or 0) - 1
        head = lines[first][: doc.col_offset]
        lines[first : last + 1] = [f'{head}r"""{_as_source(text)}', *[_as_source(text)] * (last - first)]
        lines[last] += ' ."""'
    return "\n".join(lines) + "\n"


def _as_source(comment: str) -> str:
    """The comment less what would end a line of Python."""
    return comment.replace("\x0c", " ")


def docstrings(source: str) -> Iterator[ast.Expr]:
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.FunctionDef):
            first = function.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and len(function.body) > 1:
                yield first


def translated(case: Case, source: str) -> Translation:
    return translate_file(SourceFile(f"{case.path.stem}.py", source), values=values_of(case))


def code(text: str) -> str:
    """A C++ text as a compiler without C++17 reads it: lines that end in a backslash joined, then comments left out."""
    joined = re.sub(r"(\\|\?\?/)[ \t]*\n", "", text)
    lines = _TEXT_OR_COMMENT.sub(lambda found: "" if found[0].startswith("//") else found[0], joined).split("\n")
    return "\n".join(line.rstrip() for line in lines if line.strip())


def words(text: str) -> str:
    """The code of `text` less what a comment may change: braces around a single statement, and where lines break."""
    return re.sub(r"[\s{}]", "", code(text))


def codes(translation: Translation) -> dict[str, str]:
    return {text.name: code(text.text) for artifacts in translation.texts.values() for text in artifacts.files}


@pytest.mark.parametrize("path", sampled(CASES, 8), ids=lambda path: path.stem)
def test_what_comments_say_changes_no_code(path):
    case = read_case(path)
    harmless = codes(translated(case, commented(case.python, (HARMLESS,))))
    translation = translated(case, commented(case.python, ENDS))
    for artifacts in translation.texts.values():
        assert all(line.isprintable() for text in artifacts.files for line in text.text.split("\n"))
    hostile = codes(translation)
    for name, text in harmless.items():
        assert hostile[name] == text, name
    plain = {text.name: words(text.text) for a in translate(case).texts.values() for text in a.files}
    assert {name: re.sub(r"[\s{}]", "", text) for name, text in harmless.items()} == plain


# --- where they stand ---


MARK: Final = re.compile(r"// (above|beside) (\d+)$")


def marked(source: str) -> tuple[str, dict[int, int]]:
    """`source` with a comment above and one beside each statement of its functions that has a line of its own; and the
    new line of each, by the old one.
    """
    lines = source.splitlines()
    own = {s.lineno: s for s in statements(source) if not lines[s.lineno - 1][: s.col_offset].strip()}
    done: list[str] = []
    places: dict[int, int] = {}
    for number, line in enumerate(lines, 1):
        statement = own.get(number)
        if statement is not None and not line.strip().startswith("elif"):
            done.append(f"{' ' * statement.col_offset}# above {number}")
            ends_here = statement.end_lineno == number or line.endswith(":")
            line += f"  # beside {number}" if ends_here and "#" not in line else ""
            places[number] = len(done) + 1
        done.append(line)
    return "\n".join(done) + "\n", places


def statements(source: str) -> Iterator[ast.stmt]:
    """Those of functions, less docstrings."""
    docs = {(doc.lineno, doc.col_offset) for doc in docstrings(source)}
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.FunctionDef):
            for statement in ast.walk(function):
                is_part = isinstance(statement, ast.stmt) and not isinstance(statement, ast.FunctionDef)
                if is_part and (statement.lineno, statement.col_offset) not in docs:
                    yield statement


def stray(text: Text, places: dict[int, int]) -> Iterator[str]:
    """The comments that stand at the code of another statement, though their own has some.

    One from above stands directly above its own code; one from beside stands behind it, or next to it on a line of its
    own, where the part of the statement that it followed has no code.
    """
    lines = text.text.split("\n")
    spoken = {origin for line, origin in zip(lines, text.origin, strict=True) if _is_code(line)}
    for at, line in enumerate(lines):
        found = MARK.search(line)
        if found is None or (own := places[int(found[2])]) not in spoken:
            continue
        below = next(place for place in range(at, len(lines)) if _is_code(lines[place]))
        above = next(place for place in range(at, 0, -1) if _is_code(lines[place]))
        near = {text.origin[below]} | ({text.origin[above]} if found[1] == "beside" else set())
        if own not in near:
            yield line.strip()


def _is_code(line: str) -> bool:
    return bool(line.strip()) and not line.strip().startswith("//")


@pytest.mark.parametrize("path", sampled(CASES, 6), ids=lambda path: path.stem)
def test_comments_stay_with_their_statements(path):
    case = read_case(path)
    source, places = marked(case.python)
    for artifacts in translated(case, source).texts.values():
        assert [*stray(artifacts.kernel, places)] == [], artifacts.kernel.name
