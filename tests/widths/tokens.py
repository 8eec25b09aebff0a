"""C++ text → tokens, and back: nothing is lost between them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_TOKEN: Final = re.compile(
    r"""
    (?P<directive>^[ \t]*\#(?:[^\n\\]|\\.|\\\n)*)
  | (?P<blank>\s+|//[^\n]*|/\*.*?\*/)
  | (?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
  | (?P<number>\.?\d(?:[eEpP][+-]|[\w.'])*)
  | (?P<word>[A-Za-z_]\w*)
  | (?P<sign><<<|>>>|<<=|>>=|->|::|\+\+|--|<<|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|.)
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the text: `blank` is white space and comments, `directive` a line of the preprocessor."""

    kind: str  # directive blank text number word sign
    text: str
    line: int

    @property
    def is_code(self) -> bool:
        return self.kind not in ("blank", "directive")


def tokenize(text: str) -> list[Token]:
    """All tokens of `text`, blanks among them."""
    found, line = [], 1
    for match in _TOKEN.finditer(text):
        found.append(Token(str(match.lastgroup), match[0], line))
        line += match[0].count("\n")
    return found


def code(tokens: Sequence[Token]) -> list[Token]:
    """The tokens that a compiler sees."""
    return [token for token in tokens if token.is_code]


def spaced(tokens: Sequence[Token]) -> str:
    """The tokens on one line; of `>>`, which may close two templates or shift, the halves stay together."""
    return "".join(token.text if token.text == ">" else f" {token.text} " for token in code(tokens))


def join(tokens: Sequence[Token]) -> str:
    return "".join(token.text for token in tokens)
