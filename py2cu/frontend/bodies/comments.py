"""Comments of statements, as LibCST keeps them: above a statement, beside it, and behind the colon of a block.

In: the white space of a LibCST node. Out: the text without `#`; "" stands for a blank line, or for no comment.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst


def comment_of(line: cst.EmptyLine) -> str:
    """The comment of a line that has nothing else."""
    return _clean(line.comment.value) if line.comment else ""


def comments_above(lines: Sequence[cst.EmptyLine]) -> tuple[str, ...]:
    """The comments and blank lines above a statement."""
    return tuple(comment_of(line) for line in lines)


def comment_beside(trailing: cst.TrailingWhitespace) -> str:
    """The comment at the end of a statement's line."""
    return _clean(trailing.comment.value) if trailing.comment else ""


def head_comment(suite: cst.BaseSuite) -> str:
    """The comment behind the colon that opens a block."""
    return comment_beside(suite.header) if isinstance(suite, cst.IndentedBlock) else ""


def _clean(comment: str) -> str:
    return comment.removeprefix("#").strip()
