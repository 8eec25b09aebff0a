"""One kernel function → an untyped `Kernel`: parameters, options and body.

Decides which of the contract's ways a function is written in: an index kernel has parameters annotated `Index[…]`, a
block kernel sees the launch.
"""

from __future__ import annotations

import inspect
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import libcst as cst

from py2cu.analysis.template_instances import instances
from py2cu.builtins.threads import LANE
from py2cu.diagnostics import Reporter
from py2cu.dtypes import Kind
from py2cu.frontend.annotations import AnnotationReader, ConstexprAnnotation, IndexAnnotation
from py2cu.frontend.array_declarations import BufferReader
from py2cu.frontend.decorator import OptionReader, find_problems
from py2cu.frontend.device_functions import FunctionReader
from py2cu.frontend.expressions import ExpressionReader
from py2cu.frontend.names.ambiguity import report_ambiguous_name
from py2cu.frontend.names.closures import environment_in
from py2cu.frontend.names.defaults import DefaultReader
from py2cu.frontend.names.syntax import all_parameters, assigned_names, is_named, nodes_in
from py2cu.frontend.scope import Scope, launch_object
from py2cu.frontend.source.imports import ImportedSources
from py2cu.frontend.source.reader import KernelSource, Module
from py2cu.frontend.statements import StatementReader
from py2cu.ir.abi.parameters import (
    CONSTEXPR_MAX,
    BlockParameter,
    Constexpr,
    Default,
    IndexParameter,
    Parameter,
    is_constexpr_value,
)
from py2cu.ir.expressions import Atomic, Call, Expr, LaunchIndex
from py2cu.ir.kernels import ArrayDecl, Kernel, Space
from py2cu.ir.statements import Alloc
from py2cu.ir.types import PY_BOOL, PY_INT, ArrayType, DimExpr, ElementType, PythonType, constant_extent
from py2cu.ir.visit import all_expressions, names_in
from py2cu.options import DEFAULT_BLOCKS, MAX_THREADS, KernelOptions, Values, is_launchable
from py2cu.source import Span


def read_kernel(
    module: Module,
    source: KernelSource,
    reporter: Reporter,
    options: KernelOptions | None,
    values: Values,
    defaults: Mapping[str, object] | None = None,
) -> Kernel:
    """The kernel as untyped IR; what is wrong with it goes to `reporter`.

    `options` are the decorator's arguments, and `defaults` the default values of the decorated function; None reads
    them from the source. `values` are what `Constexpr[int]` parameters are to be, by name; where it says
    nothing, their default, if there is one.
    """
    return _KernelReader(module, source, reporter, values, defaults, ImportedSources(module.file)).read(options)


@dataclass(slots=True)
class _Parameters:
    """The parameters of a kernel function, sorted by what they are."""

    launch: dict[str, str] = field(default_factory=dict)
    indices: list[IndexParameter] = field(default_factory=list)
    arguments: list[Parameter] = field(default_factory=list)
    block: list[BlockParameter] = field(default_factory=list)  # shared memory, and a barrier
    broken: set[str] = field(default_factory=set)  # their annotations were refused already


