"""`print(…)` → `Print`, `assert …` → `Assert`: the constant text, and the format of each value.

In: a call of Python's `print`, or an assertion, with strings and f-strings. Out: statements; diagnostics for formats
that `printf` cannot print as Python does. `infer_types` checks what depends on the type of a value.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from typing import Final

import libcst as cst

from py2cu import ir
from py2cu.frontend.bodies.expressions import ExpressionReader
from py2cu.frontend.hints.format_strings import rewrite_format
from py2cu.frontend.names.syntax import source_text

_SPEC: Final = re.compile(
    r"(?P<align>[<>]?)(?P<sign>[-+ ]?)(?P<layout>0?\d{0,3}(?:\.\d{1,2})?)(?P<letter>[dxXofeEgG]?)"
)


def read_print(call: cst.Call, expressions: ExpressionReader) -> ir.Print:
    """Read `call`, a call of `print`."""
    reader = _PrintReader(expressions)
    options = {arg.keyword.value: arg for arg in call.args if arg.keyword is not None}
    separator, end = reader.option(options.pop("sep", None), " "), reader.option(options.pop("end", None), "\n")
    for arg in options.values():
        what, hint = "`print` takes values, `sep` and `end` in a kernel", f"leave out `{source_text(arg)}`"
        expressions.scope.error("P105", what, arg, hint)
    for place, arg in enumerate(arg for arg in call.args if arg.keyword is None):
        reader.texts[-1] += separator if place else ""
        if arg.star:
            expressions.scope.error("P105", "`*` is not supported in a kernel", arg, "name every value")
        else:
            reader.read(arg.value)
    reader.texts[-1] += end
    reader.refuse_what_no_target_prints(call)
    span = expressions.scope.span_of(call)
    return ir.Print(tuple(reader.texts), tuple(reader.values), tuple(reader.fields), span)


def read_assert(statement: cst.Assert, expressions: ExpressionReader) -> ir.Block:
    """Read `assert test, message`: values in the message are computed by a failed assertion only.

    assert n < 8, f"{n} labels"    →    if not n < 8: assert False, f"{n} labels"
    """
    span, text = expressions.scope.span_of(statement), source_text(statement.test)
    test = expressions.read(statement.test)
    match statement.msg:
        case None:
            return (ir.Assert(test, (), text, span),)
        case cst.SimpleString() | cst.ConcatenatedString() as node if isinstance(node.evaluated_value, str):
            return (ir.Assert(test, (node.evaluated_value,), text, span),)
        case message:
            before, reader = expressions.scope.hoisted.take(), _PrintReader(expressions, is_message=True)
            reader.read(message)
            reader.refuse_what_no_target_prints(message)
    texts, values, fields = tuple(reader.texts), tuple(reader.values), tuple(reader.fields)
    if not values:
        return (*before, ir.Assert(test, texts, text, span))
    failure = ir.Assert(ir.Constant(False, span), texts, text, span, values=values, fields=fields)
    # rule: assert-values
    return (*before, ir.If(ir.Unary("not", test, test.span), (*expressions.scope.hoisted.take(), failure), span=span))


@dataclass(slots=True)
class _PrintReader:
    """Collects the texts and the values of one call; texts surround values, so there is one more of them.

    `is_message`: they are the message of an assertion.
    """

    expressions: ExpressionReader
    is_message: bool = False
    texts: list[str] = field(default_factory=lambda: [""])
    values: list[ir.Expr] = field(default_factory=list)
    fields: list[ir.Field] = field(default_factory=list)

    def option(self, arg: cst.Arg | None, default: str) -> str:
        """The string of `sep=` or `end=`; `default` for None."""
        match arg and arg.value:
            case None | cst.Name(value="None"):
                return default
            case cst.SimpleString() | cst.ConcatenatedString() as node if isinstance(node.evaluated_value, str):
                return node.evaluated_value
            case node:
                assert isinstance(node, cst.BaseExpression)
                keyword = arg.keyword.value if arg is not None and arg.keyword is not None else "end"
                what = "`sep` and `end` are strings in quotes"
                self.expressions.scope.error("P103", what, node, f'`{keyword}=""`')
                return default

    def refuse_what_no_target_prints(self, node: cst.CSTNode) -> None:
        """Report texts and numbers of values that `printf` cannot take, at `node`, which was read."""
        if any("\0" in text for text in self.texts):
            self.expressions.scope.error("P103", "a C string ends at its first NUL", node, "print another character")
        if any("\ud800" <= char <= "\udfff" for text in self.texts for char in text):
            hint = "write the whole character"
            self.expressions.scope.error("P103", "half a surrogate pair cannot be printed", node, hint)
        if len(self.values) > 32:
            hint = "print them in several lines"
            self.expressions.scope.error("P105", "CUDA prints at most 32 values at a time", node, hint)

    def read(self, node: cst.BaseExpression) -> None:
        match node:
            case cst.SimpleString():
                self.text(node)
            case cst.ConcatenatedString(left=left, right=right):
                self.read(left)
                self.read(right)
            case cst.FormattedString(parts=parts):
                for part in parts:
                    self.part(part, node)
            case _ if (string := rewrite_format(node)) is not None:
                subject = "an assertion" if self.is_message else "`print`"
                what = f"{subject} in a kernel formats values only in f-strings"
                hint = f"`{string}`" if self.is_message else f"`print({string})`"
                self.expressions.scope.error("P103", what, node, hint)
            case _:
                self.value(node, "", node)

    def text(self, node: cst.SimpleString) -> None:
        if isinstance(node.evaluated_value, str):
            self.texts[-1] += node.evaluated_value
        else:
            self.expressions.scope.error("P103", "bytes are not supported in a kernel", node, "write a string")

    def part(self, part: cst.BaseFormattedStringContent, string: cst.FormattedString) -> None:
        match part:
            case cst.FormattedStringText(value=text):
                self.texts[-1] += _evaluated(text.replace("{{", "{").replace("}}", "}"), string)
            case cst.FormattedStringExpression(expression=expression, format_spec=spec):
                if part.equal is not None:
                    self.texts[-1] += cst.Module([]).code_for_node(part).partition("=")[0].lstrip("{") + "="
                    self.texts[-1] += cst.Module([]).code_for_node(part.equal.whitespace_after)
                inner = [*(spec or ())]
                if any(not isinstance(piece, cst.FormattedStringText) for piece in inner):
                    self.expressions.scope.error(
                        "P103", "a format must be constant in a kernel", part, "write the width as a number"
                    )
                    inner = []
                text = "".join(piece.value for piece in inner if isinstance(piece, cst.FormattedStringText))
                self.value(expression, text, part)

    def value(self, node: cst.BaseExpression, spec: str, place: cst.CSTNode) -> None:
        """Add a value with its format; Python itself formats a constant now."""
        value = self.expressions.read(node)
        if isinstance(value, ir.Constant):
            try:
                self.texts[-1] += format(value.value, spec)
            except ValueError as error:
                self.expressions.scope.error("P103", f"{error}", place, "Python would not print it either")
            return
        match = _SPEC.fullmatch(spec)
        if match is None or (match["align"] and match["layout"].startswith("0")):  # rule: print-aligned
            self.expressions.scope.error(
                "P103", f"the format `{spec}` has no equivalent in C", place,
                f"width, precision, `<`, `>`, `+`, `0` and one of d, x, o, f, e, g: `{{{source_text(node)}:8}}`",
            )  # fmt: skip
            return
        flags = match["align"].replace("<", "-").replace(">", "") + match["sign"].replace("-", "")
        self.values.append(value)
        self.fields.append(ir.Field(flags + match["layout"], match["letter"], self.expressions.scope.span_of(place)))
        self.texts.append("")


def _evaluated(text: str, string: cst.FormattedString) -> str:
    """The text of an f-string's part, with escapes evaluated unless the string is raw."""
    if "\\" not in text or "r" in string.start.lower():
        return text
    quoted = f"{string.start.lower().replace('f', '')}{text}{string.end}"
    return str(ast.literal_eval(quoted))
