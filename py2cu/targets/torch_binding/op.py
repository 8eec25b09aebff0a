"""One op of the emitted binding: its schemas, its C++ parameters, and what C++ calls arguments, extents and dtypes.

In: the instances of a kernel and its `Signature`. Out: C++ expressions in terms of the op's arguments, and of `at`, the
struct of the extents that the arguments agree on.
"""

from __future__ import annotations

import math

from py2cu import ir
from py2cu.dtypes import DType, Kind
from py2cu.ir.abi.parameters import Parameter, Role
from py2cu.ir.abi.schemas import ALLOCATES, FILLS, ON_GRID, SchemaStyle, default_parts, is_unsupported, schemas
from py2cu.ir.abi.signature import Signature
from py2cu.ir.rewrite import rebuild
from py2cu.targets.cxx.dialect import Dialect
from py2cu.targets.cxx.extents import extent_text
from py2cu.targets.cxx.literals import init_text

_SCALARS = {Kind.BOOL: "bool", Kind.INT: "int64_t", Kind.FLOAT: "double", Kind.COMPLEX: "double"}


class Op:
    """A kernel as the op for its instances; a device guard and a stream only on CUDA."""

    def __init__(self, family: ir.Instances, signature: Signature, dialect: Dialect, *, is_cuda: bool) -> None:
        self.family, self.signature, self.dialect, self.is_cuda = family, signature, dialect, is_cuda
        self.kernel = family[0]
        self.name = self.kernel.symbol
        self.dims = {dim.name: dim for dim in signature.dims}
        self.passed = tuple(p for p in signature.arrays if p.role is not Role.OUTPUT)
        arrays = (*self.passed, *signature.outputs)
        self.first = next(p for p in arrays if not p.may_be_none)  # whose device is the call's
        self.pairs_apart = tuple(signature.apart({p.name for p in arrays}))  # the first is written
        self.uses: set[str] = set()  # the parts of the template that its statements need
        # The inputs whose dtypes are the values of the type variables of a generic kernel.
        required = (p for p in reversed(self.passed) if not p.may_be_none)
        self.dtype_sources = {array_type(p).dtype.variable: p.name for p in required}

    def call(self, function: str, *arguments: object) -> str:
        """A call of one of the template's functions; the template defines those that are called, and no others."""
        self.uses.add(function.partition("<")[0])
        return f"{function}({', '.join(map(str, arguments))})"

    def number(self, value: bool | int | float) -> str:
        """A number; infinities and NaN need <cmath>."""
        if not math.isfinite(value):
            self.uses.add("cmath")
        return init_text(value)

    def overloads(self) -> tuple[tuple[str, str], ...]:
        """The schema of each overload, and the C++ function that implements it."""

        def spell(parameter: Parameter) -> str:
            return parameter.name if parameter.name.isascii() else self.kernel.c_name(parameter.name)

        functions = {ALLOCATES: "new" if self.signature.outputs else "fill", FILLS: "fill", ON_GRID: "on_grid"}
        found = schemas(self.name, self.signature, SchemaStyle(spell, "int", self.signature.is_derived))
        return tuple((schema, f"{self.name}_{functions[overload]}") for overload, schema in found.items())

    def names(self, parameter: Parameter) -> tuple[str, ...]:
        """The names of an argument: a complex number arrives as two parts, since torch's stable ABI has none."""
        name = self.kernel.c_name(parameter.name)
        return (f"{name}_real", f"{name}_imag") if ir.is_complex(parameter.type) else (name,)

    def parameters(self, parameter: Parameter) -> tuple[str, ...]:
        """The C++ parameters for an argument."""
        names = self.names(parameter)
        match parameter.type:
            case ir.ArrayType():
                return (f"const {'std::optional<Tensor>' if parameter.may_be_none else 'Tensor'}& {names[0]}",)
            case ir.PythonType(kind=Kind.INT) if self.signature.is_derived(parameter):
                return (f"std::optional<int64_t> {names[0]}",)
            case ir.ElementType(dtype=DType(kind=kind)) | ir.PythonType(kind=kind):
                scalar = _SCALARS[kind]
                is_optional = [parameter.may_be_none or is_unsupported(default) for default in defaults(parameter)]
                pairs = zip(is_optional, names, strict=True)
                return tuple(f"{f'std::optional<{scalar}>' if may else scalar} {name}" for may, name in pairs)

    def values(self, parameter: Parameter) -> tuple[str, ...]:
        """The values of a scalar: arguments of the op, or the default where the argument is None."""
        pairs = zip(self.names(parameter), defaults(parameter), strict=True)
        return tuple(
            f"{name}.value_or({self.number(default)})" if default is not None and is_unsupported(default) else name
            for name, default in pairs
        )

    def scalar(self, name: str) -> str:
        """A scalar by the op's name for it: a member of the extents struct where the scalar is an extent."""
        return f"at.{self.kernel.c_name(name)}" if name in self.dims else self.kernel.c_name(name)

    def extent(self, extent: ir.Expr) -> str:
        """An extent in terms of the op's names."""

        def known(expr: ir.Expr) -> ir.Expr:
            return ir.Name(self.scalar(expr.id)) if isinstance(expr, ir.Name) else expr

        return extent_text(rebuild(extent, known), self.kernel)

    def given(self, array: Parameter) -> str:
        """The test whether a call passes `array`; empty for one that it always passes."""
        return self.kernel.c_name(array.name) if array.may_be_none else ""

    def tensor(self, array: Parameter) -> str:
        """The tensor, where the call passes it."""
        return f"{'*' if array.may_be_none else ''}{self.kernel.c_name(array.name)}"

    def or_zero(self, array: Parameter, value: str) -> str:
        """A number that is computed from the tensor; 0 where the call does not pass it."""
        return f"{self.given(array)} ? {value} : 0" if array.may_be_none else value

    def may_be_one(self, array: Parameter, other: Parameter) -> bool:
        """Whether a call may pass one tensor as both."""
        return (array.name, other.name) in self.kernel.in_place

    def member(self, array: Parameter, name: str) -> str:
        """A member of the tensor: `x.dim()`, `bias->numel()`."""
        return f"{self.kernel.c_name(array.name)}{'->' if array.may_be_none else '.'}{name}"

    def axis(self, array: Parameter, axis: int) -> str:
        """The axis of the tensor that is `axis` of the annotation: behind leading dimensions it counts from the end."""
        type_ = array_type(array)
        return f"{self.member(array, 'dim()')} - {len(type_.dims) - axis}" if type_.leading else str(axis)

    def size(self, array: Parameter, axis: int) -> str:
        """The extent of an axis of the annotation; of its leading dimensions, the product."""
        if array_type(array).leading and axis == 0:
            return self.call("leading_size", self.tensor(array), array_type(array).trailing)
        return self.member(array, f"size({self.axis(array, axis)})")

    def dtype(self, array: Parameter) -> str:
        """The dtype of an array; the first array of a type variable decides it."""
        dtype = array_type(array).dtype
        if dtype.variable is None:
            return f"ScalarType::{dtype.torch}"
        return f"{self.kernel.c_name(self.dtype_sources[dtype.variable])}.scalar_type()"

    def leading_source(self, array: Parameter) -> Parameter | None:
        """The array whose leading dimensions `array` has; None if it has none, or if a call may leave that out."""
        name = self.signature.leading_source(array_type(array))
        source = None if name is None else self.kernel.parameter(name)
        return None if source is None or source.may_be_none else source


def defaults(parameter: Parameter) -> tuple[float | None, ...]:
    """The default of each scalar argument of the op; None for an argument without one."""
    if parameter.default is not None:
        return default_parts(parameter)
    return (None, None) if ir.is_complex(parameter.type) else (None,)


def array_type(array: Parameter) -> ir.ArrayType:
    assert isinstance(array.type, ir.ArrayType)
    return array.type
