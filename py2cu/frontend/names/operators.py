"""The classes of Python's operators in LibCST and in `ast`: the text of each, and the function that computes it."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any, Final

import libcst as cst

from py2cu.ir import operators

_BINARY: Final[list[tuple[str, type[cst.BaseBinaryOp], type[ast.AST]]]] = [
    ("+", cst.Add, ast.Add), ("-", cst.Subtract, ast.Sub), ("*", cst.Multiply, ast.Mult), ("/", cst.Divide, ast.Div),
    ("//", cst.FloorDivide, ast.FloorDiv), ("%", cst.Modulo, ast.Mod), ("**", cst.Power, ast.Pow),
    ("&", cst.BitAnd, ast.BitAnd), ("|", cst.BitOr, ast.BitOr), ("^", cst.BitXor, ast.BitXor),
    ("<<", cst.LeftShift, ast.LShift), (">>", cst.RightShift, ast.RShift),
]  # fmt: skip
_UNARY: Final[list[tuple[str, type[cst.BaseUnaryOp], type[ast.AST]]]] = [
    ("-", cst.Minus, ast.USub), ("+", cst.Plus, ast.UAdd), ("~", cst.BitInvert, ast.Invert), ("not", cst.Not, ast.Not),
]  # fmt: skip
_COMPARISONS: Final[list[tuple[str, type[cst.BaseCompOp], type[ast.AST]]]] = [
    ("==", cst.Equal, ast.Eq), ("!=", cst.NotEqual, ast.NotEq), ("<", cst.LessThan, ast.Lt),
    ("<=", cst.LessThanEqual, ast.LtE), (">", cst.GreaterThan, ast.Gt), (">=", cst.GreaterThanEqual, ast.GtE),
]  # fmt: skip
FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    **operators.ARITHMETIC, **operators.BITWISE, "/": operator.truediv, "**": operator.pow,
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
"""Python's binary operators and comparisons, by their text."""

BINARY: Final = {node: text for text, node, _ in _BINARY}
UNARY: Final = {node: text for text, node, _ in _UNARY}
COMPARISONS: Final = {node: text for text, node, _ in _COMPARISONS}
AUGMENTED: Final[dict[type[cst.BaseAugOp], str]] = {
    getattr(cst, f"{node.__name__}Assign"): text for node, text in BINARY.items()
}  # fmt: skip
IN_EXTENTS: Final = {node: text for node, text in BINARY.items() if text in operators.ARITHMETIC}
"""The operators that extents of arrays may have."""

OF_AST: Final[dict[type[ast.AST], str]] = {
    **{node: text for text, _, node in (*_BINARY, *_UNARY, *_COMPARISONS)}, ast.And: "and", ast.Or: "or"
}  # fmt: skip
IN_EXTENTS_OF_AST: Final = {node: text for text, _, node in _BINARY if text in operators.ARITHMETIC}

COMPUTE_BINARY: Final = {node: FUNCTIONS[text] for node, text in BINARY.items()}
COMPUTE_UNARY: Final = {node: {**operators.UNARY, "not": operator.not_}[text] for node, text in UNARY.items()}
COMPARE: Final = {node: FUNCTIONS[text] for node, text in COMPARISONS.items()}
