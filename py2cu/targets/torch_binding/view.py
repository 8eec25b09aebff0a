"""Describes the torch binding of one kernel for the template `binding.cpp.j2`: parameters, checks, launches.

In: the instances of a kernel, its launchers and its `Signature`. Out: a `BindingView`. One binding serves both targets;
the template leaves out the device guard and the stream for the CPU.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial, reduce
from itertools import chain

from py2cu import ir
from py2cu.analysis.effects import syncs_grid
from py2cu.analysis.launches import launcher_arguments
from py2cu.dtypes import C128, Kind, TypeVariable
from py2cu.ir.abi.parameters import Parameter, Role
from py2cu.ir.abi.signature import Dim, Signature
from py2cu.options import MAX_THREADS
from py2cu.targets.cxx.c_types import qualified
from py2cu.targets.cxx.dialect import Dialect
from py2cu.targets.cxx.instances import choices_of, constant_text, dtypes_of
from py2cu.targets.cxx.views import with_values
from py2cu.targets.torch_binding.checks import (
    ArrayView,
    ConstexprView,
    DimView,
    RangeView,
    array_view,
    constexpr_view,
    dim_view,
    misfit_test,
    op_text,
    scalar_text,
    shared_extents,
    zero_divisors,
)
from py2cu.targets.torch_binding.parameters import (
    cpp_names,
    cpp_parameters,
    cpp_values,
    operators,
    tensor_type,
    unsupported_defaults,
)


@dataclass(frozen=True, slots=True)
class Launch:
    """A call of one launcher, and the condition on dtypes and template arguments under which it is made, if any."""

    condition: str
    function: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BindingView:
    """One kernel for the binding's template."""

    name: str
    struct: str
    passed: tuple[ArrayView, ...]
    allocated: tuple[ArrayView, ...]
    dims: tuple[DimView, ...]
    ranges: tuple[RangeView, ...]
    divisors: tuple[tuple[str, str], ...]  # the test for zero, and the divisor in Python
    shared: tuple[tuple[str, str, str], ...]  # dynamic shared arrays: the name, an extent in C++, and in Python
    constexprs: tuple[ConstexprView, ...]
    input_parameters: tuple[str, ...]
    input_call: str
    all_parameters: tuple[str, ...]
    array_parameters: tuple[str, ...]
    array_call: str
    launches: tuple[Launch, ...]
    in_place: tuple[tuple[str, str], ...]  # names of a written array, and of an input that it may be
    passed_overlaps: tuple[tuple[ArrayView, ArrayView], ...]  # arrays of every call, the first of which is written
    allocated_overlaps: tuple[tuple[ArrayView, ArrayView], ...]  # those with an output that the call may pass
    operators: tuple[tuple[str, str], ...]  # schema and C++ function
    has_default_launch: bool
    returns: str
    first: str  # the array whose device is the call's
    first_user_name: str
    syncs_grid: bool
    blocks: str  # the number of blocks of a launch without a grid
    launch_bounds: tuple[int, ...]
    open_block: str  # the block's extents, where only a call decides them
    uses_nonfinite: bool  # INFINITY or NAN is a fill value or a default

    @property
    def most_threads(self) -> int:
        """The greatest number of threads that a block may have."""
        return self.launch_bounds[0] if self.launch_bounds else MAX_THREADS  # rule: bounds-of-binding

    @property
    def allocated_call(self) -> str:
        names = ", ".join(array.name for array in self.allocated)
        return names if len(self.allocated) == 1 else f"std::make_tuple({names})"

    @property
    def in_place_overlaps(self) -> tuple[tuple[ArrayView, ArrayView], ...]:
        """The pairs that a call may pass as one array; an explicit launch may not."""
        pairs = (*self.passed_overlaps, *self.allocated_overlaps)
        return tuple(pair for pair in pairs if self.may_be_one(*pair))

    def may_be_one(self, array: ArrayView, other: ArrayView) -> bool:
        """True if a call may pass one array as both."""
        return (array.user_name, other.user_name) in self.in_place