@dataclass(frozen=True, slots=True)
class _KernelReader:
    module: Module
    source: KernelSource
    reporter: Reporter
    values: Values
    defaults: Mapping[str, object] | None
    siblings: ImportedSources

    def read(self, options: KernelOptions | None) -> Kernel:
        function = self.source.function
        annotations = AnnotationReader(self.reporter, self.source.environment, self.module.span, self._rank)
        parameters = self._read_parameters(annotations)
        options = self._checked_options(options, parameters)
        around = self.source.environment
        functions = FunctionReader(self.reporter, environment_in(function, around), around, self.module, self.siblings)
        scope = self._scope(parameters, functions)
        reader = StatementReader(scope, ExpressionReader(scope))
        given = tuple(Alloc(b.name, b.span) for b in scope.buffers.values() if b.is_parameter)
        block = given + reader.read_suite(function.body)
        size = self._size(options, parameters, annotations)
        bodies = (block, *(device_function.body for device_function in functions.found))
        sees_threads = any(_tells_threads_apart(node) for body in bodies for node in all_expressions(body))
        if function.asynchronous is not None:
            self._error("P103", "a kernel is a plain function, not `async`", function.name, "leave `async` out")
        if not parameters.indices and not parameters.launch and not sees_threads and not parameters.broken:
            self._error(
                "P402", f"`{function.name.value}` sees no thread: all of them would do the same", function.name,
                'make the first parameter an element index, `i: Index["n"]`, or import `blockIdx`, `blockDim`, '
                "`threadIdx` from py2cu",
            )  # fmt: skip
        rank = len(parameters.indices) or len(size or ()) or 1
        return Kernel(
            name=options.name or function.name.value,
            doc=self._docstring(),
            indices=tuple(parameters.indices),
            launch=tuple(parameters.launch.values()),
            parameters=tuple(parameters.arguments),
            size=size,
            block=self._block(options, rank, parameters, annotations),
            launch_bounds=options.bounds,
            inits=tuple(_inits(options, parameters)),
            strided=options.strided,
            body=block,
            annotated=tuple(reader.annotated),
            span=self.module.span(function.name),
            array_decls=tuple(scope.buffers.values()),
            negative_indices=tuple(scope.negative_indices),
            elided=tuple(scope.elided),
            variables=tuple(annotations.variables.values()),
            functions=tuple(functions.found),
            block_parameters=tuple(parameters.block),
        )

    def _error(self, code: str, message: str, node: cst.CSTNode, hint: str) -> None:
        self.reporter.error(code, message, self.module.span(node), hint)

    # --- parameters ---

    def _read_parameters(self, annotations: AnnotationReader) -> _Parameters:
        found = _Parameters()
        params = self.source.function.params
        for stars, star in (("*", params.star_arg), ("**", params.star_kwarg)):
            if isinstance(star, cst.Param):
                message = f"a kernel has no `{stars}{star.name.value}` parameter"
                self._error("P106", message, star, "name every parameter")
        for param in all_parameters(self.source.function):
            self._read_parameter(param, found, annotations)
        by_keyword = {param.name.value for param in params.kwonly_params}
        found.arguments[:] = [replace(p, by_keyword=p.name in by_keyword) for p in found.arguments]
        self._place_on_axes(found)
        return found

    def _read_parameter(self, param: cst.Param, found: _Parameters, annotations: AnnotationReader) -> None:
        name, span = param.name.value, self.module.span(param.name)
        launched = launch_object(name)
        if self._is_barrier(param):
            self._add_block_parameter(param, BlockParameter(name), found)
            return
        type_ = None if param.annotation is None else annotations.read(param.annotation.annotation, name)
        is_number = isinstance(type_, PythonType | ElementType | ConstexprAnnotation)
        if param.default is not None and not is_number and (type_ is not None or launched is not None):
            self._error(
                "P106", f"`{name}` is no number, and only numbers have defaults", param, "leave the default out"
            )
        if launched is not None and param.annotation is None:
            if found.arguments or found.indices:
                message = f"`{name}` must come before the kernel's own parameters"
                self._error("P106", message, param.name, f"make `{name}` the first one")
            found.launch[name] = launched
            return
        if param.annotation is None:
            self._error(
                "P301", f"parameter `{name}` needs an annotation", param.name,
                f'`{name}: Float32[Tensor, "n"]`, or `{name}: int` for a scalar',
            )  # fmt: skip
            found.broken.add(name)
            return
        if isinstance(type_, IndexAnnotation):
            if found.arguments:
                message = f"the element index `{name}` must come before the other parameters"
                self._error("P106", message, param.name, f"make `{name}` the first one")
            found.indices.append(IndexParameter(name, type_.extent, "", span))
        elif isinstance(type_, ConstexprAnnotation):
            found.arguments.append(self._template_argument(param, type_.type))
        elif name == "shared" and isinstance(type_, ArrayType) and found.launch and not found.arguments:
            self._add_block_parameter(param, BlockParameter(name, type_), found)
        elif isinstance(type_, ArrayType):
            found.arguments.append(Parameter(name, type_, span=span))
        elif type_ is not None:
            reader = DefaultReader(
                self.reporter, self.source.environment, self.module.span, self.defaults, self._constant_elsewhere
            )
            default = None if param.default is None else reader.read_for_kernel(param, type_)
            found.arguments.append(Parameter(name, type_, span=span, default=default))
        else:
            found.broken.add(name)

    def _constant_elsewhere(self, node: cst.BaseExpression) -> object:
        return self.siblings.constant(node, self.source.environment, self.module, self.reporter)

    def _is_barrier(self, param: cst.Param) -> bool:
        """True for `syncb: threading.Barrier`."""
        annotation = param.annotation
        return annotation is not None and self.source.environment.qualify(annotation.annotation) == "threading.Barrier"

    def _add_block_parameter(self, param: cst.Param, given: BlockParameter, found: _Parameters) -> None:
        """`shared` or `syncb`, which stand behind the launch objects and before what a call gives."""
        if found.arguments or found.indices:
            message = f"`{given.name}` must come before the kernel's own parameters"
            self._error("P106", message, param.name, "put it behind the launch objects")
        if given.type is not None and len(given.type.dims) != 1:
            message = f"the shared memory `{given.name}` has one dimension, not {len(given.type.dims)}"
            self._error("P408", message, param.name, "slice it: `a, b = shared[:n], shared[n:]`")
            given = replace(given, type=replace(given.type, dims=(constant_extent(1),)))
        found.block.append(given)

    def _template_argument(self, param: cst.Param, type_: PythonType) -> Parameter:
        """A template argument with the values that it has instances for; a bool has both."""
        name, span = param.name.value, self.module.span(param.name)
        value = None if param.default is None else self._constexpr_default(param.default, type_)
        given = self.values.get(name, () if value is None else (value,))
        if not given and param.default is None and type_ != PY_BOOL:
            self.reporter.note(
                "P311", f"no value of `{name}` is known here: the template has no instances", span,
                f"give it a default, or ask for some: `--constexpr {name}=16,32`",
            )  # fmt: skip
        constexpr = Constexpr((False, True) if type_ == PY_BOOL else tuple(dict.fromkeys(given)))
        default = None if value is None else Default(value)
        return Parameter(name, type_, span=span, constexpr=constexpr, default=default)

    def _constexpr_default(self, node: cst.BaseExpression, type_: PythonType) -> int | None:
        value = self.source.environment.constant(node)
        fits = isinstance(value, bool) if type_ == PY_BOOL else is_constexpr_value(value)
        if fits and isinstance(value, int):
            return value
        if report_ambiguous_name(node, self.source.environment, self.reporter, self.module.span):
            return None
        what = "True or False" if type_ == PY_BOOL else f"a whole number from 0 to {CONSTEXPR_MAX}"
        message = f"the default of a `Constexpr[{type_.kind.name.lower()}]` is {what}"
        hint = "write it out, or the name of a constant of this module: the file is read, not run"
        self._error("P310", message, node, hint)
        return None

    def _rank(self, array: str) -> int:
        """How many indices the body gives `array`, where it first indexes it; 1 where it does not."""
        subscripts = (node for node in nodes_in(self.source.function.body) if isinstance(node, cst.Subscript))
        match next((node for node in subscripts if is_named(node.value, array)), None):
            case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Tuple(elements=indices)))]):
                return len(indices)
            case cst.Subscript(slice=indices):
                return len(indices)
            case _:
                return 1

    def _place_on_axes(self, found: _Parameters) -> None:
        indices = found.indices
        if len(indices) > 3:
            hint = 'index over a product, `Index["h * w"]`, and divide'
            self.reporter.error("P106", "a kernel has at most three element indices", indices[3].span, hint)
            found.broken |= {index.name for index in indices[3:]}
            del indices[3:]
        axes = "xyz"[: len(indices)][::-1]
        indices[:] = [IndexParameter(i.name, i.extent, axis, i.span) for i, axis in zip(indices, axes, strict=True)]

    # --- options ---

    def _checked_options(self, options: KernelOptions | None, found: _Parameters) -> KernelOptions:
        """What the decorator says, or the defaults where that is wrong."""
        if options is None:
            options = OptionReader(self.reporter, self.source, self.module).read()
        arrays = {p.name: p.type.dtype for p in found.arguments if isinstance(p.type, ArrayType)}
        problems = [*find_problems(options, arrays, is_index_kernel=bool(found.indices))]
        for problem in problems:
            self.reporter.error("P403", problem, self._decorator_span(), "`py2cu explain P403` shows what is right")
        return KernelOptions() if problems else options

    def _size(
        self, options: KernelOptions, found: _Parameters, annotations: AnnotationReader
    ) -> tuple[DimExpr, ...] | None:
        """Threads wanted in x, y, z."""
        if found.indices:
            return tuple(index.extent for index in reversed(found.indices))
        if options.size is None:
            return None
        items = options.size if isinstance(options.size, tuple) else (options.size,)
        extents = [annotations.read_extent(str(item), self._decorator_span()) for item in items]
        return tuple(extent for extent in extents if extent is not None) or None

    def _block(
        self, options: KernelOptions, rank: int, found: _Parameters, annotations: AnnotationReader
    ) -> tuple[DimExpr, ...]:
        """Threads of a block in x, y, z: extents, as a size is made of."""
        block = options.block
        items = block if isinstance(block, tuple) else (DEFAULT_BLOCKS[rank] if block is None else (block,))
        span = self._decorator_span()
        read = [constant_extent(e) if isinstance(e, int) else annotations.read_extent(e, span) for e in items]
        extents = tuple(constant_extent(1) if extent is None else extent for extent in read)
        self._check_block(extents, found, options.bounds[0] if options.bounds else MAX_THREADS)
        return extents + (constant_extent(1),) * (rank - len(extents))

    def _check_block(self, block: tuple[DimExpr, ...], found: _Parameters, most: int) -> None:
        """Blocks of every value that template arguments have must be ones that a GPU can launch, of `most` threads.

        What only a call tells is judged then.
        """
        known = {p.name: p.constexpr for p in found.arguments if p.constexpr is not None and p.type == PY_INT}
        if not known.keys() >= {name for extent in block for name in names_in(extent)}:
            return
        for choice, shape in instances(block, known):
            if choice and not is_launchable(shape):
                self.reporter.error(
                    "P403", f"no block can be launched{choice}", self._decorator_span(),
                    f"a block has at least one thread, at most {MAX_THREADS}, and 64 in z",
                )  # fmt: skip
            elif math.prod(shape) > most:
                message = f"a block has {math.prod(shape)} threads{choice}, and `launch_bounds` allows {most}"
                hint = "give a smaller `block`, or let `launch_bounds` allow for it"
                self.reporter.error("P403", message, self._decorator_span(), hint)

    def _decorator_span(self) -> Span:
        node = self.source.decorator or self.source.function.name
        return self.module.span(node)

    # --- body ---

    def _docstring(self) -> str | None:
        text = self.source.function.get_docstring(clean=False)
        return inspect.cleandoc(text) if text else None

    def _scope(self, found: _Parameters, functions: FunctionReader) -> Scope:
        arrays = {p.name: p.type for p in found.arguments if isinstance(p.type, ArrayType)}
        scalars = {p.name for p in found.arguments if not isinstance(p.type, ArrayType)}
        scalars |= {index.name for index in found.indices}
        assigned = Counter(assigned_names(self.source.function.body.body))
        environment = functions.environment
        constexprs = {p.name: p.constexpr for p in found.arguments if p.constexpr is not None}
        extents = {name for type_ in arrays.values() for dim in type_.dims for name in names_in(dim)}
        extents |= {name for index in found.indices for name in names_in(index.extent)}
        extents |= {p.name for p in found.arguments if p.type == PY_INT}
        reader = BufferReader(
            self.reporter, environment, self.module.span, arrays, constexprs, frozenset(extents), found.launch
        )
        self._add_shared(found, reader)
        buffers = reader.read(self.source.function.body.body)
        arrays |= {name: buffer.type for name, buffer in buffers.items()}
        once = frozenset(name for name, count in assigned.items() if count == 1) - scalars
        scalars |= set(assigned) - set(arrays) - set(found.launch)
        return Scope(
            self.reporter,
            environment,
            self.module.span,
            found.launch,
            arrays,
            buffers,
            frozenset(scalars),
            frozenset(index.name for index in found.indices),
            frozenset(name for type_ in arrays.values() for dim in type_.dims for name in names_in(dim)),
            once,
            functions,
            returns=False,
            broken=frozenset(found.broken),
            starts=reader.starts,
            barriers=frozenset(given.name for given in found.block if given.type is None),
        )

    def _add_shared(self, found: _Parameters, reader: BufferReader) -> None:
        """The parameter `shared` as a buffer; one whose dtype is open takes that of an array annotated alike."""
        params = {param.name.value: param for param in all_parameters(self.source.function)}
        for given in found.block:
            if given.type is None:
                continue
            node, dtype = params[given.name], given.type.dtype
            unknown = set(names_in(given.type.dims[0])) - reader.extents
            if unknown:
                message = f"nothing tells the dimension `{min(unknown)}` of the shared memory"
                hint = "its extent is made of numbers, dimensions of arrays and whole parameters"
                self._error("P304", message, node.name, hint)
            same = [name for name, type_ in reader.arrays.items() if type_.dtype.variable == dtype.variable]
            like = same[0] if same and dtype.variable is not None else ""
            if dtype.variable is not None and not same:
                self._error("P408", "nothing tells the dtype of the shared memory", node.name, "name it: `Float32[…]`")
            buffer = ArrayDecl(
                given.name, given.type, Space.SHARED, like=like, span=self.module.span(node.name), is_parameter=True
            )
            reader.check_size(given.type.dims, dtype, Space.SHARED, node.name)
            reader.found[given.name] = reader.placed(buffer, node)


def _inits(options: KernelOptions, found: _Parameters) -> Iterator[tuple[str, int | float]]:
    """What outputs are filled with: where floats are, a whole number of many digits is one."""
    floats = {p.name for p in found.arguments if isinstance(p.type, ArrayType) and p.type.dtype.kind >= Kind.FLOAT}
    for name, value in options.init.items():
        is_plain = isinstance(value, int) and (name not in floats or abs(value) < 2**53)
        yield name, value if is_plain else float(value)


def _tells_threads_apart(node: Expr) -> bool:
    """True for what is another number in each thread: its place, or what an atomic operation finds."""
    return isinstance(node, LaunchIndex | Atomic) or (isinstance(node, Call) and node.function == LANE)
