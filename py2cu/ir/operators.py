"""Python's operators on numbers, by their text."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final

ARITHMETIC: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod,
}  # fmt: skip
BITWISE: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "&": operator.and_, "|": operator.or_, "^": operator.xor, "<<": operator.lshift, ">>": operator.rshift,
}  # fmt: skip
UNARY: Final[dict[str, Callable[[Any], Any]]] = {"+": operator.pos, "-": operator.neg, "~": operator.invert}
EXACT: Final = frozenset("+-*")
"""The operators that make integers of integers, and are exact on them."""
