"""Items of shapes and lists, and parts of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import libcst as cst

from py2cu.hosts.model import table
from py2cu.hosts.model.ranks import ATOM
from py2cu.hosts.model.values import Kind, Value
from py2cu.hosts.reading.reader import Reader


def subscript(reader: Reader, node: cst.Subscript) -> Value:
    owner = reader.value(node.value)
    match owner.kind, [element.slice for element in node.slice]:
        case Kind.TENSOR, [cst.Index(value=cst.Tuple(elements=elements))]:
            return _part(reader, owner, [cst.Index(element.value) for element in elements])
        case Kind.TENSOR, parts:
            return _part(reader, owner, parts)
        case Kind.SIZES | Kind.TENSORS, [cst.Index(value=index)]:
            return _item(reader, node, owner, reader.of_kind(index, Kind.INT))
    what = f"host functions do not subscript {owner.kind.value} this way"
    raise reader.unusable(what, node, "take one item: `shape[0]`")


def _item(reader: Reader, node: cst.Subscript, owner: Value, at: Value) -> Value:
    """`shape[0]`, `tensors[i]`: a constant index is checked here where the length is known."""
    if owner.tensor:
        return owner.item(at.text)
    if isinstance(at.known, int):
        if owner.items is not None:
            length = len(owner.items)
            if not -length <= at.known < length:
                what = f"index {at.known} is outside of {length} items"
                raise reader.refused("P404", what, node, f"the last one is {length - 1}")
            return owner.items[at.known]
        if 0 <= at.known < owner.least:
            return owner.item(at.known)
    return replace(owner.item(at.text), text=reader.helper("item_at", owner, at))


def _part(reader: Reader, owner: Value, parts: Sequence[cst.BaseSlice]) -> Value:
    """`x[i, 1:]`: integers select, slices narrow."""
    text, dim = owner.at(ATOM), 0
    for part in parts:
        match part:
            case cst.Index(value=index, star=None | ""):
                text += f".select({dim}, {reader.of_kind(index, Kind.INT).text})"
            case cst.Slice(lower=lower, upper=upper, step=step):
                bounds = [None if each is None else reader.of_kind(each, Kind.INT) for each in (lower, upper, step)]
                if bounds[2] is not None and bounds[2].known is not None and bounds[2].known < 1:
                    raise reader.unusable("the step of a slice of a tensor is at least 1", part, "leave it out")
                while bounds and bounds[-1] is None:
                    bounds.pop()
                if bounds:
                    text += f".slice({', '.join([str(dim), *('{}' if b is None else b.text for b in bounds)])})"
                dim += 1
            case _:
                raise reader.unusable("host functions index tensors by integers and slices", part, table.HINT)
    return Value(Kind.TENSOR, text, bases=owner.bases)
