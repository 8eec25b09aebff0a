"""What a call of a kernel looks like: the one source of the binding, the kernel object, the simulator and the check.

In: a kernel after all passes. Out: a `Signature`, plain data that pickles into the cache, so that a cached kernel is
called without a translator.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import astuple, replace
from typing import TYPE_CHECKING, Any, Final

from py2cu.dtypes import DType, Kind
from py2cu.ir.abi.extents import (
    Binary,
    Constant,
    Constexpr,
    Guard,
    IndexParameter,
    Name,
    NegativeIndex,
    Parameter,
    PredicatedSite,
    Role,
)
from py2cu.ir.types import PY_INT, ArrayType, PythonType
from py2cu.records import record

if TYPE_CHECKING:
    from py2cu.ir.expressions import Expr
    from py2cu.ir.kernels import Instances, Kernel


_OPERATORS: Final[dict[str, Callable[[int, int], int]]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod,
}  # fmt: skip


@record(frozen=True, slots=True)
class Dim:
    """A dimension name and where a call finds its value.

    `array`/`axis`: the extent of an argument; `divisor` above 1 where that extent is written `3*n`. `array` None: only
    the scalar argument of the same name tells.
    """

    name: str
    array: str | None
    axis: int = 0
    divisor: int = 1


@record(frozen=True, slots=True)
class Signature:
    """The arguments of a call, in order; launch objects and element indices are not among them."""

    name: str
    op: str  # the name of the op and of the C++ functions: `name` where C++ can have it
    doc: str | None
    parameters: tuple[Parameter, ...]
    dims: tuple[Dim, ...]
    indices: tuple[IndexParameter, ...]
    launch: tuple[str, ...]
    size: tuple[Expr, ...] | None
    block: tuple[Expr, ...]
    guards: tuple[Guard, ...]
    inits: tuple[tuple[str, int | float], ...]
    strided: bool
    launch_bounds: tuple[int, ...] = ()  # the first of them is the most threads that a block may have
    negative_indices: tuple[
        NegativeIndex, ...
    ] = ()  # negative constant indices: compiled code counts no others from the end
    allocs: tuple[tuple[int, str], ...] = ()  # the lines that make arrays of a thread's own, and their names
    shared: Parameter | None = None  # the block's dynamic shared memory, which no call is given
    barrier: str | None = None  # the parameter that is the block's barrier
    has_barrier: bool = False  # so that no thread stops at a guard,
    predicated: tuple[PredicatedSite, ...] = ()  # and each leaves out what would pass the end
    # What reaches as far as any Python integer of the kernel: sums of products of dimensions, integers, grid and block.
    # None where the kernel does not say how far that is.
    bounds: tuple[tuple[tuple[tuple[str, ...], int], ...], ...] | None = None
    vector_widths: tuple[tuple[str, int], ...] = ()  # arrays that are viewed in rows, and of how many elements at most
    aligned: tuple[str, ...] = ()  # those of which a row is loaded or stored at once
    asserts: bool = False  # a call may raise `AssertionError`
    instances: tuple[Signature, ...] = ()  # of a generic kernel: for every dtype that it takes

    def instance(self, arguments: Mapping[str, Any]) -> Signature:
        """The signature for these tensors, by parameter: itself unless the kernel is generic.

        Raises:
            RuntimeError: no instance takes them.
        """
        if not self.instances:
            return self
        given = (p.name for p in self.arrays if p.name in arguments)
        dtypes = {name: str(arguments[name].dtype).removeprefix("torch.") for name in given}
        for candidate in self.instances:
            if all(candidate.dtype(name).name == dtype for name, dtype in dtypes.items()):
                return candidate
        listed = ", ".join(f"`{name}` of {dtype}" for name, dtype in dtypes.items())
        raise RuntimeError(f"{self.name} has no instance for {listed}")

    @property
    def arrays(self) -> tuple[Parameter, ...]:
        return tuple(p for p in self.parameters if isinstance(p.type, ArrayType))

    @property
    def outputs(self) -> tuple[Parameter, ...]:
        """Arrays that are allocated where the call gives none, in order."""
        return tuple(p for p in self.parameters if p.role is Role.OUTPUT)

    @property
    def inputs(self) -> tuple[Parameter, ...]:
        """What an allocating call must or may be given: everything but the outputs."""
        return tuple(p for p in self.parameters if p.role is not Role.OUTPUT)

    @property
    def required(self) -> tuple[Parameter, ...]:
        """The inputs that a call cannot leave out."""
        return tuple(p for p in self.inputs if not self.is_optional(p))

    @property
    def constexprs(self) -> dict[str, Constexpr]:
        """The parameters that are template arguments."""
        return {p.name: p.constexpr for p in self.parameters if p.constexpr is not None}

    @property
    def constexpr_ints(self) -> dict[str, Constexpr]:
        """Those of them that are whole numbers: instances for others can be asked for."""
        return {name: constexpr for name, constexpr in self.constexprs.items() if self.parameter(name).type == PY_INT}

    def is_optional(self, parameter: Parameter) -> bool:
        """True for what a shape tells, and for what has a default."""
        return parameter.default is not None or self.is_derived(parameter)

    def is_derived(self, parameter: Parameter) -> bool:
        """True for an int named like a dimension that an argument's shape tells."""
        return any(dim.name == parameter.name and dim.array is not None for dim in self.dims)

    def parameter(self, name: str) -> Parameter:
        return next(p for p in self.parameters if p.name == name)

    def dtype(self, name: str) -> DType:
        type_ = self.parameter(name).type
        assert isinstance(type_, ArrayType), name
        return type_.dtype


