"""Describes what the torch binding checks before a launch: dtypes, ranks, extents, ranges of scalars, divisors.

In: a `Signature`'s parameters and dimensions. Out: one view for each array, dimension and checked scalar; the template
`binding.cpp.j2` turns the views into C++.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from py2cu import ir
from py2cu.analysis.launches import is_natural, unchecked_shared_extents
from py2cu.analysis.signatures import arrays_of_row_pointers
from py2cu.dtypes import U64, DType, TypeVariable
from py2cu.ir.abi.parameters import Constexpr, Parameter, Role
from py2cu.ir.abi.signature import Dim, Signature
from py2cu.ir.printer import print_expr
from py2cu.ir.rewrite import rebuild
from py2cu.targets.cxx.extents import extent_text
from py2cu.targets.cxx.instances import dtypes_of
from py2cu.targets.cxx.literals import init_text, is_double
from py2cu.targets.cxx.views import listed


@dataclass(frozen=True, slots=True)
class ArrayView:
    """One array argument, and what the op checks of it.

    `name` is the op's argument, `tensor` the C++ expression for the array, which exists where `test` holds.
    """

    name: str
    tensor: str
    test: str  # empty for an array that is never None
    user_name: str
    dtype: str  # the C++ expression for the dtype that the argument must have
    allocated_dtype: str  # the C++ expression for the dtype of an allocated array
    rank: str  # the C++ expression for the number of dimensions
    least_rank: int  # of an array with leading dimensions, which may be any number; else 0
    has_leading: bool
    leading: LeadingView | None  # another array that must have the same leading dimensions
    is_written: bool
    is_strided: bool  # it may have any strides; else it must be contiguous
    extents: tuple[tuple[str, str, str], ...]  # axis, the extent's C++ text, its annotation
    shape: str  # the C++ expression for the shape of an allocated array
    signed: tuple[tuple[str, str, str], ...]  # the extents that may be negative, in the form of `extents`
    fill: str  # the initial value of an allocated array
    is_int64_fill: bool  # the initial value is a 64-bit integer that no double represents
    row: str  # `row_extent` must be a multiple of this width; empty where any number is valid
    row_extent: str
    is_aligned: bool  # `row` elements are loaded or stored at once

    @property
    def guard(self) -> str:
        """What stands before a check: `if (bias) `, or nothing."""
        return f"if ({self.test}) " if self.test else ""


@dataclass(frozen=True, slots=True)
class LeadingView:
    """The leading dimensions of an array, any number of them, and the array that they are taken from."""

    annotation: str
    trailing: int  # the number of dimensions behind them
    source: str
    source_user_name: str
    source_trailing: int


@dataclass(frozen=True, slots=True)
class DimView:
    """One dimension: `value` is the C++ expression for it, `argument` an optional one that must agree."""

    name: str
    user_name: str
    value: str
    array: str
    axis: int
    argument: str
    is_solved: bool = False  # the value is a call of `solve_extent`


@dataclass(frozen=True, slots=True)
class RangeView:
    """A scalar argument that is narrower than the op's parameter, such as int32."""

    name: str
    user_name: str
    type: str
    misfit: str  # the condition under which the type cannot hold the argument


@dataclass(frozen=True, slots=True)
class ConstexprView:
    """A template argument, whose value must be one of the instantiated values."""

    value: str
    user_name: str
    misfit: str  # the condition under which the value has no instance
    built: str  # the instantiated values, for the message


def op_text(extent: ir.Expr, kernel: ir.Kernel, dims: dict[str, Dim]) -> str:
    """An extent in terms of the op's names: members of the extents struct, and arguments."""

    def known(expr: ir.Expr) -> ir.Expr:
        return ir.Name(scalar_text(kernel, dims, expr.id)) if isinstance(expr, ir.Name) else expr

    return extent_text(rebuild(extent, known), kernel)


def zero_divisors(kernel: ir.Kernel, signature: Signature, dims: dict[str, Dim]) -> Iterator[tuple[str, str]]:
    """The divisors in the extents of a call, each with the test for zero: in C++, dividing by zero ends the process."""
    for divisor in signature.divisors():
        text = op_text(divisor, kernel, dims)
        yield f"{text} == 0" if isinstance(divisor, ir.Name) else f"({text}) == 0", print_expr(divisor)


