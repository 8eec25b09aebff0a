"""Expands a builtin that is defined by a formula: the formula's text as IR, with arguments for its parameters."""

from __future__ import annotations

import ast
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from py2cu.builtins import CONSTANTS
from py2cu.builtins.formulas import Formula
from py2cu.builtins.registry import ARGUMENT, RESULT
from py2cu.frontend.names.operators import OF_AST
from py2cu.ir.expressions import BoolOp, Call, Compare, Expr, Select, Unary
from py2cu.ir.types import Binary, Constant
from py2cu.source import Span

_FUNCTIONS: Final = {
    "maximum": "torch.maximum", "minimum": "torch.minimum", "trunc": "numpy.trunc", "bool": "builtins.bool",
    "complex": "builtins.complex",
}  # fmt: skip


def expand_call(formula: Formula, arguments: Mapping[str, Expr], span: Span) -> Expr:
    """A call of `formula`."""
    if not formula.in_float32:
        return expand(formula.text, arguments, span)
    operands = tuple(arguments.values())
    wide = {
        name: value if isinstance(value, Constant) else Call(ARGUMENT, (value, *operands), value.span)
        for name, value in arguments.items()
    }
    return Call(RESULT, (expand(formula.text, wide, span), *operands), span)


def expand(text: str, arguments: Mapping[str, Expr], span: Span) -> Expr:
    """The formula `text` with its parameters replaced; every node has the position `span`."""
    return _Expansion(arguments, span).read(_parsed(text))


@functools.cache
def _parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


@dataclass(frozen=True, slots=True)
class _Expansion:
    arguments: Mapping[str, Expr]
    span: Span

    def read(self, node: ast.expr) -> Expr:
        match node:
            case ast.Name(id=name):
                return self.arguments[name]
            case ast.Constant(value=int() | float() as value):
                return Constant(value, self.span, text=repr(value))
            case ast.Attribute(value=ast.Name(id="math"), attr=name):
                return Constant(CONSTANTS[f"math.{name}"], self.span)
            case ast.Attribute(value=value, attr="real" | "imag" as part):
                return Call(f"complex.{part}", (self.read(value),), self.span)
            case ast.UnaryOp(op=op, operand=operand):
                return Unary(OF_AST[type(op)], self.read(operand), self.span)
            case ast.BinOp(left=left, op=op, right=right):
                return Binary(OF_AST[type(op)], self.read(left), self.read(right), self.span)
            case ast.Compare(left=ast.Name(id=name), ops=[op], comparators=[ast.Name(id=same)]) if (
                name == same and self.is_written_out(name)
            ):
                return Constant(isinstance(op, ast.Eq), self.span)
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return Compare(OF_AST[type(op)], self.read(left), self.read(right), self.span)
            case ast.BoolOp(op=op, values=[left, right]) if self.read(right) == Constant(
                isinstance(op, ast.And), self.span
            ):
                return self.read(left)
            case ast.BoolOp(op=op, values=[left, right]):
                return BoolOp(OF_AST[type(op)], self.read(left), self.read(right), self.span)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return Select(self.read(test), self.read(body), self.read(orelse), self.span)
            case ast.Call(func=func, args=args):
                name = ast.unparse(func)
                return Call(_FUNCTIONS.get(name, name), tuple(map(self.read, args)), self.span)
            case _:
                raise AssertionError(ast.unparse(node))

    def is_written_out(self, parameter: str) -> bool:
        """True if the argument is a literal number, which cannot be NaN."""
        argument = self.arguments[parameter]
        return isinstance(argument, Constant) and argument.value == argument.value