def view(family: ir.Instances, signature: Signature, dialect: Dialect) -> BindingView:
    """The binding of the kernel whose instances are `family`."""
    kernel = family[0]
    dtype_sources = {variable: _dtype_source(signature, variable) for variable in kernel.variables}
    dims = {dim.name: dim for dim in signature.dims}
    passed = tuple(array_view(family, p, dims, dtype_sources) for p in signature.arrays if p.role is not Role.OUTPUT)
    allocated = tuple(array_view(family, p, dims, dtype_sources) for p in signature.outputs)
    arrays = {array.user_name: array for array in (*passed, *allocated)}
    overlaps = [(arrays[one.name], arrays[other.name]) for one, other in signature.apart(arrays)]
    first = next(array for array in arrays.values() if not array.test)
    name = kernel.symbol
    return BindingView(
        name=name,
        struct=f"{name}_extents",
        passed=passed,
        allocated=allocated,
        dims=tuple(dim_view(kernel, dims, dim) for dim in dims.values()),
        ranges=tuple(
            RangeView(kernel.c_name(p.name), p.name, p.type.dtype.c, misfit_test(kernel.c_name(p.name), p.type.dtype))
            for p in signature.parameters
            if isinstance(p.type, ir.ElementType) and p.type.dtype.kind is Kind.INT
        ),
        divisors=tuple(dict.fromkeys(zero_divisors(kernel, signature, dims))),
        shared=tuple(shared_extents(kernel, dims)),
        constexprs=tuple(
            constexpr_view(scalar_text(kernel, dims, p.name), p.name, p.constexpr)
            for p in signature.parameters
            if p.constexpr is not None and p.type == ir.PY_INT
        ),
        input_parameters=cpp_parameters(kernel, signature, signature.inputs),
        input_call=", ".join(name for p in signature.inputs for name in cpp_names(kernel, p)),
        all_parameters=cpp_parameters(kernel, signature, signature.parameters),
        array_parameters=tuple(f"const {tensor_type(p)}& {kernel.c_name(p.name)}" for p in signature.arrays),
        array_call=", ".join(kernel.c_name(p.name) for p in signature.arrays),
        launches=tuple(launch for kernel in family for launch in _launches(kernel, dialect, dims, dtype_sources)),
        in_place=kernel.in_place,
        passed_overlaps=tuple(pair for pair in overlaps if pair[0] in passed),
        allocated_overlaps=tuple(pair for pair in overlaps if pair[0] in allocated),
        operators=operators(kernel, signature),
        has_default_launch=kernel.size is not None,
        returns=_returns(len(allocated)),
        first=first.name,
        first_user_name=first.user_name,
        syncs_grid=syncs_grid(kernel),
        blocks=_blocks(kernel, dims) if kernel.size else "",
        launch_bounds=kernel.launch_bounds,
        # rule: block-open
        open_block=", ".join(op_text(extent, kernel, dims) for extent in kernel.block) if kernel.has_open_block else "",
        uses_nonfinite=not all(
            map(math.isfinite, chain(*map(unsupported_defaults, signature.parameters), _fills(kernel, signature)))
        ),
    )


def _fills(kernel: ir.Kernel, signature: Signature) -> Iterator[float]:
    """The initial values of allocated arrays."""
    allocated = {parameter.name for parameter in signature.outputs}
    return (value for name, value in kernel.inits if name in allocated)


def _blocks(kernel: ir.Kernel, dims: dict[str, Dim]) -> str:
    """The number of blocks of a launch without a grid: the fewest that have enough threads."""
    quotients: list[ir.Expr] = [
        ir.Binary("//", ir.Binary("-", ir.Binary("+", extent, block), ir.Constant(1)), block)
        for extent, block in zip(kernel.size or (), kernel.block, strict=False)
    ]
    return op_text(reduce(partial(ir.Binary, "*"), quotients), kernel, dims)


