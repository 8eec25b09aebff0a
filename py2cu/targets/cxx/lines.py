"""Lines of emitted text, and the comments that they carry over from Python."""

from __future__ import annotations

from collections.abc import Iterator

from py2cu import ir
from py2cu.records import record


@record(frozen=True, slots=True)
class Line:
    """One line of a body: its code, the user's comment behind it, and the Python line that it says."""

    code: str
    origin: int = 0
    comment: str = ""

    @property
    def text(self) -> str:
        return f"{self.code}{self.comment}"


def comment_lines(trivia: ir.Trivia, pad: str) -> Iterator[Line]:
    blank = False
    for text in trivia.above:
        if text:
            yield Line(pad, comment=f"// {comment_text(text)}")
            blank = False
        elif not blank:
            yield Line("")
            blank = True


def comment_text(text: str) -> str:
    """Text that is harmless behind `//`: one line, no control characters, and nothing at its end that joins the next
    line to it, which a backslash does, and before C++17 its trigraph.
    """
    text = "".join(char if char.isprintable() else " " for char in text).rstrip()
    return f"{text} (backslash)" if text.endswith(("\\", "??/")) else text


def doc_lines(doc: str | None) -> tuple[str, ...]:
    return tuple(comment_text(line) for line in (doc or "").splitlines())
