"""The root of the IR: a kernel or a device function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any, Final

from py2cu.diagnostics import Origin
from py2cu.dtypes import DType, TypeVariable
from py2cu.ir.abi.launch_values import LaunchValue
from py2cu.ir.abi.parameters import (
    BlockParameter,
    Constexpr,
    Guard,
    IndexParameter,
    NegativeIndex,
    Parameter,
    PredicatedSite,
    Refusal,
    Stride,
)
from py2cu.ir.array_decls import ArrayDecl, Space
from py2cu.ir.elisions import Elided
from py2cu.ir.expressions import ArrayName, DeviceCall, Expr
from py2cu.ir.extents import contiguous_strides, lower_bounds
from py2cu.ir.intervals import Interval
from py2cu.ir.statements import Block
from py2cu.ir.types import (
    INDEX,
    ArrayType,
    ConstantDeclaration,
    DimExpr,
    ElementType,
    Name,
    ScalarType,
    ValueType,
    span_field,
)
from py2cu.ir.visit import names_in
from py2cu.source import Span

__all__ = [
    "MAX_AXES",
    "Annotation",
    "ConstantDeclaration",
    "IndexBound",
    "Instances",
    "Kernel",
    "Struct",
]

MAX_AXES: Final = 3  # of a launch
_OF_EXTENTS: Final = {"parameters", "indices", "size", "block", "array_decls", "former_index_extents", "strides"}
"""The fields from which `dims`, `naturals` and `sizes` are computed."""


@dataclass(frozen=True, slots=True)
class IndexBound:
    """A value that 32-bit index arithmetic must reach: a sum of products of dimensions, scalars and grid sizes."""

    terms: tuple[tuple[tuple[str, ...], int], ...]


@dataclass(frozen=True, slots=True)
class Struct:
    """The C struct that holds a tuple: its name, its fields, and the key of the function that it is named after."""

    name: str
    fields: tuple[str, ...]
    source: str


@dataclass(frozen=True, slots=True)
class Annotation:
    """`name: type` in a kernel's body: the type of a local, which `infer_types` checks."""

    name: str
    type: ScalarType
    span: Span = span_field()


