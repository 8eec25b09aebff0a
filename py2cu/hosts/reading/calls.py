"""Calls of kernels and of other host functions, and the binding of arguments to parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import libcst as cst

from py2cu.hosts.model.signatures import Callee, HostSignature, kind_of, wrapper_name
from py2cu.hosts.model.values import Kind, Value, number
from py2cu.hosts.reading.reader import Reader, Refused
from py2cu.ir.abi.parameters import Parameter
from py2cu.ir.abi.schemas import ALLOCATES, FILLS, ON_GRID
from py2cu.ir.abi.signature import Signature
from py2cu.ir.types import is_complex


class Misfit(Exception):
    """The arguments of a call do not fit; the text continues a sentence whose subject is the function."""


@dataclass(frozen=True, slots=True)
class Slot:
    """What binding needs to know of a parameter; messages name the first of `kinds`."""

    name: str
    kinds: tuple[Kind, ...]
    by_keyword: bool
    is_required: bool


def bind(slots: Sequence[Slot], positional: Sequence[Value], by_name: Mapping[str, Value]) -> dict[str, Value]:
    """The arguments by parameter.

    Raises:
        Misfit: too many, too few, unknown or repeated arguments, or one of the wrong kind.
    """
    in_order = [slot.name for slot in slots if not slot.by_keyword]
    if len(positional) > len(in_order):
        raise Misfit(f"takes {len(in_order)} positional arguments, not {len(positional)}")
    given = dict(zip(in_order, positional, strict=False))
    for name in by_name:
        if name in given:
            raise Misfit(f"gets `{name}` twice")
        if all(name != slot.name for slot in slots):
            raise Misfit(f"has no argument `{name}`")
    given |= by_name
    for slot in slots:
        if slot.name not in given:
            if slot.is_required:
                raise Misfit(f"is missing `{slot.name}`")
        elif given[slot.name].kind not in slot.kinds:
            raise Misfit(f"takes {slot.kinds[0].value} as `{slot.name}`, not {given[slot.name].kind.value}")
    return given


def bound_call(reader: Reader, node: cst.Call, callee: Callee, launch: Sequence[Value] = ()) -> Value:
    """The call of a kernel or a host function; `launch`: the grid and the block of an explicit launch."""
    if callee.host is not None:
        return _host_call(reader, node, callee, callee.host)
    assert callee.kernel is not None
    return _KernelCall(reader, node, callee, callee.kernel, launch).read()


def _host_call(reader: Reader, node: cst.Call, callee: Callee, host: HostSignature) -> Value:
    slots = [Slot(p.name, (p.kind,), p.by_keyword, p.default is None) for p in host.parameters]
    try:
        given = bind(slots, *reader.arguments(node))
    except Misfit as misfit:
        hint = f"it takes {', '.join(slot.name for slot in slots)}"
        raise reader.unusable(f"`{callee.name}` {misfit}", node, hint) from None
    written = [given[name] for name in host.written if name in given]
    reader.written.update(*(value.bases for value in written))
    defaults = {p.name: f"/*{p.name}=*/{p.default.text}" for p in host.parameters if p.default is not None}
    texts = [given[slot.name].text if slot.name in given else defaults[slot.name] for slot in slots]
    if host.has_backward:
        reader.called[callee.name, ALLOCATES] = callee
    function = wrapper_name(callee, ALLOCATES) if host.has_backward else host.cpp_name
    text = f"{reader.function(function)}({', '.join(texts)})"
    bases = frozenset[str]().union(*(value.bases for value in given.values()))
    return Value(host.result, text, bases=bases, acts=bool(written)).with_items(host.count)


@dataclass(frozen=True, slots=True)
class _KernelCall:
    reader: Reader
    node: cst.Call
    callee: Callee
    signature: Signature
    launch: Sequence[Value]

    def read(self) -> Value:
        signature, reader, name = self.signature, self.reader, self.callee.name
        if unusable := [p.name for p in signature.parameters if is_complex(p.type)] or [n for n, _ in signature.tuples]:
            what = f"`{name}` takes `{unusable[0]}`, a complex number or a tuple"
            raise self.refused(what, "host functions pass tensors, integers, floats and bools")
        if signature.size is None and not self.launch:
            raise self.refused(f"`{name}` has no `size`", f"launch it: `{name}[grid, block](…)`")
        given = self.bound()
        allocates, count = signature.are_allocated(given), len(signature.outputs)
        missing = next((p.name for p in signature.outputs if p.name not in given), None)
        if missing is not None and self.launch:
            raise self.refused(f"a launch is passed every array, and `{missing}` is missing", f"pass `{missing}`")
        if missing is not None and not allocates:
            raise self.refused(f"`{name}` is passed all its outputs, or none", f"pass `{missing}`, too")
        fills = bool(count) and not allocates and signature.op_allocates
        overload = ON_GRID if self.launch else FILLS if fills else ALLOCATES
        parameters = signature.inputs if allocates else signature.parameters
        texts = [self.text(parameter, given.get(parameter.name)) for parameter in parameters]
        texts += [f"/*{of}=*/{each.text}" for of, each in zip(("grid", "block"), self.launch, strict=False)]
        written = [given[p.name].bases for p in signature.written if p.name in given]
        reader.written.update(*written)
        reader.called[name, overload] = self.callee
        text = f"{reader.function(wrapper_name(self.callee, overload))}({', '.join(texts)})"
        if allocates and count > 1:
            return Value(Kind.TENSORS, text, acts=bool(written)).with_items(count)
        if self.launch or count != 1:
            return Value(Kind.NONE, text, acts=True)
        bases = frozenset[str]() if allocates else given[signature.outputs[0].name].bases
        return Value(Kind.TENSOR, text, bases=bases, acts=bool(written))

    def bound(self) -> dict[str, Value]:
        """The arguments by parameter: the first reading of `call/bind.py` that their kinds fit."""
        signature = self.signature
        positional = [p for p in signature.parameters if not p.by_keyword]
        readings = [
            [p for p in positional if p in signature.inputs], [p for p in positional if p in signature.required],
            positional, [p for p in positional if not signature.is_derived(p)],
        ]  # fmt: skip
        args, by_name = self.reader.arguments(self.node)
        names = [p.name for p in signature.parameters]
        if unknown := [name for name in by_name if name not in names]:
            raise self.refused(f"`{self.callee.name}` has no parameter `{unknown[0]}`", f"it has {', '.join(names)}")
        for reading in [positional] if self.launch else readings:
            try:
                return bind([self.slot(p, reading) for p in signature.parameters], args, by_name)
            except Misfit:
                continue
        listed = ", ".join(f"{p.name}: {kind_of(p).value}" for p in signature.parameters)
        raise self.refused(f"these arguments do not fit `{self.callee.name}`", f"it takes {listed}")

    def slot(self, parameter: Parameter, reading: Sequence[Parameter]) -> Slot:
        kind = kind_of(parameter)
        kinds = (kind, *[Kind.INT] * (kind is Kind.FLOAT), *[Kind.NONE] * parameter.may_be_none)
        return Slot(parameter.name, kinds, parameter not in reading, parameter in self.signature.required)

    def text(self, parameter: Parameter, value: Value | None) -> str:
        if value is not None and value.kind is not Kind.NONE:
            return value.text if value.known is None else f"/*{parameter.name}=*/{value.text}"
        if value is not None or parameter.may_be_none or self.signature.is_derived(parameter):
            return "std::nullopt"
        assert parameter.default is not None
        assert not isinstance(parameter.default.value, complex)
        return f"/*{parameter.name}=*/{number(parameter.default.value).text}"

    def refused(self, message: str, hint: str) -> Refused:
        return self.reader.unusable(message, self.node, hint)