def find_dims(kernel: Kernel) -> tuple[Dim, ...]:
    """Every dimension name of `kernel` with the argument that tells it, in order of first appearance.

    An extent that is the bare name of an array which the caller gives comes first; then a multiple of it (`3*n`); then
    a scalar argument. Dimensions that only an allocated output has are absent.
    """
    given = [p for p in kernel.parameters if p.role is not Role.OUTPUT and isinstance(p.type, ArrayType)]
    found: dict[str, Dim] = {}
    for divisor_allowed in (False, True):
        for parameter in given:
            assert isinstance(parameter.type, ArrayType)
            for axis, dim in enumerate(parameter.type.dims):
                match _multiple(dim):
                    case (name, factor) if divisor_allowed or factor == 1:
                        found.setdefault(name, Dim(name, parameter.name, axis, factor))
    dims = kernel.dims
    for name in dims:
        parameter_ = kernel.parameter(name)
        if name not in found and parameter_ is not None and parameter_.type == PythonType(Kind.INT):
            found[name] = Dim(name, None)
    return tuple(found[name] for name in dims if name in found)


def _multiple(dim: Expr) -> tuple[str, int] | None:
    """(`n`, 3) for the extent `3*n`, (`n`, 1) for `n`, None for anything else."""
    match dim:
        case Name(id=name):
            return name, 1
        case Binary(op="*", left=Constant(value=int(factor)), right=Name(id=name)):
            return name, factor
        case Binary(op="*", left=Name(id=name), right=Constant(value=int(factor))):
            return name, factor
        case _:
            return None


def signature_of(family: Instances) -> Signature:
    """The calling side of a kernel."""
    first = _signature(family[0])
    return replace(first, instances=tuple(_signature(k.plain) for k in family)) if family[0].variables else first


def _signature(kernel: Kernel) -> Signature:
    from py2cu.analysis.call_graph import asserts  # which a cached kernel never needs, nor
    from py2cu.analysis.effects import has_barrier
    from py2cu.ir.visit import arrays_of_row_pointers

    functions = (kernel, *kernel.functions)
    return Signature(
        name=kernel.name,
        op=kernel.symbol,
        doc=kernel.doc,
        parameters=kernel.parameters,
        dims=find_dims(kernel),
        indices=kernel.indices,
        launch=kernel.launch,
        size=kernel.size,
        block=kernel.block,
        guards=kernel.guards,
        inits=kernel.inits,
        strided=kernel.strided,
        launch_bounds=kernel.launch_bounds,
        negative_indices=tuple(sorted({at for each in functions for at in each.negative_indices}, key=astuple)),
        allocs=tuple((b.span.line, b.name) for each in functions for b in each.array_decls if b.has_alloc),
        shared=next((Parameter(p.name, p.type) for p in kernel.block_parameters if p.type is not None), None),
        barrier=next((p.name for p in kernel.block_parameters if p.type is None), None),
        has_barrier=has_barrier(kernel),
        predicated=kernel.predicated,
        bounds=tuple(bound.terms for bound in kernel.bounds) if kernel.all_integers_bounded else None,
        vector_widths=tuple(sorted(kernel.vector_widths.items())),
        aligned=arrays_of_row_pointers(kernel),
        asserts=asserts(kernel),
    )


def evaluate(expr: Expr, values: dict[str, int]) -> int:
    """The value of an extent or size for given dimension values (Python's meaning of every operator).

    Raises:
        KeyError: a dimension in `expr` has no value.
        ValueError: `expr` is divided by zero.
    """
    match expr:
        case Constant(value=value):
            return int(value)
        case Name(id=name):
            return values[name]
        case Binary(op=op, left=left, right=right):
            try:
                return _OPERATORS[op](evaluate(left, values), evaluate(right, values))
            except ZeroDivisionError:
                raise ValueError("an extent is divided by zero") from None
        case _:
            raise AssertionError(f"not an extent: {expr}")


def divisors(expr: Expr) -> Iterator[Expr]:
    """What an extent is divided by, where it is no number."""
    if isinstance(expr, Binary):
        yield from divisors(expr.left)
        yield from divisors(expr.right)
        if expr.op in ("//", "%") and not isinstance(expr.right, Constant):
            yield expr.right
