"""The launch of a lowered kernel as a `LaunchProgram`: what it passes, bounds of its integers, its shared memory.

In: a kernel in its last form, for one target. Out: plain data, which the emitted launcher and that of calls spell.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Set

from py2cu import ir
from py2cu.analysis.effects import syncs_grid
from py2cu.builtins.memory import DYNAMIC_BYTES
from py2cu.dtypes import BOOL, C128, F64, I32, I64, Kind
from py2cu.ir.abi.launch import INDEX, Bound, LaunchProgram, Passed, Source, Term
from py2cu.ir.abi.launch_values import LaunchValue
from py2cu.ir.abi.parameters import Parameter
from py2cu.ir.rewrite import rebuild
from py2cu.ir.visit import all_expressions, assigned_names, names_in, statements, walk

Argument = tuple[str, ir.Type, Parameter | None]
"""A launcher's argument: its name and type, and the parameter, if it is one and no dimension."""


def launch_program(
    kernel: ir.Kernel, symbol: str, types: tuple[str, ...], *, has_index_type: bool, is_whole: bool
) -> LaunchProgram:
    """How `kernel`, an instance whose dtypes C++ spells as `types`, is launched as `symbol`.

    `is_whole`: the emitted launcher is called, with all of its arguments; else the kernel itself, with those it uses.
    """
    plain = kernel.plain
    return LaunchProgram(
        symbol=symbol,
        passed=tuple(_passed(plain, launcher_arguments(plain) if is_whole else used_arguments(plain), is_whole)),
        size=kernel.size or (),
        block=kernel.block,
        constexprs=tuple(kernel.constexprs),
        types=types,
        optional=() if is_whole else tuple(p.name for p in kernel.optional_arrays),
        has_index_type=has_index_type,
        fits=tuple(bound_of(bound, kernel) for bound in kernel.bounds) if has_index_type else (),
        overflows=overflows(kernel),
        values=() if is_whole else kernel.launch_values,
        strides=kernel.strides,
        shared=tuple(_shared(plain)),
        has_static_shared=has_static_shared(kernel),
        checks_shared=tuple(unchecked_shared_extents(kernel)),
        cooperative=syncs_grid(kernel),
        has_open_block=kernel.has_open_block,
        is_index=bool(kernel.indices or kernel.former_index_extents),
    )


# --- arguments ------------------------------------------------------------------------------------------------------


def launcher_arguments(kernel: ir.Kernel) -> tuple[Argument, ...]:
    """The arguments of a launcher: the parameters in order, without template arguments, then the other dimensions."""
    declared = tuple((p.name, p.type, p) for p in kernel.parameters if p.constexpr is None)
    rest = tuple((name, ir.PythonType(Kind.INT), None) for name in kernel.dims if kernel.parameter(name) is None)
    return (*declared, *rest)


def used_arguments(kernel: ir.Kernel) -> tuple[Argument, ...]:
    """The launcher's arguments that the body reads or compares with None."""
    used = used_names(kernel) | used_arrays(kernel) | tested_numbers(kernel)
    return tuple(argument for argument in launcher_arguments(kernel) if argument[0] in used)


def used_names(kernel: ir.Kernel) -> set[str]:
    """The names that the body reads, extents of the guards included, and those that it assigns to."""
    read = {node.id for node in all_expressions(kernel.body) if isinstance(node, ir.Name | ir.ArrayName)}
    return read.union(assigned_names(kernel.body))


def used_arrays(kernel: ir.Kernel) -> set[str]:
    """The arrays that the body reads or writes, by itself or through a view."""
    loaded = {
        kernel.base_array(node.array) for node in all_expressions(kernel.body) if isinstance(node, ir.Load | ir.Atomic)
    }
    return loaded | {kernel.base_array(stmt.array) for stmt in statements(kernel.body) if isinstance(stmt, ir.Store)}


def tested_numbers(kernel: ir.Kernel) -> set[str]:
    """The numbers that the body compares with None."""
    tested = {node.parameter for node in all_expressions(kernel.body) if isinstance(node, ir.IsGiven)}
    return tested - {p.name for p in kernel.optional_arrays}


def _passed(kernel: ir.Kernel, arguments: Iterable[Argument], is_whole: bool) -> Iterator[Passed]:
    used, tested = used_names(kernel), tested_numbers(kernel)
    strides = {stride.name for stride in kernel.strides}
    for name, type_, parameter in arguments:
        if isinstance(type_, ir.ArrayType):
            yield Passed(name, Source.ARRAY, type_.dtype.name)
            continue
        is_optional = parameter is not None and parameter.may_be_none
        if is_optional if is_whole else name in tested:
            yield Passed(name, Source.PRESENCE, BOOL.name)
        if is_whole or name in used:
            source = Source.STRIDE if name in strides else Source.NUMBER
            yield Passed(name, source, _whole_type(type_) if is_whole else _kernel_type(kernel, name, type_, parameter))
    for value in () if is_whole else passed_values(kernel):
        yield Passed(value.name, Source.VALUE, _kernel_type(kernel, value.name, ir.PY_FLOAT, None))


def passed_values(kernel: ir.Kernel) -> tuple[LaunchValue, ...]:
    """The launch values that the body reads, rather than the launcher alone."""
    used = used_names(kernel)
    return tuple(value for value in kernel.launch_values if value.name in used)


