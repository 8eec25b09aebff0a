"""The torch binding's view: checks and calls, spelled from a `Signature`'s facts.

One binding serves both targets; the template leaves out the device guard and stream for the CPU.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import chain

from py2cu.analysis.effects import syncs_grid
from py2cu.dtypes import C128, U64, DType, Kind, TypeVariable
from py2cu.ir.abi.extents import Binary, Constant, Constexpr, Name, Parameter, Role
from py2cu.ir.abi.signature import Dim, Signature, divisors, signature_of
from py2cu.ir.expressions import Expr
from py2cu.ir.kernels import Instances, Kernel
from py2cu.ir.printer import print_expr
from py2cu.ir.types import PY_INT, ArrayType, ElementType, PythonType, is_complex
from py2cu.ir.visit import arrays_of_row_pointers, rebuild, walk
from py2cu.options import MAX_THREADS
from py2cu.targets.cxx.c_types import qualified
from py2cu.targets.cxx.dialect import Dialect
from py2cu.targets.cxx.literals import init_text, is_double
from py2cu.targets.cxx.parameters import arguments
from py2cu.targets.cxx.views import (
    KernelView,
    choices_of,
    constant_text,
    dtypes_of,
    extent_text,
    instances_of,
    launcher_name,
    listed,
)
from py2cu.targets.torch_binding.schemas import default_parts, is_unspoken, operators

_CPP_SCALARS = {Kind.BOOL: "bool", Kind.INT: "int64_t", Kind.FLOAT: "double", Kind.COMPLEX: "double"}


@dataclass(frozen=True, slots=True)
class ArrayView:
    """One array argument: what is checked of it."""

    name: str
    user_name: str
    dtype: str  # the C++ expression for what it must have
    made_dtype: str  # and for what an allocated one gets
    rank: int
    is_written: bool
    extents: tuple[tuple[int, str, str], ...]  # axis, the extent's C++ text, its annotation
    sizes: str  # every extent, for an allocation
    signed: tuple[tuple[int, str, str], ...]  # those of them that may be negative, as `extents` has them
    fill: str  # the value an allocated one starts with
    is_filled_whole: bool  # which is a number of 64 bits that no double is
    row: int  # how many elements it has a multiple of; 0 where it may have any number
    is_aligned: bool  # so many of them are loaded or stored at once


@dataclass(frozen=True, slots=True)
class DimView:
    """One dimension: `value` is where it comes from, `given` the optional argument that must agree."""

    name: str
    user_name: str
    value: str
    array: str
    axis: int
    divisor: int
    given: str


@dataclass(frozen=True, slots=True)
class RangeView:
    """A scalar argument narrower than the op's: int32 and its like."""

    name: str
    user_name: str
    type: str
    misfit: str  # the condition for an argument that it does not hold


@dataclass(frozen=True, slots=True)
class ConstexprView:
    """A template argument, whose value must be one of those that there are instances for."""

    value: str
    user_name: str
    misfit: str  # the condition for one that is not
    built: str  # what to say of those that are


