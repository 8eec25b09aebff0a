"""The overloads of a kernel's op, as torch's schemas say them: `rgb2grey.out(Tensor x, Tensor(a!) out) -> ()`."""

from __future__ import annotations

from py2cu.dtypes import Kind
from py2cu.ir.extents import Parameter, Role
from py2cu.ir.kernel import Kernel
from py2cu.ir.signature import Signature
from py2cu.ir.types import ArrayType, ElementType, PythonType, is_complex

_SCHEMA_SCALARS = {Kind.BOOL: "bool", Kind.INT: "int", Kind.FLOAT: "float", Kind.COMPLEX: "float"}


def operators(kernel: Kernel, signature: Signature) -> tuple[tuple[str, str], ...]:
    """The op's overloads: one that allocates, one that fills what it is given, one with an explicit grid."""
    name, outputs = kernel.symbol, len(signature.outputs)
    everything = signature.parameters
    found = []
    if signature.size is not None and outputs:
        returns = "Tensor" if outputs == 1 else f"({', '.join(['Tensor'] * outputs)})"
        schema = _schema(kernel, name, signature.inputs, signature, defaults=True, returns=returns)
        found += [(schema, f"{name}_new"), (_schema(kernel, f"{name}.out", everything, signature), f"{name}_fill")]
    elif signature.size is not None:
        found.append((_schema(kernel, name, everything, signature, defaults=True), f"{name}_fill"))
    on_grid = _schema(kernel, f"{name}.grid", everything, signature, "int[] grid", "int[] block")
    return (*found, (on_grid, f"{name}_on_grid"))


def _schema(
    kernel: Kernel,
    name: str,
    parameters: tuple[Parameter, ...],
    signature: Signature,
    *more: str,
    defaults: bool = False,
    returns: str = "()",
) -> str:
    """`rgb2grey.out(Tensor x, Tensor(a!) out) -> ()`.

    What a call may leave out has a default, at the list's end: none for extents that shapes tell.
    """
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    trailing = len(parameters)
    while defaults and trailing and signature.is_optional(parameters[trailing - 1]):
        trailing -= 1
    items = []
    for place, parameter in enumerate(parameters):
        match parameter.type:
            case ArrayType() if parameter.role is not Role.INPUT:
                kind = f"Tensor({next(letters)}!)"
            case ArrayType():
                kind = "Tensor"
            case ElementType(dtype=dtype):
                kind = _SCHEMA_SCALARS[dtype.kind]
            case PythonType(kind=scalar):
                kind = _SCHEMA_SCALARS[scalar] + ("?" if signature.is_derived(parameter) else "")
        spelled = parameter.name if parameter.name.isascii() else kernel.c_name(parameter.name)
        names = (f"{spelled}_real", f"{spelled}_imag") if is_complex(parameter.type) else (spelled,)
        default = f"={_schema_default(signature, parameter)}" if place >= trailing else ""
        items += [f"{kind} {name}{default}" for name in names]
    return f"{name}({', '.join([*items, *more])}) -> {returns}"


def _schema_default(signature: Signature, parameter: Parameter) -> int | None:
    return None if parameter.constexpr is None or signature.is_derived(parameter) else parameter.constexpr.default
