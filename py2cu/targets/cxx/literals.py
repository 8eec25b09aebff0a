"""Emits constants and strings as C literals, with the user's digits wherever C reads the same number in them; finds
constant expressions.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final

from py2cu import ir
from py2cu.analysis.promotion import as_float, rounded_directly
from py2cu.dtypes import F32, F64, DType, Kind
from py2cu.ir.visit import children, walk
from py2cu.targets.cxx.c_types import FLOATS, HALVES, arithmetic_type, is_unsigned
from py2cu.targets.cxx.cxx_text import PRIMARY, UNARY, CxxText

_SMALL: Final = 2.0**-10  # below it, the decimal digits of a power of two say less than its exponent
_DECIMAL: Final = re.compile(r"-?(\d+\.\d+([eE][-+]?\d+)?|\d+[eE][-+]?\d+)")  # digits that C reads as Python does


def array_literal(values: Sequence[str], extents: Sequence[int]) -> str:
    """`{{1, 2}, {3, 4}}`: the values of an array of these extents."""
    if len(extents) == 1:
        return f"{{{', '.join(values)}}}"
    step = len(values) // extents[0]
    rows = [array_literal(values[at : at + step], extents[1:]) for at in range(0, len(values), step)]
    return f"{{{', '.join(rows)}}}"


def table_literal(values: Sequence[str], extents: Sequence[int]) -> str:
    """The same, with each row of several dimensions on a line of its own."""
    if len(extents) == 1:
        return array_literal(values, extents)
    step = extents[-1]
    rows = [array_literal(values[at : at + step], extents[-1:]) for at in range(0, len(values), step)]
    opening = [_brackets("{", at, extents) for at in range(len(rows))]
    closing = [_brackets("}", at + 1, extents) for at in range(len(rows))]
    lines = ",\n    ".join(map("".join, zip(opening, rows, closing, strict=True)))
    return f"{{\n    {lines}\n}}"


def _brackets(bracket: str, row: int, extents: Sequence[int]) -> str:
    """The brackets of the dimensions between the first and the last that row number `row` opens, or the one before
    closes.
    """
    sizes = [math.prod(extents[axis:-1]) for axis in range(1, len(extents) - 1)]
    return bracket * sum(row % size == 0 for size in sizes)


def generic_literal(expr: ir.Constant, dtype: DType) -> str:
    """The literal that `T(…)` converts to the value of `expr` in `dtype`."""
    if dtype.kind is not Kind.FLOAT:
        return str(expr.value).lower()
    value = as_float(dtype, expr.value)
    if abs(value) < 2**31 and value == int(value):
        return str(int(value)) if value or math.copysign(1, value) > 0 else "-0.0"
    if math.isfinite(value) and rounded_directly(dtype, expr.value) == value:
        return expr.text if _DECIMAL.fullmatch(expr.text) else repr(float(expr.value))
    return float_literal(replace(expr, value=value, text=""), "double").text


def named_literal(expr: ir.Constant, declared: ir.ConstantDeclaration, c_type: str, spelled: str) -> CxxText | None:
    """`THREADS`, `static_cast<float>(EPS)`: the constant of the module that is the number `expr`, as a `c_type`.

    `spelled` is how the target writes the type. None where C reads another number than in the digits.
    """
    value, sign = declared.constant.value, "-" if expr.is_negated else ""
    symbol, precedence = f"{sign}{declared.symbol}", UNARY if sign else PRIMARY
    dtype = expr.type.dtype if isinstance(expr.type, ir.ElementType) else None
    if "bool" in (declared.c_type, c_type) or (declared.c_type in FLOATS and c_type not in FLOATS):
        return CxxText(symbol, PRIMARY, c_type) if declared.c_type == c_type else None
    if dtype is not None and dtype.variable is not None:
        is_exact = dtype.kind is not Kind.FLOAT or rounded_directly(dtype, value) == as_float(dtype, value)
        text = CxxText(f"{spelled}({symbol})", PRIMARY, c_type, casts_to=spelled)
        return text if is_exact or value != value else None
    if c_type in HALVES:
        return CxxText(f"{spelled}(static_cast<float>({symbol}))", PRIMARY, c_type, casts_to=spelled)
    is_sign_lost = abs(value) >= 2**31 and is_unsigned(declared.c_type) != is_unsigned(c_type)
    if (c_type in FLOATS and c_type != declared.c_type) or is_sign_lost:
        return CxxText(f"static_cast<{spelled}>({symbol})", PRIMARY, c_type, casts_to=spelled)
    return CxxText(symbol, precedence, declared.c_type, begins_with_sign=bool(sign))


def is_one(expr: ir.Expr) -> bool:
    """True for a number that is spelled `1`: a constant of that value, unless its digits are `0x1` or `1.0`."""
    if not isinstance(expr, ir.Constant) or expr.value != 1 or expr.type == ir.PY_BOOL or expr.written:
        return False
    return is_integer_literal(expr) if isinstance(expr.value, float) else not _bits(expr)


def init_text(value: bool | int | float) -> str:
    """The initial value of an allocated array: a double, or the argument of `int64_scalar` where no double is exact."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return integer_literal(ir.Constant(value), "uint64_t").text
    return float_literal(ir.Constant(value), "double").text


def is_double(value: bool | int | float) -> bool:
    """True where a double holds `value`."""
    return isinstance(value, float) or int(float(value)) == value


