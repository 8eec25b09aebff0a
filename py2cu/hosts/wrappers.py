"""The functions of the text that call a kernel by its operator, so that the dispatcher chooses the device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from py2cu.dtypes import Kind as NumberKind
from py2cu.hosts.signatures import CPP_PARAMETERS, Callee, HostSignature
from py2cu.hosts.values import Kind, identifier
from py2cu.ir.abi.parameters import Parameter
from py2cu.ir.abi.schemas import ALLOCATES, FILLS, ON_GRID
from py2cu.ir.abi.signature import Signature
from py2cu.ir.types import ArrayType, ElementType
from py2cu.targets.cxx.parameters import wrapped

_KINDS: Final = {NumberKind.BOOL: Kind.BOOL, NumberKind.INT: Kind.INT, NumberKind.FLOAT: Kind.FLOAT}


def kind_of(parameter: Parameter) -> Kind:
    """The kind of value that a kernel's parameter takes."""
    match parameter.type:
        case ArrayType():
            return Kind.TENSOR
        case ElementType(dtype=dtype):
            return _KINDS[dtype.kind]
        case type_:
            return _KINDS[type_.kind]


def wrapper_name(callee: Callee, overload: str) -> str:
    """The function of the C++ text that calls this overload of a kernel's operator, or a host function's operator."""
    if callee.host is not None:
        return f"{callee.host.cpp_name}_operator"
    return callee.name + {ALLOCATES: "", FILLS: "_out", ON_GRID: "_launch"}[overload]


def cpp_type(signature: Signature, parameter: Parameter) -> str:
    """The type of an argument of a kernel's operator."""
    kind = kind_of(parameter)
    type_ = "const at::Tensor&" if kind is Kind.TENSOR else kind.cpp
    if parameter.may_be_none or signature.is_derived(parameter):
        return "const std::optional<at::Tensor>&" if kind is Kind.TENSOR else f"std::optional<{kind.cpp}>"
    return type_


def host_wrapper_lines(callee: Callee, host: HostSignature) -> Iterator[str]:
    """The wrapper of a host function that has a backward: autograd has to see its operator."""
    name, result = wrapper_name(callee, ALLOCATES), host.result.cpp
    yield f"// The host function `{host.name}`, by its operator."
    yield from wrapped(f"{result} {name}", [f"{CPP_PARAMETERS[p.kind]} {p.text}" for p in host.parameters]).split("\n")
    yield "{"
    yield f'    const auto op = kernel_operator<decltype({name})>(KERNEL("{host.cpp_name}"), "");'
    yield f"    return op.call({', '.join(p.text for p in host.parameters)});"
    yield "}"


def wrapper_lines(callee: Callee, overload: str) -> Iterator[str]:
    """The wrapper of one overload."""
    if callee.host is not None:
        yield from host_wrapper_lines(callee, callee.host)
        return
    signature = callee.kernel
    assert signature is not None
    allocates = overload == ALLOCATES and bool(signature.outputs) and signature.op_allocates
    parameters = signature.inputs if allocates else signature.parameters
    types = [cpp_type(signature, p) for p in parameters]
    names = [identifier(p.name) for p in parameters]
    if overload == ON_GRID:
        types += ["at::IntArrayRef", "at::IntArrayRef"]
        names += ["grid", "block"]
    count = len(signature.outputs)
    returned = "void"
    if allocates:
        returned = "at::Tensor" if count == 1 else f"std::tuple<{', '.join(['at::Tensor'] * count)}>"
    listed = [f"{type_} {name}" for type_, name in zip(types, names, strict=True)]
    gives_output = overload == FILLS and count == 1
    result = (
        "at::Tensor"
        if gives_output or (allocates and count == 1)
        else "std::vector<at::Tensor>"
        if allocates
        else "void"
    )
    variant = "" if overload == ALLOCATES else overload
    yield (
        f"// The kernel `{signature.name}`"
        + {ALLOCATES: ".", FILLS: ", with outputs of the caller.", ON_GRID: ", with a grid and a block."}[overload]
    )
    name = wrapper_name(callee, overload)
    yield from wrapped(f"{result} {name}", listed).split("\n")
    yield "{"
    function = f"decltype({name})" if returned == result else f"{returned}({', '.join(types)})"
    yield f'    const auto op = kernel_operator<{function}>(KERNEL("{signature.op}"), "{variant}");'
    call = f"op.call({', '.join(names)})"
    if allocates and count > 1:
        outputs = [f"output{place}" for place in range(count)]
        yield f"    auto [{', '.join(outputs)}] = {call};"
        yield f"    return {{{', '.join(outputs)}}};"
    elif gives_output:
        yield f"    {call};"
        yield f"    return {identifier(signature.outputs[0].name)};"
    else:
        yield f"    {'return ' if result != 'void' else ''}{call};"
    yield "}"