@dataclass(frozen=True, slots=True)
class Launch:
    """A call of a launcher, and the dtypes and values that it is for: no condition where the kernel has only these."""

    condition: str
    function: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BindingView:
    """One kernel for the binding's template."""

    name: str
    struct: str
    given: tuple[ArrayView, ...]
    made: tuple[ArrayView, ...]
    dims: tuple[DimView, ...]
    ranges: tuple[RangeView, ...]
    divisors: tuple[tuple[str, str], ...]  # the condition for zero, and what is divided by
    shared: tuple[tuple[str, str, str], ...]  # arrays that the launch sizes: the name, an extent, and as it is written
    constexprs: tuple[ConstexprView, ...]
    strided: tuple[str, ...]
    input_parameters: tuple[str, ...]
    input_call: str
    all_parameters: tuple[str, ...]
    array_parameters: tuple[str, ...]
    array_call: str
    launches: tuple[Launch, ...]
    operators: tuple[tuple[str, str], ...]  # schema and C++ function
    has_default_launch: bool
    returns: str
    first: str  # the array whose device is the call's
    first_user_name: str
    syncs_grid: bool
    blocks: str  # how many a launch without a grid has
    launch_bounds: tuple[int, ...]
    open_block: str  # its extents, where only a call tells them
    says_nonfinite: bool  # INFINITY or NAN, as what an array is filled with or as a default

    @property
    def most_threads(self) -> int:
        """How many threads a block may have."""
        return self.launch_bounds[0] if self.launch_bounds else MAX_THREADS

    def op_parameters(self, parameters: tuple[str, ...], *more: str) -> tuple[str, ...]:
        """An op's own parameters; inputs of any layout come under another name, until they are made contiguous."""
        loose = {f"const Tensor& {name}" for name in self.strided}
        return (*(f"{text}_given" if text in loose else text for text in parameters), *more)

    @property
    def made_call(self) -> str:
        names = ", ".join(array.name for array in self.made)
        return names if len(self.made) == 1 else f"std::make_tuple({names})"

    @property
    def given_overlaps(self) -> tuple[tuple[ArrayView, ArrayView], ...]:
        """Pairs of which the first is written, among what the caller always gives."""
        return tuple(_overlaps(self.given, self.given))

    @property
    def made_overlaps(self) -> tuple[tuple[ArrayView, ArrayView], ...]:
        """The same for outputs that the caller gives."""
        return tuple(_overlaps(self.made, (*self.given, *self.made)))


def _overlaps(written: tuple[ArrayView, ...], others: tuple[ArrayView, ...]) -> Iterator[tuple[ArrayView, ArrayView]]:
    seen: set[frozenset[str]] = set()
    for array in written:
        for other in others:
            pair = frozenset((array.name, other.name))
            if array.is_written and array is not other and pair not in seen:
                seen.add(pair)
                yield array, other


def view(family: Instances, groups: tuple[KernelView, ...], dialect: Dialect) -> BindingView:
    """A kernel's binding to the launchers of `groups`."""
    kernel = family[0]
    signature = signature_of(family)
    tellers = {variable: _teller(signature, variable) for variable in kernel.variables}
    dims = {dim.name: dim for dim in signature.dims}
    given = tuple(_array(family, p, dims, tellers) for p in signature.arrays if p.role is not Role.OUTPUT)
    made = tuple(_array(family, p, dims, tellers) for p in signature.outputs)
    name = kernel.symbol
    return BindingView(
        name=name,
        struct=f"{name}_extents",
        given=given,
        made=made,
        dims=tuple(_dim(kernel, signature, dim) for dim in dims.values()),
        ranges=tuple(
            RangeView(kernel.c_name(p.name), p.name, p.type.dtype.c, _misfit(kernel.c_name(p.name), p.type.dtype))
            for p in signature.parameters
            if isinstance(p.type, ElementType) and p.type.dtype.kind is Kind.INT
        ),
        divisors=tuple(dict.fromkeys(_divisors(kernel))),
        shared=tuple(_shared_extents(kernel, dims)),
        constexprs=tuple(
            _constexpr(_value(kernel, dims, p.name), p.name, p.constexpr)
            for p in signature.parameters
            if p.constexpr is not None and p.type == PY_INT
        ),
        strided=tuple(array.name for array in given if kernel.strided and not array.is_written),
        input_parameters=_cpp_parameters(kernel, signature, signature.inputs),
        input_call=", ".join(name for p in signature.inputs for name in _cpp_names(kernel, p)),
        all_parameters=_cpp_parameters(kernel, signature, signature.parameters),
        array_parameters=tuple(f"const Tensor& {kernel.c_name(p.name)}" for p in signature.arrays),
        array_call=", ".join(kernel.c_name(p.name) for p in signature.arrays),
        launches=tuple(launch for kernel in family for launch in _launches(kernel, groups, dialect, dims, tellers)),
        operators=operators(kernel, signature),
        has_default_launch=kernel.size is not None,
        returns=_returns(len(made)),
        first=(given or made)[0].name,
        first_user_name=(given or made)[0].user_name,
        syncs_grid=syncs_grid(kernel),
        blocks=_blocks(kernel, dims) if kernel.size else "",
        launch_bounds=kernel.launch_bounds,
        open_block=", ".join(dim_text(extent, kernel) for extent in kernel.block) if kernel.has_open_block else "",
        says_nonfinite=not all(map(math.isfinite, chain(*map(_spoken_defaults, signature.parameters), _fills(family)))),
    )


