"""Spells the op of the emitted binding: its schemas, C++ parameters, and the values that it passes on for scalars."""

from __future__ import annotations

from collections.abc import Iterator

from py2cu import ir
from py2cu.dtypes import DType, Kind
from py2cu.ir.abi.parameters import Parameter
from py2cu.ir.abi.schemas import ALLOCATES, FILLS, ON_GRID, SchemaStyle, default_parts, is_unsupported, schemas
from py2cu.ir.abi.signature import Signature
from py2cu.targets.cxx.literals import init_text

_CPP_SCALARS = {Kind.BOOL: "bool", Kind.INT: "int64_t", Kind.FLOAT: "double", Kind.COMPLEX: "double"}


def operators(kernel: ir.Kernel, signature: Signature) -> tuple[tuple[str, str], ...]:
    """The schema of each overload, and the C++ function that implements it."""

    def spell(parameter: Parameter) -> str:
        return parameter.name if parameter.name.isascii() else kernel.c_name(parameter.name)

    functions = {ALLOCATES: "new" if signature.outputs else "fill", FILLS: "fill", ON_GRID: "on_grid"}
    overloads = schemas(kernel.symbol, signature, SchemaStyle(spell, "int", signature.is_derived))
    return tuple((schema, f"{kernel.symbol}_{functions[overload]}") for overload, schema in overloads.items())


def cpp_names(kernel: ir.Kernel, parameter: Parameter) -> tuple[str, ...]:
    """The op's names for an argument: a complex number arrives as two parts, since torch's stable ABI has none."""
    name = kernel.c_name(parameter.name)
    return (f"{name}_real", f"{name}_imag") if ir.is_complex(parameter.type) else (name,)


def cpp_parameters(kernel: ir.Kernel, signature: Signature, parameters: tuple[Parameter, ...]) -> tuple[str, ...]:
    return tuple(text for parameter in parameters for text in _cpp_parameter(kernel, signature, parameter))


def _cpp_parameter(kernel: ir.Kernel, signature: Signature, parameter: Parameter) -> tuple[str, ...]:
    names = cpp_names(kernel, parameter)
    match parameter.type:
        case ir.ArrayType():
            return (f"const {tensor_type(parameter)}& {names[0]}",)
        case ir.PythonType(kind=Kind.INT) if signature.is_derived(parameter):
            return (f"std::optional<int64_t> {names[0]}",)
        case ir.ElementType(dtype=DType(kind=kind)) | ir.PythonType(kind=kind):
            scalar = _CPP_SCALARS[kind]
            optional = f"std::optional<{scalar}>"
            pairs = zip(names, _defaults(parameter), strict=True)
            return tuple(
                f"{optional if parameter.may_be_none or is_unsupported(default) else scalar} {name}"
                for name, default in pairs
            )


def tensor_type(parameter: Parameter) -> str:
    """The type of an op's argument for an array."""
    return "std::optional<Tensor>" if parameter.may_be_none else "Tensor"


def _defaults(parameter: Parameter) -> tuple[float | None, ...]:
    """The default of each of the op's arguments for a scalar."""
    if parameter.default is not None:
        return default_parts(parameter)
    return (None, None) if ir.is_complex(parameter.type) else (None,)


def cpp_values(kernel: ir.Kernel, parameter: Parameter) -> tuple[str, ...]:
    """The values of a scalar: arguments of the op, or the default where the argument is None."""
    return tuple(
        f"{name}.value_or({init_text(default)})" if default is not None and is_unsupported(default) else name
        for name, default in zip(cpp_names(kernel, parameter), _defaults(parameter), strict=True)
    )


def unsupported_defaults(parameter: Parameter) -> Iterator[float]:
    """The defaults that the C++ text holds, since the op's schema cannot express them."""
    is_scalar = not isinstance(parameter.type, ir.ArrayType)
    return (
        default for default in _defaults(parameter) if is_scalar and default is not None and is_unsupported(default)
    )
