"""What a call of a kernel looks like: the one source of the binding, the kernel object, the simulator and the check.

In: a kernel after all passes. Out: a `Signature`, plain data that the cache stores, so that a cached kernel is called
without a translator.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from py2cu.dtypes import DType
from py2cu.ir.abi.parameters import (
    Constexpr,
    Default,
    Guard,
    IndexParameter,
    NegativeIndex,
    Parameter,
    PredicatedSite,
    Refusal,
    Role,
    TupleParameter,
)
from py2cu.ir.operators import OPERATORS
from py2cu.ir.types import PY_INT, ArrayType, Binary, Constant, DimExpr, Name, constant_extent
from py2cu.records import record
from py2cu.source import Span


@record(frozen=True, slots=True)
class Dim:
    """A dimension name and where a call finds its value.

    `array`/`axis`: the argument whose extent there is `factor * name + rest`; the two are expressions of dimensions
    that come before. `array` None: the scalar argument of the same name is the value.
    """

    name: str
    array: str | None
    axis: int = 0  # of the array as the kernel sees it
    factor: DimExpr = constant_extent(1)
    rest: DimExpr = constant_extent(0)

    @property
    def is_extent(self) -> bool:
        """True if the extent is the value, so that every extent has one."""
        return self.factor == constant_extent(1) and self.rest == constant_extent(0)

    def solve(self, extent: int, values: Mapping[str, int]) -> int:
        """The value where the axis has this extent; 0 or rounded down where there is none."""
        if self.is_extent:
            return extent  # also a symbolic one, without a guard
        factor, rest = evaluate(self.factor, values), evaluate(self.rest, values)
        return (extent - rest) // factor if extent > rest and factor > 0 else 0

    def measure(self, type_: ArrayType, shape: Sequence[int], values: Mapping[str, int]) -> int | None:
        """The value for an array of this shape; None if it has too few dimensions or a value is missing."""
        try:
            return self.solve(type_.flattened(shape)[self.axis], values)
        except (IndexError, KeyError):
            return None


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
    size: tuple[DimExpr, ...] | None
    block: tuple[DimExpr, ...]
    guards: tuple[Guard, ...]
    inits: tuple[tuple[str, int | float], ...]
    strided: tuple[str, ...]  # the arrays that may have any strides; other arrays are contiguous
    flat_indices: tuple[IndexParameter, ...] = ()  # what the one flat index over x is split into
    independent_dims: tuple[str, ...] = ()  # one launch for arrays that are concatenated along one of these is exact
    in_place: tuple[tuple[str, str], ...] = ()  # in a call, the first array, which is written, may be the second one
    launch_bounds: tuple[int, ...] = ()  # the first of them is the most threads that a block may have
    negative_indices: tuple[NegativeIndex, ...] = ()  # negative constants: compiled code counts no others from the end
    natural_places: tuple[Span, ...] = ()  # Python integers that compiled code computes in uint64
    allocs: tuple[tuple[int, str], ...] = ()  # the line and the name of each thread-local array
    shared: Parameter | None = None  # the block's dynamic shared memory, which no call passes
    barrier: str | None = None  # the parameter that is the block's barrier
    has_barrier: bool = False  # so that no thread returns at a guard
    predicated: tuple[PredicatedSite, ...] = ()  # threads past the end skip these instead
    # Bounds of all Python integers of the kernel: sums of products of dimensions, integers, grid and block.
    # None if some integer has no bound.
    bounds: tuple[tuple[tuple[tuple[str, ...], int], ...], ...] | None = None
    vector_widths: tuple[tuple[str, int], ...] = ()  # arrays that are viewed in rows, and of how many elements at most
    aligned: tuple[str, ...] = ()  # those of which a row is loaded or stored at once
    measured: tuple[Dim, ...] = ()  # arrays from which a call in Python takes integers that it leaves out
    asserts: bool = False  # a call may raise `AssertionError`
    op_allocates: bool = True  # the outputs of a call; else Python does, on torch's default device
    tuples: tuple[tuple[str, tuple[str, ...]], ...] = ()  # tuple parameters, with their scalar parameters
    instances: tuple[Signature, ...] = ()  # of a generic kernel: for every dtype that it takes
    refused: tuple[Refusal, ...] = ()  # of a generic kernel: the dtypes of its annotations for which it has no instance
    dtype_tests: tuple[tuple[int, str], ...] = ()  # tests of the dtypes of floats, with their lines
    # Float arrays whose elements enter fast functions, with the least and greatest argument of a documented error.
    domains: tuple[tuple[str, float, float], ...] = ()

    def instance(self, arguments: Mapping[str, Any]) -> Signature:
        """The signature for these tensors, by parameter: itself unless the kernel is generic.

        Raises:
            RuntimeError: no instance takes them.
        """
        if not self.instances:
            return self
        passed = (p.name for p in self.arrays if p.name in arguments)
        dtypes = {name: str(arguments[name].dtype).removeprefix("torch.") for name in passed}
        for candidate in self.instances:
            if all(candidate.dtype(name).name == dtype for name, dtype in dtypes.items()):
                return candidate
        listed = ", ".join(f"`{name}` of {dtype}" for name, dtype in dtypes.items())
        raise RuntimeError(f"{self.name} has no instance for {listed}{self.refusal(dtypes)}")

    def refusal(self, dtypes: Mapping[str, str]) -> str:
        """The end of a message that refuses arrays of these dtypes: why there is no such instance, if that is known."""
        variables = {array.name: self.dtype(array.name).variable for array in reversed(self.arrays)}
        wanted = {v.symbol: dtypes[name] for name, v in variables.items() if v is not None and name in dtypes}
        instance = tuple(wanted[symbol] for symbol in sorted(wanted))
        reason = next((refusal.reason for refusal in self.refused if instance in refusal.dtypes), None)
        return "" if reason is None else f"; no {' and '.join(instance)} instance of `{self.name}`: {reason}"

    def without_places(self) -> Signature:
        """The same without what says where something stands in the Python, and what only the simulator reads."""
        instances = tuple(each.without_places() for each in self.instances)
        return replace(
            self, doc=None, negative_indices=(), natural_places=(), allocs=(), predicated=(), instances=instances,
            refused=(), dtype_tests=(), domains=(),
        )  # fmt: skip

    def called(self) -> Signature:
        """The signature of calls in Python, which allocate arrays that the op takes where no tensor names a device."""
        made = {p.name for p in self.parameters if p.role is Role.FACTORY}
        if not made:
            return self
        by_number = {dim.name for dim in self.dims if dim.array in made}
        return replace(
            self,
            parameters=tuple(replace(p, role=Role.OUTPUT) if p.name in made else p for p in self.parameters),
            dims=tuple(Dim(dim.name, None) if dim.name in by_number else dim for dim in self.dims),
            measured=(*self.measured, *(dim for dim in self.dims if dim.name in by_number)),
            op_allocates=False,
        )

    def with_tuples(self) -> Signature:
        """The signature of calls that pass tuples."""
        if not self.tuples:
            return self
        names = {number: name for name, numbers in self.tuples for number in numbers}
        parameters: dict[str, Parameter] = {}
        for parameter in self.parameters:
            name = names.get(parameter.name, parameter.name)
            parameters.setdefault(name, parameter if name == parameter.name else self._tuple_parameter(name))
        dims = tuple(dim for dim in self.dims if dim.name not in names.values())
        return replace(self, parameters=tuple(parameters.values()), dims=dims)

    def _tuple_parameter(self, name: str) -> TupleParameter:
        numbers = dict(self.tuples)[name]
        first, *others = map(self.parameter, numbers)
        default = None
        if first.default is not None:
            values = [each.default for each in (first, *others) if each.default is not None]
            text = f"({', '.join(each.text or str(each.value) for each in values)}{',' * (not others)})"
            default = Default(first.default.value, text)
        return TupleParameter(name, first.type, default=default, by_keyword=first.by_keyword, numbers=numbers)

    @property
    def keywords(self) -> set[str]:
        """The names under which a call may pass arguments."""
        return {name for name, _ in self.tuples}.union(p.name for p in self.parameters)  # rule: tuple-keyword

    @property
    def arrays(self) -> tuple[Parameter, ...]:
        return tuple(p for p in self.parameters if isinstance(p.type, ArrayType))

    @property
    def written(self) -> tuple[Parameter, ...]:
        """Arrays that the kernel writes, in order."""
        return tuple(p for p in self.arrays if p.role is not Role.INPUT)

    @property
    def outputs(self) -> tuple[Parameter, ...]:
        """Arrays that are allocated where the call gives none, in order."""
        return tuple(p for p in self.parameters if p.role is Role.OUTPUT)

    def are_allocated(self, passed: Container[str]) -> bool:
        """Whether the op allocates the outputs, in a call that passes these parameters."""
        return self.op_allocates and bool(self.outputs) and not any(p.name in passed for p in self.outputs)

    @property
    def inputs(self) -> tuple[Parameter, ...]:
        """The parameters of a call that allocates its outputs: all others."""
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
        """The integer template arguments: instances for other values can be requested."""
        return {name: constexpr for name, constexpr in self.constexprs.items() if self.parameter(name).type == PY_INT}

    def is_optional(self, parameter: Parameter) -> bool:
        """True for a parameter with a default, one that may be None, or a number that is derived from a shape."""
        return parameter.default is not None or parameter.may_be_none or self.is_derived(parameter)

    def is_derived(self, parameter: Parameter) -> bool:
        """True for an int with the name of a dimension whose value an argument's shape determines."""
        return any(dim.name == parameter.name and dim.array is not None for dim in self.dims)

    def measured_by(self, name: str, passed: Container[str | None]) -> Dim | None:
        """The extent of one of the `passed` arrays from which a call in Python takes the integer `name`, if any."""
        return next((dim for dim in self.measured if dim.name == name and dim.array in passed), None)

    def parameter(self, name: str) -> Parameter:
        return next(p for p in self.parameters if p.name == name)

    def dtype(self, name: str) -> DType:
        return self.array_type(name).dtype

    def array_type(self, name: str) -> ArrayType:
        type_ = self.parameter(name).type
        assert isinstance(type_, ArrayType), name
        return type_

    def flat_shape(self, name: str, arguments: Mapping[str, Any]) -> tuple[int, ...]:
        """The extents of an array of the call, as the kernel sees them."""
        return self.array_type(name).flattened(arguments[name].shape)

    def apart(self, passed: Container[str]) -> Iterator[tuple[Parameter, Parameter]]:
        """The pairs of passed arrays that may not overlap: the first is written; those with outputs come last."""
        inputs = [p for p in self.arrays if p.name in passed and p.role is not Role.OUTPUT]
        outputs = [p for p in self.outputs if p.name in passed]
        for group, others in ((inputs, inputs), (outputs, [*inputs, *outputs])):
            done = set()
            for written in (p for p in group if p.role is not Role.INPUT):
                done.add(written.name)
                yield from ((written, other) for other in others if other.name not in done)

    def places_of(self, dim: str) -> dict[str, int]:
        """The arrays that have the dimension `dim`, each with the place of this extent in its annotation."""
        return {
            p.name: place
            for p in self.arrays
            for place, extent in enumerate(self.array_type(p.name).dims)
            if isinstance(extent, Name) and extent.id == dim
        }

    def divisors(self) -> Iterator[DimExpr]:
        """What the extents of a call are divided by, but for constants: it may not be 0."""
        extents = (dim for p in self.arrays if isinstance(p.type, ArrayType) for dim in p.type.dims)
        for formula in (*extents, *(self.size or ()), *self.block):
            yield from _divisors(formula)
        yield from (dim.factor for dim in self.dims if not isinstance(dim.factor, Constant))

    def leading_source(self, type_: ArrayType) -> str | None:
        """The input whose leading extents all arrays with the same ones must have; None where there is none."""
        first = type_.dims[0] if type_.leading else None
        sources = (dim.array for dim in self.dims if isinstance(first, Name) and dim.name == first.id)
        return next(sources, None)


def evaluate(expr: DimExpr, values: Mapping[str, int]) -> int:
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
                result: int = OPERATORS[op].compute(evaluate(left, values), evaluate(right, values))
                return result  # a symbolic integer stays one
            except ZeroDivisionError:
                raise ValueError("an extent is divided by zero") from None
        case _:
            raise AssertionError(f"not an extent: {expr}")


def _divisors(expr: DimExpr) -> Iterator[DimExpr]:
    """The divisors in an extent that are no constants."""
    if isinstance(expr, Binary):
        yield from _divisors(expr.left)
        yield from _divisors(expr.right)
        if expr.op in ("//", "%") and not isinstance(expr.right, Constant):
            yield expr.right
