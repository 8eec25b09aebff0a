"""The texts of errors: `assert` and `raise`."""

from __future__ import annotations

import ast
from typing import Final

import libcst as cst

from py2cu.hosts.model.values import Kind
from py2cu.hosts.reading.reader import Reader

_CHECKS: Final = {
    "ValueError": "TORCH_CHECK_VALUE", "IndexError": "TORCH_CHECK_INDEX", "TypeError": "TORCH_CHECK_TYPE",
    "NotImplementedError": "TORCH_CHECK_NOT_IMPLEMENTED", "RuntimeError": "TORCH_CHECK",
}  # fmt: skip


def raised(reader: Reader, statement: cst.Raise) -> tuple[str, str]:
    """The macro that throws this exception, and its text."""
    match statement.exc:
        case cst.Call(func=cst.Name(value=name) as function, args=[cst.Arg(value=text, keyword=None, star="")]):
            is_builtin = reader.environment.qualify(function) == f"builtins.{name}"
            if name in _CHECKS and is_builtin and statement.cause is None:
                return _CHECKS[name], message(reader, text)
    hint = f'write `raise ValueError("…")`, or {", ".join(name for name in _CHECKS if name != "ValueError")}'
    raise reader.unsupported("host functions raise these exceptions with one text", statement, hint)


def message(reader: Reader, node: cst.BaseExpression) -> str:
    """A text in C++; the integers of an f-string are arguments of their own."""
    match node:
        case cst.SimpleString() | cst.ConcatenatedString() if isinstance(text := node.evaluated_value, str):
            if any("\ud800" <= char <= "\udfff" for char in text):
                raise reader.unsupported("a text with half a character has no UTF-8", node, "leave the surrogate out")
            return f'"{escaped(text)}"'
        case cst.FormattedString(parts=parts):
            words = []
            for part in parts:
                match part:
                    case cst.FormattedStringText():
                        words.append(f'"{escaped(_plain(node, part))}"')
                    case cst.FormattedStringExpression(expression=inner, conversion=None, format_spec=None, equal=None):
                        words.append(reader.of_kind(inner, Kind.INT).text)
                    case _:
                        raise reader.unsupported("a message shows integers without a format", part, "write `{n}`")
            return ", ".join(words) or '""'
    raise reader.unsupported("the message is not a constant text", node, 'write it out: `"sizes differ"`')


def _plain(node: cst.FormattedString, part: cst.FormattedStringText) -> str:
    """The text between the braces of an f-string."""
    text = part.value.replace("{{", "{").replace("}}", "}")
    return str(ast.literal_eval(f"{node.start.lower().replace('f', '')}{text}{node.end}"))


def escaped(text: str) -> str:
    """The text between the quotes of a literal."""
    named = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t"}
    escapes = (named.get(char) or (f"\\{ord(char):03o}" if char < " " or char == "\x7f" else char) for char in text)
    return "".join(escapes).replace("??", "?\\?")
