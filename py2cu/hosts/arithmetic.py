"""Operators of host functions: of numbers, with helpers where C++ differs from Python, and of tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

import libcst as cst

from py2cu.frontend.names.syntax import source_text
from py2cu.hosts import table
from py2cu.hosts.reader import Reader
from py2cu.hosts.values import (
    AND,
    ATOM,
    CHOICE,
    EQUAL,
    OR,
    ORDER,
    PRODUCT,
    SIGN,
    SUM,
    Kind,
    Value,
    number,
)

SIGNS: Final[Mapping[type[cst.CSTNode], str]] = {
    cst.Add: "+", cst.Subtract: "-", cst.Multiply: "*", cst.Divide: "/", cst.FloorDivide: "//", cst.Modulo: "%",
    cst.MatrixMultiply: "@", cst.Power: "**", cst.LessThan: "<", cst.LessThanEqual: "<=", cst.GreaterThan: ">",
    cst.GreaterThanEqual: ">=", cst.Equal: "==", cst.NotEqual: "!=",
}  # fmt: skip
_RANKS: Final = {"+": SUM, "-": SUM, "*": PRODUCT, "/": PRODUCT, "==": EQUAL, "!=": EQUAL}
_COMPUTE: Final[Mapping[str, Callable[[float, float], float]]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "//": lambda a, b: a // b,
    "%": lambda a, b: a % b, "/": lambda a, b: a / b,
}  # fmt: skip
_OPPOSITES: Final = {"==": "!=", "!=": "==", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


def unary(reader: Reader, node: cst.UnaryOperation) -> Value:
    match node.operator:
        case cst.Not():
            return Value(Kind.BOOL, f"!{reader.truth(node.expression).at(SIGN)}", SIGN)
        case cst.Minus():
            value = reader.value(node.expression)
            if value.kind is Kind.TENSOR:
                return replace(value, text=f"-{value.at(ATOM)}", rank=SIGN, bases=frozenset())
            if value.kind in (Kind.INT, Kind.FLOAT):
                if value.known is not None and value.text[0].isdigit():
                    return number(-value.known)
                if value.kind is Kind.INT and not value.is_size:
                    return arithmetic(reader, number(0), "-", value)
                return Value(value.kind, f"-{value.at(ATOM)}", SIGN, is_size=value.is_size)
    raise reader.refused("P801", "host functions negate numbers, tensors and bools", node, "write `-x` or `not c`")


def binary(
    reader: Reader, node: cst.BaseExpression, left: cst.BaseExpression, sign: str, right: cst.BaseExpression
) -> Value:
    a, b = reader.value(left), reader.value(right)
    if Kind.TENSOR in (a.kind, b.kind):
        return of_tensors(reader, node, a, sign, b)
    for operand, value in ((left, a), (right, b)):
        if value.kind not in (Kind.INT, Kind.FLOAT):
            raise reader.mismatch(operand, value, Kind.INT)
    if sign not in _COMPUTE:
        hint = "host functions compute with `+ - * / // %`"
        raise reader.refused("P801", f"`{sign or source_text(node)}` of numbers is not among the operators", node, hint)
    if a.known is not None and b.known is not None and a.text[0] in "-0123456789" and b.text[0] in "-0123456789":
        return folded(reader, node, a.known, sign, b.known)
    if sign in ("//", "%") and (a.kind, b.kind) != (Kind.INT, Kind.INT):
        raise reader.refused(
            "P801", f"`{sign}` takes integers in a host function", node, "write `int` parameters, or divide by `/`"
        )
    return quotient(reader, a, sign, b) if sign in ("/", "//", "%") else arithmetic(reader, a, sign, b)


def folded(reader: Reader, node: cst.BaseExpression, a: float, sign: str, b: float) -> Value:
    try:
        value = _COMPUTE[sign](a, b)
    except ZeroDivisionError:
        raise reader.refused("P308", "division by zero", node, "divide by another number") from None
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise reader.refused("P305", f"{value} does not fit 64 bits", node, "host functions compute in int64_t")
    return number(value)


def arithmetic(reader: Reader, a: Value, sign: str, b: Value) -> Value:
    rank = _RANKS[sign]
    text = f"{a.at(rank)} {sign} {b.at(rank + 1)}"
    if Kind.FLOAT in (a.kind, b.kind):
        return Value(Kind.FLOAT, text, rank)
    low, size = _least(a, sign, b), a.is_size and b.is_size
    if not size:
        reader.helpers[_CHECKED[sign]] = None
        text, rank = f"{_CHECKED[sign]}({a.text}, {b.text})", ATOM
    return Value(Kind.INT, text, rank, low=low, is_size=size)


def quotient(reader: Reader, a: Value, sign: str, b: Value) -> Value:
    """A quotient or a rest: C++'s own where no operand is negative and the divisor is not 0."""
    is_plain = b.known is not None and b.known > 0
    if sign == "/":
        one = f"static_cast<double>({a.text})" if a.kind is Kind.INT else a.at(PRODUCT)
        if b.known:
            other = b.at(SIGN) if b.kind is Kind.FLOAT else f"{b.text}.0" if b.text.isdigit() else b.at(SIGN)
            return Value(Kind.FLOAT, f"{one} / {other}", PRODUCT)
        reader.helpers["checked_div"] = None
        return Value(Kind.FLOAT, f"checked_div({a.text}, {b.text})")
    size = a.is_size and b.is_size
    if is_plain and a.is_natural:
        return Value(Kind.INT, f"{a.at(PRODUCT)} {sign[0]} {b.at(SIGN)}", PRODUCT, low=0, is_size=size)
    helper = "floor_div" if sign == "//" else "floor_mod"
    reader.helpers[helper] = None
    low = 0 if (a.is_natural or sign == "%") and b.is_natural else None
    return Value(Kind.INT, f"{helper}({a.text}, {b.text})", low=low, is_size=size)


