"""Items of shapes and lists, and parts of tensors."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from py2cu.hosts import table
from py2cu.hosts.reader import Reader
from py2cu.hosts.values import (
    ATOM,
    Kind,
    Value,
)


def subscript(reader: Reader, node: cst.Subscript) -> Value:
    owner = reader.value(node.value)
    parts = [element.slice for element in node.slice]
    match owner.kind, parts:
        case Kind.TENSOR, _:
            return part(reader, owner, parts)
        case Kind.SIZES | Kind.TENSORS, [cst.Index(value=index)]:
            return item(reader, node, owner, reader.of_kind(index, Kind.INT))
    raise reader.refused(
        "P802", f"host functions do not subscript {owner.kind.value} this way", node, "take one item: `shape[0]`"
    )


def item(reader: Reader, node: cst.Subscript, owner: Value, at: Value) -> Value:
    kind = Kind.INT if owner.kind is Kind.SIZES else Kind.TENSOR
    if owner.text.endswith(".sizes()"):
        return Value(kind, f"{owner.text.removesuffix('.sizes()')}.size({at.text})", low=0, is_size=True)
    local = next((local for local in reader.locals.values() if local.text == owner.text), None)
    length = len(owner.items) if owner.items is not None else local.length if local is not None else None
    if length is not None and isinstance(at.known, int) and not -length <= at.known < length:
        raise reader.refused(
            "P404", f"index {at.known} is outside of {length} items", node, f"the last one is {length - 1}"
        )
    low, size = (local.low, local.is_size) if local is not None else (None, False)
    if length is not None and isinstance(at.known, int):
        if owner.items is not None:
            return owner.items[at.known]
        return Value(kind, f"{owner.text}[{at.known % length}]", low=low, is_size=size, bases=owner.bases)
    if local is not None and isinstance(at.known, int) and 0 <= at.known < local.least:
        return Value(kind, f"{owner.text}[{at.known}]", bases=owner.bases)
    reader.helpers["item_at"] = None
    return Value(kind, f"item_at({owner.text}, {at.text})", low=low, is_size=size, bases=owner.bases)


def part(reader: Reader, owner: Value, parts: Sequence[cst.BaseSlice]) -> Value:
    """`x[i, 1:]`: integers select, slices narrow."""
    text, dim = owner.at(ATOM), 0
    if len(parts) == 1 and isinstance(parts[0], cst.Index) and isinstance(parts[0].value, cst.Tuple):
        parts = [cst.Index(element.value) for element in parts[0].value.elements]
    for part in parts:
        match part:
            case cst.Index(value=index, star=None | ""):
                text += f".select({dim}, {reader.of_kind(index, Kind.INT).text})"
            case cst.Slice(lower=lower, upper=upper, step=step):
                bounds = [reader.of_kind(each, Kind.INT) if each is not None else None for each in (lower, upper, step)]
                if bounds[2] is not None and bounds[2].known is not None and bounds[2].known < 1:
                    raise reader.refused("P802", "the step of a slice of a tensor is at least 1", part, "leave it out")
                if any(bounds):
                    shown = [each.text if each else "{}" for each in bounds]
                    while shown[-1] == "{}":
                        shown.pop()
                    text += f".slice({', '.join([str(dim), *shown])})"
                dim += 1
            case _:
                raise reader.refused("P802", "host functions index tensors by integers and slices", part, table.HINT)
    return Value(Kind.TENSOR, text, bases=owner.bases)