def _dtype_source(signature: Signature, variable: TypeVariable) -> str:
    """The input whose dtype is the value of a type variable of a generic kernel."""
    required = (p for p in signature.arrays if p.role is not Role.OUTPUT and not p.may_be_none)
    return next(p.name for p in required if _variable(p) == variable)


def _variable(parameter: Parameter) -> TypeVariable | None:
    return parameter.type.dtype.variable if isinstance(parameter.type, ir.ArrayType) else None


def _launches(
    kernel: ir.Kernel, dialect: Dialect, dims: dict[str, Dim], dtype_sources: dict[TypeVariable, str]
) -> Iterator[Launch]:
    """The launches of the instances for one set of dtypes, one for each choice of template arguments."""
    plain = kernel.plain
    values = tuple(_launch_value(plain, dialect, dims, name, p) for name, _, p in launcher_arguments(plain))
    dtype_tests = tuple(
        f"{kernel.c_name(dtype_sources[variable])}.scalar_type() == ScalarType::{dtype.torch}"
        for variable, dtype in zip(kernel.variables, dtypes_of(kernel), strict=True)
    )
    for choice in choices_of(kernel):
        pairs = zip(kernel.constexprs.items(), choice, strict=True)
        tests = (
            _value_test(scalar_text(kernel, dims, name), value)
            for (name, constexpr), value in pairs
            if len(constexpr.values) > 1
        )
        launcher = with_values(f"{kernel.symbol}_launch", map(constant_text, choice))
        yield Launch(" && ".join((*dtype_tests, *tests)), launcher, values)


def _value_test(name: str, value: int) -> str:
    """The C++ test that a template argument has this value."""
    match value:
        case True:
            return name
        case False:
            return f"!{name}"
        case _:
            return f"{name} == {value}"


def _launch_value(
    kernel: ir.Kernel, dialect: Dialect, dims: dict[str, Dim], name: str, parameter: Parameter | None
) -> str:
    c_name = kernel.c_name(name)
    if parameter is not None and isinstance(parameter.type, ir.ArrayType):
        access, const = ("const", "const ") if parameter.role is Role.INPUT else ("mutable", "")
        dtype = parameter.type.dtype
        if parameter.may_be_none:
            return f"data_or_null<{const}{qualified(dialect.spell(dtype))}>({c_name})"
        if dtype.is_half or dtype.kind is Kind.COMPLEX:  # torch has classes of its own
            return f"static_cast<{const}{qualified(dialect.spell(dtype))}*>({c_name}.{access}_data_ptr())"
        return f"{c_name}.{access}_data_ptr<{dtype.c}>()"
    if name in dims:
        return f"at.{c_name}"
    if parameter is not None and ir.is_complex(parameter.type):
        type_ = dialect.spell(parameter.type.dtype if isinstance(parameter.type, ir.ElementType) else C128)
        return f"{qualified(type_)}({', '.join(cpp_values(kernel, parameter))})"
    if (stride := next((each for each in kernel.strides if each.name == name), None)) is not None:
        array = kernel.c_name(stride.array)
        is_optional = stride.array in {p.name for p in kernel.optional_arrays}
        return (
            f"{array} ? stride_of(*{array}, {stride.axis}) : 0" if is_optional else f"stride_of({array}, {stride.axis})"
        )
    if parameter is None:
        return c_name
    (value,) = cpp_values(kernel, parameter)
    if isinstance(parameter.type, ir.ElementType):
        dtype = parameter.type.dtype
        value = f"static_cast<float>({value})" if dtype.is_half else value
        return f"static_cast<{dialect.spell(dtype)}>({value})"
    return value


def _returns(count: int) -> str:
    if count == 0:
        return "void"
    return "Tensor" if count == 1 else f"std::tuple<{', '.join(['Tensor'] * count)}>"
