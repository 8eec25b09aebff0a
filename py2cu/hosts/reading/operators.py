"""Calls of torch operators: the arguments of a row of the table, and their text in C++."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import libcst as cst

from py2cu.frontend.names.syntax import source_text
from py2cu.hosts.model import table
from py2cu.hosts.model.ranks import ATOM
from py2cu.hosts.model.spelling import spelled
from py2cu.hosts.model.table import Operator
from py2cu.hosts.model.values import Kind, Value, display, size
from py2cu.hosts.reading.calls import Misfit, Slot, bind
from py2cu.hosts.reading.reader import Reader
from py2cu.suggestions import did_you_mean

_KINDS: Final = {
    "Tensor": (Kind.TENSOR,), "Tensor[]": (Kind.TENSORS,), "int": (Kind.INT,), "bool": (Kind.BOOL,),
    "Scalar": (Kind.FLOAT, Kind.INT, Kind.BOOL), "int[]": (Kind.SIZES, Kind.INT), "int[1]": (Kind.SIZES, Kind.INT),
    "ScalarType": (Kind.DTYPE, Kind.NONE), "ScalarType?": (Kind.DTYPE, Kind.NONE), "Device?": (Kind.DEVICE, Kind.NONE),
}  # fmt: skip


def torch_call(reader: Reader, node: cst.Call, name: str) -> Value:
    """`torch.NAME(…)`."""
    rows = table.functions_named(name)
    if not rows:
        raise reader.unusable(f"`torch.{name}` is not in the table of operators", node.func, known(node))
    return _called(reader, node, rows)


def method(reader: Reader, node: cst.Call, function: cst.Attribute) -> Value:
    """`x.NAME(…)`."""
    owner, name = reader.value(function.value), function.attr.value
    if owner.kind is Kind.TENSOR and name in ("size", "numel", "dim"):
        return _measured(reader, node, owner, name)
    rows = table.methods_named(name) if owner.kind is Kind.TENSOR else ()
    if not rows:
        writes = name.endswith("_") and not name.endswith("__")
        hint = f"it writes to its tensor: `x = x.{name[:-1]}(…)`, or let a kernel write" if writes else known(node)
        raise reader.unusable(f"`{name}` of {owner.kind.value} is not in the table of operators", function, hint)
    return _called(reader, node, rows, owner)


def _measured(reader: Reader, node: cst.Call, owner: Value, name: str) -> Value:
    """`x.size(0)`, `x.size()`, `x.numel()`, `x.dim()`."""
    if len(node.args) > (name == "size") or any(arg.keyword for arg in node.args):
        what = f"`{name}` takes {'one dimension' if name == 'size' else 'nothing'}"
        raise reader.unusable(what, node, "pass no more")
    if name == "size" and not node.args:
        return Value(Kind.SIZES, f"{owner.at(ATOM)}.sizes()")
    return size(f"{owner.at(ATOM)}.{name}({''.join(reader.of_kind(arg.value, Kind.INT).text for arg in node.args)})")


def known(node: cst.Call) -> str:
    """The hint for a function that host functions do not call."""
    name = source_text(node.func).rpartition(".")[2]
    return did_you_mean(name, table.NAMES, f"{table.HINT}; kernels and host functions of this file can be called, too")


def _called(reader: Reader, node: cst.Call, rows: Iterable[Operator], owner: Value | None = None) -> Value:
    """The call of the first overload that takes the arguments."""
    positional, by_name = reader.arguments(node)
    misfits = []
    for row in rows:
        arguments = row.arguments if owner is None else row.arguments[1:]
        names = ["input" if argument.name == "self" else argument.name for argument in arguments]
        slots = [
            Slot(n, _KINDS[a.type], a.by_keyword, a.default is None) for n, a in zip(names, arguments, strict=True)
        ]
        is_apart = row.takes_sizes_apart and len(positional) > 1 and all(v.kind is Kind.INT for v in positional)
        try:
            given = bind(slots, [display(positional, Kind.SIZES)] if is_apart else positional, by_name)
        except Misfit as misfit:
            misfits.append(f"`{source_text(node.func)}` {misfit}")
            continue
        if owner is None:
            reader.headers[row.header or row.name] = None
        scope = "at::" if owner is None else f"{owner.at(ATOM)}."
        passed = [None if name not in given or given[name].kind is Kind.NONE else given[name] for name in names]
        text = f"{scope}{row.name}({spelled(arguments, passed)})"
        bases = (owner or given[names[0]]).bases if row.is_view else frozenset[str]()
        return Value(Kind.TENSORS if row.returns_list else Kind.TENSOR, text, bases=bases)
    raise reader.unusable(misfits[-1], node, f"in the table: `{next(iter(rows)).schema}`")
