"""The functions of the text that call a kernel by its operator, so that the dispatcher chooses the device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from py2cu.hosts.model.signatures import CPP_PARAMETERS, Callee, HostSignature, kind_of, wrapper_name
from py2cu.hosts.model.values import Kind, identifier
from py2cu.ir.abi.parameters import Parameter
from py2cu.ir.abi.schemas import ALLOCATES, FILLS, ON_GRID
from py2cu.ir.abi.signature import Signature
from py2cu.targets.cxx.parameters import wrapped

_COMMENTS: Final = {
    ALLOCATES: "", FILLS: ", with outputs of the caller", ON_GRID: ", with a grid and a block",
}  # fmt: skip


def cpp_type(signature: Signature, parameter: Parameter) -> str:
    """The type of an argument of a kernel's operator."""
    kind = kind_of(parameter)
    is_optional = parameter.may_be_none or signature.is_derived(parameter)
    type_ = f"std::optional<{kind.cpp}>" if is_optional else kind.cpp
    return f"const {type_}&" if kind is Kind.TENSOR else type_


def host_wrapper_lines(callee: Callee, host: HostSignature) -> Iterator[str]:
    """The wrapper of a host function that has a backward: autograd has to see its operator."""
    name, parameters = wrapper_name(callee, ALLOCATES), host.parameters
    yield f"// The host function `{host.name}`, by its operator."
    yield from wrapped(f"{host.result.cpp} {name}", [f"{CPP_PARAMETERS[p.kind]} {p.text}" for p in parameters]).split(
        "\n"
    )
    yield "{"
    yield f'    const auto op = kernel_operator<decltype({name})>(KERNEL("{host.cpp_name}"), "");'
    yield f"    return op.call({', '.join(p.text for p in parameters)});"
    yield "}"


def wrapper_lines(callee: Callee, overload: str) -> Iterator[str]:
    """The wrapper of one overload."""
    if callee.host is not None:
        yield from host_wrapper_lines(callee, callee.host)
        return
    signature = callee.kernel
    assert signature is not None
    outputs = [f"output{place}" for place in range(len(signature.outputs))]
    allocates = overload == ALLOCATES and bool(outputs) and signature.op_allocates
    returns_output = overload == FILLS and len(outputs) == 1
    parameters = signature.inputs if allocates else signature.parameters
    types_ = [cpp_type(signature, p) for p in parameters] + ["at::IntArrayRef"] * 2 * (overload == ON_GRID)
    name, variant = wrapper_name(callee, overload), "" if overload == ALLOCATES else overload
    launch = ["grid", "block"] * (overload == ON_GRID)
    own = {name, "op", *launch, *outputs}  # of the wrapper
    spelled = {p.name: f"{identifier(p.name)}{'_' * (identifier(p.name) in own)}" for p in parameters}
    names = [*spelled.values(), *launch]
    result = returned = "at::Tensor" if allocates and len(outputs) == 1 else "void"
    if returns_output:
        result = "at::Tensor"
    elif allocates and len(outputs) > 1:
        result, returned = "std::vector<at::Tensor>", f"std::tuple<{', '.join(['at::Tensor'] * len(outputs))}>"
    function = f"decltype({name})" if returned == result else f"{returned}({', '.join(types_)})"
    call = f"op.call({', '.join(names)})"
    yield f"// The kernel `{signature.name}`{_COMMENTS[overload]}."
    listed = [f"{type_} {each}" for type_, each in zip(types_, names, strict=True)]
    yield from wrapped(f"{result} {name}", listed).split("\n")
    yield "{"
    yield f'    const auto op = kernel_operator<{function}>(KERNEL("{signature.op}"), "{variant}");'
    if returned == result:
        yield f"    {'' if result == 'void' else 'return '}{call};"
    elif returns_output:
        yield f"    {call};"
        yield f"    return {spelled[signature.outputs[0].name]};"
    else:
        yield f"    auto [{', '.join(outputs)}] = {call};"
        yield f"    return {{{', '.join(outputs)}}};"
    yield "}"