def _whole_type(type_: ir.Type) -> str:
    """The type of a number in a launcher: 64 bits for those of Python."""
    match type_:
        case ir.ElementType(dtype=dtype):
            return dtype.name
        case ir.PythonType(kind=kind):
            return {Kind.BOOL: BOOL, Kind.INT: I64, Kind.FLOAT: F64, Kind.COMPLEX: C128}[kind].name
        case _:
            raise AssertionError(type_)


def _kernel_type(kernel: ir.Kernel, name: str, type_: ir.Type, parameter: Parameter | None) -> str:
    """The type of a number in the kernel itself, which passes have narrowed."""
    match type_:
        case ir.PythonType(kind=Kind.FLOAT | Kind.COMPLEX) if (narrowed := dict(kernel.narrowed).get(name)) is not None:
            return narrowed.dtype.name
        case ir.PythonType(kind=Kind.INT, width=width):
            chosen = width if parameter is not None else ir.Width.INDEX
            return {ir.Width.INT: I32.name, ir.Width.INDEX: INDEX}.get(chosen, I64.name)
        case _:
            return _whole_type(type_)


# --- bounds ---------------------------------------------------------------------------------------------------------


def overflows(kernel: ir.Kernel) -> tuple[Bound, ...]:
    """The thread counts that may overflow int64. One that is at most the size of some array cannot."""
    bounds = (bound_of(bound, kernel) for bound in kernel.size_bounds)
    return tuple(bound for bound in bounds if not bound.fits_int64)  # rule: grid-threads


def bound_of(bound: ir.IndexBound, kernel: ir.Kernel) -> Bound:
    """A bound as the launcher computes it.

    Products that no array's size bounds, and integer arguments, are computed as doubles, which do not overflow.
    """
    naturals, strides = naturals_of(kernel), {stride.name for stride in kernel.strides}
    terms = []
    for names, factor in sorted(bound.terms, key=lambda term: not term[0]):  # the constant last
        ordered = sorted(names, key=lambda name: (not _may_be_negative(name, naturals), name in strides))
        signed = tuple(name for name in dict.fromkeys(ordered) if _may_be_negative(name, naturals))
        is_launch = bool(names) and len(names) <= 2 and all(is_launch_name(name) for name in names)
        is_bounded = len(names) < 2 or any(Counter(names) <= size for size in kernel.sizes)
        in_double = not is_launch and not signed and not is_bounded
        terms.append(Term(tuple(ordered), factor, signed, in_double))
    return Bound(tuple(terms))


def naturals_of(kernel: ir.Kernel) -> Set[str]:
    return kernel.naturals | kernel.constexprs.keys()


def is_launch_name(name: str) -> bool:
    return name.startswith(("gridDim", "blockDim"))


def _may_be_negative(name: str, naturals: Set[str]) -> bool:
    """True for an integer argument that is not itself an extent; launch values have a dot in their names."""
    return "." not in name and name not in naturals


# --- shared memory --------------------------------------------------------------------------------------------------


def _shared(kernel: ir.Kernel) -> Iterator[tuple[ir.DimExpr, int]]:
    """The elements of each dynamic array, and the bytes of one; Numba's are as large as the launch says, in bytes."""
    for decl in (each for each in kernel.array_decls if each.is_dynamic):
        size = elements_of(decl)
        if DYNAMIC_BYTES in names_in(size):
            yield ir.Name(DYNAMIC_BYTES), 1
        else:
            count: ir.DimExpr = rebuild(size, _named)  # type: ignore[assignment]  # extents have no other nodes
            yield count, decl.type.dtype.itemsize


def elements_of(decl: ir.ArrayDecl) -> ir.Expr:
    """The number of elements of `decl`."""
    first, *rest = decl.type.dims
    for extent in rest:
        first = ir.Binary("*", first, extent, decl.span, ir.PY_INT)
    return first


def _named(expr: ir.Expr) -> ir.Expr:
    """A launch object as the name that launch programs have for it."""
    return ir.Name(f"{expr.object}.{expr.axis}") if isinstance(expr, ir.LaunchIndex) else expr


def has_static_shared(kernel: ir.Kernel) -> bool:
    """True if a block has static shared arrays beside dynamic ones."""
    return any(
        decl.space is ir.Space.SHARED and not decl.is_flat
        for each in (kernel, *kernel.functions)
        for decl in each.array_decls
    )


def unchecked_shared_extents(kernel: ir.Kernel) -> Iterator[tuple[str, ir.DimExpr]]:
    """The extents of shared arrays that a call may make negative or too large, each with the array's name."""
    from py2cu.analysis.signatures import find_dims

    dims = {dim.name: dim for dim in find_dims(kernel)}
    naturals = {name for name, dim in dims.items() if dim.array is not None} | {*kernel.constexprs}
    names = dims.keys() | {parameter.name for parameter in kernel.parameters}

    def is_known(part: ir.Expr) -> bool:
        """False for the launch's own extents, which a call may leave to their defaults."""
        return isinstance(part, ir.Constant | ir.Binary) or (isinstance(part, ir.Name) and part.id in names)

    for decl in kernel.array_decls:
        for extent in decl.type.dims if decl.is_dynamic else ():
            if not is_natural(extent, naturals) and all(map(is_known, walk(extent))):
                yield decl.name, extent


def is_natural(extent: ir.Expr, naturals: Set[str]) -> bool:
    """True for an extent that no call makes negative."""
    match extent:
        case ir.Constant():
            return True
        case ir.Name(id=name):
            return name in naturals
        case ir.Binary(op="+" | "*" | "//" | "%", left=left, right=right):
            return is_natural(left, naturals) and is_natural(right, naturals)
        case _:
            return False
