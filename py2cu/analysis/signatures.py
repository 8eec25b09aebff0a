"""The calling side of a kernel, as a `Signature`.

In: a kernel after all passes. Out: plain data that pickles into the cache, from which a cached kernel is called without
a translator.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import astuple, replace

from py2cu import ir
from py2cu.analysis.call_graph import assertions
from py2cu.analysis.effects import has_barrier
from py2cu.analysis.linear_extents import linear
from py2cu.builtins.registry import row_behind
from py2cu.dtypes import Kind
from py2cu.ir.abi.parameters import Parameter, Role
from py2cu.ir.abi.signature import Dim, Signature
from py2cu.ir.visit import all_expressions, children, names_in, statements


def signature_of(family: ir.Instances) -> Signature:
    """The calling side of a kernel."""
    first = _signature(family[0])
    if not family[0].variables:
        return first
    instances = tuple(_signature(k.plain) for k in family)
    independent = (dim for dim in first.independent_dims if all(dim in each.independent_dims for each in instances))
    return replace(first, instances=instances, independent_dims=tuple(independent), refused=family[0].refused)


def _signature(kernel: ir.Kernel) -> Signature:
    functions, dims = (kernel, *kernel.functions), find_dims(kernel)
    return Signature(
        name=kernel.name,
        op=kernel.symbol,
        doc=kernel.doc,
        parameters=kernel.parameters,
        dims=dims,
        measured=find_measured(kernel, dims),
        indices=kernel.indices,
        independent_dims=kernel.independent_dims,
        in_place=kernel.in_place,
        flat_indices=kernel.flat_indices,
        launch=kernel.launch,
        size=kernel.size,
        block=kernel.block,
        guards=kernel.guards,
        inits=kernel.inits,
        strided=kernel.strided,
        launch_bounds=kernel.launch_bounds,
        natural_places=kernel.natural_places,
        negative_indices=tuple(sorted({*kernel.negative_indices}, key=astuple)),
        allocs=tuple((b.span.line, b.name) for each in functions for b in each.array_decls if b.has_alloc),
        shared=next((Parameter(p.name, p.type) for p in kernel.block_parameters if p.type is not None), None),
        barrier=next((p.name for p in kernel.block_parameters if p.type is None), None),
        has_barrier=has_barrier(kernel),
        predicated=kernel.predicated,
        bounds=_python_bounds(kernel) if kernel.all_integers_bounded else None,
        vector_widths=tuple(sorted(kernel.vector_widths.items())),
        aligned=arrays_of_row_pointers(kernel),  # rule: row-in-signature
        asserts=bool(assertions(kernel)),
        tuples=kernel.tuples,
        dtype_tests=tuple(dict.fromkeys(test for each in functions for test in each.dtype_tests)),
        domains=_documented_domains(kernel),
    )


def _python_bounds(kernel: ir.Kernel) -> tuple[tuple[tuple[tuple[str, ...], int], ...], ...]:
    """The bounds of the integers that Python computes, too: all but offsets by strides."""
    strides = {stride.name for stride in kernel.strides}
    return tuple(b.terms for b in kernel.bounds if all(strides.isdisjoint(names) for names, _ in b.terms))


def find_dims(kernel: ir.Kernel) -> tuple[Dim, ...]:
    """Every dimension of `kernel` with the argument that determines it, in order of first appearance.

    A bare extent `n` of an array argument comes first; then a multiple such as `3*n`; then an integer argument; then
    arithmetic such as `n + 1` or `n*k`; then an array that may be None. Those of arithmetic stand last in the result,
    each behind the dimensions that it is computed from. Dimensions that only allocated outputs have are absent.
    """
    provided = [p for p in kernel.arrays if p.role is not Role.OUTPUT and not p.may_be_none]
    dims_by_name = _dims_of(provided)
    dims = kernel.dims
    for name in dims:
        parameter = kernel.parameter(name)
        if name not in dims_by_name and parameter is not None and parameter.type == ir.PythonType(Kind.INT):
            dims_by_name[name] = Dim(name, None)
    solved = _solved(provided, dims_by_name.keys())
    dims_by_name = _dims_of(kernel.optional_arrays) | dims_by_name
    return (*(dims_by_name[name] for name in dims if name in dims_by_name and name not in solved), *solved.values())


def determined_dims(arrays: Iterable[Parameter], integers: Iterable[str]) -> set[str]:
    """The dimensions whose values follow from the shapes of `arrays` and from `integers`."""
    arrays = tuple(arrays)
    known = {*_dims_of(arrays), *integers}
    return known.union(_solved(arrays, known))


def _solved(arrays: Iterable[Parameter], known: Collection[str]) -> dict[str, Dim]:
    """The dimensions that arithmetic in the extents of `arrays` fixes, where the dimensions `known` are known."""
    extents, solved = _extents(arrays), dict[str, Dim]()
    while True:
        before = len(solved)
        for array, axis, extent in extents:
            match [name for name in dict.fromkeys(names_in(extent)) if name not in known and name not in solved]:
                case [name] if (parts := linear(extent, name)) is not None:
                    solved[name] = Dim(name, array, axis, *parts)
        if len(solved) == before:
            return solved


def find_measured(kernel: ir.Kernel, dims: Iterable[Dim]) -> tuple[Dim, ...]:
    """The extents from which a call may take integer arguments of the op: those of outputs that are given, too."""
    arguments = {dim.name for dim in dims if dim.array is None}
    candidates = (
        (name, array, axis, linear(extent, name))
        for array, axis, extent in _extents(p for p in kernel.arrays if not p.may_be_none)
        for name in arguments.intersection(names_in(extent))
        if {*names_in(extent)} == {name}
    )
    return tuple(Dim(name, array, axis, *parts) for name, array, axis, parts in candidates if parts is not None)


def _dims_of(arrays: Iterable[Parameter]) -> dict[str, Dim]:
    """The dimensions that bare extents and multiples of `arrays` determine, by name."""
    dims_by_name: dict[str, Dim] = {}
    extents = _extents(arrays)
    for is_multiple in (False, True):
        for array, axis, dim in extents:
            match _multiple(dim):
                case (name, factor) if is_multiple or factor == 1:
                    dims_by_name.setdefault(name, Dim(name, array, axis, ir.constant_extent(factor)))
    return dims_by_name


def _extents(arrays: Iterable[Parameter]) -> list[tuple[str, int, ir.DimExpr]]:
    """Every extent of `arrays` with its array and axis."""
    return [(p.name, axis, d) for p in arrays if isinstance(p.type, ir.ArrayType) for axis, d in enumerate(p.type.dims)]


def _multiple(dim: ir.Expr) -> tuple[str, int] | None:
    """(`n`, 3) for the extent `3*n`, (`n`, 1) for `n`, None for anything else."""
    match dim:
        case ir.Name(id=name):
            return name, 1
        case ir.Binary(op="*", left=ir.Constant(value=int(factor)), right=ir.Name(id=name)):
            return name, factor
        case ir.Binary(op="*", left=ir.Name(id=name), right=ir.Constant(value=int(factor))):
            return name, factor
        case _:
            return None


def arrays_of_row_pointers(kernel: ir.Kernel) -> tuple[str, ...]:
    """The arrays of which `kernel` loads or stores a row at once."""
    arrays: set[str] = set()
    for stmt in statements(kernel.body):
        match stmt:
            case ir.Alloc(array=array) if kernel.vector_width(array):
                arrays.add(kernel.base_array(array))
            case ir.Store(indices=(), value=ir.Load(array=array)) if kernel.is_row(stmt.array):
                arrays.add(array)
            case ir.Store(array=array, value=ir.Load(array=row, indices=())) if kernel.is_row(row):
                arrays.add(array)
    return tuple(sorted(arrays))


def _documented_domains(kernel: ir.Kernel) -> tuple[tuple[str, float, float], ...]:
    """The float arrays whose elements enter functions of a documented domain, also by locals: name, least, greatest.

    The library documents no error of `fast.sin` beyond pi, for instance.
    """
    values = dict[str, list[ir.Expr]]()
    for stmt in statements(kernel.body):
        if isinstance(stmt, ir.Assign):
            values.setdefault(stmt.name, []).append(stmt.value)
    floats = {p.name for p in kernel.arrays if isinstance(p.type, ir.ArrayType) and p.type.dtype.kind is Kind.FLOAT}
    domains = dict[str, tuple[float, float]]()
    calls = (node for node in all_expressions(kernel.body) if isinstance(node, ir.Call))
    for call, row in ((call, row_behind(call.function)) for call in calls):
        if row is None or row.domain is None:
            continue
        low, high = row.domain
        for array in _arrays_behind(call.args[0], values):
            name = kernel.base_array(array)
            if name in floats:
                least, greatest = domains.get(name, row.domain)
                domains[name] = max(low, least), min(high, greatest)
    return tuple((name, *bounds) for name, bounds in sorted(domains.items()))


def _arrays_behind(value: ir.Expr, values: dict[str, list[ir.Expr]]) -> list[str]:
    """The arrays whose elements `value` is computed from, where names have one of `values`."""
    waiting, arrays, names = [value], dict[str, None](), set[str]()
    for node in waiting:
        match node:
            case ir.Load(array=array):
                arrays[array] = None
            case ir.Name(id=name):
                if name not in names:
                    names.add(name)
                    waiting += values.get(name, [])
            case _:
                waiting += children(node)
    return [*arrays]