@dataclass(frozen=True)
class Kernel:
    """A kernel; or a device function, which is never launched and has a `key`.

    `size` is the number of threads in x, y, z (None if only an explicit launch decides it), `block` that of a block.
    `inits` maps outputs to the values with which allocated ones are filled.
    """

    name: str
    doc: str | None
    indices: tuple[IndexParameter, ...]
    launch: tuple[str, ...]  # the launch objects taken as leading parameters, by their CUDA names
    parameters: tuple[Parameter, ...]
    size: tuple[DimExpr, ...] | None
    block: tuple[DimExpr, ...]
    inits: tuple[tuple[str, int | float], ...]
    strided: tuple[str, ...]  # the parameters with strides of their own; other arrays are contiguous
    body: Block
    span: Span = span_field()
    strides: tuple[Stride, ...] = ()  # set by name_strides: of the arrays of `strided`, by array and axis
    former_index_extents: tuple[DimExpr, ...] = ()  # of the indices that the body now computes itself
    has_default_block: bool = False  # no option gives `block`
    coarsen: int | None = None  # 1: each thread of an index kernel has one element
    launch_bounds: tuple[int, ...] = ()  # at most so many threads a block, at least so many blocks a multiprocessor
    annotated: tuple[Annotation, ...] = ()
    array_decls: tuple[ArrayDecl, ...] = ()
    locals: tuple[tuple[str, ValueType], ...] = ()  # set by infer_types
    guards: tuple[Guard, ...] = ()  # set by add_guards
    predicated: tuple[PredicatedSite, ...] = ()  # set by add_guards: skipped by threads past the end
    independent_dims: tuple[str, ...] = ()  # set by find_independent_dims
    in_place: tuple[tuple[str, str], ...] = ()  # set by find_in_place_pairs: a written array, an input that it may be
    natural_places: tuple[Span, ...] = ()  # set by widen_naturals: Python integers that are computed in uint64
    negative_indices: tuple[NegativeIndex, ...] = ()
    # Set by choose_integer_widths: what must fit an int for the 32-bit instantiation, what the extents of the launch
    # are computed from, and whether all Python integers fit if `bounds` do.
    bounds: tuple[IndexBound, ...] = ()
    size_bounds: tuple[IndexBound, ...] = ()
    all_integers_bounded: bool = False
    launch_values: tuple[LaunchValue, ...] = ()  # set by compute_in_launcher
    narrowed: tuple[tuple[str, ElementType], ...] = ()  # set by narrow_floats: parameters and launch values
    helpers: tuple[str, ...] = ()  # set by lower_semantics
    symbol: str = ""  # where it is not its name; set by rename: what the C++ functions and the op are named after
    variables: tuple[TypeVariable, ...] = ()  # of a generic kernel
    refused: tuple[Refusal, ...] = ()  # of a generic kernel: the instances that cannot be made
    passed: frozenset[str] = frozenset()  # arrays that a call passes, since only some instances write or allocate them
    dtype_tests: tuple[tuple[int, str], ...] = ()  # set by decide_dtypes: tests of dtypes of floats, with their lines
    functions: tuple[Kernel, ...] = ()  # device functions that it calls, each before its callers
    key: str = ""  # of a device function: calls refer to it
    origin: Origin | None = None  # of a device function in another file than the kernel's
    result: ValueType | None = None  # of a device function, set by infer_types: the type that it returns
    struct: Struct | None = None  # of a device function that returns a tuple, set by split_tuples
    # Of a device function, set by choose_integer_widths: what its parameters can be, and each number that it returns.
    argument_ranges: tuple[tuple[str, Interval], ...] = ()
    result_ranges: tuple[Interval, ...] = ()
    constants: tuple[ConstantDeclaration, ...] = ()  # set by declare_constants, which the text may name
    renamed: tuple[tuple[str, str], ...] = ()  # set by rename: names that are spelled otherwise in C
    flat_indices: tuple[IndexParameter, ...] = ()  # set by flatten_indices: what one flat index is split into
    flags: tuple[tuple[str, str], ...] = ()  # set by rename: the bool that says whether a parameter is given
    block_parameters: tuple[BlockParameter, ...] = ()  # shared memory and a barrier, `shared` and `syncb`
    tuples: tuple[tuple[str, tuple[str, ...]], ...] = ()  # tuple parameters, with their scalar parameters
    row_lengths: tuple[tuple[str, str], ...] = ()  # locals `16 // x.itemsize`, each with its array
    elided: tuple[Elided, ...] = ()  # statements of the Python that have no code; passes add those that they leave out
    per_thread: tuple[str, ...] = ()  # set by split_at_barriers: locals that live from one `EachThread` to another

    @property
    def arrays(self) -> tuple[Parameter, ...]:
        return tuple(p for p in self.parameters if isinstance(p.type, ArrayType))

    @property
    def constexprs(self) -> dict[str, Constexpr]:
        """The parameters that are template arguments."""
        return {p.name: p.constexpr for p in self.parameters if p.constexpr is not None}

    def having(self, **fields: Any) -> Kernel:
        """The kernel with other fields; cached properties of extents are kept if the extents are unchanged.

        Passes call this so often that `dataclasses.replace` would take a measurable part of their time.
        """
        other = object.__new__(Kernel)
        state = {**vars(self), **fields}
        if not _OF_EXTENTS.isdisjoint(fields):
            for cached_name in ("dims", "naturals", "sizes"):
                state.pop(cached_name, None)
        vars(other).update(state)
        return other

    def instance(self, variables: tuple[TypeVariable, ...], dtypes: Sequence[DType]) -> Kernel:
        """The kernel with these type variables, which replace its own, and with a dtype for each."""
        chosen = {v.symbol: replace(dtype, variable=v) for v, dtype in zip(variables, dtypes, strict=True)}
        instance = self._with_dtypes(lambda dtype: dtype if dtype.variable is None else chosen[dtype.variable.symbol])
        return instance.having(variables=variables)

    @property
    def plain(self) -> Kernel:
        """An instance of a generic kernel as if it were written for its dtypes alone."""
        return self._with_dtypes(lambda dtype: dtype.plain).having(variables=())

    def _with_dtypes(self, change: Callable[[DType], DType]) -> Kernel:
        if not self.variables:
            return self
        parameters = [
            replace(p, type=replace(p.type, dtype=change(p.type.dtype))) if isinstance(p.type, ArrayType) else p
            for p in self.parameters
        ]
        return self.having(parameters=tuple(parameters))

    @property
    def type_parameters(self) -> frozenset[str]:
        """The type parameters that the parameters' dtypes stand for."""
        dtypes = (p.type.dtype for p in self.parameters if isinstance(p.type, ArrayType | ElementType))
        return frozenset(dtype.variable.symbol for dtype in dtypes if dtype.variable is not None)

    def parameter(self, name: str) -> Parameter | None:
        return next((p for p in self.parameters if p.name == name), None)

    def array_decl(self, name: str) -> ArrayDecl | None:
        for decl in self.array_decls:
            if decl.name == name:
                return decl
        return None

    def vector_width(self, name: str) -> int:
        """The number of elements in a row of `name`, accessed at once; 0 if `name` is no view in rows."""
        decl = self.array_decl(name)
        return 0 if decl is None else decl.vector_width

    @property
    def vector_widths(self) -> dict[str, int]:
        """The parameters that are viewed in rows, each with the length of its longest rows."""
        widths: dict[str, int] = {}
        for decl in self.array_decls:
            if decl.vector_width:
                widths[decl.base] = max(decl.vector_width, widths.get(decl.base, 0))
        return widths

    def is_list(self, name: str) -> bool:
        """True for a local array that is a list in the Python."""
        decl = self.array_decl(name)
        return decl is not None and decl.is_list

    def is_row(self, name: str) -> bool:
        """True for a thread's copy of a row; an access without indices is one of the whole row."""
        decl = self.array_decl(name)
        return decl is not None and decl.is_row

    def is_kernel_local(self, name: str) -> bool:
        """True for an array of the kernel's own: neither a caller's nor a view of one."""
        decl = self.array_decl(name)
        return decl is not None and decl.space is not Space.GLOBAL

    def base_array(self, name: str) -> str:
        """The array that the view `name` refers to; `name` itself if it is no view."""
        decl = self.array_decl(name)
        is_view = decl is not None and bool(decl.base) and not decl.is_dynamic
        return self.base_array(decl.base) if decl is not None and is_view else name

    def keeps_subscripts(self, name: str) -> bool:
        """True for an array of which C knows all extents, so that its accesses keep their indices."""
        decl = self.array_decl(name)
        return decl is not None and not decl.is_flat

    def array_type(self, name: str) -> ArrayType:
        """The type of the array `name`, which the kernel takes or declares."""
        array = self.array_decl(name) or self.parameter(name)
        assert array is not None and isinstance(array.type, ArrayType), name
        return array.type

    def bind(self, call: DeviceCall, function: Kernel) -> dict[str, Expr]:
        """The values of a device function's parameters, and of its arrays' extents, in a call in this kernel."""
        bound: dict[str, Expr] = {p.name: arg for p, arg in zip(function.parameters, call.args, strict=True)}
        for parameter, arg in zip(function.parameters, call.args, strict=True):
            if isinstance(parameter.type, ArrayType) and isinstance(arg, ArrayName):
                for dim, extent in zip(parameter.type.dims, self.array_type(arg.id).dims, strict=True):
                    if isinstance(dim, Name):
                        bound[dim.id] = extent
                strides = self.strides_of(arg.id) or contiguous_strides(self.array_type(arg.id).dims)
                bound |= zip((each.id for each in function.strides_of(parameter.name)), strides, strict=False)
        return bound

    def strides_of(self, array: str) -> tuple[Name, ...]:
        """The strides of an array, by axis; none for a contiguous one."""
        return tuple(Name(stride.name, type=INDEX) for stride in self.strides if stride.array == array)

    def c_name(self, name: str) -> str:
        """`name` as the C++ text spells it: C++ keywords, macros and non-ASCII names are renamed."""
        return next((spelled for old, spelled in self.renamed if old == name), name)

    @property
    def has_flat_launch(self) -> bool:
        """True for more element indices than a launch has axes: all of them are of x."""
        return len(self.indices) > MAX_AXES

    def flag(self, parameter: str) -> str:
        """The C++ name of the bool that says whether `parameter`, which may be None, is given."""
        return dict(self.flags)[parameter]

    @property
    def optional_parameters(self) -> tuple[Parameter, ...]:
        """The parameters that a call may leave out, so that they are None."""
        return tuple(p for p in self.parameters if p.may_be_none)

    @property
    def optional_arrays(self) -> tuple[Parameter, ...]:
        return tuple(p for p in self.optional_parameters if p.is_array)

    @property
    def template_values(self) -> frozenset[str]:
        """The parameters whose values, or whose presence, are template arguments."""
        return frozenset(self.constexprs) | {p.name for p in self.optional_arrays}

    @property
    def has_open_block(self) -> bool:
        """True if the block depends on arguments of the call that are no template arguments."""
        return not self.constexprs.keys() >= {name for extent in self.block for name in names_in(extent)}

    @cached_property
    def dims(self) -> tuple[str, ...]:
        """Dimension names in order of first appearance in the parameters and indices, and then the strides."""
        sources = [*self.former_index_extents, *(index.extent for index in self.indices)]
        sources += [dim for p in self.parameters if isinstance(p.type, ArrayType) for dim in p.type.dims]
        sources += self.size or ()
        constexprs = self.constexprs.keys()
        sources += (extent for extent in self.block if not constexprs >= set(names_in(extent)))  # rule: block-dims
        names = (name for source in sources for name in names_in(source))
        return tuple(dict.fromkeys((*names, *(stride.name for stride in self.strides))))

    @cached_property
    def naturals(self) -> frozenset[str]:
        """The dimensions that are never negative: an integer argument may be, unless it is itself an extent."""
        types = (*(p.type for p in self.parameters), *(decl.type for decl in self.array_decls))
        sizes = [dim for type_ in types if isinstance(type_, ArrayType) for dim in type_.dims]
        sizes += (*(index.extent for index in self.indices), *(self.size or ()), *self.block)
        numbers = {p.name for p in self.parameters if not isinstance(p.type, ArrayType)}
        return frozenset({size.id for size in sizes if isinstance(size, Name)} | ({*self.dims} - numbers))

    @cached_property
    def sizes(self) -> tuple[Counter[str], ...]:
        """Lower bounds, up to a small factor, of the sizes of arrays that are never None: products of dimensions. For
        strided arrays also products of an extent and a stride, lower bounds of the memory that the array spans.
        """
        shapes = [p.type.dims for p in self.arrays if isinstance(p.type, ArrayType) and not p.may_be_none]
        shapes += [(self.array_type(s.array).dims[s.axis], Name(s.name)) for s in self.strides]
        return tuple(chain.from_iterable(lower_bounds(dims, self.naturals) for dims in shapes))


Instances = tuple[Kernel, ...]
"""One kernel of the user: itself alone, or the instances of a generic one."""
