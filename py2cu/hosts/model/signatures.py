"""What callers know of a host function, and of a kernel that one calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from py2cu import ir
from py2cu.hosts.model.values import Kind, Value
from py2cu.ir import types
from py2cu.ir.abi.parameters import Parameter
from py2cu.ir.abi.schemas import ALLOCATES, FILLS, ON_GRID
from py2cu.ir.abi.signature import Signature
from py2cu.ir.types import span_field
from py2cu.records import record
from py2cu.source import Span

CPP_PARAMETERS: Final = {
    Kind.TENSOR: "const at::Tensor&", Kind.TENSORS: "at::TensorList", Kind.INT: "int64_t", Kind.FLOAT: "double",
    Kind.BOOL: "bool",
}  # fmt: skip
_SCHEMA: Final = {
    Kind.TENSOR: "Tensor",
    Kind.TENSORS: "Tensor[]",
    Kind.INT: "int",
    Kind.FLOAT: "float",
    Kind.BOOL: "bool",
}


@record(frozen=True, slots=True)
class HostParameter:
    """A parameter; `array` is the type that an annotation gives a tensor, None for a bare `Tensor`."""

    name: str
    text: str  # in C++
    kind: Kind
    default: Value | None = None
    by_keyword: bool = False
    array: ir.ArrayType | None = None
    span: Span = span_field()

    @property
    def argument(self) -> str:
        """The name in the schema of the operator."""
        return self.name if self.name.isascii() else self.text


@record(frozen=True, slots=True)
class HostSignature:
    """What callers know of a host function.

    `count`: the number of tensors that it returns, where that is known. `written`: the parameters that its kernels
    write to. `outputs`: the names in its one `return`, at `end`, each with the parameters that it may be a view of.
    """

    name: str
    cpp_name: str
    parameters: tuple[HostParameter, ...]
    result: Kind = Kind.TENSOR
    count: int | None = None
    is_list: bool = False
    written: frozenset[str] = frozenset()
    doc: str | None = None
    outputs: tuple[tuple[str, frozenset[str]], ...] = ()
    end: Span = span_field()
    has_backward: bool = False

    @property
    def schema(self) -> str:
        """The schema of its operator."""
        letters, items, has_star = iter("abcdefghijklmnopqrstuvwxyz"), [], False
        for parameter in self.parameters:
            if parameter.by_keyword and not has_star:
                items.append("*")
                has_star = True
            type_ = _SCHEMA[parameter.kind]
            if parameter.name in self.written:
                type_ = type_.replace("Tensor", f"Tensor({next(letters)}!)")
            default = parameter.default
            text = "" if default is None else f"={default.known}"
            items.append(f"{type_} {parameter.argument}{text}")
        result = {Kind.TENSOR: "Tensor", Kind.TENSORS: "Tensor[]"}.get(self.result, "()")
        return f"{self.cpp_name}({', '.join(items)}) -> {result}"


@dataclass(frozen=True, slots=True)
class Callee:
    """A kernel, or a host function, that a host function calls; `name` is what the Python calls it."""

    name: str
    kernel: Signature | None = None
    host: HostSignature | None = None


def kind_of(parameter: Parameter) -> Kind:
    """The kind of value that a kernel's parameter takes."""
    if isinstance(parameter.type, types.ArrayType):
        return Kind.TENSOR
    return Kind[types.kind_of(parameter.type).name]


def wrapper_name(callee: Callee, overload: str) -> str:
    """The function of the C++ text that calls this overload of a kernel's operator, or a host function's operator."""
    if callee.host is not None:
        return f"{callee.host.cpp_name}_operator"
    return callee.name + {ALLOCATES: "", FILLS: "_out", ON_GRID: "_launch"}[overload]
