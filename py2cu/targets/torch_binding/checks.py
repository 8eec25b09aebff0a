"""What the torch binding checks before a launch: dtypes, ranks, extents, ranges of scalars, divisors, overlaps.

In: an `Op`. Out: the C++ statements, a line each. The functions that they call are in the template.
"""

from __future__ import annotations

from collections.abc import Iterator

from py2cu import ir
from py2cu.analysis.launches import is_natural, unchecked_shared_extents
from py2cu.dtypes import U64, Kind
from py2cu.ir.abi.parameters import Constexpr, Parameter, Role
from py2cu.ir.abi.signature import Dim
from py2cu.ir.printer import print_expr
from py2cu.targets.cxx.instances import dtypes_of
from py2cu.targets.cxx.literals import is_double
from py2cu.targets.cxx.views import listed
from py2cu.targets.torch_binding.op import Op, array_type


def input_checks(op: Op) -> Iterator[str]:
    """Checks of the arguments that every call passes; they assign the members of `at`."""
    for array in op.passed:
        yield from _array_checks(op, array)
    for parameter in op.signature.parameters:
        if isinstance(parameter.type, ir.ElementType) and parameter.type.dtype.kind is Kind.INT:
            dtype, name = parameter.type.dtype, op.kernel.c_name(parameter.name)
            yield f"if ({name} < 0)" if dtype is U64 else f"if ({name} != static_cast<{dtype.c}>({name}))"
            yield f'    fail("{op.name}: `{parameter.name}` = ", {name}, " does not fit {dtype.c}");'
    yield f"{op.name}_extents at{{}};"
    for dim in op.dims.values():
        yield from _dim(op, dim)
    yield from dict.fromkeys(_divisor_checks(op))
    for name, extent in unchecked_shared_extents(op.kernel):
        text = op.extent(extent)
        failure = f'"{op.name}: an extent of `{name}` is `{print_expr(extent)}` = ", {text}'
        yield f"if ({text} < 0 || {text} > INT32_MAX) fail({failure});"
    for parameter in op.signature.parameters:
        if parameter.constexpr is not None and parameter.type == ir.PY_INT:
            yield from _constexpr_check(op, parameter.name, parameter.constexpr)
    for array in op.passed:
        yield from _extent_checks(op, array)
    yield from _overlap_checks(op, of_outputs=False)


def output_checks(op: Op) -> Iterator[str]:
    """Of outputs that the call passes."""
    for array in op.signature.outputs:
        yield from _array_checks(op, array)
    for array in op.signature.outputs:
        yield from _extent_checks(op, array)
    yield from _overlap_checks(op, of_outputs=True)


def grid_checks(op: Op) -> Iterator[str]:
    """An explicit launch may not pass one array as two, which a call may."""
    for array, other in op.pairs_apart:
        if op.may_be_one(array, other):
            yield _overlap_check(op, array, other)


def allocations(op: Op) -> Iterator[str]:
    """The outputs that the op allocates, with their initial values."""
    # Fewer than `kernel.naturals`, since the extents of an output are unchecked until it is allocated.
    naturals = {name for name, dim in op.dims.items() if dim.array is not None} | {*op.kernel.constexprs}
    inits = dict(op.kernel.inits)
    for array in op.signature.outputs:
        name, type_ = op.kernel.c_name(array.name), array_type(array)
        extents = [op.extent(dim) for dim in type_.dims]
        for axis, (dim, text) in enumerate(zip(type_.dims, extents, strict=True)):
            if not is_natural(dim, naturals):
                failure = f"dimension {op.axis(array, axis)} of `{array.name}` is `{print_expr(dim)}` = "
                yield f'if ({text} < 0) fail("{op.name}: {failure}", {text});'
        shape = f"std::vector<int64_t>{{{', '.join(extents)}}}"
        if (source := op.leading_source(array)) is not None:
            trailing = f", {{{', '.join(extents[1:])}}}" if len(extents) > 1 else ""
            shape = op.call("leading_sizes", op.kernel.c_name(source.name), f"{array_type(source).trailing}{trailing}")
        first = op.kernel.c_name(op.first.name)
        yield f"Tensor {name} = torch::stable::new_empty({first}, {shape}, {op.dtype(array)});"
        yield from _row_checks(op, array)
        if (value := inits.get(array.name)) is not None:
            if is_double(value):
                yield f"torch::stable::fill_({name}, {op.number(value)});"
            else:
                yield f"torch::stable::copy_({name}, {op.call('int64_scalar', op.number(value))});"


def is_strided(op: Op, array: Parameter) -> bool:
    """Whether an array may have any strides; else it must be contiguous."""
    return array.name in op.kernel.strided and bool(array_type(array).dims)


def row_length(op: Op, array: Parameter) -> str:
    """The length of the longest rows in which an array is viewed; empty if it is not viewed in rows."""
    decls = op.kernel.array_decls
    lengths = (decl.type.dims[-1] for decl in decls if decl.has_rows and decl.base == array.name)
    of_dtype = [d.named.array for d in lengths if isinstance(d, ir.Constant) and d.named is not None and d.named.array]
    for other in map(op.kernel.parameter, of_dtype):
        if other is not None:
            return f"{ir.ROW_BYTES} / {op.member(other, 'element_size()')}"
    return str(op.kernel.vector_widths.get(array.name, ""))  # rule: row-in-binding


def _check(op: Op, function: str, array: Parameter, *arguments: object, tests: tuple[str, ...] = ()) -> str:
    """`if (bias) check_array("linear", "bias", *bias, ScalarType::Float, 1);`; `tests` that are not empty are more."""
    condition = " && ".join(filter(None, (op.given(array), *tests)))
    call = op.call(function, _quoted(op.name), _quoted(array.name), *arguments)
    return f"if ({condition}) {call};" if condition else f"{call};"


