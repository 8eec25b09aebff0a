"""Lines of emitted text, and the comments that they carry over from Python."""

from __future__ import annotations

from collections.abc import Iterator

from py2cu import ir
from py2cu.records import record


@record(frozen=True, slots=True)
class Line:
    """One line of a body: its code, the user's comment behind it, and the number of its Python line."""

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
    """Text that is safe behind `//`: one line without control characters.

    A backslash at its end, or before C++17 the trigraph of one, would join the next line to the comment.
    """
    if not text.isprintable():
        text = "".join(char if char.isprintable() else " " for char in text)  # rule: comment-printable
    text = text.rstrip()
    return f"{text} (backslash)" if text.endswith(("\\", "??/")) else text  # rule: comment-backslash


def doc_lines(doc: str | None) -> tuple[str, ...]:
    return tuple(comment_text(line) for line in (doc or "").splitlines())
