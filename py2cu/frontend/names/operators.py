"""The classes of Python's operators in LibCST and in `ast`, by the symbol: `ir/operators.py` says what it means."""

from __future__ import annotations

import ast
from typing import Final

import libcst as cst

from py2cu.ir.operators import OPERATORS

_NODES: Final[dict[str, tuple[type, ...]]] = {
    "+": (cst.Add, cst.AddAssign, cst.Plus, ast.Add, ast.UAdd),
    "-": (cst.Subtract, cst.SubtractAssign, cst.Minus, ast.Sub, ast.USub),
    "*": (cst.Multiply, cst.MultiplyAssign, ast.Mult),
    "/": (cst.Divide, cst.DivideAssign, ast.Div),
    "//": (cst.FloorDivide, cst.FloorDivideAssign, ast.FloorDiv),
    "%": (cst.Modulo, cst.ModuloAssign, ast.Mod),
    "**": (cst.Power, cst.PowerAssign, ast.Pow),
    "&": (cst.BitAnd, cst.BitAndAssign, ast.BitAnd),
    "|": (cst.BitOr, cst.BitOrAssign, ast.BitOr),
    "^": (cst.BitXor, cst.BitXorAssign, ast.BitXor),
    "<<": (cst.LeftShift, cst.LeftShiftAssign, ast.LShift),
    ">>": (cst.RightShift, cst.RightShiftAssign, ast.RShift),
    "~": (cst.BitInvert, ast.Invert),
    "not": (cst.Not, ast.Not),
    "and": (ast.And,),
    "or": (ast.Or,),
    "==": (cst.Equal, ast.Eq),
    "!=": (cst.NotEqual, ast.NotEq),
    "<": (cst.LessThan, ast.Lt),
    "<=": (cst.LessThanEqual, ast.LtE),
    ">": (cst.GreaterThan, ast.Gt),
    ">=": (cst.GreaterThanEqual, ast.GtE),
}
SYMBOLS: Final = {node: symbol for symbol, nodes in _NODES.items() for node in nodes}


def is_in_extents(sign: cst.BaseBinaryOp | ast.operator) -> bool:
    """True for an operator that extents of arrays may have."""
    return type(sign) in SYMBOLS and OPERATORS[SYMBOLS[type(sign)]].in_extents