def _quoted(name: str) -> str:
    return f'"{name}"'


def _array_checks(op: Op, array: Parameter) -> Iterator[str]:
    """The dtype, the number of dimensions and the device of an array."""
    type_, tensor = array_type(array), op.tensor(array)
    rank = op.member(array, "dim()") if type_.leading else len(type_.dims)
    strided = ("true",) if is_strided(op, array) else ()
    if strided:
        op.uses.add("strides")
    yield _check(op, "check_array", array, tensor, _checked_dtype(op, array), rank, *strided)
    if type_.leading and type_.trailing:
        yield _check(op, "check_least_rank", array, tensor, type_.trailing)
    if op.is_cuda and array is not op.first:
        first = op.kernel.c_name(op.first.name)
        yield _check(op, "check_same_device", array, tensor, _quoted(op.first.name), first)


def _checked_dtype(op: Op, array: Parameter) -> str:
    """The dtype that an array must have: one of several for the first array of a type variable."""
    variable = array_type(array).dtype.variable
    if variable is None or op.dtype_sources[variable] != array.name:
        return op.dtype(array)
    place = op.kernel.variables.index(variable)
    admitted = dict.fromkeys(f"ScalarType::{dtypes_of(instance)[place].torch}" for instance in op.family)
    names = _quoted(op.name), _quoted(array.name), op.kernel.c_name(array.name)
    return op.call("one_of", *names, f"{{{', '.join(admitted)}}}")


def _extent_checks(op: Op, array: Parameter) -> Iterator[str]:
    """The extents of an array, and that its elements lie where the kernel may access them."""
    type_, tensor, leading = array_type(array), op.tensor(array), op.leading_source(array)
    if leading is not None and leading.name != array.name:
        source = _quoted(leading.name), op.kernel.c_name(leading.name), array_type(leading).trailing
        yield _check(op, "check_leading", array, tensor, type_.trailing, _quoted(type_.leading), *source)
    sources = {(dim.array, dim.axis) for dim in op.dims.values() if dim.is_extent}
    for axis, dim in enumerate(type_.dims):
        if (array.name, axis) not in sources and not (leading is not None and axis == 0):
            wanted = _quoted(print_expr(dim)), op.extent(dim)
            yield _check(op, "check_extent", array, tensor, op.axis(array, axis), *wanted)
    if is_strided(op, array) and array.role is not Role.INPUT:
        yield _check(op, "check_distinct", array, tensor)
    yield from _row_checks(op, array)
    if any(array.name in each.aligned for each in op.signature.instances or (op.signature,)):  # rule: row-aligned
        yield _check(op, "check_aligned", array, tensor, row_length(op, array))


def _row_checks(op: Op, array: Parameter) -> Iterator[str]:
    if row := row_length(op, array):
        last = len(array_type(array).dims) - 1
        extent = op.member(array, f"size({op.axis(array, last)})" if last else "numel()")
        yield _check(op, "check_rows", array, extent, row)


def _dim(op: Op, dim: Dim) -> Iterator[str]:
    """The value of a dimension, with which an argument of its name must agree."""
    name = op.kernel.c_name(dim.name)
    parameter = None if dim.array is None else op.kernel.parameter(dim.array)
    if parameter is None:
        yield f"at.{name} = {name};"
        return
    value = op.size(parameter, dim.axis)
    match dim.factor, dim.rest:
        case ir.Constant(value=factor), ir.Constant(value=0):
            value = op.or_zero(parameter, f"{value} / {factor}" if factor > 1 else value)
        case factor, rest:
            value = op.call("solve_extent", value, op.extent(factor), op.extent(rest))
    yield f"at.{name} = {value};"
    if op.kernel.parameter(dim.name) is not None:
        has = f'", but dimension {dim.axis} of `{dim.array}` has ", at.{name}'
        yield f"if ({name} && *{name} != at.{name})"
        yield f'    fail("{op.name}: `{dim.name}` is ", *{name}, {has});'


def _divisor_checks(op: Op) -> Iterator[str]:
    """That no extent is divided by zero, which ends the process in C++."""
    for divisor in op.signature.divisors():
        text = op.extent(divisor)
        test = f"{text} == 0" if isinstance(divisor, ir.Name) else f"({text}) == 0"
        yield f'if ({test}) fail("{op.name}: `{print_expr(divisor)}` is 0, and an extent is divided by it");'


def _constexpr_check(op: Op, name: str, constexpr: Constexpr) -> Iterator[str]:
    """That a template argument has one of the instantiated values."""
    value = op.scalar(name)
    misfit = " && ".join(f"{value} != {built}" for built in constexpr.values) or "true"
    built = listed(map(str, constexpr.values)) if constexpr.values else "no value at all"
    yield f"if ({misfit})"
    yield f'    fail("{op.name}: `{name}` is ", {value}, ", and there are instances for {built}");'


def _overlap_checks(op: Op, *, of_outputs: bool) -> Iterator[str]:
    """That no written array overlaps another one, unless a call may pass both as one array."""
    for array, other in op.pairs_apart:
        if (array.role is Role.OUTPUT) == of_outputs:
            is_one = op.call("are_same", op.tensor(array), op.tensor(other)) if op.may_be_one(array, other) else ""
            yield _overlap_check(op, array, other, is_one and f"!{is_one}")


def _overlap_check(op: Op, array: Parameter, other: Parameter, apart: str = "") -> str:
    arguments = op.tensor(array), _quoted(other.name), op.tensor(other)
    return _check(op, "check_no_overlap", array, *arguments, tests=(op.given(other), apart))