def shared_extents(kernel: ir.Kernel, dims: dict[str, Dim]) -> Iterator[tuple[str, str, str]]:
    """The extents of shared arrays that a call may make negative or so large that C++ would end the process."""
    for name, extent in unchecked_shared_extents(kernel):
        yield name, op_text(extent, kernel, dims), print_expr(extent)


def constexpr_view(value: str, name: str, constexpr: Constexpr) -> ConstexprView:
    misfit = " && ".join(f"{value} != {built}" for built in constexpr.values) or "true"
    built = listed(map(str, constexpr.values)) if constexpr.values else "no value at all"
    return ConstexprView(value, name, misfit, built)


def scalar_text(kernel: ir.Kernel, dims: dict[str, Dim], name: str) -> str:
    """A scalar by the op's name for it: a member of the extents struct where the scalar is an extent."""
    return f"at.{kernel.c_name(name)}" if name in dims else kernel.c_name(name)


def misfit_test(name: str, dtype: DType) -> str:
    """The C++ condition under which `dtype` cannot hold the int64 `name`."""
    return f"{name} < 0" if dtype is U64 else f"{name} != static_cast<{dtype.c}>({name})"


def _dtype_texts(family: ir.Instances, parameter: Parameter, dtype_sources: dict[TypeVariable, str]) -> tuple[str, str]:
    """The dtypes of a passed and of an allocated array; the first array of a type variable decides."""
    kernel, name = family[0], family[0].c_name(parameter.name)
    assert isinstance(parameter.type, ir.ArrayType)
    variable = parameter.type.dtype.variable
    if variable is None:
        plain = f"ScalarType::{parameter.type.dtype.torch}"
        return plain, plain
    common = f"{kernel.c_name(dtype_sources[variable])}.scalar_type()"
    if dtype_sources[variable] != parameter.name:
        return common, common
    place = kernel.variables.index(variable)
    admitted = dict.fromkeys(f"ScalarType::{dtypes_of(instance)[place].torch}" for instance in family)
    return f'one_of("{kernel.symbol}", "{parameter.name}", {name}, {{{", ".join(admitted)}}})', common


def array_view(
    family: ir.Instances, parameter: Parameter, dims: dict[str, Dim], dtype_sources: dict[TypeVariable, str]
) -> ArrayView:
    kernel, type_ = family[0], parameter.type
    assert isinstance(type_, ir.ArrayType)
    dtype, allocated_dtype = _dtype_texts(family, parameter, dtype_sources)
    source_axes = {(dim.array, dim.axis) for dim in dims.values() if dim.is_extent}
    naturals = _naturals(kernel, dims)
    texts = tuple(
        (_axis_text(kernel, parameter, axis), op_text(dim, kernel, dims), print_expr(dim))
        for axis, dim in enumerate(type_.dims)
    )
    leading = _leading_view(kernel, type_, dims)
    init = dict(kernel.inits).get(parameter.name)
    return ArrayView(
        name=kernel.c_name(parameter.name),
        tensor=f"{'*' if parameter.may_be_none else ''}{kernel.c_name(parameter.name)}",
        test=kernel.c_name(parameter.name) if parameter.may_be_none else "",
        user_name=parameter.name,
        dtype=dtype,
        allocated_dtype=allocated_dtype,
        rank=f"{_access(kernel, parameter)}dim()" if type_.leading else str(len(type_.dims)),
        has_leading=bool(type_.leading),
        least_rank=type_.trailing if type_.leading else 0,
        leading=leading if leading is not None and leading.source_user_name != parameter.name else None,
        is_written=parameter.role is not Role.INPUT,
        is_strided=parameter.name in kernel.strided and bool(type_.dims),
        extents=tuple(
            text
            for axis, text in enumerate(texts)
            if (parameter.name, axis) not in source_axes and not (leading is not None and axis == 0)
        ),
        shape=_shape_text([text for _, text, _ in texts], leading),
        signed=tuple(text for text, dim in zip(texts, type_.dims, strict=True) if not is_natural(dim, naturals)),
        fill="" if init is None else init_text(init),
        is_int64_fill=init is not None and not is_double(init),
        row=_row_text(kernel, parameter.name),
        row_extent=_access(kernel, parameter)
        + ("numel()" if len(type_.dims) == 1 else f"size({_axis_text(kernel, parameter, len(type_.dims) - 1)})"),
        is_aligned=any(parameter.name in arrays_of_row_pointers(kernel) for kernel in family),  # rule: row-aligned
    )


