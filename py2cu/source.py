"""Read Python source, denote places in it, and parse it as Python does.

In: a path, bytes or text. Out: `SourceFile`, whose lines diagnostics quote, `Span`, a range in a file, and trees of
`ast`. Lines count from 1, columns from 0, and ends are exclusive, as in LibCST. Errors: `UnreadableSource`.
"""

from __future__ import annotations

import ast
import functools
import io
import re
from dataclasses import field
from pathlib import Path, PurePath
from typing import Final

from py2cu.records import record
from py2cu.threads import ForkSafeLock


@record(frozen=True, slots=True, order=True)
class Span:
    """A half-open range of characters in one source file."""

    line: int
    column: int
    end_line: int
    end_column: int


_QUOTED: Final = 40  # the longest text that a hint repeats

NOWHERE = Span(0, 0, 0, 0)
"""The place of nodes that a pass creates; diagnostics never point there."""


class UnreadableSource(Exception):
    """The input is not Python source text, at `line` (0 for the file as a whole) and `column`."""

    def __init__(self, message: str, line: int = 0, column: int = 0) -> None:
        super().__init__(message)
        self.line, self.column = line, column

    @property
    def place(self) -> str:
        """`:line:column` as in messages, with columns from 1; empty for the file as a whole."""
        return f":{self.line}:{self.column + 1}" if self.line else ""


@record(frozen=True, slots=True)
class SourceFile:
    """Python source, and the file name that messages use."""

    name: str
    text: str = field(repr=False)

    @classmethod
    def read(cls, path: Path) -> SourceFile:
        """Read `path`, honouring a BOM or coding line.

        Raises:
            UnreadableSource: no such file, a directory, no permission, binary, or not in its encoding.
        """
        try:
            data = path.read_bytes()
        except OSError as error:
            reason = error.strerror or str(error)
            raise UnreadableSource(f"cannot read the file: {reason}") from error
        return cls(str(path), decode(data))

    @property
    def stem(self) -> str:
        """What the emitted files of this one are called: its name without suffix, as an identifier."""
        stem = PurePath(self.name).stem
        return stem if stem.isidentifier() else "".join(c if c.isalnum() else "_" for c in stem) or "kernels"

    def line(self, number: int) -> str:
        """Line `number`, from 1, without its line break; empty past the last."""
        lines = _lines(self.text)
        return lines[number - 1] if 0 < number <= len(lines) else ""

    def quote(self, span: Span) -> str:
        """The text of `span` as a hint repeats it; `…` if it is long, or of several lines."""
        text = self.line(span.line)[span.column : span.end_column] if span.line == span.end_line else ""
        return text if 0 < len(text) <= _QUOTED else "…"


@functools.lru_cache(maxsize=4)
def _lines(text: str) -> list[str]:
    return re.split(r"\r\n|\r|\n", text)  # Python's line breaks; str.splitlines has more


def decode(data: bytes) -> str:
    """Decode source bytes as Python does: by BOM or coding line, else as UTF-8.

    Raises:
        UnreadableSource: the bytes are binary, or not in their encoding; with the line and column.
    """
    if b"\0" in data:
        at = data.index(b"\0")
        raise UnreadableSource("the file is binary, not Python source: it holds a null byte", *_place(data, at))
    import tokenize  # not needed if the text is known already

    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    except (SyntaxError, LookupError) as error:
        at = _undecodable(data)
        raise UnreadableSource(f"the file is not text in its encoding: {error}", *_place(data, at)) from error
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        what = f"the file is not text in its encoding: {error.reason} {error.object[error.start]:#04x} in {encoding}"
        raise UnreadableSource(what, *_place(data, error.start)) from error
    except LookupError as error:
        raise UnreadableSource(f"the file is not text in its encoding: {error}", 1, 0) from error


def _undecodable(data: bytes) -> int:
    """The first byte that is not UTF-8 in the two lines that may name an encoding; 0 if there is none."""
    try:
        b"".join(data.splitlines(keepends=True)[:2]).decode()
    except UnicodeDecodeError as error:
        return error.start
    return 0


def _place(data: bytes, at: int) -> tuple[int, int]:
    """The line, from 1, and the column, from 0, of the byte `at`; a character of UTF-8 is one column."""
    *ended, last = re.split(rb"\r\n|\r|\n", data[:at])
    return len(ended) + 1, len(last.decode(errors="replace"))


# --- trees ---

_PARSING: Final = ForkSafeLock()
"""Python 3.11 raises SystemError where the collector runs Python within `ast.parse`, and another thread parses then."""


def parsed(text: str) -> ast.Module:
    """Python's own tree of `text`; raises what `ast.parse` does."""
    with _PARSING:
        return ast.parse(text)


@functools.lru_cache(4096)
def parsed_expression(text: str) -> ast.expr:
    """The tree of an expression that is written in a string."""
    with _PARSING:
        return ast.parse(text, mode="eval").body