def integer_literal(expr: ir.Constant, c_type: str) -> CxxText:
    """`0xffu`, `1L`, of the narrowest type that C gives the digits; hexadecimal and binary ones stay."""
    value = int(expr.value)
    text = _bits(expr) or str(value)
    if value >= 2**31 and is_unsigned(c_type):
        suffix, c_type = ("u", "uint32_t") if value < 2**32 else ("ul", "uint64_t")
        return CxxText(f"{text}{suffix}", PRIMARY, c_type)
    if value == -(2**63):
        return CxxText("INT64_MIN", PRIMARY, "int64_t")
    if value == -(2**31) and arithmetic_type(c_type) == "int":
        return CxxText("INT32_MIN", PRIMARY, "int")
    wide = not -(2**31) < value < 2**31
    c_type = "int64_t" if wide else "int"
    return CxxText(f"{text}{'L' if wide else ''}", PRIMARY if value >= 0 else UNARY, c_type, begins_with_sign=value < 0)


def digits(expr: ir.Constant) -> str:
    """The digits of a constant where it is declared, whose type the declaration says: `1'000'000` of `1_000_000`."""
    text = re.sub(r"^(-?0)[oO]?(?:([xXbB])?_)?", r"\1\2", expr.text).replace("_", "'")
    if isinstance(expr.value, int) and expr.value > -(2**63) and expr.type != ir.PY_BOOL:
        if expr.value >= 2**63 and not text.startswith("0"):
            return f"{text or expr.value}u"
        is_unsigned_in_c = -(2**32) < expr.value <= -(2**31) and text.startswith("-0")  # -0xFFFFFFFF would be 1
        return (text or str(expr.value)) + ("L" if is_unsigned_in_c else "")
    is_float = re.fullmatch(r"-?([\d']+\.[\d']*|\.[\d']+|[\d']+(?=[eE]))([eE][-+]?[\d']+)?", text)
    return text if is_float and expr.type == ir.PY_FLOAT and math.isfinite(expr.value) else ""  # g++ warns of 1e999


def _bits(expr: ir.Constant) -> str:
    """The digits of an integer that is written in hexadecimal or in binary; empty for others."""
    digits = expr.text.replace("_", "")
    return digits if re.fullmatch(r"0[xX][0-9a-fA-F]+|0[bB][01]+", digits) else ""


def float_literal(expr: ir.Constant, c_type: str) -> CxxText:
    """`0.5870f` as the user wrote it, where C reads those digits as the same number; `0x1p-24f` of a small power of two
    that the user did not write.
    """
    value = float(expr.value)
    sign = "-" if math.copysign(1, value) < 0 else ""
    precedence = UNARY if sign else PRIMARY
    if math.isinf(value):
        return CxxText(f"{sign}INFINITY", precedence, "float", begins_with_sign=bool(sign))
    if math.isnan(value):
        return CxxText("NAN", PRIMARY, "float")
    written = _DECIMAL.fullmatch(expr.text)
    texts = (expr.text, repr(value)) if written else (repr(value),)
    text = next((text for text in texts if _reads_as(text, expr)), repr(as_float(F32, value)))
    fraction, exponent = math.frexp(value)
    if not expr.text and fraction == 0.5 and value < _SMALL:
        text = f"0x1p{exponent - 1}"
    return CxxText(text + ("f" if c_type == "float" else ""), precedence, c_type, begins_with_sign=bool(sign))


def _reads_as(text: str, expr: ir.Constant) -> bool:
    """Whether the digits of `text`, read as a number of the type of `expr`, are its value."""
    dtype = expr.type.dtype if isinstance(expr.type, ir.ElementType) else F64
    number = float(text)
    read = as_float(dtype, number)
    beyond = 2 * number - read  # the other neighbour, if the digits lie halfway between two floats: nvcc rounds them up
    is_between = dtype.plain is F32 and number != read and as_float(F32, beyond) == beyond
    vanishes = number != 0 == read  # compilers warn of digits that they read as zero
    return read == as_float(dtype, expr.value) and not is_between and not vanishes


def is_integer_literal(expr: ir.Constant) -> bool:
    """True for a float that the user wrote as an integer, `2`: beside a float, C converts it."""
    if isinstance(expr.type, ir.ElementType) and expr.type.dtype.variable is not None:
        return False
    return isinstance(expr.value, float) and re.fullmatch(r"-?\d+", expr.text) is not None and abs(expr.value) < 2**24


def string_literal(text: str) -> CxxText:
    """`text` in C's quotes; what does not print is escaped."""
    escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t"}
    chars = [escapes.get(char) or (char if char.isprintable() else _octal(char)) for char in text]
    return CxxText('"' + "".join(chars).replace("??", "?\\?") + '"', PRIMARY, "const char*")  # rule: string-trigraph


def _octal(char: str) -> str:
    return "".join(f"\\{byte:03o}" for byte in char.encode("utf-8", "surrogatepass"))


def is_constant_expression(test: ir.Expr, template_values: Collection[str]) -> bool:
    """True for a bool over template arguments that is a constant expression in C++ for all their values."""
    has_names = any(isinstance(node, ir.Name | ir.IsGiven) for node in walk(test))
    return test.type == ir.PY_BOOL and has_names and _is_constant(test, template_values)


def _is_constant(expr: ir.Expr, template_values: Collection[str]) -> bool:
    if ir.is_complex(expr.type) or (isinstance(expr.type, ir.ElementType) and not expr.type.dtype.is_native):
        return False
    match expr:
        case ir.Constant(value=value):
            return math.isfinite(value)
        case ir.Name(id=name) | ir.IsGiven(parameter=name):
            return name in template_values
        case ir.Binary(op="+" | "-" | "*", left=left, right=right):
            return _is_constant(left, template_values) and _is_constant(right, template_values)
        case ir.Binary(op="/" | "%", left=left, right=ir.Constant(value=divisor)):
            return _is_constant(left, template_values) and divisor != 0
        case ir.Compare() | ir.BoolOp() | ir.Unary() | ir.Convert() | ir.Select():
            return all(_is_constant(child, template_values) for child in children(expr))
        case _:
            return False