def _fills(family: Instances) -> Iterator[float]:
    """What allocated arrays are filled with."""
    made = {parameter.name for parameter in signature_of(family).outputs}
    return (value for name, value in family[0].inits if name in made)


def _blocks(kernel: Kernel, dims: dict[str, Dim]) -> str:
    """How many blocks a launch without a grid has: the least that have enough threads."""
    quotients = (
        Binary("//", Binary("-", Binary("+", extent, block), Constant(1)), block)
        for extent, block in zip(kernel.size or (), kernel.block, strict=False)
    )
    return _op_text(reduce(partial(Binary, "*"), quotients), kernel, dims)


def _op_text(extent: Expr, kernel: Kernel, dims: dict[str, Dim]) -> str:
    """An extent over what an op knows: members of the extents struct, and arguments."""

    def known(expr: Expr) -> Expr:
        return Name(_value(kernel, dims, expr.id)) if isinstance(expr, Name) else expr

    return extent_text(rebuild(extent, known), kernel)


def _divisors(kernel: Kernel) -> Iterator[tuple[str, str]]:
    """What the extents of a call are divided by: C++ ends the process where that is zero."""
    extents = [dim for p in kernel.arrays if isinstance(p.type, ArrayType) for dim in p.type.dims]
    for divisor in chain.from_iterable(map(divisors, (*extents, *(kernel.size or ()), *kernel.block))):
        text = dim_text(divisor, kernel)
        yield f"{text} == 0" if isinstance(divisor, Name) else f"({text}) == 0", print_expr(divisor)


def _shared_extents(kernel: Kernel, dims: dict[str, Dim]) -> Iterator[tuple[str, str, str]]:
    """What a call may make negative, or larger than any memory, on which C++ would end the process."""
    naturals = _naturals(kernel, dims)
    told = dims.keys() | {parameter.name for parameter in kernel.parameters}

    def is_told(part: Expr) -> bool:
        """The launch's own extents are not: a call may leave them to their defaults."""
        return isinstance(part, Constant | Binary) or (isinstance(part, Name) and part.id in told)

    for buffer in kernel.array_decls:
        for extent in buffer.type.dims if buffer.is_dynamic else ():
            if not _is_natural(extent, naturals) and all(map(is_told, walk(extent))):
                yield buffer.name, _op_text(extent, kernel, dims), print_expr(extent)


def _constexpr(value: str, name: str, constexpr: Constexpr) -> ConstexprView:
    misfit = " && ".join(f"{value} != {built}" for built in constexpr.values) or "true"
    built = listed(map(str, constexpr.values)) if constexpr.values else "no value at all"
    return ConstexprView(value, name, misfit, built)


def _value(kernel: Kernel, dims: dict[str, Dim], name: str) -> str:
    """A scalar as an op knows it: a member of the extents where it is one of them."""
    return f"at.{kernel.c_name(name)}" if name in dims else kernel.c_name(name)


def _misfit(name: str, dtype: DType) -> str:
    return f"{name} < 0" if dtype is U64 else f"{name} != static_cast<{dtype.c}>({name})"


def _teller(signature: Signature, variable: TypeVariable) -> str:
    """The array whose dtype a call of a generic kernel goes by."""
    return next(p.name for p in signature.arrays if p.role is not Role.OUTPUT and _variable(p) == variable)


def _variable(parameter: Parameter) -> TypeVariable | None:
    return parameter.type.dtype.variable if isinstance(parameter.type, ArrayType) else None


def _launches(
    kernel: Kernel,
    groups: tuple[KernelView, ...],
    dialect: Dialect,
    dims: dict[str, Dim],
    tellers: dict[TypeVariable, str],
) -> Iterator[Launch]:
    """The launches of the instances for one set of dtypes: one for every choice of the template arguments."""
    plain = kernel.plain
    values = tuple(_launch_value(plain, dialect, dims, name, p) for name, _, p in arguments(plain))
    own = instances_of(kernel, replace(dialect, names_variables=False))
    name = next((group.name for group in groups if set(own) & set(group.instances)), kernel.symbol)
    dtype_tests = tuple(
        f"{kernel.c_name(tellers[variable])}.scalar_type() == ScalarType::{dtype.torch}"
        for variable, dtype in zip(kernel.variables, dtypes_of(kernel), strict=True)
    )
    for choice in choices_of(kernel):
        pairs = zip(kernel.constexprs.items(), choice, strict=True)
        tests = (
            _value_test(_value(kernel, dims, name), value)
            for (name, constexpr), value in pairs
            if len(constexpr.values) > 1
        )
        yield Launch(" && ".join((*dtype_tests, *tests)), launcher_name(name, map(constant_text, choice)), values)


