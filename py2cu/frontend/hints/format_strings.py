"""Formats of older Pythons as f-strings.

"%d: %.2f" % (i, v)         f"{i}: {v:.2f}"
"{}: {:.2f}".format(i, v)   f"{i}: {v:.2f}"
"v is " + str(v)            "v is " f"{v}"
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import libcst as cst

from py2cu.frontend.names.syntax import source_text

_PERCENT: Final = re.compile(r"%([-+ 0]*\d*(?:\.\d+)?)([a-zA-Z])")
_PLAIN: Final = re.compile(r"\{(?=[:}])")  # the brace of a value without a name


def rewrite_format(node: cst.BaseExpression) -> str | None:
    """The text of the f-string; None where `node` formats no string."""
    match node:
        case cst.BinaryOperation(left=cst.SimpleString(value=string), operator=cst.Modulo(), right=right):
            values = [element.value for element in right.elements] if isinstance(right, cst.Tuple) else [right]
            return _filled(_PERCENT.sub(_braces, string), values)
        case cst.Call(func=cst.Attribute(value=cst.SimpleString(value=string), attr=cst.Name(value="format"))):
            return _filled(string, [arg.value for arg in node.args])
        case cst.Call(func=cst.Name("str"), args=[cst.Arg(value=value)]):
            return f'f"{{{source_text(value)}}}"'
        case cst.BinaryOperation(left=left, operator=cst.Add(), right=right):
            pieces = [source_text(p) if isinstance(p, cst.BaseString) else rewrite_format(p) for p in (left, right)]
            return None if None in pieces else " ".join(piece for piece in pieces if piece)
        case _:
            return None


def _braces(percent: re.Match[str]) -> str:
    """`{:.2f}` for `%.2f`; a letter without a width is Python's default."""
    layout, letter = percent.groups()
    return f"{{:{layout}{letter}}}" if layout else "{}"


def _filled(string: str, values: Sequence[cst.BaseExpression]) -> str:
    head, *parts = _PLAIN.split(string)
    texts = [source_text(value) for value in values] + ["…"] * len(parts)
    return "f" + head + "".join(f"{{{text}{part}" for text, part in zip(texts, parts, strict=False))
