"""Calls of torch operators: the arguments of a row of the table, and their text in C++."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import libcst as cst

from py2cu.frontend.names.syntax import source_text
from py2cu.hosts import table
from py2cu.hosts.reader import Reader
from py2cu.hosts.table import Argument, Operator
from py2cu.hosts.values import (
    ATOM,
    Kind,
    Value,
    display,
)
from py2cu.suggestions import did_you_mean


def torch_call(reader: Reader, node: cst.Call, name: str) -> Value:
    rows = table.functions_named(name)
    if not rows:
        raise reader.refused("P802", f"`torch.{name}` is not in the table of operators", node.func, known(reader, node))
    row, values = bound(reader, node, rows, None)
    reader.headers[row.header or row.name] = None
    return called_operator(reader, row, f"at::{row.name}", values, values)


def method(reader: Reader, node: cst.Call, function: cst.Attribute) -> Value:
    owner, name = reader.value(function.value), function.attr.value
    if owner.kind is Kind.TENSOR and name in _SHAPE_METHODS:
        return shape_method(reader, node, owner, name)
    rows = table.methods_named(name) if owner.kind is Kind.TENSOR else ()
    if not rows:
        what = f"`{name}` of {owner.kind.value} is not in the table of operators"
        if name.endswith("_") and not name.endswith("__"):
            hint = f"it writes to its tensor: `x = x.{name[:-1]}(…)`, or let a kernel write"
        else:
            hint = known(reader, node)
        raise reader.refused("P802", what, function, hint)
    row, values = bound(reader, node, rows, owner)
    return called_operator(reader, row, f"{owner.at(ATOM)}.{row.name}", values, values[1:])


def shape_method(reader: Reader, node: cst.Call, owner: Value, name: str) -> Value:
    """`x.size(0)`, `x.numel()`, `x.dim()`."""
    if len(node.args) > (name == "size") or any(arg.keyword or arg.star for arg in node.args):
        raise reader.refused(
            "P802", f"`{name}` takes {'one dimension' if name == 'size' else 'nothing'}", node, "pass no more"
        )
    if name == "size" and node.args:
        dim = reader.of_kind(node.args[0].value, Kind.INT).text
        return Value(Kind.INT, f"{owner.at(ATOM)}.size({dim})", low=0, is_size=True)
    if name == "size":
        return Value(Kind.SIZES, f"{owner.at(ATOM)}.sizes()")
    return Value(Kind.INT, f"{owner.at(ATOM)}.{name}()", low=0, is_size=True)


def called_operator(
    reader: Reader, row: Operator, function: str, values: Sequence[Value | None], shown: Sequence[Value | None]
) -> Value:
    arguments = _spelled(row.arguments[len(values) - len(shown) :], shown)
    kind = Kind.TENSORS if row.returns_list else Kind.TENSOR
    bases = next((value.bases for value in values if value is not None), frozenset()) if row.is_view else frozenset()
    return Value(kind, f"{function}({arguments})", bases=bases)


def bound(
    reader: Reader, node: cst.Call, rows: Sequence[Operator], owner: Value | None
) -> tuple[Operator, list[Value | None]]:
    """The first overload that takes the arguments, with a value for each of its arguments that is passed."""
    if any(arg.star for arg in node.args):
        raise reader.refused("P801", "host functions pass arguments one by one", node, "write them out")
    misfit = ""
    for row in rows:
        names = [a.name if a.name != "self" or owner is not None else "input" for a in row.arguments]
        positional: list[cst.BaseExpression | None] = [arg.value for arg in node.args if arg.keyword is None]
        by_name = {arg.keyword.value: arg.value for arg in node.args if arg.keyword is not None}
        if (
            row.takes_sizes_apart
            and len(positional) > 1
            and not any(isinstance(p, cst.Tuple | cst.List) for p in positional)
        ):
            positional = [cst.Tuple([cst.Element(p) for p in positional if p is not None])]
        if owner is not None:
            positional.insert(0, None)
        open_places = [place for place, a in enumerate(row.arguments) if not a.by_keyword]
        if len(positional) > len(open_places):
            own = owner is not None
            misfit = f"takes {len(open_places) - own} arguments, not {len(positional) - own}"
            continue
        given: dict[int, cst.BaseExpression | None] = dict(zip(open_places, positional, strict=False))
        unknown = [name for name in by_name if name not in names or names.index(name) in given]
        if unknown:
            misfit = f"has no argument `{unknown[0]}` in the table"
            continue
        given |= {names.index(name): value for name, value in by_name.items()}
        missing = [n for place, n in enumerate(names) if place not in given and row.arguments[place].default is None]
        if missing:
            misfit = f"is missing `{missing[0]}`"
            continue
        values: list[Value | None] = []
        for place, argument in enumerate(row.arguments):
            each = given.get(place)
            value = (
                owner
                if place == 0 and owner is not None
                else None
                if each is None
                else argument_value(reader, each, argument)
            )
            if value is not None and not _takes(argument.type, value):
                misfit = f"takes {_wanted(argument.type).value} as `{names[place]}`, not {value.kind.value}"
                break
            values.append(value)
        else:
            return row, values
    name = source_text(node.func)
    raise reader.refused("P802", f"`{name}` {misfit}", node, f"in the table: `{rows[0].schema}`")


def argument_value(reader: Reader, node: cst.BaseExpression, argument: Argument) -> Value:
    """The value of an argument; the items of a list one by one."""
    value = reader.read(node)
    if value.acts:
        reader.value(node)
    if argument.type.startswith("int[") and value.kind is Kind.INT:
        return replace(display([value], Kind.SIZES), bases=value.bases)
    return value


def known(reader: Reader, node: cst.Call) -> str:
    name = source_text(node.func).rpartition(".")[2]
    return did_you_mean(name, table.NAMES, f"{table.HINT}; kernels and host functions of this file can be called, too")


def _takes(type_: str, value: Value) -> bool:
    """Whether an argument of a schema takes a value of this kind."""
    match type_:
        case "Tensor":
            return value.kind is Kind.TENSOR
        case "Tensor[]":
            return value.kind is Kind.TENSORS
        case "int":
            return value.kind is Kind.INT
        case "bool":
            return value.kind is Kind.BOOL
        case "Scalar":
            return value.kind.is_number
        case "int[]" | "int[1]":
            return value.kind is Kind.SIZES
        case "ScalarType" | "ScalarType?":
            return value.kind in (Kind.DTYPE, Kind.NONE)
        case _:
            return value.kind in (Kind.DEVICE, Kind.NONE)


def _wanted(type_: str) -> Kind:
    """The kind of value that messages ask for."""
    return {
        "Tensor": Kind.TENSOR, "Tensor[]": Kind.TENSORS, "int": Kind.INT, "bool": Kind.BOOL, "Scalar": Kind.FLOAT,
        "int[]": Kind.SIZES, "int[1]": Kind.SIZES, "Device?": Kind.DEVICE,
    }.get(type_, Kind.DTYPE)  # fmt: skip


def _spelled(arguments: Sequence[Argument], values: Sequence[Value | None]) -> str:
    """The arguments of a call in C++: in order, with names beside literals, and without defaults at the end."""
    texts = []
    options = {a.name: v for a, v in zip(arguments, values, strict=True) if a.name in _OPTIONS and v is not None}
    has_options = any(argument.name == "device" for argument in arguments)
    for argument, value in zip(arguments, values, strict=True):
        if has_options and argument.name in _OPTIONS:
            continue
        texts.append("" if value is None else _argument(argument, value))
    if has_options:
        texts.append(_options(options))
    while texts and not texts[-1]:
        texts.pop()
    defaults = [argument.default for argument in arguments]
    return ", ".join(text or _default(defaults[place]) for place, text in enumerate(texts))


def _argument(argument: Argument, value: Value) -> str:
    """`/*dim=*/1`: a bare number says what it is."""
    is_told = value.known is not None and argument.type in ("int", "bool", "Scalar") and argument.name not in _PLAIN
    return f"/*{argument.name}=*/{value.text}" if is_told else value.text


def _default(default: str | None) -> str:
    return {"None": "{}", "False": "false", "True": "true", None: "{}"}.get(default, str(default))


def _options(options: Mapping[str, Value]) -> str:
    """The dtype and the device as `TensorOptions`: `x.options()` where both are those of one tensor."""
    dtype, device = (options.get(name) for name in _OPTIONS)
    shown = [value.text for value in (dtype, device) if value is not None and value.kind is not Kind.NONE]
    if len(shown) == 2 and shown[0].removesuffix(".scalar_type()") == shown[1].removesuffix(".device()"):
        return f"{shown[0].removesuffix('.scalar_type()')}.options()"
    words = [f"{name}({value.text})" for name, value in (("dtype", dtype), ("device", device)) if value is not None]
    return f"at::{'.'.join(words)}" if words else ""


_OPTIONS: Final = ("dtype", "device")


_PLAIN: Final = ("chunks", "dim0", "dim1", "other", "fill_value", "size", "index")


_SHAPE_METHODS: Final = ("size", "numel", "dim")
