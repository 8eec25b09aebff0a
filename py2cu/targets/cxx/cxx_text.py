"""Emitted text of an expression with its precedence and C type, and the table of precedences."""

from __future__ import annotations

from typing import Final

from py2cu.records import record

PRIMARY: Final = 16
UNARY: Final = 15
TERNARY: Final = 3
PRECEDENCE: Final = {
    "*": 13, "/": 13, "%": 13, "+": 12, "-": 12, "<<": 11, ">>": 11, "<": 10, "<=": 10, ">": 10, ">=": 10,
    "==": 9, "!=": 9,
    "&": 8, "^": 7, "|": 6, "and": 5, "or": 4,
}  # fmt: skip


@record(frozen=True, slots=True)
class CxxText:
    """C text of an expression: how tightly it binds, and its C type.

    `casts_to` is the type of the outermost cast. The emitter adds it to the types that the kernel uses, if it uses this
    text.
    """

    text: str
    precedence: int
    c_type: str
    begins_with_sign: bool = False
    casts_to: str = ""

    def within(self, precedence: int) -> str:
        return self.text if self.precedence >= precedence else f"({self.text})"


def functional_cast(text: str, c_type: str) -> str:
    """`index_t(x)` for the types that indices have, `static_cast` for others."""
    return f"{c_type}({text})" if c_type in ("int", "index_t", "int64_t") else f"static_cast<{c_type}>({text})"
