"""Host functions in autograd: one with a backward, and one that is the backward of a kernel or a host function.

The names in the one `return` of a host function are its outputs; those of a backward are the gradients `grad_<input>`.
So `match_backwards` sees a host function as a kernel that takes any strides and allocates its outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

import libcst as cst

from py2cu.diagnostics import Reporter
from py2cu.dtypes import F64, DType
from py2cu.dtypes import Kind as NumberKind
from py2cu.frontend.source.reader import KernelSource
from py2cu.hosts.model.signatures import HostParameter, HostSignature
from py2cu.hosts.model.values import Kind
from py2cu.ir.abi.gradients import PREFIX, match_backwards
from py2cu.ir.abi.parameters import Parameter, Role
from py2cu.ir.abi.signature import Signature
from py2cu.ir.types import UNNAMED_LEADING, ArrayType, Name, PythonType
from py2cu.source import Span


class Obstacle(NamedTuple):
    """Why a host function has no gradients, or computes none."""

    message: str
    span: Span
    hint: str


def facts(host: HostSignature) -> Signature:
    """The host function as `match_backwards` sees it: tensors of any shape, which differ in their dtypes alone."""
    outputs = (Parameter(name, _array(F64), Role.OUTPUT, host.end) for name, _ in host.outputs)
    parameters = (*(Parameter(p.name, _type(p), span=p.span) for p in host.parameters), *outputs)
    return Signature(
        name=host.name,
        op=host.cpp_name,
        doc=host.doc,
        parameters=parameters,
        dims=(),
        indices=(),
        launch=(),
        size=(),
        block=(),
        guards=(),
        inits=(),
        strided=tuple(p.name for p in parameters),
    )


def _type(parameter: HostParameter) -> ArrayType | PythonType:
    if parameter.kind.is_number:
        return PythonType(NumberKind[parameter.kind.name])
    declared = F64 if parameter.array is None else parameter.array.dtype
    return _array(max(declared.admitted, key=lambda dtype: (dtype.kind is NumberKind.FLOAT, dtype.precision)).plain)


def _array(dtype: DType) -> ArrayType:
    return ArrayType(dtype, (Name(UNNAMED_LEADING),), leading=UNNAMED_LEADING)


def obstacles(host: HostSignature, *, is_backward: bool) -> Iterator[Obstacle]:
    """What in a host function stands in the way of a backward, or of being one."""
    example = f"{PREFIX}x" if is_backward else "out"
    if not host.outputs:
        what = "returns its gradients by name" if is_backward else "with a backward returns its outputs by name"
        hint = f"assign each to a name, and end with one `return {example}`"
        yield Obstacle(f"a host function {what}, in one `return`", host.end, hint)
    for parameter in host.parameters:
        if parameter.name in host.written:
            what = f"`{host.name}` writes to `{parameter.name}`, and autograd would not know of it"
            yield Obstacle(what, parameter.span, "let its kernels write to tensors of its own")
        elif parameter.kind is Kind.TENSORS and not is_backward:
            what = f"`{parameter.name}` is a list of tensors, which a host function with a backward does not take"
            yield Obstacle(what, parameter.span, "name its tensors, or leave the backward to the operators")
    if len(dict(host.outputs)) < len(host.outputs):
        yield Obstacle("an output is returned twice", host.end, "return each once")
    for name, bases in host.outputs:
        if is_backward and not name.startswith(PREFIX):
            what = f"`{name}` is no gradient, and a host function that is a backward returns gradients alone"
            yield Obstacle(what, host.end, f"return `{example}`")
        elif bases and not is_backward:
            what = (
                f"`{name}` may be a view of `{min(bases)}`, and an operator with a backward returns tensors of its own"
            )
            yield Obstacle(what, host.end, "compute it anew: an operator, or a kernel")


def check_backwards(
    hosts: Mapping[str, HostSignature],
    kernel: Callable[[str], Signature | None],
    sources: Iterable[KernelSource],
    reporter: Reporter,
) -> None:
    """Check that each host function under `@NAME.backward` fits NAME: one of `hosts`, or what `kernel` finds."""
    attached: dict[str, list[HostSignature]] = {}
    for source in sources:
        name = source.function.name.value
        if (forward := forward_of(source)) is not None and name in hosts:
            attached.setdefault(forward, []).append(hosts[name])
    for name, backwards in attached.items():
        found = [each for host in backwards for each in obstacles(host, is_backward=True)]
        found += obstacles(hosts[name], is_backward=False) if name in hosts else ()
        if not found and (forward_facts := facts(hosts[name]) if name in hosts else kernel(name)) is not None:
            misfits = match_backwards(forward_facts, [facts(host) for host in backwards]).misfits
            found = [Obstacle(each.message, each.parameter.span, each.hint) for each in misfits]
        for message, span, hint in found:
            reporter.error("P412", message, span, hint)


def forward_of(source: KernelSource) -> str | None:
    """The kernel or host function whose gradients this one computes, as a decorator says."""
    nodes = [source.environment.decorator(each.decorator) for each in source.function.decorators]
    functions = [node.func if isinstance(node, cst.Call) else node for node in nodes]
    forwards = map(source.environment.forward, functions)
    return next((forward.name.value for forward in forwards if forward is not None), None)
