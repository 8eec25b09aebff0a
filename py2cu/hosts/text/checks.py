"""The argument checks at the head of a host function: dtypes, numbers of dimensions, extents with one name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from py2cu import ir
from py2cu.ir.printer import print_expr

if TYPE_CHECKING:
    from py2cu.hosts.model.signatures import HostParameter, HostSignature


def check_lines(signature: HostSignature) -> tuple[list[str], list[str]]:
    """The statements, and the helpers that they call."""
    lines: list[str] = []
    extents: dict[str, str] = {}  # by dimension, its value in C++
    first_of: dict[str, str] = {}  # by type variable, the first array
    pending: list[tuple[HostParameter, int, ir.DimExpr]] = []
    arrays = [(p, p.array) for p in signature.parameters if p.array is not None]
    for parameter, array in arrays:
        names = f'"{signature.name}", "{parameter.name}", {parameter.text}'
        variable = array.dtype.variable
        listed = ", ".join(f"at::k{dtype.torch}" for dtype in array.dtype.admitted)
        if variable is not None and variable.symbol in first_of:
            listed = f"{first_of[variable.symbol]}.scalar_type()"
        elif variable is not None:
            first_of[variable.symbol] = parameter.text
        at_least = "check_dtype_and_least_dims" if array.leading else "check_dtype_and_dims"
        lines.append(f"{at_least}({names}, {{{listed}}}, {array.trailing if array.leading else len(array.dims)});")
    for parameter, array in arrays:
        start = 1 if array.leading else 0
        for axis, extent in enumerate(array.dims):
            if axis < start:
                continue
            place = axis - len(array.dims) if array.leading else axis
            here = f"{parameter.text}.size({place})"
            if isinstance(extent, ir.Name) and extent.id not in extents:
                extents[extent.id] = here
            else:
                pending.append((parameter, place, extent))
    helpers = ["check_dtype_and_least_dims" if array.leading else "check_dtype_and_dims" for _, array in arrays]
    for parameter, place, extent in pending:
        text = _text(extent, extents)
        if text is not None and text != f"{parameter.text}.size({place})":
            helpers.append("check_extent")
            names = f'"{signature.name}", "{parameter.name}", {parameter.text}'
            wanted = text[1:-1] if isinstance(extent, ir.Binary) else text
            lines.append(f'check_extent({names}, {place}, "{print_expr(extent)}", {wanted});')
    return lines, list(dict.fromkeys(helpers))


def _text(extent: ir.DimExpr, extents: Mapping[str, str]) -> str | None:
    """An extent in C++; None where a dimension in it has no value."""
    match extent:
        case ir.Constant(value=value):
            return str(value)
        case ir.Name(id=name):
            return extents.get(name)
        case ir.Binary(op="+" | "-" | "*" as op, left=left, right=right):
            a, b = _text(left, extents), _text(right, extents)
            return None if a is None or b is None else f"({a} {op} {b})"
        case _:
            return None