def _value_test(name: str, value: int) -> str:
    """The test that a template argument has this value; where there is but one, it was checked."""
    match value:
        case True:
            return name
        case False:
            return f"!{name}"
        case _:
            return f"{name} == {value}"


def _dtype_texts(family: Instances, parameter: Parameter, tellers: dict[TypeVariable, str]) -> tuple[str, str]:
    """What dtype an array must have, and what an allocated one gets: all of a type variable have the teller's."""
    kernel, name = family[0], family[0].c_name(parameter.name)
    assert isinstance(parameter.type, ArrayType)
    variable = parameter.type.dtype.variable
    if variable is None:
        plain = f"ScalarType::{parameter.type.dtype.torch}"
        return plain, plain
    told = f"{kernel.c_name(tellers[variable])}.scalar_type()"
    if tellers[variable] != parameter.name:
        return told, told
    place = kernel.variables.index(variable)
    admitted = dict.fromkeys(f"ScalarType::{dtypes_of(instance)[place].torch}" for instance in family)
    return f'one_of("{kernel.symbol}", "{parameter.name}", {name}, {{{", ".join(admitted)}}})', told


def _array(
    family: Instances, parameter: Parameter, dims: dict[str, Dim], tellers: dict[TypeVariable, str]
) -> ArrayView:
    kernel, type_ = family[0], parameter.type
    assert isinstance(type_, ArrayType)
    dtype, made_dtype = _dtype_texts(family, parameter, tellers)
    told = {(dim.array, dim.axis) for dim in dims.values() if dim.divisor == 1}
    naturals = _naturals(kernel, dims)
    texts = tuple((axis, dim_text(dim, kernel), print_expr(dim)) for axis, dim in enumerate(type_.dims))
    init = dict(kernel.inits).get(parameter.name)
    return ArrayView(
        name=kernel.c_name(parameter.name),
        user_name=parameter.name,
        dtype=dtype,
        made_dtype=made_dtype,
        rank=len(type_.dims),
        is_written=parameter.role is not Role.INPUT,
        extents=tuple(text for text in texts if (parameter.name, text[0]) not in told),
        sizes=", ".join(text for _, text, _ in texts),
        signed=tuple(text for text, dim in zip(texts, type_.dims, strict=True) if not _is_natural(dim, naturals)),
        fill="" if init is None else init_text(init),
        is_filled_whole=init is not None and not is_double(init),
        row=kernel.vector_widths.get(parameter.name, 0),
        is_aligned=any(parameter.name in arrays_of_row_pointers(kernel) for kernel in family),
    )


def _naturals(kernel: Kernel, dims: dict[str, Dim]) -> set[str]:
    """The names that no call makes negative: not all of `kernel.naturals`, since before an output is made, nothing has
    told that its extents are.
    """
    return {name for name, dim in dims.items() if dim.array is not None} | {*kernel.constexprs}


def _is_natural(extent: Expr, naturals: set[str]) -> bool:
    """True for an extent that no call makes negative."""
    match extent:
        case Constant():
            return True
        case Name(id=name):
            return name in naturals
        case Binary(op="+" | "*" | "//" | "%", left=left, right=right):
            return _is_natural(left, naturals) and _is_natural(right, naturals)
        case _:
            return False


def dim_text(dim: Expr, kernel: Kernel) -> str:
    """An extent over the members of the extents struct."""

    def member(expr: Expr) -> Expr:
        return Name(f"at.{kernel.c_name(expr.id)}") if isinstance(expr, Name) else expr

    return extent_text(rebuild(dim, member), kernel)


