"""Operators of host functions: of numbers, with helpers where C++ differs from Python, and of tensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Final

import libcst as cst

from py2cu.frontend.names.operators import SYMBOLS
from py2cu.hosts.model import table
from py2cu.hosts.model.operators import COMPUTE, HELPERS, OPPOSITES, RANKS
from py2cu.hosts.model.ranks import AND, ATOM, CHOICE, EQUAL, OR, PRODUCT, SIGN
from py2cu.hosts.model.values import Kind, Value, integer, number
from py2cu.hosts.reading.reader import Reader

SIGNS: Final[Mapping[type, str]] = {**SYMBOLS, cst.MatrixMultiply: "@", cst.MatrixMultiplyAssign: "@"}


def unary(reader: Reader, node: cst.UnaryOperation) -> Value:
    match node.operator:
        case cst.Not():
            return Value(Kind.BOOL, f"!{reader.truth(node.expression).at(SIGN)}", SIGN)
        case cst.Minus():
            value = reader.value(node.expression)
            if value.literal is not None:
                return number(-value.literal)
            if value.kind is Kind.INT and not value.is_size:
                return arithmetic(reader, number(0), "-", value)
            if value.kind in (Kind.TENSOR, Kind.INT, Kind.FLOAT):
                return Value(value.kind, f"-{value.at(ATOM)}", SIGN, is_size=value.is_size)
    raise reader.unsupported("host functions negate numbers, tensors and bools", node, "write `-x` or `not c`")


def binary(reader: Reader, node: cst.CSTNode, left: cst.BaseExpression, sign: str, right: cst.BaseExpression) -> Value:
    """The value of `left sign right`; `node` is what messages point at."""
    a, b = reader.value(left), reader.value(right)
    if Kind.TENSOR in (a.kind, b.kind):
        return of_tensors(reader, node, a, sign, b)
    for operand, value in ((left, a), (right, b)):
        if value.kind not in (Kind.INT, Kind.FLOAT):
            raise reader.mismatch(operand, value, Kind.INT)
    if sign not in COMPUTE:
        hint = "host functions compute with `+ - * / // %`"
        raise reader.unsupported(f"`{sign}` of numbers is not among the operators", node, hint)
    if a.literal is not None and b.literal is not None:
        try:
            return reader.number(COMPUTE[sign](a.literal, b.literal), node)
        except ZeroDivisionError:
            raise reader.refused("P308", "division by zero", node, "divide by another number") from None
    if sign in ("//", "%") and Kind.FLOAT in (a.kind, b.kind):
        hint = "write `int` parameters, or divide by `/`"
        raise reader.unsupported(f"`{sign}` takes integers in a host function", node, hint)
    return quotient(reader, a, b) if sign == "/" else arithmetic(reader, a, sign, b)


def infix(kind: Kind, a: Value, sign: str, b: Value, *, low: int | None = None) -> Value:
    """`a + b` in C++. A comparison is never an operand of another one without parentheses."""
    rank = RANKS[sign]
    text = f"{a.at(rank + (kind is Kind.BOOL))} {sign} {b.at(rank + 1)}"
    return Value(kind, text, rank, low=low, is_size=kind is Kind.INT and a.is_size and b.is_size)


def arithmetic(reader: Reader, a: Value, sign: str, b: Value) -> Value:
    """`a sign b` by the operator of C++ where that does what Python does, and else by a helper.

    Sums, differences and products of sizes fit 64 bits. `//` and `%` round alike where neither operand is negative.
    """
    if Kind.FLOAT in (a.kind, b.kind):
        return infix(Kind.FLOAT, a, sign, b)
    low, is_plain = None, a.is_size and b.is_size
    match sign:
        case "+" if a.low is not None and b.low is not None:
            low = a.low + b.low
        case "-" if a.low is not None and isinstance(b.known, int):
            low = a.low - b.known
        case "*" if a.low is not None and b.low is not None and a.is_natural and b.is_natural:
            low = a.low * b.low
        case "//" | "%":
            low = 0 if b.is_natural and (a.is_natural or sign == "%") else None
            is_plain = a.is_natural and b.known is not None and b.known > 0
    if is_plain:
        return infix(Kind.INT, a, sign[0], b, low=low)
    return integer(reader.helper(HELPERS[sign], a, b), a, b, low=low)


def quotient(reader: Reader, a: Value, b: Value) -> Value:
    """`a / b`."""
    if not b.known:
        return Value(Kind.FLOAT, reader.helper(HELPERS["/"], a, b))
    one = f"static_cast<double>({a.text})" if a.kind is Kind.INT else a.at(PRODUCT)
    return Value(Kind.FLOAT, f"{one} / {f'{b.text}.0' if b.text.isdigit() else b.at(SIGN)}", PRODUCT)


def of_tensors(reader: Reader, node: cst.CSTNode, a: Value, sign: str, b: Value) -> Value:
    """An operator of the table between a tensor and a tensor or a number."""
    other = b if a.kind is Kind.TENSOR else a
    if not table.with_sign(sign) or (other.kind is not Kind.TENSOR and (not other.kind.is_number or sign == "@")):
        signs = " ".join(dict.fromkeys(row.sign for row in table.OPERATORS if row.sign))
        what = f"`{sign}` of {a.kind.value} and {b.kind.value} is not in the table of operators"
        raise reader.unusable(what, node, f"the operators of tensors are {signs}")
    if sign == "@":
        reader.headers["matmul"] = None
        return Value(Kind.TENSOR, f"at::matmul({a.text}, {b.text})")
    if a.kind is not Kind.TENSOR and sign == "-":  # C++ would compute `2.5 - x` in the dtype of `x`
        reader.headers["rsub"] = None
        return Value(Kind.TENSOR, f"at::rsub({b.text}, {a.text})")
    if a.kind is not Kind.TENSOR and sign == "/":  # as Python does
        reader.headers["reciprocal"] = None
        return infix(Kind.TENSOR, Value(Kind.TENSOR, f"at::reciprocal({b.text})"), "*", a)
    return infix(Kind.TENSOR, a, sign, b)


def comparison(reader: Reader, node: cst.Comparison) -> Value:
    signs = [SIGNS.get(type(target.operator), "") for target in node.comparisons]
    if "" in signs:
        hint = "compare numbers, shapes, dtypes or tensors"
        raise reader.unsupported("host functions compare by `== != < <= > >=`", node, hint)
    nodes = [node.left, *(target.comparator for target in node.comparisons)]
    values = [reader.value(each) for each in nodes]
    if any(value.kind is Kind.TENSOR for value in values):
        if len(signs) > 1:
            hint = "compare tensors one by one"
            raise reader.unsupported("a chain of comparisons cannot compare tensors", node, hint)
        return of_tensors(reader, node, values[0], signs[0], values[1])
    for (a, b), sign, right in zip(pairwise(values), signs, nodes[1:], strict=True):
        if not (a.kind.is_number and b.kind.is_number) and (
            a.kind is not b.kind or sign not in ("==", "!=") or a.kind is Kind.TENSORS
        ):
            raise reader.mismatch(right, b, a.kind)
    values = [comparable(reader, value, each) for value, each in zip(values, nodes, strict=True)]
    if {value.kind for value in values} == {Kind.BOOL, Kind.INT}:  # compilers warn of `flag == 2`
        values = [integer(f"int64_t({v.text})") if v.kind is Kind.BOOL else v for v in values]
    if any("(" in value.text for value in values[1:-1]):
        what = "this chain of comparisons computes its middle twice in C++"
        raise reader.unsupported(what, node, "assign the middle first")
    parts = [infix(Kind.BOOL, a, sign, b) for (a, b), sign in zip(pairwise(values), signs, strict=True)]
    if len(parts) > 1:
        return Value(Kind.BOOL, " && ".join(part.text for part in parts), AND)
    (a, b), sign = values, signs[0]
    if sign not in ("==", "!=") and Kind.FLOAT in (a.kind, b.kind):  # a NaN is neither less nor greater
        return parts[0]
    return replace(parts[0], opposite=infix(Kind.BOOL, a, OPPOSITES[sign], b).text)


def comparable(reader: Reader, value: Value, node: cst.BaseExpression) -> Value:
    """A compared value; a shape that is written out needs a type in C++."""
    if value.kind is Kind.SIZES and value.is_list:
        raise reader.unsupported("in Python a list is never equal to a shape", node, "write a tuple: `(n, m)`")
    is_display = value.kind is Kind.SIZES and value.text.startswith("{")
    return Value(Kind.SIZES, f"at::IntArrayRef({value.text})") if is_display else value


def both(reader: Reader, node: cst.BooleanOperation) -> Value:
    """`a and b`, `a or b`."""
    a, b = (reader.of_kind(each, Kind.BOOL) for each in (node.left, node.right))
    if isinstance(node.operator, cst.And):
        return Value(Kind.BOOL, f"{a.at(AND)} && {b.at(AND)}", AND)
    left = OR if a.rank == OR else EQUAL  # compilers warn of `a && b || c`
    return Value(Kind.BOOL, f"{a.at(left)} || {b.at(EQUAL)}", OR)


def choice(reader: Reader, node: cst.IfExp) -> Value:
    """`a if test else b`."""
    test, a, b = reader.truth(node.test), reader.value(node.body), reader.value(node.orelse)
    if a.kind is not b.kind or a.kind in (Kind.TENSORS, Kind.SIZES, Kind.NONE):
        what = f"this is {a.kind.value} or {b.kind.value}"
        raise reader.refused("P306", what, node, "write an `if` that assigns a value of one kind")
    first = f"int64_t({a.text})" if a.kind is Kind.INT and a.literal is not None else a.at(OR)  # a literal is an int
    text = f"{test.at(OR)} ? {first} : {b.at(CHOICE)}"
    low = 0 if a.is_natural and b.is_natural else None
    return Value(a.kind, text, CHOICE, low=low, is_size=a.is_size and b.is_size, bases=a.bases | b.bases)


def extremum(reader: Reader, node: cst.Call, name: str) -> Value:
    """`min(a, b)`, `max(a, b)`."""
    values = [reader.of_kind(arg.value, Kind.INT) for arg in node.args]
    if len(values) != 2 or any(arg.keyword for arg in node.args):
        raise reader.unusable(f"`{name}` takes two integers in a host function", node, f"write `{name}(a, b)`")
    a, b = values
    is_natural = a.is_natural or b.is_natural if name == "max" else a.is_natural and b.is_natural
    return integer(f"std::{name}<int64_t>({a.text}, {b.text})", a, b, low=0 if is_natural else None)