def _access(kernel: ir.Kernel, parameter: Parameter) -> str:
    """The text before a member of an array's tensor."""
    return f"{kernel.c_name(parameter.name)}{'->' if parameter.may_be_none else '.'}"


def _row_text(kernel: ir.Kernel, array: str) -> str:
    """The length of the longest rows in which an array is viewed; empty if it is not viewed in rows."""
    lengths = (decl.type.dims[-1] for decl in kernel.array_decls if decl.has_rows and decl.base == array)
    of_dtype = [d.named.array for d in lengths if isinstance(d, ir.Constant) and d.named is not None and d.named.array]
    for other in map(kernel.parameter, of_dtype):
        if other is not None:
            return f"{ir.ROW_BYTES} / {_access(kernel, other)}element_size()"
    return str(kernel.vector_widths.get(array, ""))  # rule: row-in-binding


def _axis_text(kernel: ir.Kernel, parameter: Parameter, axis: int) -> str:
    """The axis of the tensor that is `axis` of the annotation: behind leading dimensions it counts from the end."""
    assert isinstance(parameter.type, ir.ArrayType)
    from_end = len(parameter.type.dims) - axis
    return f"{_access(kernel, parameter)}dim() - {from_end}" if parameter.type.leading else str(axis)


def _leading_view(kernel: ir.Kernel, type_: ir.ArrayType, dims: dict[str, Dim]) -> LeadingView | None:
    """The leading dimensions of an array; None if it has none, or if no array that is always passed has them, too."""
    dim = dims.get(type_.dims[0].id) if type_.leading and isinstance(type_.dims[0], ir.Name) else None
    source = None if dim is None or dim.array is None else kernel.parameter(dim.array)
    if source is None or source.may_be_none:
        return None
    of_source = kernel.array_type(source.name)
    return LeadingView(type_.leading, type_.trailing, kernel.c_name(source.name), source.name, of_source.trailing)


def _shape_text(extents: Sequence[str], leading: LeadingView | None) -> str:
    if leading is None:
        return f"std::vector<int64_t>{{{', '.join(extents)}}}"
    trailing = f", {{{', '.join(extents[1:])}}}" if len(extents) > 1 else ""
    return f"leading_sizes({leading.source}, {leading.source_trailing}{trailing})"


def _naturals(kernel: ir.Kernel, dims: dict[str, Dim]) -> set[str]:
    """The names that no call makes negative: fewer than `kernel.naturals`, since the extents of an output are unchecked
    until it is allocated.
    """
    return {name for name, dim in dims.items() if dim.array is not None} | {*kernel.constexprs}


def dim_view(kernel: ir.Kernel, dims: dict[str, Dim], dim: Dim) -> DimView:
    scalar = kernel.parameter(dim.name)
    name = kernel.c_name(dim.name)
    if dim.array is None:
        return DimView(name, dim.name, name, "", 0, "")
    parameter = kernel.parameter(dim.array)
    assert parameter is not None
    array, type_, is_optional = kernel.c_name(dim.array), kernel.array_type(dim.array), parameter.may_be_none
    size = f"{_access(kernel, parameter)}size({_axis_text(kernel, parameter, dim.axis)})"
    if type_.leading and dim.axis == 0:
        size = f"leading_size({'*' if is_optional else ''}{array}, {type_.trailing})"
    argument = name if scalar is not None else ""
    match dim.factor, dim.rest:
        case ir.Constant(value=factor), ir.Constant(value=0):
            size += f" / {factor}" if factor > 1 else ""
            value = f"{array} ? {size} : 0" if is_optional else size
            return DimView(name, dim.name, value, dim.array, dim.axis, argument)
        case factor, rest:
            value = f"solve_extent({size}, {op_text(factor, kernel, dims)}, {op_text(rest, kernel, dims)})"
            return DimView(name, dim.name, value, dim.array, dim.axis, argument, is_solved=True)