def of_tensors(reader: Reader, node: cst.BaseExpression, a: Value, sign: str, b: Value) -> Value:
    """An operator of the table between a tensor and a tensor or a number."""
    rows = table.with_sign(sign)
    other = b if a.kind is Kind.TENSOR else a
    if not rows or (other.kind is not Kind.TENSOR and (not other.kind.is_number or sign == "@")):
        signs = " ".join(dict.fromkeys(row.sign for row in table.OPERATORS if row.sign))
        what = f"`{sign}` of {a.kind.value} and {b.kind.value} is not in the table of operators"
        raise reader.refused("P802", what, node, f"the operators of tensors are {signs}")
    if sign == "@":
        reader.headers["matmul"] = None
        return Value(Kind.TENSOR, f"at::matmul({a.text}, {b.text})")
    rank = _RANKS.get(sign, ORDER)
    return Value(Kind.TENSOR, f"{a.at(rank)} {sign} {b.at(rank + 1)}", rank)


def comparison(reader: Reader, node: cst.Comparison) -> Value:
    if isinstance(node.comparisons[0].operator, cst.Is | cst.IsNot | cst.In | cst.NotIn):
        raise reader.refused(
            "P801",
            "host functions compare by `== != < <= > >=`",
            node,
            "compare numbers, shapes, dtypes or tensors",
        )
    operands = [reader.value(each) for each in (node.left, *(target.comparator for target in node.comparisons))]
    parts = []
    for a, b, target in zip(operands, operands[1:], node.comparisons, strict=False):
        sign = SIGNS[type(target.operator)]
        if Kind.TENSOR in (a.kind, b.kind):
            if len(node.comparisons) > 1:
                raise reader.refused(
                    "P801", "a chain of comparisons cannot compare tensors", node, "compare tensors one by one"
                )
            return of_tensors(reader, node, a, sign, b)
        numbers = a.kind.is_number and b.kind.is_number
        if not numbers and not (a.kind is b.kind and sign in ("==", "!=")):
            raise reader.mismatch(target.comparator, b, a.kind)
        rank = _RANKS.get(sign, ORDER)
        parts.append(f"{a.at(rank + 1)} {sign} {b.at(rank + 1)}")
    if any("(" in value.text for value in operands[1:-1]):
        raise reader.refused(
            "P801", "this chain of comparisons computes its middle twice in C++", node, "assign the middle first"
        )
    if len(parts) > 1:
        return Value(Kind.BOOL, " && ".join(parts), AND)
    (a, b), sign = operands, SIGNS[type(node.comparisons[0].operator)]
    rank = _RANKS.get(sign, ORDER)
    is_ordered = Kind.FLOAT not in (a.kind, b.kind) or rank == EQUAL
    other = f"{a.at(rank + 1)} {_OPPOSITES[sign]} {b.at(rank + 1)}" if is_ordered else ""
    return Value(Kind.BOOL, parts[0], rank, opposite=other)


def choice(reader: Reader, node: cst.IfExp, test: Value, one: Value, other: Value) -> Value:
    if one.kind is not other.kind or one.kind in (Kind.TENSORS, Kind.SIZES, Kind.NONE):
        what = f"this is {one.kind.value} or {other.kind.value}"
        raise reader.refused("P306", what, node, "write an `if` that assigns a value of one kind")
    text = f"{test.at(OR)} ? {one.at(OR)} : {other.at(CHOICE)}"
    low, size = 0 if one.is_natural and other.is_natural else None, one.is_size and other.is_size
    return Value(one.kind, text, CHOICE, low=low, is_size=size, bases=one.bases | other.bases)


def extremum(reader: Reader, node: cst.Call, name: str) -> Value:
    values = [reader.of_kind(arg.value, Kind.INT) for arg in node.args]
    if len(values) != 2 or any(arg.keyword or arg.star for arg in node.args):
        raise reader.refused("P802", f"`{name}` takes two integers in a host function", node, f"write `{name}(a, b)`")
    reader.helpers["algorithm"] = None
    a, b = values
    is_natural = (a.is_natural and b.is_natural) or (name == "max" and (a.is_natural or b.is_natural))
    low = 0 if is_natural else None
    size = a.is_size and b.is_size
    return Value(Kind.INT, f"std::{name}<int64_t>({a.text}, {b.text})", low=low, is_size=size)


def _least(a: Value, sign: str, b: Value) -> int | None:
    """What a sum, a difference or a product is at least."""
    match sign:
        case "+" if a.low is not None and b.low is not None:
            return a.low + b.low
        case "-" if a.low is not None and isinstance(b.known, int):
            return a.low - b.known
        case "*" if a.low is not None and b.low is not None and a.is_natural and b.is_natural:
            return a.low * b.low
    return None


_CHECKED: Final = {"+": "checked_add", "-": "checked_sub", "*": "checked_mul"}