def _dim(kernel: Kernel, signature: Signature, dim: Dim) -> DimView:
    scalar = kernel.parameter(dim.name)
    name = kernel.c_name(dim.name)
    if dim.array is None:
        return DimView(name, dim.name, name, "", 0, 1, "")
    value = f"{kernel.c_name(dim.array)}.size({dim.axis})" + (f" / {dim.divisor}" if dim.divisor > 1 else "")
    return DimView(name, dim.name, value, dim.array, dim.axis, dim.divisor, name if scalar is not None else "")


def _cpp_names(kernel: Kernel, parameter: Parameter) -> tuple[str, ...]:
    """What the op calls an argument: a complex number comes as its two parts, since torch's stable ABI has none."""
    name = kernel.c_name(parameter.name)
    return (f"{name}_real", f"{name}_imag") if is_complex(parameter.type) else (name,)


def _cpp_parameters(kernel: Kernel, signature: Signature, parameters: tuple[Parameter, ...]) -> tuple[str, ...]:
    return tuple(text for parameter in parameters for text in _cpp_parameter(kernel, signature, parameter))


def _cpp_parameter(kernel: Kernel, signature: Signature, parameter: Parameter) -> tuple[str, ...]:
    names = _cpp_names(kernel, parameter)
    match parameter.type:
        case ArrayType():
            return (f"const Tensor& {names[0]}",)
        case PythonType(kind=Kind.INT) if signature.is_derived(parameter):
            return (f"std::optional<int64_t> {names[0]}",)
        case ElementType(dtype=DType(kind=kind)) | PythonType(kind=kind):
            scalar = _CPP_SCALARS[kind]
            optional = f"std::optional<{scalar}>"
            pairs = zip(names, _defaults(parameter), strict=True)
            return tuple(f"{optional if is_unspoken(default) else scalar} {name}" for name, default in pairs)


def _defaults(parameter: Parameter) -> tuple[float | None, ...]:
    """The default of each of the op's arguments for a scalar."""
    if parameter.default is not None:
        return default_parts(parameter)
    return (None, None) if is_complex(parameter.type) else (None,)


def _cpp_values(kernel: Kernel, parameter: Parameter) -> tuple[str, ...]:
    """What a scalar is: an argument of the op, or what it stands for where it is None."""
    return tuple(
        f"{name}.value_or({init_text(default)})" if default is not None and is_unspoken(default) else name
        for name, default in zip(_cpp_names(kernel, parameter), _defaults(parameter), strict=True)
    )


def _spoken_defaults(parameter: Parameter) -> Iterator[float]:
    """The defaults that the text has, since the op's schema cannot say them."""
    is_scalar = not isinstance(parameter.type, ArrayType)
    return (default for default in _defaults(parameter) if is_scalar and default is not None and is_unspoken(default))


def _launch_value(
    kernel: Kernel, dialect: Dialect, dims: dict[str, Dim], name: str, parameter: Parameter | None
) -> str:
    c_name = kernel.c_name(name)
    if parameter is not None and isinstance(parameter.type, ArrayType):
        access, const = ("const", "const ") if parameter.role is Role.INPUT else ("mutable", "")
        dtype = parameter.type.dtype
        if dtype.is_half or dtype.kind is Kind.COMPLEX:  # torch has classes of its own
            return f"static_cast<{const}{qualified(dialect.spell(dtype))}*>({c_name}.{access}_data_ptr())"
        return f"{c_name}.{access}_data_ptr<{dtype.c}>()"
    if name in dims:
        return f"at.{c_name}"
    if parameter is not None and is_complex(parameter.type):
        type_ = dialect.spell(parameter.type.dtype if isinstance(parameter.type, ElementType) else C128)
        return f"{qualified(type_)}({', '.join(_cpp_values(kernel, parameter))})"
    if parameter is None:
        return c_name
    (value,) = _cpp_values(kernel, parameter)
    if isinstance(parameter.type, ElementType):
        dtype = parameter.type.dtype
        value = f"static_cast<float>({value})" if dtype.is_half else value
        return f"static_cast<{dialect.spell(dtype)}>({value})"
    return value


def _returns(count: int) -> str:
    if count == 0:
        return "void"
    return "Tensor" if count == 1 else f"std::tuple<{', '.join(['Tensor'] * count)}>"
