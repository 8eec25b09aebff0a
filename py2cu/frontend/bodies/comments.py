"""Comments of statements, as LibCST keeps them: above a statement, beside it, and behind the colon of a block.

In: the white space of a LibCST node. Out: the text without `#`; "" stands for a blank line, or for no comment. What is
meant for formatters, linters and type checkers is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import libcst as cst

_TOOLS: Final = "autopep8|flake8|fmt|isort|mypy|pylint|pyright|pytype|ruff|yapf"
_PRAGMA: Final = re.compile(
    rf"#\s*(?:(?:{_TOOLS})\s*:|noqa\b|nosec\b|pragma:\s*no\b|pyre-\w|(?:type|ty):\s*ignore\b)[^#]*", re.IGNORECASE
)


def comments_above(lines: Iterable[cst.EmptyLine]) -> tuple[str, ...]:
    """The comments and blank lines above a statement."""
    comments = (line.comment.value if line.comment else "#" for line in lines)
    return tuple(_clean(comment) for comment in comments if not _PRAGMA.fullmatch(comment))  # rule: comment-above


def comment_beside(trailing: cst.TrailingWhitespace) -> str:
    """The comment at the end of a statement's line."""
    return _clean(trailing.comment.value) if trailing.comment else ""


def head_comment(suite: cst.BaseSuite) -> str:
    """The comment behind the colon that opens a block."""
    return comment_beside(suite.header) if isinstance(suite, cst.IndentedBlock) else ""


def _clean(comment: str) -> str:
    return _PRAGMA.sub("", comment).removeprefix("#").strip()  # rule: comment-pragma
