"""Expands a builtin that is defined by a formula: the formula's text as IR, with arguments for its parameters."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from py2cu import ir
from py2cu.builtins import CONSTANTS
from py2cu.builtins.casts import element_view
from py2cu.builtins.formulas import Formula
from py2cu.builtins.registry import ARGUMENT, RESULT
from py2cu.dtypes import BY_NAME
from py2cu.frontend.names.operators import SYMBOLS
from py2cu.source import Span, parsed_expression

_DTYPES: Final = ("float16", "float32", "float64", "int16", "int32", "uint32", "int64", "uint64")
_FUNCTIONS: Final = {
    "maximum": "torch.maximum", "minimum": "torch.minimum", "trunc": "numpy.trunc", "bool": "builtins.bool",
    "complex": "builtins.complex", "int": "builtins.int", "abs": "builtins.abs",
    **{name: f"numpy.{name}" for name in ("floor", "ceil", "rint", *_DTYPES)},
    **{name: f"py2cu.{name}" for name in ("popc", "clz", "ffs", "brev")},
}  # fmt: skip


def expand_call(formula: Formula, arguments: Mapping[str, ir.Expr], span: Span) -> ir.Expr:
    """A call of `formula`; `arguments` may lack parameters that have defaults."""
    defaults: dict[str, ir.Expr] = {name: ir.Constant(value, span) for name, value in formula.defaults.items()}
    if not formula.in_float32:
        return expand(formula.text, defaults | dict(arguments), span)
    operands = tuple(arguments.values())
    wide = {
        name: value if isinstance(value, ir.Constant) else ir.Call(ARGUMENT, (value, *operands), value.span)
        for name, value in arguments.items()
    }
    return ir.Call(RESULT, (expand(formula.text, defaults | wide, span), *operands), span)


def expand(text: str, arguments: Mapping[str, ir.Expr], span: Span) -> ir.Expr:
    """The formula `text` with its parameters replaced; every node has the position `span`."""
    return _Expansion(arguments, span).read(parsed_expression(text))


@dataclass(frozen=True, slots=True)
class _Expansion:
    arguments: Mapping[str, ir.Expr]
    span: Span

    def read(self, node: ast.expr) -> ir.Expr:
        match node:
            case ast.Name(id=name):
                return self.arguments[name]
            case ast.Constant(value=int() | float() as value):
                return ir.Constant(value, self.span, text=repr(value))
            case ast.Attribute(value=ast.Name(id="math"), attr=name):
                return ir.Constant(CONSTANTS[f"math.{name}"], self.span)
            case ast.Attribute(value=value, attr="real" | "imag" as part):
                return ir.Call(f"complex.{part}", (self.read(value),), self.span)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
                return ir.Constant(-value, self.span, text=repr(-value))
            case ast.UnaryOp(op=op, operand=operand):
                return ir.Unary(SYMBOLS[type(op)], self.read(operand), self.span)
            case ast.BinOp(left=left, op=op, right=right):
                return ir.Binary(SYMBOLS[type(op)], self.read(left), self.read(right), self.span)
            case ast.Compare(left=ast.Name(id=name), ops=[op], comparators=[ast.Name(id=same)]) if (
                name == same and self.is_written_out(name)
            ):
                return ir.Constant(isinstance(op, ast.Eq), self.span)
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return ir.Compare(SYMBOLS[type(op)], self.read(left), self.read(right), self.span)
            case ast.BoolOp(op=op, values=[left, right]) if self.read(right) == ir.Constant(
                isinstance(op, ast.And), self.span
            ):
                return self.read(left)
            case ast.BoolOp(op=op, values=[left, right]):
                return ir.BoolOp(SYMBOLS[type(op)], self.read(left), self.read(right), self.span)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return ir.Select(self.read(test), self.read(body), self.read(orelse), self.span)
            case ast.Call(func=ast.Attribute(value=value, attr="view"), args=[ast.Name(id=dtype)]):
                return ir.Call(element_view(BY_NAME[dtype]), (self.read(value),), self.span)
            case ast.Call(func=func, args=args):
                name = ast.unparse(func)
                return ir.Call(_FUNCTIONS.get(name, name), tuple(map(self.read, args)), self.span)
            case _:
                raise AssertionError(ast.unparse(node))

    def is_written_out(self, parameter: str) -> bool:
        """True if the argument is a literal number, which cannot be NaN."""
        argument = self.arguments[parameter]
        return isinstance(argument, ir.Constant) and argument.value == argument.value
