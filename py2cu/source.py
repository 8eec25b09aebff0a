"""Source text and places in it.

In: a path, bytes or text. Out: `SourceFile`, whose lines diagnostics quote, and `Span`, a place in one.
Lines count from 1 and columns from 0, ends are exclusive, as in LibCST.
"""

from __future__ import annotations

import functools
import io
import re
from dataclasses import field
from pathlib import Path

from py2cu.records import record


@record(frozen=True, slots=True, order=True)
class Span:
    """A half-open range of characters in one source file."""

    line: int
    column: int
    end_line: int
    end_column: int


NOWHERE = Span(0, 0, 0, 0)
"""The place of nodes that a pass made up; diagnostics never point there."""


class UnreadableSource(Exception):
    """The input is no Python source text; the message says why, `line` (0 for the whole file) and `column` where."""

    def __init__(self, message: str, line: int = 0, column: int = 0) -> None:
        super().__init__(message)
        self.line, self.column = line, column

    @property
    def place(self) -> str:
        """`:line:column`, as messages count columns; empty for the whole file."""
        return f":{self.line}:{self.column + 1}" if self.line else ""


@record(frozen=True, slots=True)
class SourceFile:
    """Python source and the name under which messages speak of it."""

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

    def line(self, number: int) -> str:
        """Line `number`, counted from 1, without its end; empty past the last."""
        lines = _lines(self.text)
        return lines[number - 1] if 0 < number <= len(lines) else ""


@functools.lru_cache(maxsize=4)
def _lines(text: str) -> list[str]:
    return re.split(r"\r\n|\r|\n", text)  # as Python counts; str.splitlines knows more ends


def decode(data: bytes) -> str:
    """Python's own reading of source bytes: BOM, coding line, else UTF-8.

    Raises:
        UnreadableSource: they are binary, or not in their encoding; with the line and column.
    """
    if b"\0" in data:
        at = data.index(b"\0")
        raise UnreadableSource("the file is binary, not Python source: it holds a null byte", *_place(data, at))
    import tokenize  # not for those who already have text

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
    """Where the first byte that is not UTF-8 stands in the two lines that may name an encoding; 0 where none does."""
    try:
        b"".join(data.splitlines(keepends=True)[:2]).decode()
    except UnicodeDecodeError as error:
        return error.start
    return 0


def _place(data: bytes, at: int) -> tuple[int, int]:
    """The line, from 1, and the column, from 0, of the byte `at`; a character of UTF-8 is one column."""
    *ended, last = re.split(rb"\r\n|\r|\n", data[:at])
    return len(ended) + 1, len(last.decode(errors="replace"))
