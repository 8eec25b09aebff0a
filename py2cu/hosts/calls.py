"""Calls of kernels and of other host functions."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from py2cu.hosts.reader import Reader, Refused
from py2cu.hosts.signatures import Callee, HostSignature
from py2cu.hosts.values import Kind, Value, number
from py2cu.hosts.wrappers import kind_of, wrapper_name
from py2cu.ir.abi.parameters import Parameter
from py2cu.ir.abi.schemas import ALLOCATES, FILLS, ON_GRID
from py2cu.ir.abi.signature import Signature
from py2cu.ir.types import is_complex


def bound_call(reader: Reader, node: cst.Call, callee: Callee, launch: tuple[Value, Value] | None = None) -> Value:
    """The call of a kernel or a host function."""
    if any(arg.star for arg in node.args):
        raise reader.refused("P801", "host functions pass arguments one by one", node, "write them out")
    if callee.host is not None:
        return _host_call(reader, node, callee, callee.host)
    assert callee.kernel is not None
    return _KernelCall(reader, node, callee, callee.kernel).read(launch)


@dataclass(frozen=True, slots=True)
class _KernelCall:
    reader: Reader
    node: cst.Call
    callee: Callee
    signature: Signature

    def read(self, launch: tuple[Value, Value] | None) -> Value:
        signature = self.signature
        if unsupported := [p.name for p in signature.parameters if is_complex(p.type)] + [
            n for n, _ in signature.tuples
        ]:
            what = f"`{self.callee.name}` takes `{unsupported[0]}`, a complex number or a tuple"
            raise self.refused(what, "host functions pass tensors, integers, floats and bools")
        if signature.size is None and launch is None:
            raise self.refused(
                f"`{self.callee.name}` has no `size`", f"launch it: `{self.callee.name}[grid, block](…)`"
            )
        given = self.bound(in_order=launch is not None)
        missing = [p.name for p in signature.outputs if p.name not in given]
        if launch is not None and missing:
            raise self.refused(f"a launch is passed every array, and `{missing[0]}` is missing", f"pass `{missing[0]}`")
        allocates = signature.are_allocated(given)
        if missing and not allocates:
            raise self.refused(f"`{self.callee.name}` is passed all its outputs, or none", f"pass `{missing[0]}`, too")
        overload = (
            ON_GRID if launch is not None else FILLS if signature.outputs and not allocates and signature.op_allocates
            else ALLOCATES
        )  # fmt: skip
        parameters = signature.inputs if allocates else signature.parameters
        texts = [self.text(parameter, given.get(parameter.name)) for parameter in parameters]
        texts += [f"/*{name}=*/{each.text}" for name, each in zip(("grid", "block"), launch or (), strict=False)]
        written = [given[p.name] for p in signature.written if p.name in given]
        for value in written:
            self.reader.written |= value.bases
        self.reader.called[self.callee.name, overload] = self.callee
        text = f"{self.reader.function(wrapper_name(self.callee, overload))}({', '.join(texts)})"
        if launch is not None or not signature.outputs:
            return Value(Kind.NONE, text, acts=True)
        if allocates:
            kind = Kind.TENSOR if len(signature.outputs) == 1 else Kind.TENSORS
            items = None if kind is Kind.TENSOR else tuple(Value(Kind.TENSOR, "") for _ in signature.outputs)
            return Value(kind, text, items=items, acts=bool(written))
        outputs = [given[p.name] for p in signature.outputs]
        if len(outputs) > 1:
            return Value(Kind.NONE, text, acts=True)
        return Value(Kind.TENSOR, text, bases=outputs[0].bases, acts=True)

    def bound(self, *, in_order: bool) -> dict[str, Value]:
        """The arguments by parameter: the first reading of `call/bind.py` that their kinds fit."""
        signature, reader = self.signature, self.reader
        positional = [p for p in signature.parameters if not p.by_keyword]
        inputs, required = {p.name for p in signature.inputs}, {p.name for p in signature.required}
        readings: list[list[Parameter]] = [
            [p for p in positional if p.name in inputs], [p for p in positional if p.name in required], positional,
            [p for p in positional if not signature.is_derived(p)],
        ]  # fmt: skip
        args = [(arg.value, reader.value(arg.value)) for arg in self.node.args if arg.keyword is None]
        by_name = {arg.keyword.value: reader.value(arg.value) for arg in self.node.args if arg.keyword is not None}
        names = [p.name for p in signature.parameters]
        if unknown := [name for name in by_name if name not in names]:
            raise self.refused(f"`{self.callee.name}` has no parameter `{unknown[0]}`", f"it has {', '.join(names)}")
        for reading in [positional] if in_order else readings:
            given = {p.name: value for p, (_, value) in zip(reading, args, strict=False)}
            fits = len(args) <= len(reading) and not given.keys() & by_name.keys()
            given |= by_name
            fits &= required <= given.keys() and all(_fits(signature.parameter(n), v) for n, v in given.items())
            if fits:
                return given
        listed = ", ".join(f"{p.name}: {kind_of(p).value}" for p in signature.parameters)
        raise self.refused(f"these arguments do not fit `{self.callee.name}`", f"it takes {listed}")

    def text(self, parameter: Parameter, value: Value | None) -> str:
        if value is not None and value.kind is not Kind.NONE:
            return value.text if value.known is None else f"/*{parameter.name}=*/{value.text}"
        if value is not None or parameter.may_be_none or self.signature.is_derived(parameter):
            return "std::nullopt"
        assert parameter.default is not None
        assert not isinstance(parameter.default.value, complex)
        return f"/*{parameter.name}=*/{number(parameter.default.value).text}"

    def refused(self, message: str, hint: str) -> Refused:
        return self.reader.refused("P802", message, self.node, hint)


def _fits(parameter: Parameter, value: Value) -> bool:
    wanted = kind_of(parameter)
    if value.kind is Kind.NONE:
        return parameter.may_be_none
    return value.kind is wanted or (wanted is Kind.FLOAT and value.kind is Kind.INT)


def _host_call(reader: Reader, node: cst.Call, callee: Callee, host: HostSignature) -> Value:
    names = [p.name for p in host.parameters]
    positional = [p.name for p in host.parameters if not p.by_keyword]
    args = [arg.value for arg in node.args if arg.keyword is None]
    if len(args) > len(positional):
        what = f"`{callee.name}` takes {len(positional)} positional arguments, not {len(args)}"
        raise reader.refused("P802", what, node, f"it takes {', '.join(names)}")
    given: dict[str, cst.BaseExpression] = dict(zip(positional, args, strict=False))
    for arg in node.args:
        if arg.keyword is not None:
            if arg.keyword.value not in names or arg.keyword.value in given:
                what = f"`{callee.name}` has no parameter `{arg.keyword.value}`, or got it twice"
                raise reader.refused("P802", what, arg, f"it takes {', '.join(names)}")
            given[arg.keyword.value] = arg.value
    texts, bases, acts = [], frozenset[str](), False
    for parameter in host.parameters:
        argument = given.get(parameter.name)
        if argument is None:
            if parameter.default is None:
                raise reader.refused(
                    "P802", f"`{callee.name}` is missing `{parameter.name}`", node, f"pass `{parameter.name}`"
                )
            texts.append(f"/*{parameter.name}=*/{parameter.default.text}")
            continue
        value = reader.value(argument)
        if value.kind is not parameter.kind and (parameter.kind, value.kind) != (Kind.FLOAT, Kind.INT):
            raise reader.mismatch(argument, value, parameter.kind)
        if parameter.name in host.written:
            reader.written |= value.bases
            acts = True
        bases |= value.bases
        texts.append(value.text)
    name = host.cpp_name
    if host.has_backward:
        name = wrapper_name(callee, ALLOCATES)
        reader.called[name, ALLOCATES] = callee
    text = f"{reader.function(name)}({', '.join(texts)})"
    items = None if host.count is None else tuple(Value(Kind.TENSOR, "") for _ in range(host.count))
    return Value(host.result, text, items=items, bases=bases, acts=acts)
